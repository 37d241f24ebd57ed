"""Smoothness costs whose messages need no matrix: the minimum by shifts.

For smoothness costs that depend only on the distance ``d`` of two labels, ``V(d)``, the new message
``r[o] = min over i of (V(|o - i|) + t[i])`` is a distance transform of ``t`` (Felzenszwalb and
Huttenlocher 2006). If ``V`` starts at 0, never falls, rises in non-decreasing steps up to a
distance ``D - 1`` (is convex there) and is constant (``P``) from ``D`` on, then ``r`` follows from

1. ``u[o] = min(t[o], min(t) + P)`` for the plateau ``P``;
2. for each *shift* by ``m`` labels at cost ``c``: ``u[o] = min(u[o], u[o - m] + c, u[o + m] + c)``,
   without terms outside the labels.

The shifts are those of runs of equal steps ``s``: with ``k`` labels reached, a shift by up to
``k + 1`` labels reaches up to ``2 k + 1``, so a run of ``n`` equal steps takes about
``log2(n + 1)`` shifts. A convex ``V`` is the cheapest sum of its steps (infimal convolution), so
the runs follow one another.

*Saturation.* The result equals the matrix's bit for bit, even if sums saturate. All costs are 0 or
more, so a sum saturates only at the upper end, and a sum of saturating sums, ``sat(sat(t + c) +
c')``, is ``sat(t + (c + c'))``. ``sat`` never falls, hence it commutes with minima: ``sat(min(t) +
P)`` is the minimum of ``sat(t[i] + P)``. For each pair ``o, i``, the shifts thus produce terms
``sat(t[i] + c)`` for several sums ``c``, the smallest of which is ``V(|o - i|)`` or, beyond ``D``,
not below ``P``, which the plateau provides for every ``i``. Those above ``V(|o - i|)`` don't change
the minimum. The path from ``i`` to ``o`` that costs ``V(|o - i|)`` goes in one direction, so it
never leaves the labels.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Transform:
    """Smoothness costs as shifts; see the module's text.

    Attributes:
        shifts: in order, the distance in labels, at least 1, and the cost, at least 0.
        plateau: ``P``; None: there is none.
        parallel: each shift takes ``t`` instead of ``u``.
    """

    shifts: tuple[tuple[int, int], ...]
    plateau: int | None
    parallel: bool = False

    @property
    def instructions(self) -> int:
        """Number of roughly vector-length instructions that compute ``r`` from ``t``."""
        return 3 * len(self.shifts) + (0 if self.plateau is None else 2)

    @property
    def flat(self) -> "Transform":
        """The same with shifts in parallel if this takes no more of them: beside a plateau two
        shifts by one label are one by one label and one by two, with the sum of the costs. Neither
        waits for the other, nor for the plateau."""
        if self.plateau is None or [far for far, _ in self.shifts] != [1, 1]:
            return self
        (_, first), (_, second) = self.shifts
        return Transform(((1, first), (2, first + second)), self.plateau, parallel=True)


def transform_of(smoothness: NDArray[np.integer]) -> Transform | None:
    """The transform with the fewest instructions that equals ``smoothness[a, b]``; None if there is
    none."""
    matrix = np.asarray(smoothness, np.int64)
    labels = len(matrix)
    values = matrix[0]
    places = np.arange(labels)
    if values[0] != 0 or (matrix != values[np.abs(np.subtract.outer(places, places))]).any():
        return None
    steps = np.diff(values)
    if (steps < 0).any():
        return None
    end = int(np.flatnonzero(values != values[-1])[-1]) + 1 if values[-1] else 0
    # The costs are convex up to this distance; the plateau takes over from the next.
    transforms = []
    if labels > 1 and _convex(steps[: max(0, end - 1)]):
        transforms.append(Transform(_shifts(steps[: max(0, end - 1)]), int(values[-1])))
    if _convex(steps):
        transforms.append(Transform(_shifts(steps), None))
    return min(transforms, key=lambda one: one.instructions, default=None)


def _convex(steps: NDArray[np.int64]) -> bool:
    return not (np.diff(steps) < 0).any()


def _shifts(steps: NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    result = []
    for step in np.unique(steps):
        left, reached = int((steps == step).sum()), 0
        while reached < left:
            shift = min(reached + 1, left - reached)
            result.append((shift, shift * int(step)))
            reached += shift
    return tuple(result)
