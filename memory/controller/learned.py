"""Scheduling by an agent that learns: first-ready whose classes of commands change places."""

from collections.abc import Sequence

from amaranth.hdl import Module, Mux, Signal, Value

from hdl.emission import shared_instance
from memory.agent.sarsa import Sarsa
from memory.agent.state import VaultState
from memory.timing import BURST_CLOCKS

from .first_ready import FirstReady
from .starvation import GROUP_BURSTS, WaitingSnapshot


class Learned(FirstReady):
    """An agent (:mod:`memory.agent`) decides which class of commands goes first: column commands of
    the present direction, those of the other one, ACT and PRE, or none at all for the time of a
    burst. If the class is empty, the order is that of first-ready. Of a class, the command whose
    request came first.

    Not learned are refreshes, which go first (a cycle late if rows do), the end of a group after
    ``GROUP_BURSTS``, the patience of the transaction queue, and a bound on the wait of a bank:
    while a snapshot is late (:class:`memory.controller.starvation.WaitingSnapshot`), the policy is
    "first-ready-timed". So no request waits longer than
    :func:`memory.controller.starvation.starvation_bound`, whatever the weights.

    The agent's output is registered before it meets a bank's command, and so is the end of a group,
    a cycle late.

    Members: :func:`memory.controller.scheduler.scheduler_members`.
    """

    def _begin(self, m: Module, patience: Signal, platform: object) -> None:
        # A cycle late: a bank's next column command is at least a burst away.
        served = Signal.like(self.issue)
        m.d.sync += served.eq(self.issue & self.column)
        self._snapshot = WaitingSnapshot(m, self.waiting, served)
        state = VaultState(
            self.config.agent,
            banks=self.config.banks,
            entries=self.config.transaction_queue,
            run_bits=len(self._bursts),
            patience_bits=len(patience),
            age_bits=len(self._snapshot.age),
        )
        agent = Sarsa(self.config.agent)
        m.submodules.state = shared_instance(state, platform)
        m.submodules.agent = shared_instance(agent, platform)
        for name in ("waiting", "hit", "write", "row", "occupied"):
            m.d.comb += getattr(state, name).eq(getattr(self, name))
        m.d.comb += [
            state.same.eq(self._same),
            state.writing.eq(self._writing),
            state.run.eq(self._bursts),
            state.patience.eq(patience),
            state.age.eq(self._snapshot.age),
            agent.reward.eq(served.any()),
        ]
        for number in range(len(self.config.agent.features)):
            name = f"state_{number}"
            m.d.comb += getattr(agent, name).eq(getattr(state, name))
        free = ~self._snapshot.late
        self._others = Signal(name="others_first")
        self._rows = Signal(name="rows_first")
        self._held = Signal(name="held")
        burst = Signal(range(BURST_CLOCKS))
        with m.If(agent.begins):
            m.d.sync += burst.eq(BURST_CLOCKS - 1)
        with m.Elif(burst != 0):
            m.d.sync += burst.eq(burst - 1)
        m.d.sync += [
            self._others.eq(agent.action[1] & free),
            self._rows.eq(agent.action[2] & free & ~(self.row & self.urgent).any()),
            self._held.eq(agent.action[3] & free & (agent.begins | (burst != 0))),
        ]

    def _turn(self, m: Module) -> Signal:
        """As in "first-ready-timed", a cycle late."""
        switch = Signal()
        opposite = self.ready & ~self._same
        m.d.sync += switch.eq((self._bursts == GROUP_BURSTS) & opposite.any())
        return switch

    def _classes(self, switch: Value) -> Sequence[Value]:
        # As many classes as first-ready has; the signals that distinguish them are early ones.
        every = len(self._same)
        allowed = ~self._held.replicate(every)
        present = self._same & ~switch & allowed
        opposite = ~self._same & allowed
        return (
            self.row & (self.urgent | self._rows.replicate(every)),
            self.column & Mux(self._others, opposite, present),
            self.column & Mux(self._others, present, opposite),
            self.row & allowed,
        )
