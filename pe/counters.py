"""Performance counters of a processing engine."""

from amaranth.hdl import Array, Elaboratable, Module, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import PeConfig
from hdl.counters import COUNTER_BITS, PeCounter
from hdl.emission import once
from hdl.sram import Sram

from .dispatch import EVENT_BITS
from .range_check import byte_bits

__all__ = ["FLUSH_CYCLES", "Counters"]

_COUNT = len(PeCounter)
#: Cycles from the last event until every count is in the memory.
FLUSH_CYCLES = _COUNT + 3

_BYTES = (PeCounter.BYTES_LOADED, PeCounter.BYTES_STORED)


class Counters(Component):
    """The counters of :class:`hdl.counters.PeCounter` in one memory.

    Sixteen wide counters in flip-flops would be an eighth of the engine. Instead events gather in
    narrow ones, and each in its turn, once in sixteen cycles, is added to its word of the memory.

    Members:
        clear, clear_index: in; set one word to 0 (while nothing is counted).
        count: in; count this cycle. event: in; as which. busy: in; as ``VECTOR_BUSY`` too.
        loaded, stored: in, bytes.
        index: in. value: out, the cycle after; exact :data:`FLUSH_CYCLES` after the last event.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "clear": In(1),
                "clear_index": In(EVENT_BITS),
                "count": In(1),
                "event": In(EVENT_BITS),
                "busy": In(1),
                "loaded": In(byte_bits(config)),
                "stored": In(byte_bits(config)),
                "index": In(EVENT_BITS),
                "value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        if not self.config.counters:
            return m
        memory = Sram(
            width=COUNTER_BITS, depth=_COUNT, read_ports=2, write_ports=1, kind=self.config.sram
        )
        m.submodules.memory = once(memory, platform)
        update, readout = memory.read
        (write,) = memory.write
        m.d.comb += [
            readout.enable.eq(1),
            readout.address.eq(self.index),
            self.value.eq(readout.data),
        ]

        turn = Signal(EVENT_BITS)
        adding = Signal(EVENT_BITS)
        m.d.sync += [turn.eq(turn + 1), adding.eq(turn)]
        m.d.comb += [update.enable.eq(1), update.address.eq(turn)]

        # What happened in the cycle before: counting lengthens no path of the issue stage.
        late = {
            name: Signal.like(signal, name=f"late_{name}")
            for name, signal in (
                ("count", self.count),
                ("busy", self.busy),
                ("event", self.event),
                ("loaded", self.loaded),
                ("stored", self.stored),
            )
        }
        m.d.sync += [signal.eq(getattr(self, name)) for name, signal in late.items()]

        gathered = []
        for counter in PeCounter:
            step = Signal(byte_bits(self.config), name=f"step_{counter.name.lower()}")
            if counter is PeCounter.CYCLES:
                m.d.comb += step.eq(late["count"])
            elif counter is PeCounter.VECTOR_BUSY:
                m.d.comb += step.eq(late["count"] & late["busy"])
            elif counter in _BYTES:
                m.d.comb += step.eq(
                    late["loaded"] if counter is PeCounter.BYTES_LOADED else late["stored"]
                )
            else:
                m.d.comb += step.eq(late["count"] & (late["event"] == counter))
            most = self.config.scratchpad_bytes if counter in _BYTES else 1
            narrow = Signal(range(_COUNT * most + 1), name=f"gathered_{counter.name.lower()}")
            m.d.sync += narrow.eq(narrow + step)
            with m.If(adding == counter):
                m.d.sync += narrow.eq(step)
            gathered.append(narrow)
        m.d.comb += [
            write.enable.eq(1),
            write.address.eq(adding),
            write.data.eq(update.data + Array(gathered)[adding]),
        ]
        with m.If(self.clear):
            m.d.comb += [write.address.eq(self.clear_index), write.data.eq(0)]
            # The first word is the one to go on with: its old value is not read any more.
            m.d.sync += turn.eq(0)
            for narrow in gathered:
                m.d.sync += narrow.eq(0)
        return m
