"""Performance counters of a processing engine."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component, Probes
from hdl.counter_bank import COUNTER_BITS, CounterBank
from hdl.emission import shared_instance
from pe.frontend.dispatch import EVENT_BITS, moved_bytes

from .config import PeConfig
from .extensions.extension import LsuExtension
from .extensions.units import extensions, link_members
from .interface import PeCounter, counter_index_bits

#: Cycles from the last event until every count is in the memory: a cycle more than the bank's lag.
FLUSH_CYCLES = len(PeCounter) + 3


class Counters(Component):
    """The counters of :class:`pe.interface.PeCounter` (:class:`hdl.counter_bank.CounterBank`).

    Members:
        clear: in; start again from 0 (while nothing is counted). settle: in; from the cycle after
            the last event on, every count is added to the memory.
        count: in; count this cycle. event: in; counter of this cycle. waits: in; ``STALL_FETCH``
            counts as ``STALL_REGISTER``. stays: in, a cycle later; a vector or load-store
            instruction that was issued goes no further, which counts as ``STALL_FENCE``.
        busy: in; count this cycle as ``VECTOR_BUSY``, too.
        loaded, stored: :func:`pe.frontend.dispatch.moved_bytes`, in.
        index: in. value: out, the cycle after; exact :data:`FLUSH_CYCLES` after the last event.
            Before that, up to 24 events may be missing, and 24 transfers of the largest size.

    Extensions with counters have a signal for each, in.
    """

    probes = Probes("late_event", "late_waits", "step_0")

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "clear": In(1),
                "settle": In(1),
                "count": In(1),
                "event": In(EVENT_BITS),
                "waits": In(1),
                "stays": In(1),
                "busy": In(1),
                **moved_bytes(config).inputs(),
                "index": In(counter_index_bits(config)),
                "value": Out(COUNTER_BITS),
                **link_members(config, "counters"),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        if not self.config.counters:
            return m
        bank = _bank(self.config)
        m.submodules.bank = shared_instance(bank, platform)
        m.d.comb += [
            bank.clear.eq(self.clear),
            bank.settle.eq(self.settle),
            bank.index.eq(self.index),
            self.value.eq(bank.value),
        ]

        # Counts events of the previous cycle, to stay off the issue stage's paths.
        late = {
            name: Signal.like(signal, name=f"late_{name}")
            for name, signal in (
                ("count", self.count),
                ("busy", self.busy),
                ("event", self.event),
                ("waits", self.waits),
                ("loaded", self.loaded),
                ("stored", self.stored),
            )
        }
        m.d.sync += [signal.eq(getattr(self, name)) for name, signal in late.items()]

        event = Signal(EVENT_BITS)
        m.d.comb += event.eq(late["event"])
        with m.If(late["waits"] & (late["event"] == PeCounter.STALL_FETCH)):
            m.d.comb += event.eq(PeCounter.STALL_REGISTER)
        issued = (late["event"] == PeCounter.ISSUED_VECTOR) | (
            late["event"] == PeCounter.ISSUED_LOAD_STORE
        )
        with m.If(self.stays & issued):
            m.d.comb += event.eq(PeCounter.STALL_FENCE)
        for counter in PeCounter:
            if counter is PeCounter.CYCLES:
                step = late["count"]
            elif counter is PeCounter.VECTOR_BUSY:
                step = late["count"] & late["busy"]
            elif counter is PeCounter.BYTES_LOADED:
                step = late["loaded"]
            elif counter is PeCounter.BYTES_STORED:
                step = late["stored"]
            else:
                step = late["count"] & (event == counter)
            m.d.comb += getattr(bank, f"step_{counter.value}").eq(step)
        for extension in extensions(self.config):
            if extension.counters:
                self._extension(m, extension, platform)
        return m

    def _extension(self, m: Module, extension: LsuExtension, platform: object) -> None:
        """The counters of ``extension``, in a bank of their own."""
        first = min(extension.counters)
        bank = CounterBank(max_steps=(1,) * len(extension.counters), kind=self.config.sram)
        m.submodules[extension.name] = shared_instance(bank, platform)
        for counter, event in extension.counters.items():
            m.d.comb += getattr(bank, f"step_{counter - first}").eq(getattr(self, event))
        chosen = Signal()
        m.d.sync += chosen.eq(self.index >= first)
        m.d.comb += [bank.clear.eq(self.clear), bank.index.eq(self.index - first)]
        with m.If(chosen):
            m.d.comb += self.value.eq(bank.value)


def _bank(config: PeConfig) -> CounterBank:
    bytes_ = (PeCounter.BYTES_LOADED, PeCounter.BYTES_STORED)
    max_steps = tuple(config.scratchpad_bytes if counter in bytes_ else 1 for counter in PeCounter)
    return CounterBank(max_steps=max_steps, kind=config.sram)
