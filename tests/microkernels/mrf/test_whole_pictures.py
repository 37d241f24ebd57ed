"""Energies after every iteration on pictures, against BP-M and TRW-S written anew in NumPy.

These follow the definitions as closely as the pixel by pixel ones of the other tests, but many
pixels at once, so that they end on a photograph: BP-M a column or row, TRW-S a diagonal.
"""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from microkernels.bp import golden as bp_golden
from microkernels.bp.problem import BpProblem
from microkernels.bp.trws.golden import FRACTION, TrwsField
from microkernels.data.stereo import motorcycle

#: Steps [dy, dx] to the neighbours; in raster order the first two are later.
RIGHT, DOWN, LEFT, UP = (0, 1), (1, 0), (0, -1), (-1, 0)
Costs = NDArray[np.int64]


def total_energy(one: BpProblem, chosen: NDArray[np.int64]) -> int:
    y, x = np.indices(chosen.shape)
    matrix = one.smoothness.astype(np.int64)
    across = matrix[chosen[:, 1:], chosen[:, :-1]].sum()
    down = matrix[chosen[1:, :], chosen[:-1, :]].sum()
    return int(one.data_costs[y, x, chosen].sum(dtype=np.int64) + across + down)


def least(later_first: Costs, values: Costs, step: tuple[int, int]) -> Costs:
    """For each label of the receiver the least sum over the sender's labels."""
    # Rows are the later pixel's labels: the receiver's for steps to the right and down.
    costs = later_first if step in (RIGHT, DOWN) else later_first.T
    return np.stack([(row + values).min(axis=1) for row in costs], axis=1)


def bp_energies(one: BpProblem, iterations: int) -> Iterator[int]:
    height, width, labels = one.data_costs.shape
    matrix = one.smoothness.astype(np.int64)
    arrived = {
        step: np.zeros((height, width, labels), np.int64) for step in (RIGHT, DOWN, LEFT, UP)
    }
    for _ in range(iterations):
        for step in (RIGHT, LEFT, DOWN, UP):
            dy, dx = step
            length = width if dx else height
            places = range(length - 1) if dx + dy > 0 else range(length - 1, 0, -1)
            for place in places:
                at = np.s_[:, place] if dx else np.s_[place, :]
                to = np.s_[:, place + dx] if dx else np.s_[place + dy, :]
                total = one.data_costs[at].astype(np.int64)
                for other, messages in arrived.items():
                    if other != (-dy, -dx):
                        total = total + messages[at]
                new = least(matrix, total, step)
                arrived[step][to] = new - new[:, :1]
        beliefs = one.data_costs + sum(arrived.values())
        yield total_energy(one, beliefs.argmin(axis=2))


def trws_energies(one: BpProblem, iterations: int) -> Iterator[int]:
    height, width, labels = one.data_costs.shape
    unit = 1 << FRACTION
    data = unit * one.data_costs.astype(np.int64)
    matrix = unit * one.smoothness.astype(np.int64)
    arrived = {
        step: np.zeros((height, width, labels), np.int64) for step in (RIGHT, DOWN, LEFT, UP)
    }

    def diagonals() -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        for number in range(width + height - 1):
            y = np.arange(max(0, number - width + 1), min(height, number + 1))
            yield y, number - y

    def inside(
        y: NDArray[np.int64], x: NDArray[np.int64], step: tuple[int, int]
    ) -> NDArray[np.bool_]:
        below, beside = y + step[0], x + step[1]
        return (below >= 0) & (below < height) & (beside >= 0) & (beside < width)

    def decoded() -> int:
        found = np.zeros((height, width), np.int64)
        for y, x in diagonals():
            total = data[y, x] + arrived[LEFT][y, x] + arrived[UP][y, x]
            for dy, dx in (LEFT, UP):
                near = inside(y, x, (dy, dx))
                total[near] += matrix[:, found[y[near] + dy, x[near] + dx]].T
            found[y, x] = total.argmin(axis=1)
        return total_energy(one, found)

    yield decoded()
    for _ in range(iterations):
        for steps, order in (((RIGHT, DOWN), 1), ((LEFT, UP), -1)):
            for y, x in list(diagonals())[::order]:
                total = data[y, x] + sum(messages[y, x] for messages in arrived.values())
                before = sum(inside(y, x, step).astype(int) for step in (LEFT, UP))
                behind = sum(inside(y, x, step).astype(int) for step in (RIGHT, DOWN))
                halved = np.maximum(before, behind) == 2
                total[halved] = (total[halved] + 1) // 2
                for step in steps:
                    dy, dx = step
                    near = inside(y, x, step)
                    back = arrived[(-dy, -dx)][y[near], x[near]]
                    new = least(matrix, total[near] - back, step)
                    # By the least of them, as the thesis does: halves round differently by others.
                    new -= new.min(axis=1, keepdims=True)
                    arrived[step][y[near] + dy, x[near] + dx] = new
        yield decoded()


@pytest.mark.parametrize(
    ("size", "iterations"),
    [
        ((36, 24, 8), 4),
        pytest.param((741, 500, 54), 3, marks=pytest.mark.slow),
    ],
)
def test_energies_of_a_photograph(size: tuple[int, int, int], iterations: int) -> None:
    one = motorcycle(*size).problem
    messages = one.no_messages()
    for expected in bp_energies(one, iterations):
        messages = bp_golden.iterate(one, 1, messages)
        assert bp_golden.energy(one, bp_golden.labels(one, messages)) == expected
    found = [reached for reached, _ in TrwsField(one).steps(iterations)]
    assert found == list(trws_energies(one, iterations))
