"""Performance counters of an AXI back end."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.counter_bank import COUNTER_BITS, CounterBank
from hdl.emission import shared_instance
from memory.controller.counters import INDEX_BITS, VaultCounter

from .layout import AxiConfig

#: The counters that exist without a DRAM.
AXI_COUNTERS = (
    VaultCounter.CYCLES,
    VaultCounter.READS,
    VaultCounter.WRITES,
    VaultCounter.BUS_BUSY,
    VaultCounter.OCCUPANCY,
)


class AxiCounters(Component):
    """The counters of :class:`memory.controller.counters.VaultCounter` that exist without a DRAM.

    They are ``CYCLES``; ``READS`` and ``WRITES``, requests that AXI has answered; ``BUS_BUSY``,
    cycles with a beat of data of either direction; ``OCCUPANCY``, for each cycle the requests that
    hold an identifier. The others read 0.

    Members:
        allocate (in, 1): an identifier is allocated.
        free (in, 1): an identifier is free again.
        read_done (in, 1): AXI has answered the whole of a read.
        write_done (in, 1): AXI has answered a write; may come together with ``read_done``.
        busy (in, 1): a beat of data moves on the bus.
        index (in, INDEX_BITS): counter to read.
        value (out, COUNTER_BITS): its value one cycle later, without the last
            :data:`memory.controller.counters.LAG_CYCLES`.
    """

    def __init__(self, config: AxiConfig) -> None:
        self.config = config
        super().__init__(
            {
                "allocate": In(1),
                "free": In(1),
                "read_done": In(1),
                "write_done": In(1),
                "busy": In(1),
                "index": In(INDEX_BITS),
                "value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        if not self.config.counters:
            return m
        max_steps = [0] * (1 << INDEX_BITS)
        for counter in AXI_COUNTERS:
            max_steps[counter] = 1
        max_steps[VaultCounter.OCCUPANCY] = self.config.outstanding
        bank = CounterBank(max_steps=tuple(max_steps), kind=self.config.sram)
        m.submodules.bank = shared_instance(bank, platform)
        in_flight = Signal(range(self.config.outstanding + 1))
        m.d.sync += in_flight.eq(in_flight + self.allocate - self.free)
        steps = {
            VaultCounter.CYCLES: 1,
            VaultCounter.READS: self.read_done,
            VaultCounter.WRITES: self.write_done,
            VaultCounter.BUS_BUSY: self.busy,
            VaultCounter.OCCUPANCY: in_flight,
        }
        m.d.comb += [getattr(bank, f"step_{int(index)}").eq(step) for index, step in steps.items()]
        m.d.comb += [bank.index.eq(self.index), self.value.eq(bank.value)]
        return m
