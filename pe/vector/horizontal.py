"""Horizontal stage: reduction over the elements of a row."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hdl.component import Component, Probes
from hdl.simd import copies, one_of, signed_less
from isa.table import ReductionOp, Width
from pe.capabilities import FOLDED, Capabilities
from pe.config import PeConfig

from .beat import (
    ResultFields,
    is_narrow,
    is_product,
    is_reduced,
    is_width,
    keep_place,
    narrow_bits,
    result_beat,
    value_beat,
    value_pair,
)
from .stages import horizontal_cycles


class VectorHorizontal(Component):
    """Two cycles: combine the two values of a pair; combine with the row's earlier beats. A
    configuration that needs only the first or none of them
    (:func:`pe.vector.stages.horizontal_cycles`) has no more.

    The levels of the tree below the pair are in :mod:`pe.vector.fold`. Element-wise values pass.
    Needs a configuration with at least one vector instruction.

    Members:
        pair: :func:`pe.vector.beat.value_pair`, in.
        pair_beat: :func:`pe.vector.beat.value_beat`, in, with ``pair``.
        pair_complete, pair_write: in, with ``pair``.
        total: out, signed, those cycles later; the value of the row so far, or all lanes
            element-wise.
        total_beat: :func:`pe.vector.beat.result_beat`, out, with ``total``.
        total_write: out, with ``total``.
    """

    probes = Probes("total")

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.needs = Capabilities.of(config).vector
        self.narrow = narrow_bits(config)
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
        cycles = horizontal_cycles(self.config)
        first = m.d.sync if cycles > 0 else m.d.comb
        second = m.d.sync if cycles > 1 else m.d.comb
        first += [
            beat.eq(self.pair_beat),
            complete.eq(self.pair_complete),
            write.eq(self.pair_write),
            value.eq(self._combined(m)),
        ]
        second += [result.eq(beat.result), self.total_write.eq(write)]
        if cycles > 0:
            keep_place(m, platform, self.config, beat.result, self.pair_write)
        if cycles > 1:
            keep_place(m, platform, self.config, result, write)
        m.d.comb += self.total_beat.eq(result)

        total = Signal(signed(needs.total_bits), reset_less=True)
        ends = Signal(reset_less=True)
        m.d.comb += self.total.eq(self._signed(m, total, ends))
        if needs.reductions:
            narrow = self._accumulate(m, total, value, complete)
            if self.narrow < len(total):
                m.d.sync += ends.eq(narrow & write)
        else:
            second += total.eq(value)
        return m

    def _signed(self, m: Module, total: Signal, ends: Signal) -> Value:
        """``total`` with the sign that a narrow one lacks if its row ``ends``."""
        bits = self.narrow
        if bits >= len(total):
            return total
        beyond = copies(m, ends & total[bits - 1], len(total) - bits)
        return Cat(total[:bits], total[bits:] | beyond)

    def _widened(self, m: Module, value: Value, bits: int, narrow: Value) -> Value:
        """Signed ``value`` in ``bits`` bits; one that is ``narrow`` has zeros beyond its own."""
        if len(value) > self.narrow or bits <= self.narrow:
            return Cat(value, value[-1].replicate(max(0, bits - len(value))))[:bits]
        signs = value[-1].replicate(self.narrow - len(value))
        return Cat(value, signs, copies(m, value[-1] & ~narrow, bits - self.narrow))

    def _accumulate(self, m: Module, total: Signal, value: Signal, complete: Signal) -> Value:
        """Second cycle: combine with the row's earlier beats. The fields of the beat are decoded a
        cycle ahead, as the comparison leaves no time for it. Returns whether it is narrow."""
        needs = self.needs
        fields = ResultFields.of(self.config, self.pair_beat.result)
        reduction = fields.reduction
        starts, adds, least = (Signal(name=n, reset_less=True) for n in ("starts", "adds", "least"))
        m.d.sync += [
            starts.eq(self.pair_beat.first),
            adds.eq(one_of(reduction, [ReductionOp.ADD], needs.reductions)),
            least.eq(self._least(reduction, needs.reductions)),
        ]
        narrow = is_narrow(m, self.config, fields)
        if self.narrow < needs.total_bits:
            coming_narrow, narrow = narrow, Signal(name="narrow", reset_less=True)
            m.d.sync += narrow.eq(coming_narrow)
        replaces = Signal()
        sums = Signal()
        wide = self._widened(m, value, needs.total_bits, narrow)
        total_sum, less = self._sum_and_less(m, (total, wide, wide), adds, needs, narrow)
        m.d.comb += [
            # If the numbers are equal, either may stay.
            replaces.eq(complete & (starts | (~adds & (less ^ least)))),
            sums.eq(complete & adds & ~starts),
        ]
        choices = [(sums, total_sum), (replaces, value), (~sums & ~replaces, total)]
        # A clock gate needs to know earlier than a comparison does.
        with m.If(complete if self.config.sram == "macro" else 1):
            m.d.sync += total.eq(self._chosen(m, choices, needs.total_bits, narrow))
        return narrow

    def _sum_and_less(
        self,
        m: Module,
        operands: tuple[Value, Value, Value],
        adds: Value,
        possible: Capabilities,
        narrow: Value,
    ) -> tuple[Value, Value]:
        """Of a, b and c: the sum of a and c if it ``adds``, and whether a is less than b if not; c
        is b then. Gates take one adder for both: a comparison beside it would be as large, and move
        with every sum. FPGAs have fast carries for each."""
        a, b, c = operands
        low = self.narrow
        both = ReductionOp.ADD in possible.reductions and len(possible.reductions) > 1
        if self.config.sram != "macro" or not both:
            bits = max(len(a), len(b))
            apart = [self._widened(m, one, bits, narrow) for one in (a, b)]
            if low < bits:
                # As narrow numbers have no sign on top, that of both is exchanged.
                apart = [Cat(one[: low - 1], one[low - 1] ^ narrow, one[low:]) for one in apart]
            bits = max(len(a), len(c))
            if low < bits:
                a, c = (self._widened(m, one, bits, narrow) for one in (a, c))
            less = Signal()
            total = Signal(signed(bits + 1))
            m.d.comb += [
                less.eq(signed_less(*apart, chained=self.config.sram != "macro")),
                total.eq(a.as_signed() + c.as_signed()),
            ]
            return self._without_carry(m, total, narrow), less
        bits = max(len(a), len(c))
        wide_a, wide_c = (self._widened(m, one, bits, narrow) for one in (a, c))
        carried = Signal(bits + 2)
        inverts = copies(m, ~adds, low if low < bits else bits + 1)
        if low < bits:
            inverts = Cat(inverts, copies(m, ~adds & ~narrow, bits + 1 - low))
        operand = Cat(wide_c, wide_c[-1]) ^ inverts
        m.d.comb += carried.eq(Cat(Const(1, 1), wide_a, wide_a[-1]) + Cat(~adds, operand))
        # Beyond its own bits a narrow difference has at most a carry.
        negative = carried[-1]
        if low < bits:
            negative = negative | (narrow & carried[low])
        return self._without_carry(m, carried[1:], narrow), negative

    def _without_carry(self, m: Module, total: Value, narrow: Value) -> Value:
        """Signed sum without the carry of one that is ``narrow``, which has zeros there."""
        low = self.narrow
        if low >= len(total):
            return total.as_signed()
        exact = Signal(signed(len(total)))
        m.d.comb += exact.eq(Cat(total[:low], total[low] & ~narrow, total[low + 1 :]))
        return exact

    @staticmethod
    def _least(code: Value, possible: frozenset[ReductionOp]) -> Value:
        """Whether a reduction that is not an addition is to a minimum."""
        return one_of(code, [ReductionOp.MIN], possible - {ReductionOp.ADD})

    def _combined(self, m: Module) -> Value:
        """First cycle: two values become one."""
        needs = self.needs
        pair = self.pair
        beat = ResultFields.of(self.config, self.pair_beat.result)
        pairs = needs.reduced.of_widths(FOLDED | {Width.W32})
        apart = (Cat(pair.lower, pair.upper) if needs.upper_bits else pair.lower).as_signed()
        if not pairs.reductions and not needs.has_long_products:
            return apart
        long: Value = Const(0, 1)
        lower, upper = pair.lower, pair.upper
        addend: Value = upper
        if needs.has_long_products:
            long = is_product(beat.product, needs) & is_width(beat.width, [Width.W64], needs)
            addend = Mux(long, Cat(pair.below_upper, upper).as_signed(), upper)
        reduces = is_reduced(beat.reduction, needs) & is_width(
            beat.width, FOLDED | {Width.W32}, needs
        )
        # A pair's upper value starts with the second element, in a word's third byte or later.
        both = Mux(is_width(beat.width, [Width.W32], needs), beat.tail[2], beat.tail[1:].any())
        adds = one_of(beat.reduction, [ReductionOp.ADD], pairs.reductions)
        least = self._least(beat.reduction, pairs.reductions)
        compares = reduces & ~adds & ~long
        takes_upper = Signal()
        narrow = is_narrow(m, self.config, beat)
        operands = lower, upper, addend
        total, less = self._sum_and_less(m, operands, adds | long, pairs, narrow)
        m.d.comb += takes_upper.eq(both & (less ^ least))
        choices: list[tuple[Value, Value]] = [
            (reduces & adds & ~long, total),
            (compares & takes_upper, upper),
            (compares & ~takes_upper, lower),
            (~reduces & ~long, apart),
        ]
        if needs.has_long_products:
            choices.append((long, Cat(pair.below_lower, total).as_signed()))
        return self._chosen(m, choices, needs.beat_bits, narrow)

    def _chosen(
        self, m: Module, choices: list[tuple[Value, Value]], bits: int, narrow: Value
    ) -> Value:
        """The ``bits`` bits of the signed value whose flag, the only one, is 1."""
        chosen: Value = Const(0, bits)
        for flag, value in choices:
            chosen = chosen | (self._widened(m, value, bits, narrow) & copies(m, flag, bits))
        return chosen
