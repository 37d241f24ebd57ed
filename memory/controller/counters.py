"""Performance counters of a vault's controller."""

from enum import IntEnum
from typing import Any

from amaranth.hdl import Elaboratable, Module, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.counter_bank import COUNTER_BITS, CounterBank
from hdl.emission import shared_instance
from memory.config import VaultConfig

from .bank_machine import bank_events
from .transaction import ARRIVAL_BITS


class VaultCounter(IntEnum):
    """Index of each counter. They count from reset; readers take differences."""

    CYCLES = 0
    #: Column commands: requests served.
    READS = 1
    WRITES = 2
    #: Of these: the row was open; the bank was closed; another row was open.
    ROW_HITS = 3
    ROW_MISSES = 4
    ROW_CONFLICTS = 5
    #: Changes of the direction of the data bus.
    TURNAROUNDS = 6
    #: Cycles in which the data bus moves a word (four per column, requested or not).
    BUS_BUSY = 7
    REFRESHES = 8
    #: For each cycle, banks with a request that waits for a refresh.
    REFRESH_BLOCKED = 9
    #: For each cycle, requests in the transaction queue.
    OCCUPANCY = 10
    #: Requests by their time from arrival to column command: below each of the limits, and beyond.
    LATENCY_0 = 16


#: Cycles below which a request counts as ``LATENCY_0``, as the one after it, and so on; those above
#: count as one more. Times are known to within four cycles.
LATENCY_LIMITS = (16, 32, 64, 128, 256, 512, 1024)

#: Counters of the histogram follow ``LATENCY_0``.
_COUNT = 32
INDEX_BITS = (_COUNT - 1).bit_length()
#: Cycles from an event until its counter includes it.
LAG_CYCLES = _COUNT + 2

#: The unit of :data:`memory.controller.transaction.ARRIVAL_BITS` is four cycles.
ARRIVAL_UNIT_BITS = 2


def command_event() -> data.StructLayout:
    """Events of the controller in a cycle.

    Members:
        read (1): a READ is issued.
        write (1): a WRITE is issued.
        refresh (1): a REFRESH is issued.
        turnaround (1): see :class:`memory.controller.bus_rules.BusRules`.
        busy (1): see :class:`memory.controller.bus_rules.BusRules`.
    """
    return data.StructLayout({"read": 1, "write": 1, "refresh": 1, "turnaround": 1, "busy": 1})


class VaultCounters(Component):
    """The counters of :class:`VaultCounter` (:class:`hdl.counter_bank.CounterBank`).

    Members:
        event (in, :func:`command_event`): events of the controller.
        banks (in, :func:`memory.controller.bank_machine.bank_events` for each bank): their events.
        occupied (in, transaction_queue): entries of the transaction queue that hold a request.
        now (out, ARRIVAL_BITS): time, to be stored with a request that arrives in this cycle.
        arrival (in, ARRIVAL_BITS): the stored time of the request of ``event.read`` or
            ``event.write``.
        index (in, INDEX_BITS): counter to read.
        value (out, COUNTER_BITS): its value one cycle later, without the last :data:`LAG_CYCLES`.
    """

    def __init__(self, config: VaultConfig) -> None:
        self.config = config
        super().__init__(
            {
                "event": In(command_event()),
                "banks": In(bank_events()).array(config.banks),
                "occupied": In(config.transaction_queue),
                "now": Out(ARRIVAL_BITS),
                "arrival": In(ARRIVAL_BITS),
                "index": In(INDEX_BITS),
                "value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        if not self.config.counters:
            return m
        steps = self._steps(m)
        max_steps = tuple(steps[index][0] if index in steps else 0 for index in range(_COUNT))
        bank = CounterBank(max_steps=max_steps, kind=self.config.sram)
        m.submodules.bank = shared_instance(bank, platform)
        m.d.comb += [bank.index.eq(self.index), self.value.eq(bank.value)]
        m.d.comb += [getattr(bank, f"step_{index}").eq(step) for index, (_, step) in steps.items()]
        return m

    def _steps(self, m: Module) -> dict[int, tuple[int, Value]]:
        """For each counter: the largest step, and the step of this cycle."""
        banks = self.config.banks
        event: Any = self.event
        served = event.read | event.write
        ones = {
            VaultCounter.CYCLES: 1,
            VaultCounter.READS: event.read,
            VaultCounter.WRITES: event.write,
            VaultCounter.TURNAROUNDS: event.turnaround,
            VaultCounter.BUS_BUSY: event.busy,
            VaultCounter.REFRESHES: event.refresh,
        }
        steps: dict[int, tuple[int, Value]] = {}
        for counter, value in ones.items():
            step = Signal(name=f"step_{counter.name.lower()}")
            m.d.comb += step.eq(value)
            steps[counter] = 1, step
        for counter, field in (
            (VaultCounter.ROW_HITS, "hit"),
            (VaultCounter.ROW_MISSES, "miss"),
            (VaultCounter.ROW_CONFLICTS, "conflict"),
        ):
            step = Signal(name=f"step_{counter.name.lower()}")
            flags = Signal(banks, name=f"flags_{field}")
            for number, bank in enumerate(self.banks):
                m.d.comb += flags[number].eq(bank[field])
            m.d.comb += step.eq(flags.any())
            steps[counter] = 1, step
        blocked = Signal(range(banks + 1))
        m.d.comb += blocked.eq(sum(bank.refresh_blocked for bank in self.banks))
        steps[VaultCounter.REFRESH_BLOCKED] = banks, blocked
        size = self.config.transaction_queue
        occupancy = Signal(range(size + 1))
        m.d.sync += occupancy.eq(sum(self.occupied[number] for number in range(size)))
        steps[VaultCounter.OCCUPANCY] = size, occupancy

        cycle = Signal(ARRIVAL_BITS + ARRIVAL_UNIT_BITS)
        age = Signal(ARRIVAL_BITS)
        m.d.sync += cycle.eq(cycle + 1)
        m.d.comb += [self.now.eq(cycle[ARRIVAL_UNIT_BITS:]), age.eq(self.now - self.arrival)]
        below = [served & (age < (limit >> ARRIVAL_UNIT_BITS)) for limit in LATENCY_LIMITS]
        for number in range(len(LATENCY_LIMITS) + 1):
            step = Signal(name=f"step_latency_{number}")
            above = ~below[number - 1] if number else 1
            inside = below[number] if number < len(below) else served
            m.d.comb += step.eq(inside & above)
            steps[VaultCounter.LATENCY_0 + number] = 1, step
        return steps
