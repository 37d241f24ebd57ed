"""Scheduling by whole policies, chosen by an agent."""

from collections.abc import Sequence

from amaranth.hdl import Module, Mux, Signal, Value

from memory.agent.sarsa import Sarsa

from .first_ready import BusDirection
from .learned import Learned
from .starvation import GROUP_BURSTS

#: Bursts after which the policy of short groups changes direction; a power of two.
SHORT_BURSTS = 4


class Meta(Learned):
    """An agent (:mod:`memory.agent`) decides for an epoch how the banks' commands are selected: as
    "first-ready-timed"; with groups of ``SHORT_BURSTS``; with ACT and PRE before column commands;
    or in batches, as "par-bs". Everything outside its decisions is as in
    :class:`memory.controller.learned.Learned`.

    Members: :func:`memory.controller.scheduler.scheduler_members`.
    """

    def _obey(self, m: Module, agent: Sarsa) -> None:
        free = ~self._snapshot.late
        self._short = Signal(name="short_groups")
        self._rows = Signal(name="rows_first")
        self._batches = Signal(name="batches")
        m.d.sync += [
            self._short.eq(agent.action[1] & free),
            self._rows.eq(agent.action[2] & free),
            self._batches.eq(agent.action[3] & free),
        ]

    def _turn(self, m: Module, direction: BusDirection) -> Signal:
        switch = Signal()
        opposite = self.ready & ~direction.same
        limit = Mux(self._short, SHORT_BURSTS, GROUP_BURSTS)
        m.d.sync += switch.eq((direction.bursts >= limit) & opposite.any())
        return switch

    def _classes(self, same: Signal, switch: Value) -> Sequence[Value]:
        chosen = self._batches.replicate(len(same)) & self._snapshot.marked
        rows = self.row & self._rows.replicate(len(same))
        column = self.column & same & ~switch
        other = self.column & ~same
        return (
            self.row & self.urgent,
            rows,
            column & chosen,
            column,
            other & chosen,
            other,
            self.row & chosen,
            self.row,
        )
