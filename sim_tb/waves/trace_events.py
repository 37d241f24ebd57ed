"""Event traces as JSON for Perfetto and Chrome's tracing view.

For engines they show issues, stalls, vector instructions and transfers; for a vault's memory its
queues, and the rows and commands of its banks.

The format is the Trace Event Format's array of objects. Its unit of time, a microsecond, stands for
a clock cycle, as viewers round to whole nanoseconds.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from isa.program import Program
from memory.controller.dram_port import DramCommand

from .konata import instruction_at
from .pipeline import CycleSpan, Follower


class TraceEvents:
    """Events, by process and track."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._processes = 0
        self._tracks: dict[int, int] = {}

    def _add(self, kind: str, process: int, track: int, name: str, **content: Any) -> None:
        """Add an event; ``kind`` is its phase in the format, ``content`` the phase's fields."""
        self._events.append({"ph": kind, "name": name, "pid": process, "tid": track, **content})

    def process(self, name: str) -> int:
        """Add a group of tracks; returns its number."""
        self._processes += 1
        number = self._processes
        self._tracks[number] = 0
        self._add("M", number, 0, "process_name", args={"name": name})
        self._add("M", number, 0, "process_sort_index", args={"sort_index": number})
        return number

    def track(self, process: int, name: str) -> int:
        """Add a track of slices that don't overlap; returns its number within the process."""
        self._tracks[process] += 1
        number = self._tracks[process]
        self._add("M", process, number, "thread_name", args={"name": name})
        return number

    def slice(
        self, process: int, track: int, span: CycleSpan, about: Mapping[str, object] | None = None
    ) -> None:
        """Add a span of cycles, with what is known ``about`` it."""
        arguments = {"args": dict(about)} if about else {}
        cycles = span.end - span.start
        self._add("X", process, track, span.name, ts=span.start, dur=cycles, **arguments)

    def overlapping(self, process: int, group: str, spans: Iterable[CycleSpan]) -> None:
        """Add spans that may overlap, as one group of asynchronous events."""
        for number, span in enumerate(spans):
            same = {"cat": group, "id": f"{group}{number}"}
            self._add("b", process, 0, span.name, ts=span.start, **same)
            self._add("e", process, 0, span.name, ts=span.end, **same)

    def counter(self, process: int, name: str, values: Iterable[tuple[int, float]]) -> None:
        """Add a quantity as pairs ``(cycle, value)``; a value holds until the next pair."""
        for cycle, value in values:
            self._add("C", process, 0, name, ts=cycle, args={name: value})

    def text(self, **about: object) -> str:
        """The file's text; viewers show ``about`` as its description."""
        lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in self._events)
        head = json.dumps({"unit": "a microsecond of the viewer is a clock cycle", **about})
        return f'{{"otherData": {head},\n"traceEvents": [\n{lines}\n]}}\n'


def add_engine(events: TraceEvents, name: str, engine: Follower, program: Program) -> None:
    """Add the tracks of one engine, which ran ``program``.

    - ``issue``: each cycle's counter, an instruction issued or the cause of a stall;
    - ``vector unit``: beats of each vector instruction;
    - ``load-store unit``: the time in which each transfer's requests leave;
    - transfers from their first request to their last response, which overlap;
    - the number of memory requests in flight.
    """
    process = events.process(name)
    issue = events.track(process, "issue")
    for interval in engine.activity:
        events.slice(process, issue, interval)
    tracks = {
        "V": events.track(process, "vector unit"),
        "L": events.track(process, "load-store unit"),
    }
    waiting = []
    for instruction in engine.found:
        text = instruction_at(program, instruction.pc)
        for stage in instruction.stages:
            span = replace(stage, name=text)
            if stage.name in tracks:
                events.slice(process, tracks[stage.name], span, {"pc": instruction.pc})
            elif stage.name == "M":
                waiting.append(span)
    events.overlapping(process, f"{name}: in memory", waiting)
    events.counter(process, "requests in flight", engine.in_flight)


#: Signals of a controller, below its scope; then the level of each bank's queue.
SIGNALS = ("rst", "dram__valid", "dram__kind", "dram__bank", "dram__row", "queue.occupied")
#: Cycles that a column takes on the data bus.
_BURST = 4
_COLUMNS = {DramCommand.READ.value: "read", DramCommand.WRITE.value: "write"}


class VaultFollower:
    """Follows the controller of one vault.

    Parameters:
        banks: of the DRAM.

    Attributes:
        rows: open rows and refreshes of each bank, over time. columns: its column commands, each
            with the cycles of its burst.
        waiting: (cycle, requests in the transaction queue) at each change. queued: the same, summed
            over the banks' queues.
        commands: number of commands by kind.
    """

    def __init__(self, banks: int) -> None:
        self._banks = banks
        self._begin()

    def _begin(self) -> None:
        banks = self._banks
        self.rows: list[list[CycleSpan]] = [[] for _ in range(banks)]
        self.columns: list[list[CycleSpan]] = [[] for _ in range(banks)]
        self.waiting: list[tuple[int, int]] = [(0, 0)]
        self.queued: list[tuple[int, int]] = [(0, 0)]
        self.commands = dict.fromkeys(DramCommand, 0)

    def cycle(self, cycle: int, values: Sequence[int]) -> None:
        """Follow one cycle; ``values`` are those of :data:`SIGNALS` and the banks' levels."""
        reset, valid, kind, bank, row, occupied, *levels = values
        if reset:
            # A reset discards what came before, as in the DRAM's model.
            self._begin()
            return
        if occupied.bit_count() != self.waiting[-1][1]:
            self.waiting.append((cycle, occupied.bit_count()))
        if sum(levels) != self.queued[-1][1]:
            self.queued.append((cycle, sum(levels)))
        if not valid:
            return
        command = DramCommand(kind)
        self.commands[command] += 1
        rows, columns = self.rows[bank], self.columns[bank]
        if command is DramCommand.ACT:
            rows.append(CycleSpan(f"row {row}", cycle, -1))
        elif command is DramCommand.PRE:
            self._close(bank, cycle)
        elif command is DramCommand.REFRESH:
            rows.append(CycleSpan("refresh", cycle, cycle + 1))
        else:
            columns.append(CycleSpan(_COLUMNS[kind], cycle, cycle + _BURST))

    def _close(self, bank: int, cycle: int) -> None:
        """Close the bank's open row, if any, in ``cycle``."""
        if self.rows[bank] and self.rows[bank][-1].end < 0:
            self.rows[bank][-1].end = cycle
        if self.columns[bank]:
            self.columns[bank][-1].end = min(self.columns[bank][-1].end, cycle)

    def finish(self, cycle: int) -> None:
        """End the trace after ``cycle - 1``."""
        for bank in range(len(self.rows)):
            self._close(bank, cycle)


def add_vault(events: TraceEvents, name: str, vault: VaultFollower, refresh: int) -> None:
    """Add the tracks of one vault's memory: a track per bank with its open rows and their column
    commands, and the waiting requests.

    Parameters:
        refresh: cycles that a refresh takes.
    """
    process = events.process(name)
    events.counter(process, "transaction queue", vault.waiting)
    events.counter(process, "bank queues", vault.queued)
    for bank, (rows, columns) in enumerate(zip(vault.rows, vault.columns, strict=True)):
        if not rows:
            continue
        track = events.track(process, f"bank {bank:2}")
        for row in rows:
            end = row.start + refresh if row.name == "refresh" else row.end
            events.slice(process, track, replace(row, end=end))
        for column in columns:
            events.slice(process, track, column)
