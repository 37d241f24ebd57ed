"""Traffic counters of a node."""

from enum import IntEnum

from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.counter_bank import COUNTER_BITS, CounterBank
from hdl.emission import shared_instance
from noc.config import NetworkConfig


class NetworkCounter(IntEnum):
    """Index of each counter. They count from reset; readers take differences."""

    CYCLES = 0
    #: Flits sent to each neighbour; 0 where there is no link.
    EAST_FLITS = 1
    WEST_FLITS = 2
    NORTH_FLITS = 3
    SOUTH_FLITS = 4
    #: Flits that the node sent into the network, and flits delivered to it.
    SENT_FLITS = 5
    RECEIVED_FLITS = 6
    #: Requests of the node's requesters to its own vault and to others.
    LOCAL_REQUESTS = 7
    REMOTE_REQUESTS = 8
    #: Requests of other nodes to the node's vault.
    SERVED_REQUESTS = 9


_COUNT = 16
INDEX_BITS = (_COUNT - 1).bit_length()
#: Cycles from an event until its counter includes it.
LAG_CYCLES = _COUNT + 2


class NetworkCounters(Component):
    """The counters of :class:`NetworkCounter` (:class:`hdl.counter_bank.CounterBank`).

    Parameters:
        config: of the network.
        most: by counter, its largest step; 0 for one that stays 0.

    Members:
        step_N (in, 0..largest step): for each counter with steps, its step in this cycle.
        index (in, INDEX_BITS): counter to read.
        value (out, COUNTER_BITS): its value one cycle later, without the last
            :data:`LAG_CYCLES`; always 0 without ``config.counters``.
    """

    def __init__(self, config: NetworkConfig, *, max_steps: tuple[int, ...]) -> None:
        self.config = config
        self.max_steps = max_steps
        super().__init__(
            {
                **{f"step_{n}": In(range(step + 1)) for n, step in enumerate(max_steps) if step},
                "index": In(INDEX_BITS),
                "value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        if not self.config.counters:
            return m
        max_steps = self.max_steps + (0,) * (_COUNT - len(self.max_steps))
        bank = CounterBank(max_steps=max_steps, kind=self.config.sram)
        m.submodules.bank = shared_instance(bank, platform)
        m.d.comb += [bank.index.eq(self.index), self.value.eq(bank.value)]
        m.d.comb += [
            getattr(bank, f"step_{n}").eq(getattr(self, f"step_{n}"))
            for n, step in enumerate(max_steps)
            if step
        ]
        return m
