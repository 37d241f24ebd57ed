"""Vector settings: VL, MR and FX, and the sizes that follow from them."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from isa.launch import START_FX, START_MR, START_VL
from isa.table import MAX_FX, MAX_MR
from pe.capabilities import Capabilities
from pe.config import PeConfig

#: Cycles that the product of VL and MR takes after a change, whatever the limits.
SETTLING_CYCLES = MAX_MR.bit_length()


def element_bits(config: PeConfig) -> int:
    """Bits of the number of elements in a matrix of the largest VL and MR."""
    if not Capabilities.of(config).reduced:
        return 1
    return (config.vl_limit * config.mr_limit).bit_length()


def setting_bits(config: PeConfig) -> int:
    """Bits of the largest value that a setting can take."""
    return max(config.vl_bits, config.mr_bits, MAX_FX.bit_length())


class VectorSettings(Component):
    """Registers for ``set.vl``, ``set.mr`` and ``set.fx``.

    A setting that no vector instruction uses is not stored; one that nothing sets keeps its launch
    value.

    Members:
        reset: in; back to the values of a launch.
        set_vl, set_mr, set_fx: in; take ``value`` from the next cycle on.
        value: in.
        vl, mr, fx: out.
        elements: out, VL x MR for matrices; wrong while ``settling``, for 9 cycles after a change.
        settling: out.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "reset": In(1),
                "set_vl": In(1),
                "set_mr": In(1),
                "set_fx": In(1),
                "value": In(setting_bits(config)),
                "vl": Out(config.vl_bits, init=START_VL),  # type: ignore[call-arg]
                "mr": Out(config.mr_bits, init=START_MR),  # type: ignore[call-arg]
                "fx": Out(MAX_FX.bit_length(), init=START_FX),  # type: ignore[call-arg]
                "elements": Out(element_bits(config), init=START_VL * START_MR),  # type: ignore[call-arg]
                "settling": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        keys = self.config.instructions
        caps = Capabilities.of(self.config)
        settings = (
            ("set.vl", caps.vector, self.vl, self.set_vl, START_VL),
            ("set.mr", caps.reduced, self.mr, self.set_mr, START_MR),
            ("set.fx", caps.fractions, self.fx, self.set_fx, START_FX),
        )
        for key, used, setting, changes, start in settings:
            if key in keys and used:
                with m.If(self.reset):
                    m.d.sync += setting.eq(start)
                with m.If(changes):
                    m.d.sync += setting.eq(self.value)
            else:
                m.d.comb += setting.eq(start)
        if caps.reduced:
            # A bit-serial product: settings change rarely, and a multiplier is large.
            left = Signal(range(SETTLING_CYCLES + 1))
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
                m.d.sync += [left.eq(SETTLING_CYCLES), self.elements.eq(0)]
        return m
