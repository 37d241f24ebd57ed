"""Horizontal stage: reduction over the elements of a row."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import PeConfig
from hdl.emission import once
from hdl.simd import LaneReducer
from isa.table import ReductionOp, Width

from .vector_beat import (
    BELOW_BITS,
    is_product,
    is_reduced,
    is_width,
    result_beat,
    value_beat,
    value_pair,
)
from .vector_fold import FOLDED
from .vector_needs import VectorNeeds

__all__ = ["VectorHorizontal"]


class VectorHorizontal(Component):
    """Two cycles: combine the two values of a pair; combine with the row's earlier beats.

    The levels of the tree below the pair are in :mod:`pe.vector_fold`. Element-wise values pass.
    Needs a configuration with at least one vector instruction.

    Members:
        pair: :func:`pe.vector_beat.value_pair`, in.
        pair_beat: :func:`pe.vector_beat.value_beat`, in, with ``pair``.
        pair_complete, pair_write: in, with ``pair``.
        total: out, signed, 2 cycles later; the value of the row so far, or all lanes element-wise.
        total_beat: :func:`pe.vector_beat.result_beat`, out, with ``total``.
        total_write: out, with ``total``.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.needs = VectorNeeds.of(config)
        super().__init__(
            {
                "pair": In(value_pair(self.needs)),
                "pair_beat": In(value_beat(config)),
                "pair_complete": In(1),
                "pair_write": In(1),
                "total": Out(signed(self.needs.total_bits)),
                "total_beat": Out(result_beat(config)),
                "total_write": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        needs = self.needs
        value = Signal(signed(needs.beat_bits), reset_less=True)
        beat: Any = Signal(value_beat(self.config), reset_less=True)
        result: Any = Signal(result_beat(self.config), reset_less=True)
        complete = Signal()
        write = Signal()
        m.d.sync += [
            beat.eq(self.pair_beat),
            complete.eq(self.pair_complete),
            write.eq(self.pair_write),
            result.eq(beat.result),
            self.total_write.eq(write),
        ]
        m.d.comb += self.total_beat.eq(result)
        self._combine(m, platform, value)

        total = Signal(signed(needs.total_bits), reset_less=True)
        m.d.comb += self.total.eq(total)
        if needs.reductions:
            row = LaneReducer(needs.total_bits, 1, needs.reductions, [needs.total_bits])
            m.submodules.row = once(row, platform)
            m.d.comb += [
                row.a.eq(total),
                row.b.eq(value),
                row.reduction.eq(beat.result.reduction),
                row.lanes.eq(1),
                row.use_b.eq(1),
            ]
            with m.If(complete):
                m.d.sync += total.eq(Mux(beat.first, value, row.value.as_signed()))
        else:
            m.d.sync += total.eq(value)
        return m

    def _combine(self, m: Module, platform: object, value: Signal) -> None:
        """First cycle: two values become one."""
        needs = self.needs
        pair = self.pair
        beat = self.pair_beat.result
        pairs = needs.reduced.of_widths(FOLDED | {Width.W32})
        long: Value = Const(0, 1)
        operations = pairs.reductions
        bits = pairs.lower_bits
        if needs.has_long_products:
            long = is_product(beat.product, needs) & is_width(beat.width, [Width.W64], needs)
            operations |= {ReductionOp.ADD}
            bits = max(bits, len(pair.upper) + BELOW_BITS)
        if not operations:
            m.d.sync += value.eq(Cat(pair.lower, pair.upper) if needs.upper_bits else pair.lower)
            return
        reducer = LaneReducer(bits, 1, operations, [bits])
        m.submodules.pair = once(reducer, platform)
        m.d.comb += [
            reducer.a.eq(pair.lower),
            reducer.b.eq(pair.upper),
            reducer.reduction.eq(beat.reduction),
            reducer.lanes.eq(1),
            # A pair's upper value starts with the second element, in a word's third byte or behind.
            reducer.use_b.eq(
                Mux(is_width(beat.width, [Width.W32], needs), beat.tail[2], beat.tail[1:].any())
            ),
        ]
        combined = Cat(reducer.value, reducer.sign).as_signed()
        apart = (Cat(pair.lower, pair.upper) if needs.upper_bits else pair.lower).as_signed()
        reduces = is_reduced(beat.reduction, needs) & is_width(
            beat.width, FOLDED | {Width.W32}, needs
        )
        result = Mux(reduces, combined, apart)
        if needs.has_long_products:
            with m.If(long):
                m.d.comb += [
                    reducer.b.eq(Cat(pair.below_upper, pair.upper)),
                    reducer.reduction.eq(ReductionOp.ADD),
                ]
            result = Mux(long, Cat(pair.below_lower, reducer.value).as_signed(), result)
        m.d.sync += value.eq(result)
