"""Follows instructions through an engine's pipeline, from its waveforms.

The signals are those of the units in ``pe/``; ``tests/sim_tb/waves/test_waves.py`` compares the
result with the engine's counters and with the instruction set simulator.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from isa.timing import VECTOR_LATENCY
from pe.interface import PeCounter

#: Signals, below an engine's scope, that show its pipeline.
SIGNALS = (
    "sequencer.active",
    "sequencer.run",
    "fetch.valid",
    "fetch.pc",
    "fetch.redirect",
    "operands.take",
    "operands.fire",
    "operands.waits",
    "issue.fire",
    "issue.is_legal",
    "issue.cause",
    "issue.redirects",
    "issue.redirect",
    "issue.offer__valid",
    "issue.offer__ready",
    "counters.event",
    "counters.waits",
    "counters.stays",
    "dispatch.occupied",
    "dispatch.fire",
    "dispatch.fire_next",
    "dispatch.drop",
    "dispatch.stall",
    "dispatch.vector__valid",
    "dispatch.load_store__valid",
    "vector.control.running",
    "vector.control.last",
    "load_store.request.done",
    "load_store.request.tag_taken",
    "load_store.request.tag",
    "load_store.freed",
    "load_store.freed_tag",
)

#: Counter of a stall -> its short name.
STALLS = {
    PeCounter.STALL_REGISTER: "register",
    PeCounter.STALL_ARC_CONFLICT: "arc",
    PeCounter.STALL_ARC_FULL: "arc full",
    PeCounter.STALL_VECTOR: "vector",
    PeCounter.STALL_LOAD_STORE: "load-store",
    PeCounter.STALL_DRAIN: "drain",
    PeCounter.STALL_FENCE: "fence",
}
#: Counters of instructions that proceed to dispatch.
_PASSED_ON = (PeCounter.ISSUED_VECTOR, PeCounter.ISSUED_LOAD_STORE)


@dataclass
class CycleSpan:
    """A stage, or a stall by its cause, from cycle ``start`` to before ``end``."""

    name: str
    start: int
    end: int


def _extend(spans: list[CycleSpan], name: str, cycle: int) -> None:
    """Add ``cycle`` to the last span, if it has that name and ends there, or as a new one."""
    last = spans[-1] if spans else None
    if last is not None and last.end == cycle and last.name == name:
        last.end = cycle + 1
    else:
        spans.append(CycleSpan(name, cycle, cycle + 1))


@dataclass
class TracedInstruction:
    """An instruction in the pipeline.

    Attributes:
        pc: word address.
        stages: ``F`` fetch, ``O`` operands, ``I`` issue, ``D`` dispatch; then ``Q``, the queue of a
            unit; then ``V``, beats of the vector unit, and ``W``, until the last write; or ``L``,
            the load-store unit until its last request leaves, and ``M``, until the last response.
        stalls: waits at operands, issue and dispatch.
        end: cycle after the last one. retired: whether it was executed; otherwise it was discarded.
    """

    pc: int
    stages: list[CycleSpan] = field(default_factory=list)
    stalls: list[CycleSpan] = field(default_factory=list)
    end: int = -1
    retired: bool = False

    @property
    def start(self) -> int:
        """Cycle of its fetch."""
        return self.stages[0].start

    def enter(self, stage: str, cycle: int) -> None:
        """Enter ``stage`` in ``cycle``."""
        self.leave(cycle)
        self.stages.append(CycleSpan(stage, cycle, -1))

    def leave(self, cycle: int) -> None:
        """End the current stage before ``cycle``."""
        if self.stages and self.stages[-1].end < 0:
            self.stages[-1].end = cycle

    def stall(self, cause: str, cycle: int) -> None:
        """Record a stall in ``cycle``."""
        _extend(self.stalls, cause, cycle)


class Follower:
    """Follows the instructions of one engine.

    Attributes:
        found: all instructions, in order of fetch.
        events: :class:`pe.interface.PeCounter` -> the number of cycles that it counted.
        activity: the same over time, by the counters' names in lower case.
        in_flight: (cycle, number) whenever the number of requests in flight changes.
    """

    def __init__(self) -> None:
        self.found: list[TracedInstruction] = []
        self.events = dict.fromkeys(PeCounter, 0)
        self.activity: list[CycleSpan] = []
        self._last: PeCounter | None = None
        self.in_flight: list[tuple[int, int]] = [(0, 0)]
        self._fetched: TracedInstruction | None = None
        self._operands: TracedInstruction | None = None
        self._issue: TracedInstruction | None = None
        self._dispatch: TracedInstruction | None = None
        self._vector: list[TracedInstruction] = []
        self._transfers: list[TracedInstruction] = []
        self._written: list[tuple[int, TracedInstruction]] = []
        self._tags: dict[int, TracedInstruction] = {}
        self._open: dict[int, int] = {}

    def cycle(self, cycle: int, values: Sequence[int]) -> PeCounter | None:
        """Follow one cycle.

        Parameters:
            cycle: its number, one more than in the previous call.
            values: of :data:`SIGNALS`.

        Returns:
            The counter that counts this cycle; None if the engine does not run.
        """
        signals = dict(zip(SIGNALS, values, strict=True))
        event = self._count(cycle, signals)
        self._units(cycle, signals)
        if len(self._tags) != self.in_flight[-1][1]:
            self.in_flight.append((cycle, len(self._tags)))
        self._stalls(cycle, signals, event)
        self._from_dispatch(cycle, signals)
        self._from_issue(cycle, signals)
        self._from_operands(cycle, signals)
        self._from_fetch(cycle, signals)
        return event

    def finish(self, cycle: int) -> None:
        """End the trace: discard all instructions still in the pipeline at ``cycle``."""
        for end, instruction in self._written:
            self._retire(instruction, end)
        for instruction in self.found:
            if instruction.end < 0:
                self._discard(instruction, cycle)

    def _count(self, cycle: int, signals: dict[str, int]) -> PeCounter | None:
        if signals["counters.stays"] and self._last in _PASSED_ON:
            self._recount(self._last)
        self._last = None
        if not signals["sequencer.active"]:
            return None
        event = PeCounter(signals["counters.event"])
        # See pe/counters.py.
        if signals["counters.waits"] and event is PeCounter.STALL_FETCH:
            event = PeCounter.STALL_REGISTER
        self.events[event] += 1
        self._last = event
        self._add_activity(event, cycle)
        return event

    def _add_activity(self, event: PeCounter, cycle: int) -> None:
        _extend(self.activity, event.name.lower().replace("_", " "), cycle)

    def _recount(self, event: PeCounter) -> None:
        """Correct the count of an instruction that reached dispatch in the previous cycle and
        faults there."""
        self.events[event] -= 1
        self.events[PeCounter.STALL_FENCE] += 1
        last = self.activity[-1]
        last.end -= 1
        if last.start == last.end:
            self.activity.pop()
        self._add_activity(PeCounter.STALL_FENCE, last.end)

    def _units(self, cycle: int, signals: dict[str, int]) -> None:
        """Instructions in the vector unit and in the load-store unit."""
        while self._written and self._written[0][0] <= cycle:
            end, done = self._written.pop(0)
            self._retire(done, end)
        if signals["vector.control.running"] and self._vector:
            head = self._vector[0]
            if head.stages[-1].name != "V":
                head.enter("V", cycle)
            if signals["vector.control.last"]:
                self._vector.pop(0)
                head.enter("W", cycle + 1)
                self._written.append((cycle + VECTOR_LATENCY, head))
        if signals["load_store.request.tag_taken"] and self._transfers:
            head = self._transfers[0]
            if head.stages[-1].name != "L":
                head.enter("L", cycle)
            self._tags[signals["load_store.request.tag"]] = head
            self._open[id(head)] = self._open.get(id(head), 0) + 1
        if signals["load_store.request.done"] and self._transfers:
            self._transfers.pop(0).enter("M", cycle + 1)
        if signals["load_store.freed"]:
            head = self._tags.pop(signals["load_store.freed_tag"])
            self._open[id(head)] -= 1
            if not self._open[id(head)] and head not in self._transfers:
                del self._open[id(head)]
                self._retire(head, cycle + 1)

    def _stalls(self, cycle: int, signals: dict[str, int], event: PeCounter | None) -> None:
        if self._operands is not None and signals["operands.waits"]:
            self._operands.stall(STALLS[PeCounter.STALL_REGISTER], cycle)
        if self._issue is not None and event in STALLS and not signals["issue.fire"]:
            self._issue.stall(STALLS[event], cycle)
        instruction = self._dispatch
        if (
            instruction is not None
            and not signals["dispatch.fire_next"]
            and instruction.stages[-1].start < cycle
        ):
            cause = STALLS.get(PeCounter(signals["dispatch.stall"]))
            if cause is not None:
                instruction.stall(cause, cycle)

    def _from_dispatch(self, cycle: int, signals: dict[str, int]) -> None:
        instruction = self._dispatch
        if instruction is None:
            return
        if signals["dispatch.fire"]:
            self._dispatch = None
            if signals["dispatch.vector__valid"]:
                instruction.enter("Q", cycle + 1)
                self._vector.append(instruction)
            elif signals["dispatch.load_store__valid"]:
                instruction.enter("Q", cycle + 1)
                self._transfers.append(instruction)
            else:
                self._retire(instruction, cycle + 1)
        elif signals["dispatch.drop"] or not signals["dispatch.occupied"]:
            self._dispatch = None
            self._discard(instruction, cycle + 1)

    def _from_issue(self, cycle: int, signals: dict[str, int]) -> None:
        instruction = self._issue
        if instruction is None:
            return
        executes = (
            signals["issue.fire"] and signals["issue.is_legal"] and not signals["issue.cause"]
        )
        if signals["sequencer.run"] and executes:
            self._issue = None
            if signals["issue.offer__valid"] and signals["issue.offer__ready"]:
                instruction.enter("D", cycle + 1)
                self._dispatch = instruction
            else:
                self._retire(instruction, cycle + 1)
        elif not signals["sequencer.run"] or signals["issue.fire"]:
            self._issue = None
            self._discard(instruction, cycle + 1)

    def _from_operands(self, cycle: int, signals: dict[str, int]) -> None:
        instruction = self._operands
        if instruction is None:
            return
        away = signals["issue.redirect"] or not signals["sequencer.run"]
        if signals["operands.fire"] and not away and not signals["issue.redirects"]:
            self._operands = None
            instruction.enter("I", cycle + 1)
            self._issue = instruction
        elif signals["operands.fire"] or away:
            self._operands = None
            self._discard(instruction, cycle + 1)

    def _from_fetch(self, cycle: int, signals: dict[str, int]) -> None:
        if not signals["fetch.valid"]:
            return
        instruction = self._fetched
        if instruction is None:
            instruction = self._fetched = TracedInstruction(signals["fetch.pc"])
            instruction.enter("F", cycle)
            self.found.append(instruction)
        if signals["operands.take"]:
            self._fetched = None
            instruction.enter("O", cycle + 1)
            self._operands = instruction
        elif signals["fetch.redirect"] or not signals["sequencer.run"]:
            self._fetched = None
            self._discard(instruction, cycle + 1)

    def _retire(self, instruction: TracedInstruction, cycle: int) -> None:
        instruction.leave(cycle)
        instruction.end, instruction.retired = cycle, True

    def _discard(self, instruction: TracedInstruction, cycle: int) -> None:
        instruction.leave(cycle)
        instruction.end = cycle
