"""Element-wise operations other than products."""

from collections.abc import Callable

from amaranth.hdl import Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import PeConfig
from hdl.emission import once
from hdl.ports import WORD_BITS
from hdl.simd import LaneAdder, lane_bounds, lane_joins, lane_tops, one_of
from isa.table import VerticalOp

from .vector_beat import WIDTH_BITS, lanes_of
from .vector_needs import VectorNeeds

__all__ = ["VectorAlu"]


class VectorAlu(Component):
    """Saturating add and subtract, minimum, maximum and pass on lanes of any width, combinational.

    Minimum and maximum go by the sign of a difference of their own (see
    :class:`hdl.simd.LaneReducer`).
    Builds only what the configuration needs, of which at least one row does not multiply.

    Members:
        a, b: in; the operands' words.
        vertical: in; code of :class:`isa.table.VerticalOp`. width: in; of :class:`isa.table.Width`.
        value: out.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.needs = VectorNeeds.of(config)
        super().__init__(
            {
                "a": In(WORD_BITS),
                "b": In(WORD_BITS),
                "vertical": In(max(VerticalOp).bit_length()),
                "width": In(WIDTH_BITS),
                "value": Out(WORD_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        needs = self.needs.plain
        if needs.verticals == {VerticalOp.NOP}:
            m.d.comb += self.value.eq(self.a)
            return m
        granule = min(needs.widths).bits
        count = WORD_BITS // granule
        lanes = lanes_of(m, self.width, needs)

        def is_(*operations: VerticalOp) -> Value:
            return one_of(self.vertical, operations, needs.verticals)

        adder = LaneAdder(granule, count)
        less = LaneAdder(granule, count)
        for name, unit, subtract in (
            ("adder", adder, is_(VerticalOp.SUB)),
            ("less", less, Const(1, 1)),
        ):
            m.submodules[name] = once(unit, platform)
            m.d.comb += [unit.a.eq(self.a), unit.b.eq(self.b), unit.subtract.eq(subtract)]
            if count > 1:
                m.d.comb += unit.joins.eq(lane_joins(lanes, granule, WORD_BITS))

        def spread(flag: Callable[[int], Value]) -> list[Value]:
            return lane_tops([flag(index) for index in range(count)], lanes, granule)

        maximum, select, keep = Signal(), Signal(), Signal()
        m.d.comb += [
            maximum.eq(is_(VerticalOp.MAX)),
            select.eq(is_(VerticalOp.MIN, VerticalOp.MAX)),
            keep.eq(is_(VerticalOp.NOP)),
        ]
        picks_b = spread(lambda index: select & ~keep & ~(less.negative[index] ^ maximum))
        saturates = spread(lambda index: ~select & ~keep & adder.overflow[index])
        bounds = lane_bounds(list(adder.negative), lanes, granule)
        for index in range(count):
            part = slice(index * granule, (index + 1) * granule)
            m.d.comb += self.value[part].eq(
                Mux(
                    saturates[index],
                    bounds[index],
                    Mux(
                        picks_b[index],
                        self.b[part],
                        Mux(select | keep, self.a[part], adder.sum[part]),
                    ),
                )
            )
        return m
