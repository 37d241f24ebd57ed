"""What a program must know of the vector unit to keep clear of its hazards (see isa.timing)."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isa.table import Instruction, Opcode
from isa.timing import VECTOR_HELD, VECTOR_LATENCY, WORD_BYTES, beats, passes, row_beats

__all__ = ["Span", "VectorHazards", "VectorOperation", "overlap"]

#: Longer ago than any latency.
_LONG_AGO = -(1 << 30)


@dataclass(frozen=True)
class Span:
    """Scratchpad bytes ``start .. start + size``."""

    start: int
    size: int

    @property
    def slice(self) -> slice:
        """The same, to index an array of bytes."""
        return slice(self.start, self.start + self.size)


def overlap(a: Span, b: Span) -> bool:
    """Whether a byte belongs to both."""
    return max(a.start, b.start) < min(a.start + a.size, b.start + b.size)


@dataclass(frozen=True)
class VectorOperation:
    """A vector instruction with its operands' addresses and the settings in force."""

    row: Instruction
    result: int
    first: int
    second: int
    vl: int
    mr: int

    @property
    def width(self) -> int:
        """Bytes of an element."""
        assert self.row.width is not None
        return self.row.width.bytes

    @property
    def spans(self) -> tuple[Span, ...]:
        """Result, first operand and, if the instruction has it, second operand."""
        w, vl = self.width, self.vl
        if self.row.reduction is not None:
            sizes = (self.mr * w, self.mr * vl * w, vl * w)
        else:
            sizes = (vl * w, vl * w, w if self.row.opcode == Opcode.VECTOR_SCALAR else vl * w)
        places = zip((self.result, self.first, self.second), sizes, strict=True)
        spans = tuple(Span(*place) for place in places)
        return spans if len(self.row.reads) > 2 else spans[:2]

    @property
    def reads_itself(self) -> bool:
        """Whether the result overwrites operands that are still to be read.

        An element may replace the very element that it is made from. The results of a matrix may
        start where it starts: result i lies in rows up to i, which have been read by then.
        """
        result, *operands = self.spans
        if self.row.reduction is not None:
            replaced = [self.result == self.first, False]
        else:
            replaced = [operand == result for operand in operands]
        return any(
            overlap(result, operand) and not same
            for operand, same in zip(operands, replaced, strict=False)
        )

    def read_beats(self) -> list[NDArray[np.int64]]:
        """For each operand, the beat that first reads each of its bytes."""
        each = passes(self.row)
        row = np.arange(self.vl * self.width) // WORD_BYTES * each
        found = [row, row]
        if self.row.reduction is not None:
            starts = np.arange(self.mr) * row_beats(self.row, self.vl)
            found = [(starts[:, None] + row[None, :]).ravel(), row]
        return [times[: span.size] for times, span in zip(found, self.spans[1:], strict=False)]

    def result_beats(self) -> NDArray[np.int64]:
        """The beat that completes each byte of the result."""
        each = passes(self.row)
        if self.row.reduction is not None:
            ends = (np.arange(self.mr) + 1) * row_beats(self.row, self.vl) - 1
            return np.repeat(ends, self.width)
        return np.arange(self.vl * self.width) // WORD_BYTES * each + each - 1


class VectorHazards:
    """Follows the vector instructions of a program and says what may come next without a drain.

    Time is counted in beats, as if every instruction followed the one before without a gap: that is
    the worst case.
    """

    def __init__(self, scratchpad_bytes: int) -> None:
        self._produced = np.full(scratchpad_bytes, _LONG_AGO, dtype=np.int64)
        self._results: list[Span] = []
        self._operands: deque[Sequence[Span]] = deque(maxlen=VECTOR_HELD)
        self._now = 0

    def drained(self) -> None:
        """A ``v.drain`` has been executed."""
        self._produced.fill(_LONG_AGO)
        self._results.clear()
        self._operands.clear()

    def allows(self, operation: VectorOperation) -> bool:
        """Whether ``operation`` may be issued now."""
        return all(
            bool(np.all(self._now + times - self._produced[span.slice] >= VECTOR_LATENCY))
            for span, times in zip(operation.spans[1:], operation.read_beats(), strict=True)
        )

    def allows_load(self, target: Span) -> bool:
        """Whether a load may write ``target`` now."""
        busy = [*self._results, *(span for spans in self._operands for span in spans)]
        return not any(overlap(target, span) for span in busy)

    def allows_store(self, source: Span) -> bool:
        """Whether a store may read ``source`` now."""
        return not any(overlap(source, span) for span in self._results)

    def issued(self, operation: VectorOperation) -> None:
        """``operation`` has been issued."""
        result, *operands = operation.spans
        self._produced[result.slice] = self._now + operation.result_beats()
        self._results.append(result)
        self._operands.append(operands)
        self._now += beats(operation.row, operation.vl, operation.mr)
