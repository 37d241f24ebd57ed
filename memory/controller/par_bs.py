"""Scheduling in batches, after parallelism-aware batch scheduling (PAR-BS, Mutlu and Moscibroda,
ISCA 2008)."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from .first_ready import BusDirection, FirstReady
from .snapshot import WaitingSnapshot


class ParBs(FirstReady):
    """Requests form batches: as soon as none of the last batch is left, all present ones are the
    next. Requests of the batch go first; among them those for an open row, then those of the
    requester with the fewest left in the batch, then the oldest.

    Banks do the same with the requests at the heads of their queues, within the classes of
    "first-ready-timed": PAR-BS schedules reads alone, and is silent on the direction of the bus.
    Unlike in PAR-BS, batches have no limit per requester (the transaction queue limits them), and
    requesters are ranked by what they have left, not by what they began with.

    No request waits longer than :func:`memory.controller.starvation.starvation_bound`.

    Members: :func:`memory.controller.scheduler.scheduler_members`.
    """

    def _choices(self, m: Module, candidates: Signal) -> Sequence[Value]:
        batch = Signal.like(self.occupied)
        left = batch & self.occupied & ~self.pick
        m.d.sync += batch.eq(Mux(left.any(), left, self.occupied & ~self.pick))
        favourite = self._favourite(m, batch)
        inside = candidates & batch
        return [
            choice
            for entries in (candidates, inside)
            for choice in (
                entries,
                entries & favourite,
                entries & self.row_hit,
                entries & self.row_hit & favourite,
            )
        ]

    def _favourite(self, m: Module, batch: Signal) -> Value:
        """Entries of the requester with the fewest entries in ``batch``, a cycle late."""
        if not self.config.names_requesters:
            every: Value = self.occupied
            return every
        fewest = Signal(self.config.requester_bits)
        nodes: list[tuple[Value, Value]] = []
        for number in range(1 << self.config.requester_bits):
            mine = batch & Cat(source == number for source in self.sources)
            # A requester without entries comes last.
            count = Signal(range(2 * len(batch)), name=f"count_{number}")
            m.d.comb += count.eq(Mux(mine.any(), sum(mine[n] for n in range(len(mine))), -1))
            nodes.append((count, Const(number, len(fewest))))
        while len(nodes) > 1:
            nodes = [
                (Mux(two < one, two, one), Mux(two < one, second, first))
                for (one, first), (two, second) in zip(nodes[::2], nodes[1::2], strict=True)
            ]
        m.d.sync += fewest.eq(nodes[0][1])
        favourite: Value = Cat(source == fewest for source in self.sources)
        return favourite

    def _begin(
        self, m: Module, direction: BusDirection, patience: Signal, platform: object
    ) -> None:
        self._snapshot = WaitingSnapshot(m, self.waiting, self.issue & self.column)

    def _classes(self, same: Signal, switch: Value) -> Sequence[Value]:
        urgent, *classes = super()._classes(same, switch)
        marked = self._snapshot.marked
        return (urgent, *(choice for one in classes for choice in (one & marked, one)))
