"""Golden model of hierarchical BP-M (thesis 7.2.1, and 3.1 after Felzenszwalb and Huttenlocher).

Two levels. A pixel of the *coarse* problem stands for a block of 2 x 2 pixels of the *fine* one:

1. *construct*: the data costs of a coarse pixel are the sums of the data costs of its block,
   ``(top left + top right) + (bottom left + bottom right)``, each addition saturating
   (docs/decisions/machine.md); pixels of a block beyond the image's edge cost 0;
2. BP-M on the coarse problem, with messages initialised to 0;
3. *copy*: each message of the fine problem is initialised with the message of the same direction
   at the coarse pixel of its block;
4. BP-M on the fine problem, starting from these messages.

The weight of an edge between two blocks is half the sum of those of the edges between their pixels
(equation 3.1c), rounded half up.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import add

from .golden import iterate
from .problem import BpProblem, EdgeWeights, Messages, check_messages

__all__ = ["BLOCK", "coarse_problem", "coarse_smoothness", "copied", "iterate_levels"]

#: Pixels of a side of a block (epsilon in equation 3.1b).
BLOCK = 2


def coarse_smoothness(smoothness: NDArray[np.integer]) -> NDArray[np.int64]:
    """Smoothness costs of the coarse problem: ``2 V(d / 2)`` for labels ``d`` apart (3.1b).

    ``V`` is interpolated linearly between whole differences: for odd ``d`` the result is
    ``V((d - 1) / 2) + V((d + 1) / 2)``.

    Parameters:
        smoothness: ``[a, b]``, a function of ``a - b`` alone.

    Raises:
        KernelError: ``smoothness`` is not such a function.
    """
    matrix = np.asarray(smoothness, np.int64)
    labels = len(matrix)
    difference = np.subtract.outer(np.arange(labels), np.arange(labels))
    by_difference = np.concatenate([matrix[0, :0:-1], matrix[:, 0]])
    if (by_difference[difference + labels - 1] != matrix).any():
        raise KernelError(
            "the smoothness costs are no function of the difference of labels: give those of the "
            "coarse problem too"
        )
    low, high = difference // BLOCK, -(-difference // BLOCK)
    result: NDArray[np.int64] = by_difference[low + labels - 1] + by_difference[high + labels - 1]
    return result


def coarse_problem(problem: BpProblem, smoothness: NDArray[np.integer] | None = None) -> BpProblem:
    """The coarse problem of ``problem``; an odd row or column at the end makes a block too.

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
    """Messages of the fine ``problem``, begun from those of its coarse one.

    Raises:
        KernelError: messages of a wrong shape or range.
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
        damping: as of :func:`microkernels.bp.golden.iterate`.
        messages: where the coarse problem begins; None: all 0.

    Raises:
        KernelError: as :func:`coarse_problem`, or negative iterations.
    """
    coarse = iterate(coarse_problem(problem, smoothness), coarse_iterations, messages, damping)
    return iterate(problem, iterations, copied(problem, coarse), damping)
