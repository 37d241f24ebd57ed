"""A virtual channel of a link, at the sending router or vault."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import shared_instance

from .arbiter import PacketArbiter


class OutputChannel(Component):
    """Reports the flits that may leave on a virtual channel in this cycle.

    Parameters:
        sources: input queues of packets, at least 1.
        credits: flits of room at the other end of the link, at least 1.

    Members:
        header_valid (in, sources): the first flit of a source is a header and requests this
            channel.
        body_valid (in, sources): the first flit belongs to the packet that holds the channel.
        eligible (out, sources): in the same cycle, sources whose flit may leave.
        fire (in, sources): at most one bit of ``eligible``: its flit leaves in this cycle.
        last (in, 1): that flit is the last of its packet.
        credit (in, 1): the other end has room for one more flit.
    """

    def __init__(self, *, sources: int, credits: int) -> None:
        self.sources = sources
        self.credits = credits
        super().__init__(
            {
                "header_valid": In(sources),
                "body_valid": In(sources),
                "eligible": Out(sources),
                "fire": In(sources),
                "last": In(1),
                "credit": In(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        arbiter = PacketArbiter(count=self.sources)
        m.submodules.arbiter = shared_instance(arbiter, platform)
        credits = Signal(range(self.credits + 1), init=self.credits)
        # A register beside the number, so that it is valid at the beginning of the cycle.
        has_credit = Signal(init=1)
        credits_next = Signal.like(credits)
        allocated = Signal()
        m.d.comb += [
            arbiter.requests.eq(self.header_valid),
            arbiter.served.eq(self.fire & self.header_valid),
            self.eligible.eq(
                Mux(
                    has_credit,
                    self.body_valid | Mux(allocated, 0, self.header_valid & arbiter.eligible),
                    0,
                )
            ),
            credits_next.eq(credits + self.credit - self.fire.any()),
        ]
        m.d.sync += [credits.eq(credits_next), has_credit.eq(credits_next != 0)]
        with m.If(self.fire.any()):
            m.d.sync += allocated.eq(~self.last)
        return m
