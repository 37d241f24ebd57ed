"""The first of several flags."""

from amaranth.hdl import Cat, Const, Mux, Value

__all__ = ["lowest_one"]


def lowest_one(flags: Value) -> Value:
    """Number of the lowest bit of ``flags`` that is 1, as a tree; undefined if there is none.

    Its width is that of the highest bit's number.
    """
    return _search(flags)[1]


def _search(flags: Value) -> tuple[Value, Value]:
    """Whether there is a 1, and where."""
    if len(flags) == 1:
        return flags[0], Const(0, 0)
    half = 1 << ((len(flags) - 1).bit_length() - 1)
    below, low = _search(flags[:half])
    above, high = _search(flags[half:])
    if half == 1:
        return below | above, ~below
    return below | above, Cat(Mux(below, low, high)[: len(low)], ~below)
