"""Registers that take a new value only when it is needed, so that their clock can be gated."""

from amaranth.hdl import Const, Elaboratable, Module, Value
from amaranth.lib.wiring import In, Out

from .component import Component
from .config import SramKind
from .emission import shared_instance

#: Verilog of :class:`ClockNeed` for a target without clock gates.
ALWAYS = "module clock_need(input when_needed, output needs); assign needs = 1'b1; endmodule\n"


class ClockNeed(Component):
    """Marks an enable that may as well be 1, as what registers then take does not matter.

    Members:
        when_needed: in. needs: out, the same.
    """

    def __init__(self) -> None:
        super().__init__({"when_needed": In(1), "needs": Out(1)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.d.comb += self.needs.eq(self.when_needed)
        return m


def needs_clock(m: Module, platform: object, when: Value, kind: SramKind) -> Value:
    """Condition of registers whose value matters only after a cycle with ``when``, and may be any
    otherwise. In FPGAs, which have no clock gates, it is 1.

    Parameters:
        platform: the argument of the caller's ``elaborate``.
        kind: of the memories that are built with the registers.
    """
    if kind != "macro":
        return Const(1, 1)
    need = ClockNeed()
    m.submodules += shared_instance(need, platform)
    m.d.comb += need.when_needed.eq(when)
    needs: Value = need.needs
    return needs
