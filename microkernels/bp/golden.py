"""Golden model of BP-M: equations 2.10 and 2.11 of the thesis, bit-exact with the machine.

One update computes the message from pixel ``v`` to its neighbour ``w`` in the sweep's direction.
Every addition and subtraction saturates at the element width (docs/decisions/machine.md), so its
order matters and is part of the contract:

1. ``t = ((a + b) + c) + m``, with ``m`` the message that arrived at ``v`` in the sweep's direction,
   and

   - moving right or left: ``a``, ``b``, ``c`` = message moving up, message moving down, data cost,
   - moving down or up: ``a``, ``b``, ``c`` = data cost, message moving left, message moving right,

   all at ``v``. This is the order of the vectors in memory (:mod:`microkernels.bp.layout`),
   so one body of code serves all directions. Only the last addition depends on the message
   that the previous update produced.
2. ``r[o] = min over i of (S[o, i] + t[i])``, with ``S`` the smoothness costs, transposed when the
   sweep moves left or up.
3. The message is ``r - r[0]`` (thesis 6.1), element by element.

With edge weights (equation 3.1a) ``S`` is multiplied by the weight of the edge between ``v`` and
``w``. With damping, ``d`` sixteenths of the old message ``o`` remain in the new one, ``n``, which
is then ``n + (o - n) * d / 16``, the product rounded half up.

A sweep traverses each line (row or column) from end to end; each update uses the message that the
previous update produced. Lines are independent of each other. Messages that arrive at a line's
first pixel are read like any other and never written.

*Hierarchical BP-M* (thesis 7.2.1, and 3.1 after Felzenszwalb and Huttenlocher) has two levels. A
pixel of the *coarse* problem stands for a block of 2 x 2 pixels of the *fine* one:

1. *construct*: the data costs of a coarse pixel are the sums of the data costs of its block,
   ``(top left + top right) + (bottom left + bottom right)``, each addition saturating
   (docs/decisions/machine.md); pixels of a block beyond the image's edge cost 0;
2. BP-M on the coarse problem, with messages initialised to 0;
3. *copy*: each message of the fine problem is initialised with the message of the same direction at
   its block's coarse pixel;
4. BP-M on the fine problem, starting from these messages.

The weight of an edge between two blocks is half the sum of those of the edges between their pixels
(equation 3.1c), rounded half up.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import Elements, add, subtract

from .problem import BpProblem, EdgeWeights, MessageDirection, Messages, check_messages

#: Side of a block in pixels (epsilon in equation 3.1b).
BLOCK = 2
#: Steps of damping.
_SIXTEENTHS = 16


def check_damping(damping: int) -> None:
    """Check the old message's share of a new one, in sixteenths.

    Raises:
        KernelError: not within 0 to 15.
    """
    CHECK.within("damping in sixteenths", damping, 0, _SIXTEENTHS - 1)


def sweep(
    problem: BpProblem, messages: Messages, direction: MessageDirection, damping: int = 0
) -> None:
    """Update in place every message of ``messages`` (see :data:`Messages`) that moves in this
    direction.

    Parameters:
        damping: as for :func:`iterate`.
    """
    up, down = messages[MessageDirection.UP], messages[MessageDirection.DOWN]
    left, right = messages[MessageDirection.LEFT], messages[MessageDirection.RIGHT]
    moving = messages[direction]
    parts: tuple[Messages, ...] = (
        (up, down, problem.data_costs)
        if direction.horizontal
        else (problem.data_costs, left, right)
    )
    if direction.horizontal:
        parts = tuple(np.moveaxis(part, 1, 0) for part in parts)
        moving = np.moveaxis(moving, 1, 0)
    matrix = problem.smoothness
    weights = None
    if problem.weights is not None:
        weights = problem.weights.right.T if direction.horizontal else problem.weights.down
    if direction.reverse:
        matrix = matrix.T
        weights = None if weights is None else weights[::-1]
        parts = tuple(part[::-1] for part in parts)
        moving = moving[::-1]
    # Axis 0 now runs along the lines, axis 1 across them. The last place sends nothing.
    first, second, third = (part[: len(moving) - 1] for part in parts)
    lines = add(add(first, second), third)
    for step in range(len(lines)):
        total = add(lines[step], moving[step])
        if weights is None:
            raw = least_sums(matrix, total)
        else:
            raw = np.empty_like(total)
            for weight in np.unique(weights[step]):
                alike = weights[step] == weight
                raw[alike] = least_sums(matrix * matrix.dtype.type(weight), total[alike])
        new = subtract(raw, raw[:, :1])
        if damping:
            change = subtract(moving[step + 1], new).astype(np.int64) * damping
            new = add(new, (change + _SIXTEENTHS // 2) // _SIXTEENTHS)
        moving[step + 1] = new


def least_sums(matrix: Elements, totals: Elements) -> Elements:
    """``[line, o]``: ``min over i of (matrix[o, i] + totals[line, i])``, each sum saturated."""
    limits = np.iinfo(matrix.dtype)
    least = int(matrix.min()) + int(totals.min())
    largest = int(matrix.max()) + int(totals.max())
    if least < limits.min or largest > limits.max:
        saturated: Elements = add(matrix[None, :, :], totals[:, None, :]).min(axis=2)
        return saturated
    # No sum saturates, so none needs counting: one matrix column at a time stays in the caches.
    by_label = np.ascontiguousarray(totals.T)
    raw: Elements = np.add.outer(matrix[:, 0], by_label[0])
    sums = np.empty_like(raw)
    for column, values in zip(matrix.T[1:], by_label[1:], strict=True):
        np.add.outer(column, values, out=sums)
        np.minimum(raw, sums, out=raw)
    return raw.T


def iterate(
    problem: BpProblem,
    iterations: int,
    messages: NDArray[np.integer] | None = None,
    damping: int = 0,
) -> Messages:
    """Messages after ``iterations`` (0 or more) iterations of sweeps right, left, down and up.

    Parameters:
        messages: initial messages; None: all 0. Not changed.
        damping: sixteenths of the old message in a new one, 0 to 15.

    Raises:
        KernelError: a negative number of iterations, messages of the wrong shape or range, damping
            out of range.
    """
    if iterations < 0:
        raise KernelError(f"iterations must be 0 or more, not {iterations}")
    check_damping(damping)
    result = problem.no_messages() if messages is None else check_messages(problem, messages)
    for _ in range(iterations):
        for direction in MessageDirection:
            sweep(problem, result, direction, damping)
    return result


def beliefs(problem: BpProblem, messages: Messages) -> NDArray[np.int64]:
    """``[y, x, label]``: data cost plus the four messages, as exact integers (equation 2.11)."""
    checked = check_messages(problem, messages)
    total: NDArray[np.int64] = problem.data_costs + checked.sum(axis=0, dtype=np.int64)
    return total


def labels(problem: BpProblem, messages: Messages) -> NDArray[np.int64]:
    """``[y, x]``: the most favourable label of each pixel (equation 2.11); ties: the lowest."""
    result: NDArray[np.int64] = beliefs(problem, messages).argmin(axis=2)
    return result


def energy(problem: BpProblem, chosen: NDArray[np.integer]) -> int:
    """Total cost of a labelling ``[y, x]``: data costs plus the smoothness costs of all edges.

    Raises:
        KernelError: wrong shape, or labels that the problem doesn't have.
    """
    grid = np.asarray(chosen)
    if grid.shape != (problem.height, problem.width):
        raise KernelError(
            f"a labelling must have the shape {(problem.height, problem.width)}, not {grid.shape}"
        )
    if grid.min() < 0 or grid.max() >= problem.labels:
        raise KernelError(f"labels must be from 0 to {problem.labels - 1}")
    data = np.take_along_axis(problem.data_costs, grid[:, :, None], axis=2).sum(dtype=np.int64)
    rows = problem.smoothness[grid[:, 1:], grid[:, :-1]].astype(np.int64)
    columns = problem.smoothness[grid[1:], grid[:-1]].astype(np.int64)
    if problem.weights is not None:
        rows *= problem.weights.right
        columns *= problem.weights.down
    return int(data + rows.sum() + columns.sum())


def percent_wrong(
    labels: NDArray[np.integer], truth: NDArray[np.integer], *, tolerance: int = 1
) -> float:
    """Percentage of pixels with known truth (not -1) that are more than ``tolerance`` labels off.

    Raises:
        KernelError: different shapes, or no pixel with known truth.
    """
    if labels.shape != truth.shape:
        raise KernelError(f"labels of shape {labels.shape} for a truth of shape {truth.shape}")
    has_truth = truth >= 0
    if not has_truth.any():
        raise KernelError("the true disparity of no pixel is known")
    return float(100 * (np.abs(labels - truth)[has_truth] > tolerance).mean())


def coarse_smoothness(smoothness: NDArray[np.integer]) -> NDArray[np.int64]:
    """Smoothness costs of the coarse problem: ``2 V(d / 2)`` for labels ``d`` apart (3.1b).

    ``V`` is interpolated linearly between whole differences: for odd ``d`` the result is
    ``V((d - 1) / 2) + V((d + 1) / 2)``.

    Parameters:
        smoothness: ``[a, b]``, a function of ``a - b`` only.

    Raises:
        KernelError: ``smoothness`` is not such a function.
    """
    matrix = np.asarray(smoothness, np.int64)
    labels = len(matrix)
    difference = np.subtract.outer(np.arange(labels), np.arange(labels))
    by_difference = np.concatenate([matrix[0, :0:-1], matrix[:, 0]])
    if (by_difference[difference + labels - 1] != matrix).any():
        raise KernelError(
            "the smoothness costs do not depend only on the labels' difference: also give those "
            "of the coarse problem"
        )
    low, high = difference // BLOCK, -(-difference // BLOCK)
    result: NDArray[np.int64] = by_difference[low + labels - 1] + by_difference[high + labels - 1]
    return result


def coarse_problem(problem: BpProblem, smoothness: NDArray[np.integer] | None = None) -> BpProblem:
    """The coarse problem of ``problem``; an odd last row or column also forms a block.

    Parameters:
        smoothness: of the coarse problem; None: :func:`coarse_smoothness` of the problem's.

    Raises:
        KernelError: smoothness costs that can't be used, or don't fit the element width.
    """
    height, width, labels = problem.data_costs.shape
    rows, columns = -(-height // BLOCK), -(-width // BLOCK)
    costs = np.zeros((rows * BLOCK, columns * BLOCK, labels), problem.data_costs.dtype)
    costs[:height, :width] = problem.data_costs
    top = add(costs[::2, ::2], costs[::2, 1::2])
    bottom = add(costs[1::2, ::2], costs[1::2, 1::2])
    coarse: Any = coarse_smoothness(problem.smoothness) if smoothness is None else smoothness
    weights = None if problem.weights is None else _coarse_weights(problem.weights)
    return BpProblem(add(top, bottom), coarse, problem.bits, weights)


def _coarse_weights(weights: EdgeWeights) -> EdgeWeights:
    # Edges between blocks leave a block's last column or row.
    right = weights.right[:, 1::2]
    down = weights.down[1::2]
    sums = (
        right[::2] + np.pad(right[1::2], ((0, len(right) % 2), (0, 0))),
        down[:, ::2] + np.pad(down[:, 1::2], ((0, 0), (0, down.shape[1] % 2))),
    )
    return EdgeWeights(*((one + 1) // BLOCK for one in sums))


def copied(problem: BpProblem, coarse: Messages) -> Messages:
    """Initial messages of the fine ``problem``, copied from those of its coarse one.

    Raises:
        KernelError: messages of the wrong shape or range.
    """
    fine = coarse.repeat(BLOCK, axis=1).repeat(BLOCK, axis=2)
    return check_messages(problem, fine[:, : problem.height, : problem.width])


def iterate_levels(
    problem: BpProblem,
    coarse_iterations: int,
    iterations: int,
    smoothness: NDArray[np.integer] | None = None,
    damping: int = 0,
    messages: Messages | None = None,
) -> Messages:
    """Messages after ``coarse_iterations`` on the coarse problem and then ``iterations`` on
    ``problem`` (each 0 or more).

    Parameters:
        smoothness: of the coarse problem; see :func:`coarse_problem`.
        damping: as for :func:`microkernels.bp.golden.iterate`.
        messages: initial messages of the coarse problem; None: all 0.

    Raises:
        KernelError: as for :func:`coarse_problem`, or negative iterations.
    """
    coarse = iterate(coarse_problem(problem, smoothness), coarse_iterations, messages, damping)
    return iterate(problem, iterations, copied(problem, coarse), damping)
