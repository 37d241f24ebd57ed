"""Timing of the vector unit that programs may rely on, and the scratchpad bytes that a vector
instruction reads and writes in its beats.

The vector unit works through an instruction in *beats* of one 64-bit word per cycle and takes the
next instruction without a gap. It has no interlocks of its own: a program keeps a beat that reads a
scratchpad byte at least :data:`VECTOR_LATENCY` cycles after the beat that produces it, or places a
``v.drain`` between. Kernel generators use these functions; the hardware is built and tested against
them.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .program import Span
from .table import Instruction

#: Bytes that the vector datapath processes per cycle.
WORD_BYTES = 8

#: Cycles from the beat that reads an element's operands to the first beat that may read its result
#: from the scratchpad.
VECTOR_LATENCY = 12

#: Instructions that the vector unit holds: the one it works on and one that waits. When it takes
#: another, the instruction :data:`VECTOR_HELD` places before that one has read its last operands,
#: so a program knows when it may store a result or load over an operand.
VECTOR_HELD = 2


def row_beats(instruction: Instruction, vl: int) -> int:
    """Cycles for ``vl`` elements (one matrix row, or a whole ``v.v`` or ``v.s``)."""
    assert instruction.width is not None
    words = -(-vl * instruction.width.bytes // WORD_BYTES)
    return words * instruction.passes


def beats(instruction: Instruction, vl: int, mr: int) -> int:
    """Vector-unit cycles of ``instruction`` with ``vl`` elements and ``mr`` rows."""
    rows = mr if instruction.reduction is not None else 1
    return rows * row_beats(instruction, vl)


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
