"""Golden model of TRW-S: sequential tree-reweighted message passing (thesis 3.1, Kolmogorov 2006).

Pixels are visited in raster order, then backwards. A pixel sends a message to each later neighbour.
With ``h`` the sum of the data cost and all messages that arrive at a pixel, and ``n`` the larger of
its numbers of earlier and later neighbours, the message to a neighbour ``w`` is

    ``r[o] = min over i of (S[o, i] + h[i] / n - m[i])``, then ``r - min(r)``,

with ``m`` the message from ``w`` and ``S`` as in :mod:`microkernels.bp.golden`, times the edge's
weight. On a grid ``n`` is 1 or 2. Numbers are integers with :data:`FRACTION` fraction bits; the
half is rounded half up, like the machine's products. Costs for which a sum might not fit an element
are refused, so no sum saturates and the order of additions does not matter.

The pixels of a diagonal are independent and are visited together, which gives the same results as
raster order. Arrays are *skewed*: pixel (x, y) is at ``[x + y, y]``.

*Labels* are chosen in raster order: each pixel takes the label with the smallest sum of data cost,
smoothness costs to the labels already chosen, and messages from later pixels.

*Lower bound*. For any messages and any labelling, the costs of pixels plus arriving messages, and
the costs of edges minus the messages along them in both directions, add up to the problem's energy.
Half of each pixel's costs goes to its row, half to its column. The minimum energies of all rows and
columns, found by dynamic programming, add up to at most the energy of any labelling. This holds for
all messages, hence for rounded ones too.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import CHECK, KernelError

from ..golden import energy, least_sums
from ..problem import BpProblem, Messages, check_messages, element_type
from ..shifts.transform import Transform, transform_of

#: Fraction bits of costs and messages.
FRACTION = 4

_Costs = NDArray[np.signedinteger]
_Scalar = TypeVar("_Scalar", bound=np.generic)


def check_costs(problem: BpProblem) -> None:
    """Check that every sum of TRW-S fits an element.

    A message is at least 0 and at most the largest difference ``D`` in a column of the smoothness
    costs ``S``, so sums are at most ``|data cost| + 5 D + |S|``.

    Raises:
        KernelError: a sum might not fit.
    """
    matrix = problem.smoothness.astype(np.int64)
    if problem.weights is not None:
        matrix *= problem.weights.most
    spread = max(int(np.ptp(one, axis=0).max()) for one in (matrix, matrix.T))
    costs = int(np.abs(problem.data_costs.astype(np.int64)).max())
    largest = costs + 5 * spread + int(np.abs(matrix).max())
    limit = (1 << problem.bits - 1 - FRACTION) - 1
    if largest > limit:
        raise KernelError(
            f"sums of TRW-S may reach {largest} with these costs; {problem.bits} bits with "
            f"{FRACTION} fraction bits allow {limit}"
            + ("; use 32 bits" if problem.bits < 32 else "")
        )


class TrwsField:
    """Costs and messages in fixed point.

    Parameters:
        problem: with ``S`` of any form; costs that have shifts
            (:mod:`microkernels.bp.shifts.transform`) are faster.
        messages: initial messages, in fixed point; None: all 0.

    Raises:
        KernelError: as for :func:`check_costs`, or messages of the wrong shape or range.
    """

    def __init__(self, problem: BpProblem, messages: Messages | None = None) -> None:
        check_costs(problem)
        self.problem = problem
        height, width = problem.height, problem.width
        dtype = element_type(problem.bits)
        start = problem.no_messages() if messages is None else check_messages(problem, messages)
        self._costs = _skewed(problem.data_costs << dtype.type(FRACTION))
        self._messages = [_skewed(one) for one in start]
        matrix = problem.smoothness << dtype.type(FRACTION)
        self._matrix: _Costs = matrix
        self._minima = _Minima(self._matrix)
        # Path costs count twice, along with everything that halving would round.
        wide = np.int32 if problem.bits < 32 else np.int64
        self._path_type: np.dtype[np.signedinteger[Any]] = np.dtype(wide)
        doubled: _Costs = 2 * matrix.astype(self._path_type)
        self._path_minima = _Minima(doubled)
        # For the edges from a pixel to the right and down.
        self._weights: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        if problem.weights is not None:
            right, down = problem.weights.right, problem.weights.down
            self._weights = (
                _skewed(np.pad(right, ((0, 0), (0, 1)))),
                _skewed(np.pad(down, ((0, 1), (0, 0)))),
            )
        y, x = np.indices((height, width))
        after = (x + 1 < width).astype(int) + (y + 1 < height)
        before = (x > 0).astype(int) + (y > 0)
        self._whole = _skewed((np.maximum(after, before) < 2)[..., None])[..., 0]

    @property
    def messages(self) -> Messages:
        """A copy of all messages, in fixed point."""
        result = self.problem.no_messages()
        for one, skewed in zip(result, self._messages, strict=True):
            for y in range(self.problem.height):
                one[y] = skewed[y : y + self.problem.width, y]
        return result

    def iterate(self) -> None:
        """Run one iteration: forwards and backwards."""
        diagonals = range(len(self._costs))
        for diagonal in diagonals:
            self._visit(diagonal, 1)
        for diagonal in reversed(diagonals):
            self._visit(diagonal, -1)

    def steps(
        self, iterations: int, begins: Callable[[int], None] | None = None
    ) -> list[tuple[int, int]]:
        """Energy of the labels and bound, below which no labelling is, before the first of
        ``iterations`` (0 or more) and after each.

        Parameters:
            begins: called with each iteration's number before it starts.

        Raises:
            KernelError: negative iterations.
        """
        CHECK.at_least("iterations", iterations, 0)
        steps = [self.step()]
        for number in range(iterations):
            if begins is not None:
                begins(number)
            self.iterate()
            steps.append(self.step())
        return steps

    def _rows(self, diagonal: int) -> tuple[int, int]:
        """First and end row of a diagonal's pixels."""
        return max(0, diagonal - self.problem.width + 1), min(self.problem.height, diagonal + 1)

    def _weight(self, down: bool, diagonal: int, rows: slice) -> NDArray[np.int64] | None:
        """Weights of the edges to the right or down from a diagonal's pixels; None: all are 1."""
        return None if self._weights is None else self._weights[down][diagonal, rows]

    def _part(self, diagonal: int, rows: slice) -> _Costs:
        """``h / n`` of a diagonal's pixels."""
        total: _Costs = self._costs[diagonal, rows].copy()
        for messages in self._messages:
            total += messages[diagonal, rows]
        part: _Costs = (total + 1) >> 1
        undivided = self._whole[diagonal, rows]
        if undivided.any():
            part[undivided] = total[undivided]
        return part

    def _visit(self, diagonal: int, step: int) -> None:
        """Send the messages of a diagonal's pixels to the next diagonal (``step`` 1) or to the
        previous one (-1)."""
        (first, end), (least, limit) = self._rows(diagonal), self._rows(diagonal + step)
        part = self._part(diagonal, slice(first, end))
        for down in (False, True):
            moving, opposite = self._messages[2 * down :][:2][::step]
            move = step * down
            rows = slice(max(first, least - move), min(end, limit - move))
            if rows.start >= rows.stop:
                continue
            to = slice(rows.start + move, rows.stop + move)
            sent = part[rows.start - first : rows.stop - first] - opposite[diagonal, rows]
            edge = (diagonal, rows) if step > 0 else (diagonal - 1, to)
            raw = self._minima.of(sent, self._weight(down, *edge), forwards=step > 0)
            moving[diagonal + step, to] = raw - raw.min(axis=1, keepdims=True)

    def step(self) -> tuple[int, int]:
        """Energy of the labels, and the bound."""
        return energy(self.problem, self.labels()), self.bound()

    def labels(self) -> NDArray[np.int64]:
        """``[y, x]``, chosen in raster order."""
        height, width = self.problem.height, self.problem.width
        chosen = np.zeros(self._costs.shape[:2], np.int64)
        _, left, _, up = self._messages
        by_label = self._matrix.T
        for diagonal, costs in enumerate(self._costs):
            first, end = self._rows(diagonal)
            rows = slice(first, end)
            total = costs[rows] + left[diagonal, rows] + up[diagonal, rows]
            # The left neighbour, then the upper one, in the previous diagonal.
            for down, first_one, end_one in (
                (False, first, min(end, diagonal)),
                (True, max(first, 1), end),
            ):
                if first_one >= end_one:
                    continue
                near = slice(first_one - down, end_one - down)
                edges = by_label[chosen[diagonal - 1, near]]
                weights = self._weight(down, diagonal - 1, near)
                if weights is not None:
                    edges = edges * weights[:, None].astype(edges.dtype)
                total[first_one - first : end_one - first] += edges
            chosen[diagonal, rows] = total.argmin(axis=1)
        return np.stack([chosen[y : y + width, y] for y in range(height)])

    def bound(self) -> int:
        """The lower bound, rounded up, as energies are integers."""
        right, left, down, up = self._messages
        total = 0
        rows = columns = np.zeros((0, self.problem.labels), self._path_type)
        for diagonal, costs in enumerate(self._costs):
            first, end = self._rows(diagonal)
            rows_of_diagonal, before = slice(first, end), self._rows(max(0, diagonal - 1))[0]
            half = costs[rows_of_diagonal].astype(self._path_type)
            for messages in self._messages:
                half += messages[diagonal, rows_of_diagonal]
            # Rows continue from the same row of the previous diagonal, columns from the row above.
            last, begin = min(end, diagonal), max(first, 1)
            path, columns_path = half.copy(), half
            for one, earlier, along, against, to, back in (
                (path, rows, right, left, slice(first, last), False),
                (columns_path, columns, down, up, slice(begin, end), True),
            ):
                if to.start >= to.stop:
                    continue
                back_to = slice(to.start - back, to.stop - back)
                ended = earlier[back_to.start - before : back_to.stop - before]
                ended = ended - 2 * against[diagonal - 1, back_to].astype(self._path_type)
                weights = self._weight(back, diagonal - 1, back_to)
                ended = self._path_minima.of(ended, weights)
                one[to.start - first : to.stop - first] += ended
                one[to.start - first : to.stop - first] -= 2 * along[diagonal, to].astype(
                    self._path_type
                )
            for one in (path, columns_path):
                least = one.min(axis=1)
                total += int(least.sum(dtype=np.int64))
                # A path's costs so far are counted; its end needs no more.
                one -= least[:, None]
            rows, columns = path, columns_path
        return -(-total // (2 << FRACTION))


def iterated(problem: BpProblem, iterations: int, messages: Messages | None) -> Messages:
    """The messages after ``iterations``, from ``messages`` on; None: all 0."""
    field = TrwsField(problem, messages)
    for _ in range(iterations):
        field.iterate()
    return field.messages


class _Minima:
    """``r[line, o] = min over i of (weight[line] * matrix[o, i] + totals[line, i])``.

    Parameters:
        matrix: small enough that no sum overflows the element.
    """

    def __init__(self, matrix: _Costs) -> None:
        self._matrix = matrix
        self._transform = transform_of(matrix)
        self._weighted: dict[int, _Minima] = {}

    def of(
        self, totals: _Costs, weights: NDArray[np.int64] | None, *, forwards: bool = True
    ) -> _Costs:
        """The minima; ``totals`` may be overwritten.

        Parameters:
            weights: of the lines; None: all are 1.
            forwards: with the matrix, not with its transpose.
        """
        if weights is not None:
            for weight in map(int, np.unique(weights)):
                alike = weights == weight
                if weight not in self._weighted:
                    matrix = self._matrix * self._matrix.dtype.type(weight)
                    self._weighted[weight] = _Minima(matrix)
                one = self._weighted[weight]
                totals[alike] = one.of(totals[alike], None, forwards=forwards)
            return totals
        if self._transform is not None:
            return _shifted(self._transform, totals)
        return least_sums(self._matrix if forwards else self._matrix.T, totals)


def _shifted(transform: Transform, totals: _Costs) -> _Costs:
    """The minima by shifts, replacing ``totals``."""
    limit = None
    if transform.plateau is not None:
        limit = totals.min(axis=1, keepdims=True) + totals.dtype.type(transform.plateau)
    for far, cost in transform.shifts:
        sums = totals + totals.dtype.type(cost)
        np.minimum(totals[:, far:], sums[:, :-far], out=totals[:, far:])
        np.minimum(totals[:, :-far], sums[:, far:], out=totals[:, :-far])
    if limit is not None:
        np.minimum(totals, limit, out=totals)
    return totals


def _skewed(values: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """``[y, x, ...]`` as ``[x + y, y, ...]``; the rest is 0."""
    height, width = values.shape[:2]
    result = np.zeros((height + width - 1, height, *values.shape[2:]), values.dtype)
    for y in range(height):
        result[y : y + width, y] = values[y]
    return result
