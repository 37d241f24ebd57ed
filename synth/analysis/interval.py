"""Intervals of signed 64-bit numbers, and the effect of scalar instructions and branches on them.

A known value is a plain number, one that advances with each turn of a loop a :class:`Ramp`, any
other an :class:`Interval`. All functions are sound: the value returned includes the result for
every choice of numbers in the operands; if it is a ramp, then turn by turn.
"""

from typing import NamedTuple

from isa.table import BranchOp, ScalarOp

_HIGH = (1 << 63) - 1
_LOW = -(1 << 63)
_M64 = (1 << 64) - 1


#: Largest step that is tracked: the bytes of a scratchpad word.
_MOST = 8


class Interval(NamedTuple):
    """Numbers from ``low`` to ``high`` inclusive, at least two.

    Attributes:
        step: 1, 2, 4 or 8; all numbers are multiples of it.
    """

    low: int
    high: int
    step: int = 1


class Ramp(NamedTuple):
    """The number ``base + slope * i`` in each turn i of a loop.

    Attributes:
        slope: not 0.
        turns: number of turns, at least 2; the same of all ramps that meet in an operation.
    """

    base: int
    slope: int
    turns: int

    @property
    def low(self) -> int:
        """The lowest number."""
        return self.base + min(0, self.slope * (self.turns - 1))

    @property
    def high(self) -> int:
        """The highest number."""
        return self.base + max(0, self.slope * (self.turns - 1))

    @property
    def step(self) -> int:
        """The largest of 1, 2, 4 and 8 that divides every number."""
        return min(step_of(self.base), step_of(self.slope))


#: A number, an interval, or the numbers of a loop's turns.
Value = int | Interval | Ramp

#: Every number that a register can hold.
ANY = Interval(_LOW, _HIGH)


def signed(pattern: int) -> int:
    """The signed number with the bits of ``pattern`` (0..2**64 - 1)."""
    return pattern - (1 << 64) if pattern >> 63 else pattern


def bounds(value: Value) -> tuple[int, int]:
    """The lowest and highest number that ``value`` can be."""
    return (value, value) if isinstance(value, int) else (value.low, value.high)


def step_of(value: Value) -> int:
    """The largest of 1, 2, 4 and 8 that divides every number of ``value``."""
    if isinstance(value, int):
        return min(value & -value, _MOST) if value else _MOST
    return value.step


def _value(low: int, high: int, step: int = 1) -> Value:
    return low if low == high else Interval(low, high, step)


def _fitting(low: int, high: int, step: int) -> Value:
    """``low``..``high``, or any multiple of ``step`` if these may wrap."""
    fits = low >= _LOW and high <= _HIGH
    return _value(low, high, step) if fits else Interval(_LOW, _HIGH, step)


def ramp(base: int, slope: int, turns: int) -> Value:
    """The numbers ``base + slope * i`` in turns 0 to ``turns`` - 1, at least 2."""
    return Ramp(base, slope, turns) if slope else base


def line_of(value: int | Ramp) -> tuple[int, int]:
    """Base and slope; a plain number has slope 0."""
    return (value, 0) if isinstance(value, int) else (value.base, value.slope)


def join(one: Value, other: Value) -> Value:
    """The smallest interval that contains both."""
    (a, b), (c, d) = bounds(one), bounds(other)
    return _value(min(a, c), max(b, d), min(step_of(one), step_of(other)))


def clip(value: Value, low: int, high: int) -> Value | None:
    """The part of ``value`` within ``low``..``high``; None if there is none."""
    a, b = bounds(value)
    if isinstance(value, int):
        return value if low <= value <= high else None
    if isinstance(value, Ramp) and low <= a and b <= high:
        return value
    step = value.step
    # Round the ends inwards to multiples.
    a, b = -(-max(a, low) // step) * step, min(b, high) // step * step
    return _value(a, b, step) if a <= b else None


def evaluate(operation: ScalarOp, b: Value, c: Value) -> Value:
    """Result of a scalar instruction."""
    if isinstance(b, int) and isinstance(c, int):
        return signed(operation.evaluate(b & _M64, c & _M64))
    if (line := _linear(operation, b, c)) is not None:
        return line
    (b_low, b_high), (c_low, c_high) = bounds(b), bounds(c)
    step = min(step_of(b), step_of(c))
    if operation is ScalarOp.ADD:
        return _fitting(b_low + c_low, b_high + c_high, step)
    if operation is ScalarOp.SUB:
        return _fitting(b_low - c_high, b_high - c_low, step)
    if operation in (ScalarOp.SLL, ScalarOp.SRL, ScalarOp.SRA):
        return _shift(operation, b, c)
    if operation is ScalarOp.AND:
        step = max(step_of(b), step_of(c))
    return _bitwise(operation, (b_low, b_high), (c_low, c_high), step)


def _linear(operation: ScalarOp, b: Value, c: Value) -> Value | None:
    """Result of a scalar instruction on a ramp and another or a number; None if it is not linear,
    or may wrap."""
    if isinstance(b, Interval) or isinstance(c, Interval):
        return None
    turns = next(value.turns for value in (b, c) if isinstance(value, Ramp))
    (base, slope), (c_base, c_slope) = line_of(b), line_of(c)
    if operation is ScalarOp.ADD:
        base, slope = base + c_base, slope + c_slope
    elif operation is ScalarOp.SUB:
        base, slope = base - c_base, slope - c_slope
    elif operation is ScalarOp.SLL and not c_slope:
        base, slope = base << (c_base & 63), slope << (c_base & 63)
    elif operation is ScalarOp.AND and not c_slope and c_base >= 0:
        # Advancing by a multiple of a ring's size does not change the position in the ring.
        if slope % (1 << c_base.bit_length()):
            return None
        base, slope = base & c_base, 0
    else:
        return None
    result = ramp(base, slope, turns)
    low, high = bounds(result)
    return result if low >= _LOW and high <= _HIGH else None


def _shift(operation: ScalarOp, value: Value, amount: Value) -> Value:
    low, high = bounds(value)
    if isinstance(amount, int):
        amount &= 63
        if operation is ScalarOp.SLL:
            return _fitting(low << amount, high << amount, min(step_of(value) << amount, _MOST))
        if operation is ScalarOp.SRA or low >= 0 or amount == 0:
            return _value(low >> amount, high >> amount, max(1, step_of(value) >> amount))
        return _value(0, _M64 >> amount)
    if operation is ScalarOp.SLL or (operation is ScalarOp.SRL and low < 0):
        return ANY
    # Shifting right moves towards 0 or -1.
    return _value(min(low, 0), max(high, -1))


def _bitwise(operation: ScalarOp, b: tuple[int, int], c: tuple[int, int], step: int) -> Value:
    if operation is ScalarOp.AND and (b[0] >= 0 or c[0] >= 0):
        return _value(0, min(high for low, high in (b, c) if low >= 0), step)
    bits = max(
        number.bit_length() if number >= 0 else (~number).bit_length() for number in (*b, *c)
    )
    low = 0 if b[0] >= 0 and c[0] >= 0 else -(1 << bits)
    return _value(low, (1 << bits) - 1, step)


def refine(branch: BranchOp, taken: bool, a: Value, b: Value) -> tuple[Value, Value] | None:
    """Values of ``a`` and ``b`` after a branch on them is taken or not; None if impossible."""
    if branch is BranchOp.JMP:
        return (a, b) if taken else None
    if branch in (BranchOp.BGE, BranchOp.BNE):
        # Same as the inverse branch going the other way.
        branch = BranchOp.BLT if branch is BranchOp.BGE else BranchOp.BEQ
        taken = not taken
    (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
    new_a: Value | None
    new_b: Value | None
    if branch is BranchOp.BLT and taken:
        new_a, new_b = clip(a, _LOW, b_high - 1), clip(b, a_low + 1, _HIGH)
    elif branch is BranchOp.BLT:
        new_a, new_b = clip(a, b_low, _HIGH), clip(b, _LOW, a_high)
    elif taken:
        new_a, new_b = clip(a, b_low, b_high), clip(b, a_low, a_high)
    else:
        new_a, new_b = _without(a, b), _without(b, a)
    return None if new_a is None or new_b is None else (new_a, new_b)


def _without(value: Value, other: Value) -> Value | None:
    if not isinstance(other, int):
        return value
    low, high = bounds(value)
    return clip(value, low + (low == other), high - (high == other))
