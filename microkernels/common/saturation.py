"""Counting of values that saturate in golden models.

A value counts once each time that it is limited to the width of an element: a sum or difference
of elements (also one that is only reduced further), the sum of a row, a scaled product. The
instruction set simulator counts the same (:attr:`isa.iss.simulator.Simulator.saturated`), and the
two agree if a program computes exactly the operations of its golden model. A program may compute
more: unused elements at the end of a last vector, or a sum that only takes time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["SaturationCount", "clip", "count_saturation"]


@dataclass(eq=False)
class SaturationCount:
    """Number of values that saturated."""

    values: int = 0


_active: list[SaturationCount] = []


@contextmanager
def count_saturation() -> Iterator[SaturationCount]:
    """Counts values that golden models limit while the context is open."""
    count = SaturationCount()
    _active.append(count)
    try:
        yield count
    finally:
        _active.remove(count)


def clip(values: NDArray[np.integer], low: int, high: int) -> NDArray[np.integer]:
    """``values`` limited to ``low``..``high``, and counted if they are beyond."""
    limited: NDArray[np.integer] = np.clip(values, low, high)
    if _active:
        clipped = int(np.count_nonzero(limited != values))
        for count in _active:
            count.values += clipped
    return limited
