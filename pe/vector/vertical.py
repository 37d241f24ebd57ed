"""Vertical stage: element-wise operations on the two operands."""

from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from hdl.clock_gate import needs_clock
from hdl.component import Component, Probes
from hdl.emission import shared_instance
from hdl.ports import WORD_BITS
from hdl.simd import copies
from isa.table import Width
from isa.timing import WORD_BYTES
from pe.capabilities import FOLDED, LONG, Capabilities
from pe.config import PeConfig

from .alu import GRANULES, VectorAlu, VectorSaturate, adder_joins, carries, subtracts
from .beat import (
    BELOW_BITS,
    ResultFields,
    broadcast_of,
    is_product,
    is_reduced,
    is_width,
    keep_place,
    narrow_bits,
    numbers_of,
    operand_beat,
    value_beat,
    value_pair,
    vertical_of,
)
from .fold import VectorFold
from .products import PRODUCTS_BITS, LimbProducts, LimbSelect, LimbSums, PassSum
from .stages import fold_cycles, word_cycles
from .words import VectorWords


class VectorVertical(Component):
    """Four cycles: latch the operands; operate, or multiply limbs; saturate, or complete the
    products; add up long products, or fold narrow elements. The last two are only there if an
    instruction needs them (:func:`pe.vector.stages.word_cycles`,
    :func:`pe.vector.stages.fold_cycles`).

    Needs a configuration with at least one vector instruction.

    Members:
        operands, complete, write: in, as in :mod:`pe.vector.beat`.
        first, second: in; the words read, in the same cycle as ``operands``.
        pair: :func:`pe.vector.beat.value_pair`, out, those cycles later.
        pair_beat: :func:`pe.vector.beat.value_beat`, out, with ``pair``.
        pair_complete, pair_write: out, with ``pair``.
    """

    probes = Probes("carries", "pair", "partial")

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.needs = Capabilities.of(config).vector
        self.cycles = fold_cycles(config)
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
        words_kept = word_cycles(self.config)
        # Cycles after the latch of the operands.
        cycles = 1 + words_kept + self.cycles
        beat_1: Any = Signal(operand_beat(self.config), reset_less=True)
        beats: Any = [
            Signal(value_beat(self.config), name=f"beat_{number}", reset_less=True)
            for number in range(2, 2 + cycles)
        ]
        first_pass = Signal(2, reset_less=True)
        complete = Signal(cycles)
        write = Signal(cycles)
        m.d.sync += [
            beat_1.eq(self.operands),
            beats[0].eq(beat_1.value),
            *(later.eq(beat) for beat, later in pairwise(beats)),
            first_pass.eq(Cat(beat_1.pass_index == 0, first_pass)),
            Cat(complete, self.pair_complete).eq(Cat(self.complete, complete)),
            Cat(write, self.pair_write).eq(Cat(self.write, write)),
        ]
        keep_place(m, platform, self.config, beat_1.value.result, self.write)
        for beat, writes in zip(beats, write, strict=True):
            keep_place(m, platform, self.config, beat.result, writes)
        m.d.comb += self.pair_beat.eq(beats[-1])

        a = Signal(WORD_BITS, reset_less=True)
        b = Signal(WORD_BITS, reset_less=True)
        carry = Signal(2, reset_less=True)
        self._latch(m, platform, a, b, carry)
        words = Signal(PRODUCTS_BITS, reset_less=True)
        arrange = VectorWords(self.config)
        m.submodules.arrange = shared_instance(arrange, platform)
        result = ResultFields.of(self.config, beats[0].result)
        m.d.comb += [
            arrange.width.eq(result.width),
            arrange.reduction.eq(result.reduction),
            arrange.product.eq(result.product),
        ]
        make = m.d.sync if words_kept else m.d.comb
        make += words.eq(arrange.words)
        value: Value | None = None
        if self.needs.products.rows:
            numbers = numbers_of(self.config, beats[0])
            partial = self._multiply(m, platform, beat_1, numbers, a, b, carry, arrange.products)
            # With gates, another operation's result takes the place of a part of a product.
            value = partial[:WORD_BITS] if self.config.sram == "macro" else None
        if self.needs.plain.rows:
            self._operate(m, platform, beat_1, result.width, (a, b, value), arrange.plain)
        self._pair(m, platform, beats[words_kept], first_pass[words_kept], words)
        return m

    def _latch(self, m: Module, platform: object, a: Signal, b: Signal, carry: Signal) -> None:
        """First cycle: the words read become operands."""
        needs = self.needs
        operands = self.operands
        result = ResultFields.of(self.config, operands.value.result)
        second: Value = self.second
        if needs.broadcast.rows or needs.products.widths & LONG:
            select = LimbSelect(self.config)
            m.submodules.select = shared_instance(select, platform)
            m.d.comb += [
                select.word.eq(self.second),
                select.width.eq(result.width),
                select.product.eq(result.product),
                select.broadcast.eq(broadcast_of(self.config, operands)),
                select.pass_index.eq(operands.pass_index),
            ]
            second = select.value
            m.d.sync += carry.eq(select.carry)

        def mask(summed: Capabilities) -> Value:
            """Zeros instead of the elements after a row's tail leave its sum as it is."""
            if not summed.widths - {Width.W64}:
                return Const(-1, WORD_BITS)
            return Cat(copies(m, result.tail >= byte, 8) for byte in range(WORD_BYTES))

        operand = second & mask(needs.summed.plain)
        if needs.plain.rows:
            # An operand to be subtracted is inverted here already.
            operand ^= copies(m, subtracts(vertical_of(self.config, operands), needs), WORD_BITS)
        m.d.sync += [a.eq(self.first & mask(needs.summed)), b.eq(operand)]

    def _operate(
        self,
        m: Module,
        platform: object,
        beat: Any,
        later_width: Value,
        words: tuple[Signal, Signal, Value | None],
        plain: Signal,
    ) -> None:
        """Second and third cycle: operate on the elements, the first two of ``words``, and keep the
        result, in the third if there is one, which products use, too; saturate."""
        a, b, value = words
        alu = VectorAlu(self.config)
        saturate = VectorSaturate(self.config)
        m.submodules.alu = shared_instance(alu, platform)
        m.submodules.saturate = shared_instance(saturate, platform)
        operates: Value = Const(1, 1)
        operand: Value = b
        if value is None:
            value = Signal(WORD_BITS, name="value", reset_less=True)
        else:
            operates = ~self._multiplies(beat)
            operand = b & copies(m, operates, WORD_BITS)
        overflows = Signal(GRANULES, reset_less=True)
        negative = Signal(GRANULES, reset_less=True)
        subtract = Signal(reset_less=True)
        joins = Signal(GRANULES - 1, reset_less=True)
        coming = ResultFields.of(self.config, self.operands.value.result)
        m.d.sync += [
            subtract.eq(carries(vertical_of(self.config, self.operands), self.needs)),
            joins.eq(adder_joins(coming.width, self.needs)),
        ]
        m.d.comb += [alu.a.eq(a), alu.b.eq(operand), alu.subtract.eq(subtract), alu.joins.eq(joins)]
        m.d.comb += [
            alu.vertical.eq(vertical_of(self.config, beat)),
            alu.width.eq(ResultFields.of(self.config, beat.value.result).width),
        ]
        with m.If(operates):
            m.d.sync += value.eq(alu.value)
        m.d.sync += [overflows.eq(alu.overflows), negative.eq(alu.negative)]
        m.d.comb += [
            saturate.value.eq(value),
            saturate.overflows.eq(overflows),
            saturate.negative.eq(negative),
            saturate.width.eq(later_width),
            plain.eq(saturate.saturated),
        ]

    def _multiply(
        self,
        m: Module,
        platform: object,
        beat: Any,
        later_numbers: Value,
        a: Signal,
        b: Signal,
        carry: Signal,
        products: Signal,
    ) -> Signal:
        """Second and third cycle: multiply limbs; add the saved carries. Returns what is kept
        beside those."""
        multiply = LimbProducts(self.config)
        sums = LimbSums(self.config)
        m.submodules.multiply = shared_instance(multiply, platform)
        m.submodules.sums = shared_instance(sums, platform)
        partial = Signal(PRODUCTS_BITS, reset_less=True)
        carries = Signal(PRODUCTS_BITS, reset_less=True)
        factor: Value = b
        multiplies: Value = Const(1, 1)
        if self.config.sram == "macro" and self.needs.plain.rows:
            # Other operations need neither the multipliers, whose gates zeros keep still, nor the
            # registers after them. The multipliers of an FPGA would lose their own registers.
            multiplies = self._multiplies(beat)
            factor = b & copies(m, multiplies, WORD_BITS)
        m.d.comb += [multiply.a.eq(a), multiply.b.eq(factor)]
        m.d.comb += [
            multiply.width.eq(numbers_of(self.config, beat.value)),
            multiply.carry.eq(carry),
        ]
        m.d.sync += partial[:WORD_BITS].eq(multiply.partial[:WORD_BITS])
        with m.If(needs_clock(m, platform, multiplies, self.config.sram)):
            m.d.sync += [
                partial[WORD_BITS:].eq(multiply.partial[WORD_BITS:]),
                carries.eq(multiply.carries),
            ]
        m.d.comb += [
            sums.partial.eq(partial),
            sums.carries.eq(carries),
            sums.width.eq(later_numbers),
            products.eq(sums.products),
        ]
        return partial

    def _multiplies(self, beat: Any) -> Value:
        """Whether the operands of ``beat`` are multiplied."""
        product = ResultFields.of(self.config, beat.value.result).product
        return is_product(product, self.needs)

    def _pair(
        self,
        m: Module,
        platform: object,
        beat: Any,
        first_pass: Value,
        words: Signal,
    ) -> None:
        """Fourth cycle: add up long products, fold narrow lanes, pass everything else on."""
        needs = self.needs
        pair: Any = Signal(value_pair(needs), reset_less=True)
        m.d.comb += self.pair.eq(pair)
        result = ResultFields.of(self.config, beat.result)
        width = result.width
        product = is_product(result.product, needs)
        reduced = is_reduced(result.reduction, needs)
        # At most one of these is 1, so the last choice is an OR of the values that they enable.
        folded: Value = Const(0, 1)
        long: Value = Const(0, 1)
        lower: list[Value] = []
        upper: list[Value] = []
        if needs.reduced.of_widths(FOLDED).rows:
            folded = reduced & is_width(width, FOLDED, needs)
            fold = VectorFold(self.config)
            m.submodules.fold = shared_instance(fold, platform)
            m.d.comb += [
                fold.words.eq(words),
                fold.width.eq(numbers_of(self.config, beat)),
                fold.reduction.eq(result.reduction),
                fold.tail.eq(result.tail),
                fold.active.eq(folded),
            ]
            bits = narrow_bits(self.config)
            for half, value in ((lower, fold.lower), (upper, fold.upper)):
                signs = value[-1].replicate(max(0, bits - len(value)))
                half.append(Cat(value, signs) if bits <= needs.total_bits else value)
        if needs.products.widths & LONG:
            total = PassSum(self.config)
            m.submodules.total = shared_instance(total, platform)
            long = product & is_width(width, LONG, needs)
            state_lower, state_upper = pair.lower.as_unsigned(), pair.upper.as_unsigned()
            if needs.has_long_products:
                state_lower = Cat(pair.below_lower, state_lower)
                state_upper = Cat(pair.below_upper, state_upper)
                with m.If(needs_clock(m, platform, long, self.config.sram)):
                    m.d.sync += [
                        pair.below_lower.eq(total.lower[:BELOW_BITS]),
                        pair.below_upper.eq(total.upper[:BELOW_BITS]),
                    ]
            m.d.comb += [
                total.products.eq(words),
                total.active.eq(long),
                total.first_pass.eq(first_pass),
                total.state_lower.eq(state_lower),
                total.state_upper.eq(state_upper),
            ]
            lower.append(total.lower[-WORD_BITS:].as_signed())
            upper.append(total.upper[-WORD_BITS:].as_signed())
        unchanged = copies(m, ~folded & ~long, WORD_BITS).as_signed()
        lower.append(words[:WORD_BITS].as_signed() & unchanged)
        upper.append(words[WORD_BITS:].as_signed() & unchanged)
        last = m.d.sync if self.cycles else m.d.comb
        last += pair.lower.eq(reduce(or_, lower))
        if needs.upper_bits:
            last += pair.upper.eq(reduce(or_, upper))
