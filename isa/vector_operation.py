"""The scratchpad bytes that a vector instruction reads and writes, and their beats.

Extents come from the instruction table, beats from :mod:`isa.timing`.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .declared import Span
from .table import Instruction
from .timing import WORD_BYTES, beats, row_beats


class Extents:
    """The bytes that a vector instruction touches under given settings, without its addresses.

    Parameters:
        row: of the instruction table. vl, mr: settings.

    Attributes:
        result: bytes of the result. operands: bytes of each operand that is read, in order.
        beats: cycles in the vector unit.
    """

    def __init__(self, row: Instruction, vl: int, mr: int) -> None:
        assert row.width is not None
        self.row, self.vl, self.mr = row, vl, mr
        self.result, *operands = (
            row.width.bytes * operand.extent.elements(vl, mr) for operand in row.scratchpad
        )
        self.operands = tuple(operands)
        self.beats = beats(row, vl, mr)

    def _of_words(self, size: int) -> NDArray[np.int64]:
        """The beat of a row that first reads each of its first ``size`` bytes."""
        return np.arange(size) // WORD_BYTES * self.row.passes

    @cached_property
    def read_beats(self) -> tuple[NDArray[np.int64], ...]:
        """For each operand, the beat that first reads each of its bytes; ascending."""
        beats = [self._of_words(size) for size in self.operands]
        if self.row.reduction is not None:
            row = self._of_words(self.operands[0] // self.mr)
            starts = np.arange(self.mr) * row_beats(self.row, self.vl)
            beats[0] = (starts[:, None] + row[None, :]).ravel()
        return tuple(beats)

    @cached_property
    def last_read_beats(self) -> tuple[NDArray[np.int64], ...]:
        """For each operand, the beat that last reads each of its bytes; ascending."""
        first, *rest = self.read_beats
        rows = 1 if self.row.reduction is None else self.mr
        last = (rows - 1) * row_beats(self.row, self.vl)
        return (first, *(times + last for times in rest))

    @cached_property
    def result_beats(self) -> NDArray[np.int64]:
        """The beat that completes each byte of the result; ascending."""
        assert self.row.width is not None
        if self.row.reduction is not None:
            ends = (np.arange(self.mr) + 1) * row_beats(self.row, self.vl) - 1
            return np.repeat(ends, self.row.width.bytes)
        return self._of_words(self.result) + self.row.passes - 1


_EXTENTS: dict[tuple[str, int, int], Extents] = {}


def extents(row: Instruction, vl: int, mr: int) -> Extents:
    """The bytes that ``row``, a vector instruction, touches with ``vl`` elements, ``mr`` rows."""
    # Cached by key: hashing a whole row of the table takes longer than the computation.
    at = (row.key, vl, mr)
    if (touched := _EXTENTS.get(at)) is None:
        touched = _EXTENTS[at] = Extents(row, vl, mr)
    return touched


class VectorOperation(NamedTuple):
    """A vector instruction with its operands' addresses and the settings in force.

    Attributes:
        row: of the instruction table. result, first, second: scratchpad addresses; ``second`` is
            ignored by an instruction that reads one operand. vl, mr: settings.
    """

    row: Instruction
    result: int
    first: int
    second: int
    vl: int
    mr: int

    @property
    def extents(self) -> Extents:
        """The bytes that it touches, without its addresses."""
        return extents(self.row, self.vl, self.mr)

    @property
    def spans(self) -> tuple[Span, ...]:
        """Result, first operand and, if the instruction reads it, second operand."""
        sizes = self.extents
        places = (self.first, self.second)
        operands = (Span(*span) for span in zip(places, sizes.operands, strict=False))
        return (Span(self.result, sizes.result), *operands)

    @property
    def reads_itself(self) -> bool:
        """Whether the result overwrites operands before they are read.

        An element may replace the element it is computed from. The results of a matrix may start
        where it starts: result i lies in rows up to i, which have been read by then.
        """
        result, *operands = self.spans
        if self.row.reduction is not None:
            replaced = [self.result == self.first, False]
        else:
            replaced = [operand == result for operand in operands]
        return any(
            result.overlaps(operand) and not same
            for operand, same in zip(operands, replaced, strict=False)
        )
