"""Edge weights and damping in the golden models, pixel by pixel."""

from itertools import pairwise, product

import numpy as np
import pytest

from microkernels.bp.golden import coarse_problem, energy, iterate, labels
from microkernels.bp.problem import BpProblem, EdgeWeights, MessageDirection
from microkernels.bp.trws.jobs import trws_job
from microkernels.common.errors import KernelError
from microkernels.mrf.pair import edge_weights

STEPS = {
    MessageDirection.RIGHT: (1, 0),
    MessageDirection.LEFT: (-1, 0),
    MessageDirection.DOWN: (0, 1),
    MessageDirection.UP: (0, -1),
}


def problem(width: int, height: int, labels: int) -> BpProblem:
    rng = np.random.default_rng([width, height])
    weights = EdgeWeights(
        rng.integers(0, 5, (height, width - 1)), rng.integers(0, 5, (height - 1, width))
    )
    costs = rng.integers(-9, 40, (height, width, labels))
    return BpProblem(costs, rng.integers(0, 12, (labels, labels)), weights=weights)


def by_pixel(one: BpProblem, iterations: int, damping: int) -> np.ndarray:
    """Messages after BP-M with weights (3.1a) and damping, in whole numbers rounded half up."""
    height, width, count = one.data_costs.shape
    messages = np.zeros((4, height, width, count), int)
    for _, (direction, (across, down)) in product(range(iterations), STEPS.items()):
        ys, xs = range(height)[:: down or 1], range(width)[:: across or 1]
        for y, x in product(ys, xs):
            to = y + down, x + across
            if not (0 <= to[0] < height and 0 <= to[1] < width):
                continue
            opposite = direction ^ 1
            total = one.data_costs[y, x].astype(int) + messages[:, y, x].sum(axis=0)
            total -= messages[opposite, y, x]
            edge = min(y, to[0]), min(x, to[1])
            weight = (one.weights.right if across else one.weights.down)[edge]
            matrix = (
                one.smoothness.astype(int).T if direction.reverse else one.smoothness.astype(int)
            )
            raw = [min(weight * matrix[o] + total) for o in range(count)]
            new = np.array(raw) - raw[0]
            old = messages[direction, to[0], to[1]]
            messages[direction, to[0], to[1]] = (16 * new + damping * (old - new) + 8) // 16
    return messages


@pytest.mark.parametrize("damping", [0, 3, 8])
@pytest.mark.parametrize(("width", "height"), [(4, 3), (1, 5), (5, 1), (1, 1)])
def test_messages_are_those_of_the_definition(width: int, height: int, damping: int) -> None:
    one = problem(width, height, 3)
    assert (iterate(one, 2, damping=damping) == by_pixel(one, 2, damping)).all()


def test_energy_counts_weights() -> None:
    one = problem(3, 2, 3)
    chosen = np.array([[0, 2, 1], [1, 1, 2]])
    expected = sum(int(one.data_costs[y, x, chosen[y, x]]) for y, x in np.ndindex(2, 3))
    for y, x in np.ndindex(2, 2):
        cost = one.smoothness[chosen[y, x + 1], chosen[y, x]]
        expected += int(one.weights.right[y, x]) * int(cost)
    for x in range(3):
        expected += int(one.weights.down[0, x]) * int(one.smoothness[chosen[1, x], chosen[0, x]])
    assert energy(one, chosen) == expected


@pytest.mark.parametrize(("width", "height"), [(6, 4), (5, 3), (2, 7), (1, 1)])
def test_weights_of_blocks_are_half_of_those_between_their_pixels(width: int, height: int) -> None:
    one = problem(width, height, 2)
    coarse = coarse_problem(one, one.smoothness).weights
    rows, columns = -(-height // 2), -(-width // 2)
    sums = np.zeros((rows, columns - 1), int), np.zeros((rows - 1, columns), int)
    for (y, x), weight in np.ndenumerate(one.weights.right):
        if x // 2 != (x + 1) // 2:
            sums[0][y // 2, x // 2] += weight
    for (y, x), weight in np.ndenumerate(one.weights.down):
        if y // 2 != (y + 1) // 2:
            sums[1][y // 2, x // 2] += weight
    assert (coarse.right == (sums[0] + 1) // 2).all()
    assert (coarse.down == (sums[1] + 1) // 2).all()


def test_weights_follow_the_colours() -> None:
    picture = np.zeros((2, 3, 3), np.uint8)
    picture[0, 1] = 7
    picture[0, 2] = (7, 7, 19)
    found = edge_weights("gradient:7,4", picture)
    # Differences of 7, of 12 in one of three channels (6.9), and of 0.
    assert found.right.tolist() == [[1, 4], [4, 4]]
    assert found.down.tolist() == [[4, 1, 1]]


def test_damping_ends_an_alternation() -> None:
    costs = np.random.default_rng(31).integers(0, 10, (5, 5, 2))
    one = BpProblem(costs, 6 * (1 - np.eye(2, dtype=int)))

    def alternates(damping: int) -> bool:
        messages = iterate(one, 16, damping=damping)
        found = [labels(one, messages)]
        for _ in range(3):
            messages = iterate(one, 1, messages, damping)
            found.append(labels(one, messages))
        return any((a != b).any() for a, b in pairwise(found))

    assert alternates(0)
    assert not alternates(8)


def test_what_can_t_be_is_refused() -> None:
    one = problem(4, 4, 2)
    with pytest.raises(KernelError, match="TRW-S with edge weights works only by shifts"):
        trws_job(BpProblem(one.data_costs, np.array([[0, 1], [3, 0]]), weights=one.weights))
    with pytest.raises(KernelError, match=r"weights right must have the shape \(4, 3\)"):
        BpProblem(
            one.data_costs, one.smoothness, 16, EdgeWeights(one.weights.down, one.weights.down)
        )
    with pytest.raises(KernelError, match="go from 0 to 256"):
        EdgeWeights(np.array([[0, 256]]), np.array([[0]]))
    with pytest.raises(KernelError, match="not float64"):
        EdgeWeights(np.array([[0.5]]), np.array([[0]]))
    with pytest.raises(KernelError, match="weighted smoothness costs reach"):
        BpProblem(one.data_costs, 10_000 * one.smoothness.clip(0, 1), 16, one.weights)
    with pytest.raises(KernelError, match="damping"):
        iterate(one, 1, damping=16)
    for name in ("gradient", "gradient:8", "gradient:0,2", "gradient:8,256", "edges:8,2"):
        with pytest.raises(KernelError, match="unknown edges"):
            edge_weights(name, np.zeros((2, 2, 3), np.uint8))
