"""Events of a vault's memory over time: its queues, and the rows and commands of DRAM banks."""

from collections.abc import Sequence

from memory.controller.dram_port import DramCommand

from .pipeline import CycleSpan
from .trace_events import TraceEvents

__all__ = ["SIGNALS", "VaultFollower", "add_vault"]

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
        rows: for each bank its open rows and refreshes, over time. columns: its column commands, as
            the cycles of a burst from the command on.
        waiting: (cycle, requests in the transaction queue) at each change. queued: the same of the
            queues of all banks together.
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
        """Follow one cycle; ``values``: of :data:`SIGNALS`, and of the banks' levels."""
        reset, valid, kind, bank, row, occupied, *levels = values
        if reset:
            # What came before counts for nothing, in the DRAM's model as well.
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
        """The bank's row is closed in ``cycle``, if one is open."""
        if self.rows[bank] and self.rows[bank][-1].end < 0:
            self.rows[bank][-1].end = cycle
        if self.columns[bank]:
            self.columns[bank][-1].end = min(self.columns[bank][-1].end, cycle)

    def finish(self, cycle: int) -> None:
        """No cycle follows ``cycle - 1``."""
        for bank in range(len(self.rows)):
            self._close(bank, cycle)


def add_vault(events: TraceEvents, name: str, vault: VaultFollower, refresh: int) -> None:
    """Add the tracks of one vault's memory: a track a bank with its open rows and the column
    commands in them, and the requests that wait.

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
            length = refresh if row.name == "refresh" else row.end - row.start
            events.slice(process, track, row.name, row.start, row.start + length)
        for column in columns:
            events.slice(process, track, column.name, column.start, column.end)
