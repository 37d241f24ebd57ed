"""Arbiter of a virtual channel, fair to all packets."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.round_robin import lowest


class PacketArbiter(Component):
    """Selects the packets that may begin next on a virtual channel, without starvation.

    A round robin would be as fair, but its selection would lie on the router's longest path. Here
    the preferred requester is a register. If it requests, it alone is eligible; otherwise all are,
    and the next requester in order becomes the preferred one. A requester that keeps requesting is
    served after at most ``2 * (count - 1)`` packets of others.

    Parameters:
        count: requesters, at least 1.

    Members:
        requests (in, count): a packet waits for the channel, whether it is free or not.
        eligible (out, count): in the same cycle, the requesters whose packet may begin.
        served (in, count): at most one bit, the requester whose packet begins in this cycle.
    """

    def __init__(self, *, count: int) -> None:
        self.count = count
        super().__init__({"requests": In(count), "eligible": Out(count), "served": In(count)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        preferred = Signal(self.count)
        unpreferred = Signal(self.count)
        following = Signal(self.count)
        hold = Signal()
        m.d.comb += [
            self.eligible.eq(Mux((preferred & self.requests).any(), preferred, ~0)),
            unpreferred.eq(self.requests & ~preferred),
            following.eq(unpreferred & ~(preferred | (preferred - 1))),
            hold.eq((preferred & self.requests & ~self.served).any()),
        ]
        # The order is the same whichever requester is served, so that none is passed over twice.
        with m.If(~hold & unpreferred.any()):
            m.d.sync += preferred.eq(Mux(following.any(), lowest(following), lowest(unpreferred)))
        return m
