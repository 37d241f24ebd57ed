"""Intervals hold whatever numbers their operands can be."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.table import BranchOp, ScalarOp
from synth.analysis.interval import (
    ANY,
    Interval,
    Value,
    bounds,
    clip,
    evaluate,
    join,
    refine,
    signed,
    step_of,
)

_M64 = (1 << 64) - 1

#: Numbers of every size, many of them at the edges.
numbers = st.one_of(
    st.integers(ANY.low, ANY.high),
    st.integers(-70, 70),
    st.builds(
        lambda bit, sign, near: max(min(sign * (1 << bit) + near, ANY.high), ANY.low),
        st.integers(0, 63),
        st.sampled_from((1, -1)),
        st.integers(-2, 2),
    ),
)


@st.composite
def values(draw) -> tuple[Value, int]:
    """A value, and a number that it can be."""
    low, number, high = sorted(draw(st.tuples(numbers, numbers, numbers)))
    if draw(st.booleans()):
        return number, number
    steps = [step for step in (1, 2, 4, 8) if number % step == 0]
    step = draw(st.sampled_from(steps))
    return (low if low == high else Interval(low, high, step)), number


def holds(value: Value, number: int) -> bool:
    low, high = bounds(value)
    return low <= number <= high and number % step_of(value) == 0


@pytest.mark.parametrize("operation", ScalarOp)
@given(one=values(), other=values())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_results(operation: ScalarOp, one: tuple, other: tuple) -> None:
    (b, b_number), (c, c_number) = one, other
    exact = signed(operation.evaluate(b_number & _M64, c_number & _M64))
    assert holds(evaluate(operation, b, c), exact)


@pytest.mark.parametrize("branch", BranchOp)
@given(one=values(), other=values())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_branches(branch: BranchOp, one: tuple, other: tuple) -> None:
    (a, a_number), (b, b_number) = one, other
    taken = branch.taken(a_number & _M64, b_number & _M64)
    narrowed = refine(branch, taken, a, b)
    assert narrowed is not None
    assert holds(narrowed[0], a_number)
    assert holds(narrowed[1], b_number)
    for new, old in zip(narrowed, (a, b), strict=True):
        assert bounds(old)[0] <= bounds(new)[0] <= bounds(new)[1] <= bounds(old)[1]


@given(one=values(), other=values())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_join_and_clip(one: tuple, other: tuple) -> None:
    both = join(one[0], other[0])
    assert holds(both, one[1])
    assert holds(both, other[1])
    low, high = sorted((one[1], other[1]))
    kept = clip(both, low, high)
    assert kept is not None
    assert holds(kept, low)
    assert holds(kept, high)


@pytest.mark.parametrize(
    ("operation", "b", "c", "result"),
    [
        (ScalarOp.ADD, Interval(1, 5), 10, (11, 15)),
        (ScalarOp.SUB, 3, Interval(1, 5), (-2, 2)),
        (ScalarOp.ADD, Interval(0, ANY.high), 1, bounds(ANY)),
        (ScalarOp.SLL, Interval(-1, 3), 4, (-16, 48)),
        (ScalarOp.SRA, Interval(-16, 48), 4, (-1, 3)),
        (ScalarOp.SRL, Interval(16, 48), 4, (1, 3)),
        (ScalarOp.SRL, Interval(-1, 1), 60, (0, 15)),
        (ScalarOp.AND, ANY, 255, (0, 255)),
        (ScalarOp.OR, Interval(0, 3), 4, (0, 7)),
        (ScalarOp.XOR, Interval(-3, 3), 4, (-8, 7)),
    ],
)
def test_results_are_narrow_where_it_matters(
    operation: ScalarOp, b: Value, c: Value, result: tuple[int, int]
) -> None:
    assert bounds(evaluate(operation, b, c)) == result


def test_steps_are_kept() -> None:
    rows = Interval(0, 64, 8)
    assert evaluate(ScalarOp.ADD, rows, 4) == Interval(4, 68, 4)
    assert evaluate(ScalarOp.SUB, 16, rows) == Interval(-48, 16, 8)
    assert evaluate(ScalarOp.SLL, Interval(0, 5), 2) == Interval(0, 20, 4)
    assert evaluate(ScalarOp.SLL, Interval(0, 5), 9) == Interval(0, 2560, 8)
    assert evaluate(ScalarOp.SRA, rows, 2) == Interval(0, 16, 2)
    assert evaluate(ScalarOp.AND, ANY, ~7) == Interval(ANY.low, ANY.high, 8)
    assert evaluate(ScalarOp.OR, rows, 2) == Interval(0, 127, 2)
    # Multiples stay what they are when sums wrap.
    assert evaluate(ScalarOp.ADD, Interval(0, ANY.high, 4), 12) == Interval(ANY.low, ANY.high, 4)
    assert join(Interval(0, 8, 8), 20) == Interval(0, 20, 4)
    assert clip(rows, 3, 30) == Interval(8, 24, 8)
    assert clip(rows, 9, 15) is None
    assert refine(BranchOp.BLT, True, rows, 17) == (Interval(0, 16, 8), 17)
    assert [step_of(number) for number in (0, 1, 2, -4, 24, 12)] == [8, 1, 2, 4, 8, 4]


def test_branches_narrow_and_exclude() -> None:
    nine = Interval(0, 9)
    assert refine(BranchOp.BLT, True, Interval(0, 100), 10) == (nine, 10)
    assert refine(BranchOp.BLT, False, Interval(0, 100), 10) == (Interval(10, 100), 10)
    assert refine(BranchOp.BGE, True, 3, nine) == (3, Interval(0, 3))
    assert refine(BranchOp.BEQ, True, nine, Interval(9, 20)) == (9, 9)
    assert refine(BranchOp.BNE, True, nine, 9) == (Interval(0, 8), 9)
    assert refine(BranchOp.BNE, True, 4, 4) is None
    assert refine(BranchOp.BEQ, True, 4, Interval(5, 6)) is None
    assert refine(BranchOp.JMP, False, 0, 0) is None
