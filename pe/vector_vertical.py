"""Vertical stage: element-wise operations on the two operands."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import PeConfig
from hdl.emission import once
from hdl.ports import WORD_BITS
from isa.table import Width
from isa.timing import WORD_BYTES

from .vector_alu import VectorAlu
from .vector_beat import (
    BELOW_BITS,
    is_product,
    is_reduced,
    is_width,
    operand_beat,
    value_beat,
    value_pair,
)
from .vector_fold import FOLDED, VectorFold
from .vector_needs import VectorNeeds
from .vector_products import LONG, PRODUCTS_BITS, LimbProducts, LimbSelect, PassSum

__all__ = ["VectorVertical"]


class VectorVertical(Component):
    """Three cycles: latch the operands; operate, or multiply limbs; add up or fold the products.

    Needs a configuration with at least one vector instruction.

    Members:
        operands, complete, write: in, as in :mod:`pe.vector_beat`.
        first, second: in; the words read, in the same cycle as ``operands``.
        pair: :func:`pe.vector_beat.value_pair`, out, 3 cycles later.
        pair_beat: :func:`pe.vector_beat.value_beat`, out, with ``pair``.
        pair_complete, pair_write: out, with ``pair``.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.needs = VectorNeeds.of(config)
        super().__init__(
            {
                "operands": In(operand_beat(config)),
                "complete": In(1),
                "write": In(1),
                "first": In(WORD_BITS),
                "second": In(WORD_BITS),
                "pair": Out(value_pair(self.needs)),
                "pair_beat": Out(value_beat(config)),
                "pair_complete": Out(1),
                "pair_write": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        beat_1: Any = Signal(operand_beat(self.config), reset_less=True)
        beat_2: Any = Signal(value_beat(self.config), reset_less=True)
        beat_3: Any = Signal(value_beat(self.config), reset_less=True)
        first_pass = Signal(reset_less=True)
        complete = Signal(2)
        write = Signal(2)
        m.d.sync += [
            beat_1.eq(self.operands),
            beat_2.eq(beat_1.value),
            beat_3.eq(beat_2),
            first_pass.eq(beat_1.pass_index == 0),
            Cat(complete, self.pair_complete).eq(Cat(self.complete, complete)),
            Cat(write, self.pair_write).eq(Cat(self.write, write)),
        ]
        m.d.comb += self.pair_beat.eq(beat_3)

        a = Signal(WORD_BITS, reset_less=True)
        b = Signal(WORD_BITS, reset_less=True)
        carry = Signal(2, reset_less=True)
        self._latch(m, platform, a, b, carry)
        plain = Signal(WORD_BITS, reset_less=True)
        products = Signal(PRODUCTS_BITS, reset_less=True)
        self._operate(m, platform, beat_1, a, b, carry, plain, products)
        self._pair(m, platform, beat_2, first_pass, plain, products)
        return m

    def _latch(self, m: Module, platform: object, a: Signal, b: Signal, carry: Signal) -> None:
        """First cycle: the words read become operands."""
        needs = self.needs
        operands = self.operands
        second: Value = self.second
        if needs.broadcast.rows or needs.products.widths & LONG:
            select = LimbSelect(self.config)
            m.submodules.select = once(select, platform)
            m.d.comb += [
                select.word.eq(self.second),
                select.width.eq(operands.value.result.width),
                select.product.eq(operands.value.result.product),
                select.broadcast.eq(operands.broadcast),
                select.pass_index.eq(operands.pass_index),
            ]
            second = select.value
            m.d.sync += carry.eq(select.carry)

        def mask(summed: VectorNeeds) -> Value:
            """Zeros in place of the elements behind a row's tail leave its sum as it is."""
            if not summed.widths - {Width.W64}:
                return Const(-1, WORD_BITS)
            return Cat(
                (operands.value.result.tail >= byte).replicate(8) for byte in range(WORD_BYTES)
            )

        m.d.sync += [
            a.eq(self.first & mask(needs.summed)),
            b.eq(second & mask(needs.summed.plain)),
        ]

    def _operate(
        self,
        m: Module,
        platform: object,
        beat: Any,
        a: Signal,
        b: Signal,
        carry: Signal,
        plain: Signal,
        products: Signal,
    ) -> None:
        """Second cycle: operate on the elements, or multiply limbs."""
        width = beat.value.result.width
        if self.needs.plain.rows:
            alu = VectorAlu(self.config)
            m.submodules.alu = once(alu, platform)
            m.d.comb += [alu.a.eq(a), alu.b.eq(b)]
            m.d.comb += [alu.vertical.eq(beat.vertical), alu.width.eq(width)]
            m.d.sync += plain.eq(alu.value)
        if self.needs.products.rows:
            multiply = LimbProducts(self.config)
            m.submodules.multiply = once(multiply, platform)
            m.d.comb += [multiply.a.eq(a), multiply.b.eq(b)]
            m.d.comb += [multiply.width.eq(width), multiply.carry.eq(carry)]
            m.d.sync += products.eq(multiply.products)

    def _pair(
        self,
        m: Module,
        platform: object,
        beat: Any,
        first_pass: Signal,
        plain: Signal,
        products: Signal,
    ) -> None:
        """Third cycle: add up long products, fold narrow lanes, pass on all else."""
        needs = self.needs
        pair: Any = Signal(value_pair(needs), reset_less=True)
        m.d.comb += self.pair.eq(pair)
        width = beat.result.width
        product = is_product(beat.result.product, needs)
        reduced = is_reduced(beat.result.reduction, needs)
        lower: Value = Mux(product, products[:WORD_BITS], plain)
        upper: Value = products[WORD_BITS:]
        spread = needs.plain.reduced
        if spread.of_widths([Width.W32]).rows:
            half = WORD_BITS // 2
            split = reduced & ~product & is_width(width, [Width.W32], needs)
            sign = plain[half - 1].replicate(half)
            lower = Cat(lower[:half], Mux(split, sign, lower[half:]))
            upper = Mux(split, plain[half:].as_signed(), upper.as_signed())
        if spread.of_widths([Width.W64]).rows:
            whole = reduced & ~product & is_width(width, [Width.W64], needs)
            upper = Mux(whole, plain[-1].replicate(WORD_BITS), upper)
        if needs.reduced.of_widths(FOLDED).rows:
            fold = VectorFold(self.config)
            m.submodules.fold = once(fold, platform)
            m.d.comb += [
                fold.plain.eq(plain),
                fold.products.eq(products),
                fold.width.eq(width),
                fold.product.eq(beat.result.product),
                fold.reduction.eq(beat.result.reduction),
                fold.tail.eq(beat.result.tail),
            ]
            folded = reduced & is_width(width, FOLDED, needs)
            lower = Mux(folded, fold.lower, lower.as_signed())
            upper = Mux(folded, fold.upper, upper.as_signed())
        if needs.products.widths & LONG:
            total = PassSum(self.config)
            m.submodules.total = once(total, platform)
            state_lower, state_upper = pair.lower.as_unsigned(), pair.upper.as_unsigned()
            if needs.has_long_products:
                state_lower = Cat(pair.below_lower, state_lower)
                state_upper = Cat(pair.below_upper, state_upper)
                m.d.sync += [
                    pair.below_lower.eq(total.lower[:BELOW_BITS]),
                    pair.below_upper.eq(total.upper[:BELOW_BITS]),
                ]
            m.d.comb += [
                total.products.eq(products),
                total.first_pass.eq(first_pass),
                total.state_lower.eq(state_lower),
                total.state_upper.eq(state_upper),
            ]
            long = product & is_width(width, LONG, needs)
            lower = Mux(long, total.lower[-WORD_BITS:], lower)
            upper = Mux(long, total.upper[-WORD_BITS:], upper)
        m.d.sync += pair.lower.eq(lower)
        if needs.upper_bits:
            m.d.sync += pair.upper.eq(upper)
