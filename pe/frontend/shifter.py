"""Shifters of the scalar unit, combinational."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from isa.table import REGISTER_WIDTH

__all__ = ["narrow_shift", "wide_shift"]

#: Bits of a shift's amount, whatever the width of the registers.
_STEPS = (REGISTER_WIDTH - 1).bit_length()


def wide_shift(m: Module, value: Value, amount: Value, *, left: Value, fill: Value) -> Value:
    """``value``, as wide as registers are in the instruction set, rotated and then filled.

    Parameters:
        amount: its low bits say by how much; all bits inverted to the left. left: direction.
        fill: bit that is shifted in from the left.
    """
    width = len(value)
    # To the left by n is to the right by width - n, which is 1 and all bits of n inverted.
    rotated: Value = Mux(left, value.rotate_right(1), value)
    for step in range(_STEPS):
        turned = Signal(width, name=f"turned_{1 << step}")
        m.d.comb += turned.eq(Mux(amount[step], rotated.rotate_right(1 << step), rotated))
        rotated = turned
    turns = amount[:_STEPS]
    keeps = Signal(width)
    m.d.comb += keeps.eq(
        Cat(
            Mux(left, turns >= width - 1 - place, turns <= width - 1 - place)
            for place in range(width)
        )
    )
    return (rotated & keeps) | (~keeps & fill.replicate(width))


def narrow_shift(m: Module, value: Value, amount: Value, *, left: Value) -> tuple[Value, Value]:
    """``value`` shifted to the left, or to the right with its sign, and whether to the left it lost
    bits that a signed value of its width needs.

    Parameters:
        value: of any width. amount: its low bits say by how much. left: direction.
    """
    width = len(value)
    fill = ~left & value[-1]
    shifted = Signal(width, name="unshifted")
    # To the left is to the right with the bits in reverse order.
    m.d.comb += shifted.eq(Mux(left, Cat(*reversed(value)), value))
    lost: Value = Const(0, 1)
    for step in range(_STEPS):
        distance = min(1 << step, width)
        leaving = shifted[: distance + 1]
        # All bits that leave must be copies of the sign; if no bit stays, all of them must be 0.
        fits = ~leaving.any() if distance == width else ~leaving.any() | leaving.all()
        lost = lost | (left & amount[step] & ~fits)
        moved = Signal(width, name=f"shifted_{1 << step}")
        m.d.comb += moved.eq(
            Mux(amount[step], Cat(shifted[distance:], fill.replicate(distance)), shifted)
        )
        shifted = moved
    return Mux(left, Cat(*reversed(shifted)), shifted), lost
