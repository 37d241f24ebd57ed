"""Round-robin arbiter."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from .component import Component
from .config import ConfigurationError


class RoundRobin(Component):
    """Grants the first request after the one that was served last, cyclically.

    A request that stays is granted after at most ``count - 1`` others have been served.

    Parameters:
        count: number of requests, 1..64.

    Members:
        requests (in, count): requests.
        grant (out, count): in the same cycle, the granted request alone; 0 without a request.
        advance (in, 1): the granted request is served in this cycle.

    Raises:
        ConfigurationError: ``count`` outside its range.
    """

    def __init__(self, *, count: int) -> None:
        if not 1 <= count <= 64:
            raise ConfigurationError(f"round robin chooses among 1 to 64 requests, not {count!r}")
        self.count = count
        super().__init__({"requests": In(count), "grant": Out(count), "advance": In(1)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        above = Signal(self.count)
        high = Signal(self.count)
        m.d.comb += [
            high.eq(self.requests & above),
            self.grant.eq(Mux(high.any(), lowest(high), lowest(self.requests))),
        ]
        with m.If(self.advance):
            m.d.sync += above.eq(~(self.grant | (self.grant - 1)))
        return m


def lowest(value: Value) -> Value:
    """The lowest bit that is set in ``value``, alone."""
    return value & (~value + 1)
