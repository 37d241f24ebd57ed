"""The minimum by shifts against the minimum over the matrix, with hostile values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microkernels.bp.shifts.transform import Transform, transform_of
from microkernels.bp.smoothness import smoothness_costs


def matrix_of(values: list[int]) -> np.ndarray:
    places = np.arange(len(values))
    return np.array(values)[np.abs(np.subtract.outer(places, places))]


def by_matrix(matrix: np.ndarray, t: list[int], bits: int) -> list[int]:
    """Equation 2.10 with saturating sums, term by term."""
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return [
        min(max(low, min(high, int(cost) + value)) for cost, value in zip(row, t, strict=True))
        for row in matrix
    ]


def by_shifts(transform: Transform, t: list[int], bits: int) -> list[int]:
    """The transform as its module describes it, label by label."""
    high = (1 << bits - 1) - 1
    u = list(t)
    if transform.plateau is not None:
        bound = min(high, min(t) + transform.plateau)
        u = [min(value, bound) for value in u]
    for far, cost in transform.shifts:
        source = t if transform.parallel else u
        u = [
            min(
                u[o],
                *(min(high, source[i] + cost) for i in (o - far, o + far) if 0 <= i < len(u)),
                high,
            )
            for o in range(len(u))
        ]
    return u


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("potts", 9, Transform((), 5)),
        ("linear:2", 9, Transform(((1, 5),), 10)),
        ("linear:4", 9, Transform(((1, 5), (2, 10)), 20)),
        ("linear:8", 60, Transform(((1, 5), (2, 10), (4, 20)), 40)),
        ("linear", 3, Transform(((1, 5),), 10)),
        ("quadratic:7", 9, Transform(((1, 5), (1, 15)), 35)),
        ("linear", 2, Transform((), 5)),
        ("linear", 1, Transform((), None)),
    ],
)
def test_named_costs(name: str, labels: int, expected: Transform) -> None:
    assert transform_of(smoothness_costs(labels, name, 5)) == expected


@pytest.mark.parametrize(
    "values",
    [[1, 2, 3], [0, 5, 3], [0, 5, 7, 9, 9, 10], [0, 3, 4, 9, 9], [0, -1, 0]],
)
def test_other_costs_need_the_matrix(values: list[int]) -> None:
    assert transform_of(matrix_of(values)) is None


def test_costs_that_are_no_function_of_the_distance_need_the_matrix() -> None:
    matrix = matrix_of([0, 2, 4, 4])
    matrix[2, 1] += 1
    assert transform_of(matrix) is None


@st.composite
def hostile(draw):
    """Convex costs that end in a plateau or don't, and totals of which many saturate."""
    bits = draw(st.sampled_from([8, 16]))
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    labels = draw(st.integers(1, 20))
    edge = st.sampled_from([0, 1, 2, high // 3, high - 1, high])
    steps = sorted(draw(st.lists(edge | st.integers(0, high), min_size=labels, max_size=labels)))
    limit = draw(edge | st.integers(0, high))
    values = [min(limit, sum(steps[:d])) for d in range(labels)]
    one = st.sampled_from([low, low + 1, -1, 0, high - 1, high]) | st.integers(low, high)
    return bits, values, draw(st.lists(one, min_size=labels, max_size=labels))


@given(hostile())
@settings(max_examples=400, deadline=None)
def test_shifts_equal_the_matrix_bit_for_bit(case) -> None:
    bits, values, t = case
    transform = transform_of(matrix_of(values))
    assert transform is not None
    assert by_shifts(transform, t, bits) == by_matrix(matrix_of(values), t, bits)
    assert by_shifts(transform.flat, t, bits) == by_matrix(matrix_of(values), t, bits)


def test_two_shifts_by_one_label_are_parallel() -> None:
    flat = Transform(((1, 5), (2, 20)), 35, parallel=True)
    assert transform_of(smoothness_costs(9, "quadratic:7", 5)).flat == flat
    once = transform_of(smoothness_costs(9, "linear:4", 5))
    assert once.flat is once
