"""Hazards of the vector unit: scratchpad accesses that the hardware does not interlock.

The vector unit has no interlocks (:mod:`isa.timing`), so the program must avoid its hazards.
:class:`HazardModel` follows the vector instructions, loads and stores that a program executes and
reports those that come too early. Kernels are built and checked with it, random programs are
generated with it, and commands report its findings. The compiled simulator has the same model in
C++ (``isa/compiled/hazards.h``) and must report the same hazards.

Time is counted in *beats*, as if each vector instruction followed the one before without a gap. The
vector unit can only wait longer than that, so distances between beats are lower bounds. A load or
store is taken to issue as early as it can: when the vector unit takes the instruction before it, so
that the instruction :data:`isa.timing.VECTOR_HELD` places before that one has just read its last
operand. Accesses closer than the contract allows in this worst case are a :class:`Hazard`, whether
or not a run is affected.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from isa.iss.operations import Operation, ProcessorState
from isa.iss.simulator import Observer

from .program import SourceLine, Span
from .table import FIELD_A, FIELD_B, FIELD_C, Instruction, Opcode, Unit
from .timing import VECTOR_HELD, VECTOR_LATENCY, Extents, VectorOperation


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


class HazardLog:
    """Collects the hazards of a run.

    Its :meth:`observer` makes a simulator show it every instruction concerned; or call
    :meth:`vector`, :meth:`transfer` and :meth:`drained` for each that is executed, in order.
    """

    def __init__(self) -> None:
        self.model = HazardModel()
        self._found: dict[tuple[int, HazardKind], Hazard] = {}

    @property
    def hazards(self) -> list[Hazard]:
        """The hazards in order of occurrence: one per instruction and kind, with the smallest
        distance."""
        return list(self._found.values())

    def _add(self, hazards: Sequence[Hazard]) -> None:
        # If one execution causes several hazards of a kind, the closest counts.
        for hazard in {entry.what: entry for entry in sorted(hazards, key=_closeness)}.values():
            at = (hazard.pc, hazard.what)
            recorded = self._found.get(at)
            if recorded is None:
                self._found[at] = hazard
                continue
            closer = _closeness(hazard) > _closeness(recorded)
            self._found[at] = replace(hazard if closer else recorded, times=recorded.times + 1)

    def drained(self) -> None:
        """A ``v.drain`` was executed."""
        self.model.drained()

    def vector(self, operation: VectorOperation, pc: int) -> None:
        """``operation`` at word ``pc`` was executed."""
        if hazards := self.model.before_vector(operation, pc):
            self._add(hazards)
        if hazards := own_operand(operation, pc):
            self._add(hazards)
        self.model.issued(operation, pc)

    def transfer(self, row: Instruction, scratchpad: int, length: int, pc: int) -> None:
        """A load or store of ``length`` bytes at ``scratchpad`` was executed; ``row`` says
        which."""
        if length:
            before = self.model.before_load if row.loads else self.model.before_store
            if hazards := before(row, Span(scratchpad, length), pc):
                self._add(hazards)

    def observer(self) -> Observer:
        """An observer for one :class:`isa.iss.simulator.Simulator`, from its launch on."""

        def observe(
            state: ProcessorState, row: Instruction, word: int, address: int, operation: Operation
        ) -> Operation:
            if row.unit is Unit.VECTOR:
                return self._observed_vector(state, row, word, address, operation)
            if row.scratchpad:
                return self._observed_transfer(state, row, word, address, operation)
            if row.opcode == Opcode.DRAIN:
                return _then(operation, self.drained)
            return operation

        return observe

    def _observed_vector(
        self, state: ProcessorState, row: Instruction, word: int, pc: int, operation: Operation
    ) -> Operation:
        registers, note = state.registers, self.vector
        a, b, c = FIELD_A.extract(word), FIELD_B.extract(word), FIELD_C.extract(word)

        def observed() -> int:
            following = operation()
            result, first, second = registers[a], registers[b], registers[c]
            note(VectorOperation(row, result, first, second, state.vl, state.mr), pc)
            return following

        return observed

    def _observed_transfer(
        self, state: ProcessorState, row: Instruction, word: int, pc: int, operation: Operation
    ) -> Operation:
        assert row.width is not None
        registers, width = state.registers, row.width.bytes
        (near,) = row.scratchpad
        pad, c = near.field.extract(word), FIELD_C.extract(word)
        return _then(
            operation, lambda: self.transfer(row, registers[pad], registers[c] * width, pc)
        )


def _closeness(hazard: Hazard) -> int:
    return -(hazard.distance or 0)


def _then(operation: Operation, note: Callable[[], None]) -> Operation:
    """``operation``, and if it does not fault, ``note`` after it."""

    def observed() -> int:
        following = operation()
        note()
        return following

    return observed


def _may_read_itself(operation: VectorOperation) -> bool:
    """A quick bound of :attr:`isa.timing.VectorOperation.reads_itself`."""
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
