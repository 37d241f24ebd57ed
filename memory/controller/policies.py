"""The scheduling policies of a vault."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Elaboratable, Module, Mux, Signal

from hdl.component import Component
from memory.config import SchedulerPolicy, VaultConfig

from .first_ready import FirstReady
from .learned import Learned
from .scheduler import first_stamp, oldest_of, scheduler_members


class InOrder(Component):
    """Issues column commands in the order of the requests; rows may be opened ahead. The simplest
    policy, as a reference for others.

    Only the oldest request goes to a bank's queue. The DRAM gets the column command of the oldest
    request, if legal; otherwise a refresh command; otherwise the first ACT or PRE.

    Members: :func:`memory.controller.scheduler.scheduler_members`.
    """

    def __init__(self, config: VaultConfig) -> None:
        self.config = config
        super().__init__(scheduler_members(config))

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        oldest = oldest_of(m, self.occupied, list(self.older), "oldest")
        first = first_stamp(m, self.waiting, list(self.stamps), "first")
        rows = Signal.like(self.row)
        refreshes = Signal.like(self.row)
        m.d.comb += [
            self.pick.eq(oldest & self.eligible),
            refreshes.eq(self.row & self.urgent),
            rows.eq(Mux(refreshes.any(), refreshes, self.row)),
        ]
        row = first_stamp(m, rows, list(self.stamps), "first_row")
        m.d.comb += self.issue.eq(Mux((first & self.column).any(), first, row))
        return m


#: Each takes a :class:`VaultConfig` and has the members of
#: :func:`memory.controller.scheduler.scheduler_members`.
SCHEDULERS: Mapping[SchedulerPolicy, Any] = {
    "first-ready": FirstReady,
    "in-order": InOrder,
    "first-ready-timed": FirstReady,
    "learned": Learned,
}


def make_scheduler(config: VaultConfig) -> Any:
    """The scheduler that ``config`` names."""
    return SCHEDULERS[config.scheduler](config)
