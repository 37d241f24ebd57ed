"""Levels of hierarchical methods, and how iterations on them are counted."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from microkernels.bp.golden import coarse_problem
from microkernels.bp.problem import BpProblem
from vip.progress import Progress

__all__ = ["coarse_name", "coarse_problems", "counted"]

_GOLDEN = "golden model (iterations)"


def coarse_problems(
    problem: BpProblem, levels: int, smoothness: Sequence[NDArray[np.integer]] | None
) -> list[BpProblem]:
    """The problems of the coarse levels, each with half of the sides of the one before.

    Parameters:
        levels: with that of ``problem``, 1 or more.
        smoothness: costs of each coarse level; None: interpolated
            (:func:`microkernels.bp.golden.coarse_smoothness`).

    Raises:
        KernelError: smoothness costs that can't be used, or don't fit the element width.
    """
    problems = [problem]
    for level in range(levels - 1):
        costs = None if smoothness is None else smoothness[level]
        problems.append(coarse_problem(problems[-1], costs))
    return problems[1:]


def coarse_name(level: int) -> str:
    """Name of the launch on a coarse level; 1: that with half of the sides."""
    return "coarse" if level == 1 else f"coarse {level}"


def counted(progress: Progress, done: int, total: int) -> Callable[[int], None]:
    """Reports of iterations of the golden model, of which ``done`` came before."""
    return lambda step: progress(_GOLDEN, done + step, total)
