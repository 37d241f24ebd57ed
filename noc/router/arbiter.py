"""Fair turns of packets on a virtual channel."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.round_robin import lowest

__all__ = ["Turns"]


class Turns(Component):
    """Says who may begin the next packet on a virtual channel, so that nobody waits for ever.

    A round robin would be the same, but its choice would lie on the router's longest path. Here who
    is in turn is a register: if it wants, only it may; if not, all may, and the next who wants is
    in turn. Who wants without a break begins after at most ``2 * (count - 1)`` packets of
    others.

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
        # Turns go round in a circle whoever begins, so that nobody can be passed over twice.
        with m.If(~stays & others.any()):
            m.d.sync += turn.eq(Mux(behind.any(), lowest(behind), lowest(others)))
        return m
