"""Vector settings: VL, MR and FX, and the sizes that follow from them."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import PeConfig
from isa.launch import START_FX, START_MR, START_VL
from isa.table import MAX_FX, Unit

__all__ = ["VectorSettings", "element_bits"]


def element_bits(config: PeConfig) -> int:
    """Bits of the number of elements in a matrix of the largest VL and MR."""
    return 2 * config.length_bits - 1


class VectorSettings(Component):
    """Registers for ``set.vl``, ``set.mr`` and ``set.fx``.

    Members:
        reset: in; back to the values of a launch.
        set_vl, set_mr, set_fx: in; take ``value`` from the next cycle on.
        value: in.
        vl, mr, fx: out.
        elements: out, VL x MR; wrong while ``settling``, for a cycle a bit of MR after a change.
        settling: out.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        length = config.length_bits
        super().__init__(
            {
                "reset": In(1),
                "set_vl": In(1),
                "set_mr": In(1),
                "set_fx": In(1),
                "value": In(length),
                "vl": Out(length, init=START_VL),  # type: ignore[call-arg]
                "mr": Out(length, init=START_MR),  # type: ignore[call-arg]
                "fx": Out(MAX_FX.bit_length(), init=START_FX),  # type: ignore[call-arg]
                "elements": Out(element_bits(config), init=START_VL * START_MR),  # type: ignore[call-arg]
                "settling": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        rows = self.config.rows_of(Unit.VECTOR)
        keys = self.config.instructions
        with m.If(self.reset):
            m.d.sync += [self.vl.eq(START_VL), self.mr.eq(START_MR), self.fx.eq(START_FX)]
        if "set.vl" in keys:
            with m.If(self.set_vl):
                m.d.sync += self.vl.eq(self.value)
        if "set.mr" in keys:
            with m.If(self.set_mr):
                m.d.sync += self.mr.eq(self.value)
        if "set.fx" in keys:
            with m.If(self.set_fx):
                m.d.sync += self.fx.eq(self.value)
        if any(row.reduction is not None for row in rows):
            # Multiplied bit by bit: settings change rarely, and a multiplier is large.
            left = Signal(range(len(self.mr) + 1))
            bit = Signal()
            m.d.comb += [
                self.settling.eq(left != 0),
                bit.eq((self.mr << 1).bit_select(left, 1)),
            ]
            with m.If(left != 0):
                m.d.sync += [
                    left.eq(left - 1),
                    self.elements.eq((self.elements << 1) + Mux(bit, self.vl, 0)),
                ]
            with m.If(self.reset | self.set_vl | self.set_mr):
                m.d.sync += [left.eq(len(self.mr)), self.elements.eq(0)]
        return m
