"""The state of a vault as an agent sees it."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Elaboratable, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from hdl.component import Component

from .config import AgentConfig


def _ones(flags: Value) -> Value:
    """How many of ``flags`` are 1, as a tree."""
    if len(flags) == 1:
        return flags
    half = len(flags) // 2
    return _ones(flags[:half]) + _ones(flags[half:])


class VaultState(Component):
    """Buckets of an agent's features (:data:`memory.agent.features.FEATURES`), a cycle late.

    Parameters:
        agent: whose features they are.
        banks: of the vault. entries: of its transaction queue.
        run_bits, patience_bits, age_bits: widths of the members.

    Members:
        waiting, hit, write, row (in, banks): as in
            :func:`memory.controller.scheduler.scheduler_members`.
        same (in, banks): banks whose request has the present direction.
        writing (in, 1): the present direction.
        occupied (in, entries): entries of the transaction queue that hold a request.
        run (in, run_bits): bursts of this direction.
        patience (in, patience_bits): cycles for which its oldest request has been that.
        age (in, age_bits): of the snapshot (:class:`memory.controller.starvation.WaitingSnapshot`).
        state_N (out): bucket of feature N, for each.
    """

    def __init__(
        self,
        agent: AgentConfig,
        *,
        banks: int,
        entries: int,
        run_bits: int,
        patience_bits: int,
        age_bits: int,
    ) -> None:
        self.agent = agent
        self.banks = banks
        self.entries = entries
        self.run_bits = run_bits
        self.patience_bits = patience_bits
        self.age_bits = age_bits
        super().__init__(
            {
                **{name: In(banks) for name in ("waiting", "hit", "write", "row", "same")},
                "writing": In(1),
                "occupied": In(entries),
                "run": In(run_bits),
                "patience": In(patience_bits),
                "age": In(age_bits),
                **{
                    f"state_{number}": Out(feature.bits)
                    for number, feature in enumerate(agent.state)
                },
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        values: Mapping[str, Any] = {
            "reads": lambda: _ones(self.waiting & ~self.write),
            "writes": lambda: _ones(self.waiting & self.write),
            "hits": lambda: _ones(self.hit & self.same),
            "other_hits": lambda: _ones(self.hit & ~self.same),
            "rows": lambda: _ones(self.row),
            "run": lambda: self.run,
            "patience": lambda: self.patience,
            "direction": lambda: self.writing,
            "queue": lambda: _ones(self.occupied),
            "waiting": lambda: _ones(self.waiting),
            "sweep": lambda: self.age,
        }
        for number, feature in enumerate(self.agent.state):
            feature_value = values[feature.name]()
            value = Signal(len(feature_value), name=feature.name)
            m.d.sync += value.eq(feature_value)
            reached = [value >= threshold for threshold in feature.thresholds]
            m.d.comb += getattr(self, f"state_{number}").eq(sum(reached))
        return m
