"""Which vector instructions of a straight run need a ``v.drain`` before them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from isa.timing import VECTOR_LATENCY, WORD_BYTES

__all__ = ["Spacing", "Span"]


class Span(NamedTuple):
    """Bytes of the scratchpad, counted from any fixed place."""

    place: int
    length: int


class Spacing:
    """Keeps the times at which a straight run of element-wise instructions reads and writes, on an
    axis on which the vector unit never waits (:mod:`isa.timing`).

    It begins with nothing on its way: behind a ``v.drain``, or at the start of the program.
    """

    def __init__(self) -> None:
        self._now = 0
        self._written: list[tuple[Span, int, int]] = []

    def needs_drain(self, reads: Sequence[Span], result: Span, *, passes: int = 1) -> bool:
        """Whether the run's next instruction comes too early without a ``v.drain`` before it. It
        counts as issued, with the drain if it needs one.

        Parameters:
            reads: its operands; a single element counts as read with the first word.
            result: what it writes.
            passes: cycles that a word takes (:func:`isa.timing.passes`).
        """
        drain = any(self._early(read, passes) for read in reads)
        if drain:
            self._written.clear()
        self._written.append((result, self._now, passes))
        self._now += -(-result.length // WORD_BYTES) * passes
        return drain

    def _early(self, read: Span, passes: int) -> bool:
        for written, start, took in self._written:
            low = max(read.place, written.place)
            places = np.arange(low, min(read.place + read.length, written.place + written.length))
            when = self._now + (places - read.place) // WORD_BYTES * passes
            made = start + (places - written.place) // WORD_BYTES * took + took - 1
            if np.any(when - made < VECTOR_LATENCY):
                return True
        return False
