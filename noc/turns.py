"""Fair turns of packets on a virtual channel."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.round_robin import lowest

__all__ = ["Turns"]


class Turns(Component):
    """Says who may begin the next packet on a virtual channel, so that nobody waits for ever.

    A round robin would be the same, but its choice would lie on the router's longest path. Here who
    is next in turn is chosen a cycle ahead: if it wants, only it may; if not, all may. Who wants
    without a break may after at most ``2 * count`` packets of others.

    Parameters:
        count: who may want, at least 1.

    Members:
        wants: in; a bit each: a packet waits for the channel, whether it is free or not.
        may: out; in the same cycle, who may begin.
        begins: in; at most one bit, of who begins in this cycle.
    """

    def __init__(self, *, count: int) -> None:
        self.count = count
        super().__init__({"wants": In(count), "may": Out(count), "begins": In(count)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        behind = Signal(self.count)
        turn = Signal(self.count)
        waiting = Signal(self.count)
        high = Signal(self.count)
        m.d.comb += [
            self.may.eq(Mux((turn & self.wants).any(), turn, ~0)),
            waiting.eq(self.wants & ~self.begins),
            high.eq(waiting & behind),
        ]
        m.d.sync += turn.eq(Mux(high.any(), lowest(high), lowest(waiting)))
        with m.If(self.begins.any()):
            m.d.sync += behind.eq(~(self.begins | (self.begins - 1)))
        return m
