"""A virtual channel of a link, at the router or vault that sends on it."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import once

from .arbiter import Turns

__all__ = ["OutputChannel"]


class OutputChannel(Component):
    """Says which flits may go out on a virtual channel now.

    Parameters:
        sources: queues from which packets come, at least 1.
        credits: flits that the other end of the link has room for, at least 1.

    Members:
        begins: in; a bit for each source: its first flit is a header and wants this channel.
        continues: in; a bit for each: its first flit belongs to the packet that has the channel.
        may: out; in the same cycle, a bit for each: that flit may go.
        goes: in; at most one bit of ``may``: it goes in this cycle.
        last: in; what goes is the last flit of its packet.
        credit: in; the other end has room for one more.
    """

    def __init__(self, *, sources: int, credits: int) -> None:
        self.sources = sources
        self.credits = credits
        super().__init__(
            {
                "begins": In(sources),
                "continues": In(sources),
                "may": Out(sources),
                "goes": In(sources),
                "last": In(1),
                "credit": In(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        turns = Turns(count=self.sources)
        m.submodules.turns = once(turns, platform)
        credits = Signal(range(self.credits + 1), init=self.credits)
        # Kept apart from the number, so that it is known at the beginning of the cycle.
        has_credit = Signal(init=1)
        credits_next = Signal.like(credits)
        taken = Signal()
        m.d.comb += [
            turns.wants.eq(self.begins),
            turns.begins.eq(self.goes & self.begins),
            self.may.eq(
                Mux(has_credit, self.continues | Mux(taken, 0, self.begins & turns.may), 0)
            ),
            credits_next.eq(credits + self.credit - self.goes.any()),
        ]
        m.d.sync += [credits.eq(credits_next), has_credit.eq(credits_next != 0)]
        with m.If(self.goes.any()):
            m.d.sync += taken.eq(~self.last)
        return m
