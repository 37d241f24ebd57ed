"""Numbers that advance by a constant from turn to turn of a loop, and what becomes of them."""

from typing import NamedTuple

from isa.table import BranchOp, ScalarOp

from .interval import Interval, Value, evaluate, signed, step_of

__all__ = ["EVER", "Line", "computed", "outcome"]

#: More turns than any loop has.
EVER = 1 << 64


class Line(NamedTuple):
    """The number ``base + slope * i`` in turn i."""

    base: int
    slope: int

    def over(self, turns: int) -> Value:
        """All of them from turn 0 to ``turns`` - 1."""
        if not self.slope:
            return self.base
        ends = self.base, self.base + self.slope * (turns - 1)
        step = min(step_of(self.base), step_of(self.slope))
        return Interval(min(ends), max(ends), step)


def computed(operation: ScalarOp, b: Line | None, c: Line | None) -> Line | None:
    """Result of a scalar instruction; None: no line."""
    if b is None or c is None:
        return None
    if not (b.slope or c.slope):
        value = evaluate(operation, b.base, c.base)
        assert isinstance(value, int)
        return Line(signed(value & ((1 << 64) - 1)), 0)
    if operation is ScalarOp.ADD:
        return Line(b.base + c.base, b.slope + c.slope)
    if operation is ScalarOp.SUB:
        return Line(b.base - c.base, b.slope - c.slope)
    if operation is ScalarOp.AND and not c.slope and c.base >= 0:
        # Whole turns of a ring of buffers leave the place in it as it is.
        ring = 1 << c.base.bit_length()
        return Line(b.base & c.base, 0) if b.slope % ring == 0 else None
    if operation is ScalarOp.SLL and not c.slope:
        amount = c.base & 63
        return Line(b.base << amount, b.slope << amount)
    return None


def outcome(operation: BranchOp, a: Line, b: Line) -> tuple[bool, int]:
    """Whether a branch is taken in turn 0, and the number of turns from there on with the same."""
    base, slope = a.base - b.base, a.slope - b.slope
    if operation in (BranchOp.BLT, BranchOp.BGE):
        less = base < 0
        if less:
            count = -(base // slope) if slope > 0 else EVER
        else:
            count = base // -slope + 1 if slope < 0 else EVER
        return less == (operation is BranchOp.BLT), count
    equal = base == 0
    count = EVER
    if slope:
        if equal:
            count = 1
        elif base % slope == 0 and -(base // slope) > 0:
            count = -(base // slope)
    return equal == (operation is BranchOp.BEQ), count
