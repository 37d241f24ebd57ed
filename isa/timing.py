"""Timing of the vector unit that programs may rely on, the scratchpad bytes that a vector
instruction reads and writes in its beats, and *hazards*: accesses that come too early.

The vector unit works through an instruction in *beats* of one 64-bit word per cycle and takes the
next instruction without a gap. It has no interlocks of its own: a program keeps a beat that reads a
scratchpad byte at least :data:`VECTOR_LATENCY` cycles after the beat that produces it, or places a
``v.drain`` between. Kernel generators use these functions; the hardware is built and tested against
them.

:class:`HazardModel` follows the vector instructions, loads and stores that a program executes and
reports those that come too early. Kernels are built and checked with it, random programs are
generated with it, and runs log its findings (:mod:`isa.hazards`). The compiled simulator has the
same model in C++ (``isa/compiled/hazards.h``) and must report the same hazards.

Time is counted in beats, as if each vector instruction followed the one before without a gap. The
vector unit can only wait longer than that, so distances between beats are lower bounds. A load or
store is taken to issue as early as it can: when the vector unit takes the instruction before it, so
that the instruction :data:`VECTOR_HELD` places before that one has just read its last operand.
Accesses closer than the contract allows in this worst case are a :class:`Hazard`, whether or not a
run is affected.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .program import SourceLine, Span
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


class HazardKind(StrEnum):
    """Kind of access that comes too early."""

    #: A vector instruction reads a result of another.
    VECTOR_READ = "vector read"
    #: A store reads a result.
    STORE = "store"
    #: A load overwrites bytes that a vector instruction still has to read.
    LOAD_OVER_OPERANDS = "load over operands"
    #: A load overwrites bytes that a vector instruction still has to write.
    LOAD_OVER_RESULTS = "load over results"
    #: A vector instruction overwrites its own operand before it has read it.
    OWN_OPERAND = "result over own operand"


#: Accesses of the later and of the earlier instruction to the bytes concerned.
DOES = {
    HazardKind.VECTOR_READ: ("reads", "makes"),
    HazardKind.STORE: ("reads", "makes"),
    HazardKind.LOAD_OVER_OPERANDS: ("overwrites", "reads"),
    HazardKind.LOAD_OVER_RESULTS: ("overwrites", "writes"),
}


@dataclass(frozen=True)
class Hazard:
    """A scratchpad access that comes too early.

    Attributes:
        pc: instruction that comes too early (word address). key: its key in the instruction table.
        what: the kind.
        address: scratchpad byte with the smallest distance.
        other, other_key: the earlier instruction; with ``OWN_OPERAND``, the same one.
        distance: cycles between the two in the worst case; negative: the one that must come later
            may come first. needed: cycles that the contract asks for. Both None with
            ``OWN_OPERAND``.
        times: number of occurrences.
    """

    pc: int
    key: str
    what: HazardKind
    address: int
    other: int
    other_key: str
    distance: int | None
    needed: int | None
    times: int = 1

    def describe(self, source: Mapping[int, SourceLine] | None = None) -> str:
        """One human-readable line.

        Parameters:
            source: word address -> line of assembly, where known.
        """
        lines = source or {}

        def place(pc: int) -> str:
            line = lines.get(pc)
            return f"word {pc}" if line is None else f"word {pc} ({line.file}:{line.line})"

        count = "" if self.times == 1 else f" ({self.times} times)"
        head = f"{self.key} at {place(self.pc)}"
        if self.what is HazardKind.OWN_OPERAND:
            return (
                f"{head} writes scratchpad byte {self.address:#x}, an operand that it still has "
                f"to read{count}"
            )
        does, did = DOES[self.what]
        return (
            f"{head} {does} scratchpad byte {self.address:#x}, which {self.other_key} at "
            f"{place(self.other)} {did}: distance {self.distance} cycles, {self.needed} "
            f"needed{count}; put a v.drain between them"
        )

    def __str__(self) -> str:
        return self.describe()

    def report(self) -> dict[str, object]:
        """The hazard as plain data."""
        return {**asdict(self), "what": str(self.what)}


class _Issued(NamedTuple):
    """A vector instruction in flight.

    Attributes:
        pc: where it stands. start, end: its result. base, last: its first and last beat.
    """

    pc: int
    operation: VectorOperation
    extents: Extents
    start: int
    end: int
    base: int
    last: int


class HazardModel:
    """Instructions in flight in the vector unit, in the worst case (see the module).

    The ``before`` methods return the hazards that an instruction would cause if issued now; they
    change nothing. A hazard names the closest byte.
    """

    def __init__(self) -> None:
        self._now = 0
        # Ends of the last instructions; all but the first may still be in the vector unit.
        self._ends: tuple[int, ...] = (0,) * (VECTOR_HELD + 1)
        # Those whose results may be missing, and those whose operands may be unread.
        self._results: list[_Issued] = []
        self._held: deque[_Issued] = deque(maxlen=VECTOR_HELD)

    def drained(self) -> None:
        """A ``v.drain`` has been executed."""
        self._now += VECTOR_LATENCY
        self._ends = (self._now,) * (VECTOR_HELD + 1)
        self._results.clear()
        self._held.clear()

    def issued(self, operation: VectorOperation, pc: int = 0) -> None:
        """``operation``, which stands at word ``pc``, has been issued."""
        base, touched, start = self._now, operation.extents, operation.result
        self._now = end = base + touched.beats
        self._ends = (*self._ends[1:], end)
        ready = self._ends[0] - VECTOR_LATENCY
        entry = _Issued(pc, operation, touched, start, start + touched.result, base, end - 1)
        self._results = [earlier for earlier in self._results if earlier.last > ready]
        self._results.append(entry)
        self._held.append(entry)

    def before_vector(self, operation: VectorOperation, pc: int = 0) -> list[Hazard]:
        """Hazards of a vector instruction at word ``pc``: results that it would read too early, for
        each operand at most one of each instruction that makes them. Overlaps of its own operands
        are not among them (:func:`own_operand`)."""
        hazards: list[Hazard] = []
        beat, touched = self._now, operation.extents
        ready = beat - VECTOR_LATENCY
        places = (operation.first, operation.second)
        operands = [
            (number, start, start + size)
            for number, (start, size) in enumerate(zip(places, touched.operands, strict=False))
        ]
        for issued in self._results:
            if issued.last <= ready:
                continue
            for number, start, end in operands:
                if start >= issued.end or end <= issued.start:
                    continue
                low, high = max(start, issued.start), min(end, issued.end)
                read, completed = touched.read_beats[number], issued.extents.result_beats
                since = beat - issued.base
                # Beats ascend, so this is a bound; it is enough for most.
                bound = since + read[low - start] - completed[high - issued.start - 1]
                if bound >= VECTOR_LATENCY:
                    continue
                distances = (
                    since
                    + read[low - start : high - start]
                    - completed[low - issued.start : high - issued.start]
                )
                at = int(distances.argmin())
                if distances[at] < VECTOR_LATENCY:
                    closest = (int(distances[at]), low + at)
                    kind = HazardKind.VECTOR_READ
                    hazards.append(
                        _hazard(kind, operation.row, pc, issued, closest, VECTOR_LATENCY)
                    )
        return hazards

    def before_store(self, row: Instruction, source: Span, pc: int = 0) -> list[Hazard]:
        """Hazards of a store ``row`` of ``source`` at word ``pc``."""
        return self._unfinished(HazardKind.STORE, row, source, pc)

    def before_load(self, row: Instruction, target: Span, pc: int = 0) -> list[Hazard]:
        """Hazards of a load ``row`` to ``target`` at word ``pc``."""
        hazards: list[Hazard] = []
        for issued in self._held:
            _, *operands = issued.operation.spans
            for number, span in enumerate(operands):
                if span.overlaps(target):
                    # The closest byte is the one that is read last.
                    _, high = _common(span, target)
                    read = issued.base + issued.extents.last_read_beats[number]
                    closest = (self._ends[0] - int(read[high - 1 - span.start]), high - 1)
                    kind = HazardKind.LOAD_OVER_OPERANDS
                    hazards.append(_hazard(kind, row, pc, issued, closest, 1))
        return hazards + self._unfinished(HazardKind.LOAD_OVER_RESULTS, row, target, pc)

    def _unfinished(self, kind: HazardKind, row: Instruction, span: Span, pc: int) -> list[Hazard]:
        """Hazards of a load or store that needs the results in ``span`` to be there."""
        if not span.size:
            return []
        earliest = self._ends[0]
        hazards = []
        start, end = span.start, span.start + span.size
        for issued in self._results:
            if start >= issued.end or end <= issued.start:
                continue
            high = min(end, issued.end)
            # The closest byte is the one that is made last.
            completed = issued.base + int(issued.extents.result_beats[high - 1 - issued.start])
            if earliest - completed < VECTOR_LATENCY:
                closest = (earliest - completed, high - 1)
                hazards.append(_hazard(kind, row, pc, issued, closest, VECTOR_LATENCY))
        return hazards


def _common(a: Span, b: Span) -> tuple[int, int]:
    """First byte that belongs to both, and the one after the last."""
    return max(a.start, b.start), min(a.start + a.size, b.start + b.size)


def _hazard(
    kind: HazardKind,
    row: Instruction,
    pc: int,
    issued: _Issued,
    closest: tuple[int, int],
    needed: int,
) -> Hazard:
    distance, address = closest
    other = issued.operation.row.key
    return Hazard(pc, row.key, kind, address, issued.pc, other, distance, needed)


def _may_read_itself(operation: VectorOperation) -> bool:
    """A quick bound of :attr:`VectorOperation.reads_itself`."""
    start, touched = operation.result, operation.extents
    end = start + touched.result
    first, sizes = operation.first, touched.operands
    if first != start and first < end and start < first + sizes[0]:
        return True
    second = operation.second
    return len(sizes) > 1 and second < end and start < second + sizes[1]


def own_operand(operation: VectorOperation, pc: int = 0) -> list[Hazard]:
    """The hazard of a vector instruction at word ``pc`` that overwrites an operand of its own."""
    if not _may_read_itself(operation) or not operation.reads_itself:
        return []
    result, *operands = operation.spans
    address = min(_common(result, span)[0] for span in operands if result.overlaps(span))
    key = operation.row.key
    return [Hazard(pc, key, HazardKind.OWN_OPERAND, address, pc, key, None, None)]
