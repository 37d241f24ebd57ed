"""Numbers of flags."""

from amaranth.hdl import Cat, Const, Mux, Value


def index_of(one_hot: Value) -> Value:
    """Number of the one bit of ``one_hot`` that is 1; 0 if there is none."""
    count = len(one_hot)
    bits = (count - 1).bit_length()
    masks = [sum(1 << n for n in range(count) if n >> bit & 1) for bit in range(bits)]
    return Cat((one_hot & mask).any() for mask in masks)


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
