"""Numbers of flags."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value


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


def set_flags(m: Module, flags: Signal, changes: Sequence[tuple[Value, Value, bool]]) -> None:
    """Change bits of the register ``flags`` in the next cycle.

    All bits have one enable, hence one clock gate. Synthesis would make an enable for each bit of
    multiplexers.

    Parameters:
        changes: when, the number of the bit, and its new value; of one bit the last counts.
    """
    following: Value = flags
    for number, (when, index, value) in enumerate(changes):
        bit = Signal(len(flags), name=f"{flags.name}_{number}")
        m.d.comb += bit.eq((Const(1, 1) << index) & when.replicate(len(flags)))
        following = following | bit if value else following & ~bit
    with m.If(Cat(when for when, _, _ in changes).any()):
        m.d.sync += flags.eq(following)
