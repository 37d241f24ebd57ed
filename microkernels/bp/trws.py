"""Golden model of TRW-S: sequential tree-reweighted message passing (thesis 3.1, Kolmogorov 2006).

Pixels are visited in raster order, then backwards. A pixel sends a message to each neighbour behind
it in the order. With ``h`` the sum of the data cost and all messages that arrive at a pixel, and
``n`` the larger one of the numbers of its neighbours before and behind it, the message to a
neighbour ``w`` is

    ``r[o] = min over i of (S[o, i] + h[i] / n - m[i])``, then ``r - r[0]``,

with ``m`` the message from ``w`` and ``S`` as in :mod:`microkernels.bp.golden`. On a grid ``n`` is
1 or 2. Numbers are whole, with :data:`FRACTION` fraction bits; the half is rounded half up, as the
machine's products are. Pixels of a diagonal don't depend on each other and are visited together,
which gives the results of the raster order.

*Labels* are chosen in raster order: each pixel takes the label with the least sum of data cost,
smoothness costs to the labels chosen before, and messages from the pixels behind it.

*Lower bound*. For any messages, the costs of pixels plus arriving messages, and the costs of edges
less the messages along them in both directions, have the energy of the problem for every labelling.
Half of each pixel's costs goes to its row, half to its column. The least energies of all rows and
columns, found by dynamic programming, add up to at most the energy of any labelling. This holds
whatever the messages are, hence for rounded ones too.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import CHECK, KernelError

from .golden import energy
from .problem import BpProblem, Direction

__all__ = ["FRACTION", "TrwsStep", "trws"]

#: Fraction bits of costs and messages.
FRACTION = 4
#: Largest sum of costs, in units of the problem, for which all sums fit 32 bits.
_LARGEST = 1 << 24

_Costs = NDArray[np.signedinteger]
_BEHIND = (Direction.RIGHT, Direction.DOWN)
_BEFORE = (Direction.LEFT, Direction.UP)
#: Change of x and y in a direction.
_STEP = {
    Direction.RIGHT: (1, 0),
    Direction.LEFT: (-1, 0),
    Direction.DOWN: (0, 1),
    Direction.UP: (0, -1),
}
_OPPOSITE = {
    Direction.RIGHT: Direction.LEFT,
    Direction.LEFT: Direction.RIGHT,
    Direction.DOWN: Direction.UP,
    Direction.UP: Direction.DOWN,
}


@dataclass(frozen=True, eq=False)
class TrwsStep:
    """State after an iteration.

    Attributes:
        labels: ``[y, x]``. energy: of these. bound: no labelling has less energy.
    """

    labels: NDArray[np.int64]
    energy: int
    bound: int


def trws(problem: BpProblem, iterations: int) -> Iterator[TrwsStep]:
    """The states before the first iteration, with all messages 0, and after each.

    Parameters:
        iterations: passes forwards and backwards, 0 or more.

    Raises:
        KernelError: negative iterations, or costs for which sums don't fit 32 bits.
    """
    CHECK.at_least("iterations", iterations, 0)
    largest = sum(
        int(np.abs(costs.astype(np.int64)).max())
        for costs in (problem.data_costs, problem.smoothness)
    )
    if largest >= _LARGEST:
        raise KernelError(f"costs add up to {largest}; TRW-S takes less than {_LARGEST}")
    return _steps(_Field(problem), iterations)


def _steps(field: "_Field", iterations: int) -> Iterator[TrwsStep]:
    yield field.step()
    for _ in range(iterations):
        for forwards in (True, False):
            for diagonal in field.diagonals if forwards else reversed(field.diagonals):
                field.send(diagonal, _BEHIND if forwards else _BEFORE)
        yield field.step()


class _Field:
    """Costs and messages in fixed point."""

    def __init__(self, problem: BpProblem) -> None:
        self.problem = problem
        self.costs: _Costs = problem.data_costs.astype(np.int32) << FRACTION
        self.matrix: _Costs = problem.smoothness.astype(np.int32) << FRACTION
        self.messages: _Costs = np.zeros((len(Direction), *self.costs.shape), np.int32)
        y, x = np.indices((problem.height, problem.width))
        self.diagonals = [
            (y[x + y == number], x[x + y == number])
            for number in range(problem.height + problem.width - 1)
        ]

    def _inside(
        self, direction: Direction, y: NDArray[np.intp], x: NDArray[np.intp]
    ) -> NDArray[np.bool_]:
        """Which pixels have a neighbour in a direction."""
        across, down = _STEP[direction]
        found: NDArray[np.bool_] = (
            (x + across >= 0)
            & (x + across < self.problem.width)
            & (y + down >= 0)
            & (y + down < self.problem.height)
        )
        return found

    def send(
        self, pixels: tuple[NDArray[np.intp], NDArray[np.intp]], to: tuple[Direction, ...]
    ) -> None:
        """The messages of a diagonal's pixels in these directions."""
        y, x = pixels
        total = self.costs[y, x] + self.messages[:, y, x].sum(axis=0)
        behind, before = (
            sum(self._inside(direction, y, x).astype(int) for direction in directions)
            for directions in (_BEHIND, _BEFORE)
        )
        halved = (np.maximum(behind, before) == 2)[:, None]
        part = np.where(halved, (total + 1) >> 1, total)
        for direction in to:
            inside = self._inside(direction, y, x)
            if not inside.any():
                continue
            sent = (part - self.messages[_OPPOSITE[direction], y, x])[inside]
            matrix = self.matrix.T if direction.reverse else self.matrix
            raw = _least_sums(matrix, sent)
            across, down = _STEP[direction]
            self.messages[direction, y[inside] + down, x[inside] + across] = raw - raw[:, :1]

    def step(self) -> TrwsStep:
        """Labels, their energy, and the bound."""
        labels = self._labels()
        return TrwsStep(labels, energy(self.problem, labels), self._bound())

    def _labels(self) -> NDArray[np.int64]:
        labels = np.zeros(self.costs.shape[:2], np.int64)
        for y, x in self.diagonals:
            total = self.costs[y, x] + self.messages[Direction.LEFT, y, x]
            total += self.messages[Direction.UP, y, x]
            for before, (across, down) in ((x > 0, (-1, 0)), (y > 0, (0, -1))):
                chosen = labels[y[before] + down, x[before] + across]
                total[before] += self.matrix.T[chosen]
            labels[y, x] = total.argmin(axis=1)
        return labels

    def _bound(self) -> int:
        """The lower bound, rounded up: energies are whole."""
        half = self.costs.astype(np.int64) + self.messages.sum(axis=0)
        rows = self._least(half, Direction.RIGHT)
        columns = self._least(half.swapaxes(0, 1), Direction.DOWN)
        return -(-(rows + columns) // (2 << FRACTION))

    def _least(self, half: NDArray[np.int64], direction: Direction) -> int:
        """Twice the sum of the least energies of all lines ``half[line, place, label]``."""
        along, against = self.messages[direction], self.messages[_OPPOSITE[direction]]
        if direction is Direction.DOWN:
            along, against = along.swapaxes(0, 1), against.swapaxes(0, 1)
        matrix = 2 * self.matrix.astype(np.int64)
        best = half[:, 0]
        for place in range(1, half.shape[1]):
            # The edge's costs less the messages along it.
            best = _least_sums(matrix, best - 2 * against[:, place - 1])
            best = best - 2 * along[:, place] + half[:, place]
        return int(best.min(axis=1).sum())


def _least_sums(matrix: NDArray[np.signedinteger], totals: NDArray[np.signedinteger]) -> _Costs:
    """``[line, o]``: ``min over i of (matrix[o, i] + totals[line, i])``."""
    by_label = np.ascontiguousarray(totals.T)
    raw = np.add.outer(matrix[:, 0], by_label[0])
    sums = np.empty_like(raw)
    for column, values in zip(matrix.T[1:], by_label[1:], strict=True):
        np.add.outer(column, values, out=sums)
        np.minimum(raw, sums, out=raw)
    result: _Costs = raw.T
    return result
