"""The golden model of TRW-S against the definition, pixel by pixel, and against all labellings."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microkernels.bp.golden import energy
from microkernels.bp.problem import BpProblem, EdgeWeights
from microkernels.bp.smoothness import smoothness_costs
from microkernels.bp.trws.golden import FRACTION, TrwsField
from microkernels.common.errors import KernelError

STEPS = ((1, 0), (-1, 0), (0, 1), (0, -1))


def problem(
    seed: int, width: int, height: int, labels: int, *, convex: bool = False, weights: bool = False
) -> BpProblem:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 12, (labels, labels))
    if convex:
        matrix = smoothness_costs(labels, "linear:2", 7)
    edges = None
    if weights:
        edges = EdgeWeights(
            rng.integers(0, 4, (height, width - 1)), rng.integers(0, 4, (height - 1, width))
        )
    return BpProblem(rng.integers(-9, 30, (height, width, labels)), matrix, weights=edges)


def by_pixel(one: BpProblem, iterations: int) -> list[np.ndarray]:
    """Labels after each iteration, as Kolmogorov (2006) states the algorithm."""
    height, width, labels = one.data_costs.shape
    unit = 1 << FRACTION
    pixels = list(product(range(height), range(width)))
    sent = {}

    def near(p: tuple[int, int]) -> list[tuple[int, int]]:
        found = [(p[0] + dy, p[1] + dx) for dx, dy in STEPS]
        return [q for q in found if 0 <= q[0] < height and 0 <= q[1] < width]

    def edge(p: tuple[int, int], a: int, q: tuple[int, int], b: int) -> int:
        later, earlier = (a, b) if p > q else (b, a)
        y, x = min(p, q)
        weight = 1
        if one.weights is not None:
            weight = int((one.weights.right if p[0] == q[0] else one.weights.down)[y, x])
        return weight * unit * int(one.smoothness[later, earlier])

    def message(p: tuple[int, int], q: tuple[int, int]) -> list[int]:
        return sent.get((p, q), [0] * labels)

    def decode() -> np.ndarray:
        found = np.zeros((height, width), int)
        for p in pixels:
            totals = []
            for a in range(labels):
                total = unit * int(one.data_costs[p][a])
                for q in near(p):
                    total += edge(p, a, q, found[q]) if q < p else message(q, p)[a]
                totals.append(total)
            found[p] = totals.index(min(totals))
        return found

    result = [decode()]
    for _ in range(iterations):
        for order in (pixels, pixels[::-1]):
            for p in order:
                total = [
                    unit * int(one.data_costs[p][a]) + sum(message(q, p)[a] for q in near(p))
                    for a in range(labels)
                ]
                before = sum(q < p for q in near(p))
                if max(before, len(near(p)) - before) == 2:
                    total = [(value + 1) // 2 for value in total]
                for q in near(p):
                    if (q > p) == (order is pixels):
                        back = message(q, p)
                        new = [
                            min(edge(p, a, q, b) + total[a] - back[a] for a in range(labels))
                            for b in range(labels)
                        ]
                        sent[p, q] = [value - min(new) for value in new]
        result.append(decode())
    return result


@pytest.mark.parametrize(
    ("width", "height", "labels"),
    [(4, 3, 3), (1, 5, 2), (5, 1, 3), (3, 4, 4), (1, 1, 2), (2, 2, 1)],
)
@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("weights", [False, True])
def test_labels_are_those_of_the_raster_order(
    width: int, height: int, labels: int, convex: bool, weights: bool
) -> None:
    one = problem(width + 7 * height, width, height, labels, convex=convex, weights=weights)
    expected = by_pixel(one, 3)
    energies = [first for first, _ in TrwsField(one).steps(3)]
    assert energies == [energy(one, labelling) for labelling in expected]
    field = TrwsField(one)
    for labelling in expected:
        assert (field.labels() == labelling).all()
        field.iterate()


def test_the_least_of_a_message_is_0() -> None:
    field = TrwsField(problem(5, 6, 5, 4, weights=True))
    field.iterate()
    assert (field.messages.min(axis=-1) == 0).all()


@given(st.integers(0, 999), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.booleans())
@settings(max_examples=40, deadline=None)
def test_the_bound_is_never_above_the_least_energy(seed, width, height, labels, weights) -> None:
    one = problem(seed, width, height, labels, weights=weights)
    every = product(range(labels), repeat=width * height)
    least = min(energy(one, np.reshape(each, (height, width))) for each in every)
    for reached, bound in TrwsField(one).steps(3):
        assert bound <= least <= reached


@pytest.mark.parametrize(("width", "height"), [(9, 1), (1, 9)])
@pytest.mark.parametrize("weights", [False, True])
def test_the_bound_is_tight_on_a_tree(width: int, height: int, weights: bool) -> None:
    one = problem(4, width, height, 4, weights=weights)
    *_, (reached, bound) = TrwsField(one).steps(4)
    assert bound == reached


def test_energy_and_bound_meet_closely() -> None:
    places = np.arange(8)
    matrix = 9 * np.minimum(np.abs(np.subtract.outer(places, places)), 2)
    costs = np.random.default_rng(8).integers(0, 40, (20, 24, 8))
    *_, (reached, bound) = TrwsField(BpProblem(costs, matrix)).steps(12)
    assert 0 <= reached - bound <= 0.02 * reached


def test_bad_input_is_refused() -> None:
    with pytest.raises(KernelError, match="iterations"):
        TrwsField(problem(1, 2, 2, 2)).steps(-1)
    large = BpProblem(np.full((1, 1, 2), 2048), np.zeros((2, 2), int))
    with pytest.raises(KernelError, match=r"reach 2048 with these costs; 16 bits .* allow 2047"):
        TrwsField(large)
