"""Arbiter of a virtual channel, fair to all packets."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.round_robin import lowest

__all__ = ["Turns"]


class Turns(Component):
    """Selects the packet that may begin next on a virtual channel, without starvation.

    A round robin would be as fair, but its selection would lie on the router's longest path. Here
    the preferred requester is a register. If it requests, it alone is granted; otherwise all are,
    and the next requester in order becomes the preferred one. A requester that requests without a
    break begins after at most ``2 * (count - 1)`` packets of others.

    Parameters:
        count: requesters, at least 1.

    Members:
        wants (in, count): a packet waits for the channel, whether it is free or not.
        may (out, count): in the same cycle, the requesters that are granted.
        begins (in, count): at most one bit, the requester that begins in this cycle.
    """

    def __init__(self, *, count: int) -> None:
        self.count = count
        super().__init__({"wants": In(count), "may": Out(count), "begins": In(count)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        turn = Signal(self.count)
        others = Signal(self.count)
        behind = Signal(self.count)
        stays = Signal()
        m.d.comb += [
            self.may.eq(Mux((turn & self.wants).any(), turn, ~0)),
            others.eq(self.wants & ~turn),
            behind.eq(others & ~(turn | (turn - 1))),
            stays.eq((turn & self.wants & ~self.begins).any()),
        ]
        # The order is the same whichever requester begins, so that none is passed over twice.
        with m.If(~stays & others.any()):
            m.d.sync += turn.eq(Mux(behind.any(), lowest(behind), lowest(others)))
        return m
