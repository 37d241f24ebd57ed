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
    is_product,
    is_reduced,
    is_width,
    keep_place,
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
        m.d.comb += self.total.eq(total)
        if needs.reductions:
            self._accumulate(m, total, value, complete)
        else:
            second += total.eq(value)
        return m

    def _accumulate(self, m: Module, total: Signal, value: Signal, complete: Signal) -> None:
        """Second cycle: combine with the row's earlier beats. The fields of the beat are decoded a
        cycle ahead, as the comparison leaves no time for it."""
        needs = self.needs
        coming = self.pair_beat
        reduction = ResultFields.of(self.config, coming.result).reduction
        starts, adds, least = (Signal(name=n, reset_less=True) for n in ("starts", "adds", "least"))
        m.d.sync += [
            starts.eq(coming.first),
            adds.eq(one_of(reduction, [ReductionOp.ADD], needs.reductions)),
            least.eq(self._least(reduction, needs.reductions)),
        ]
        replaces = Signal()
        sums = Signal()
        wide = _extended(value, needs.total_bits)
        total_sum, less = self._sum_and_less(m, (total, wide, wide), adds, needs)
        m.d.comb += [
            # If the numbers are equal, either may stay.
            replaces.eq(complete & (starts | (~adds & (less ^ least)))),
            sums.eq(complete & adds & ~starts),
        ]
        choices = [(sums, total_sum), (replaces, value), (~sums & ~replaces, total)]
        # A clock gate needs to know earlier than a comparison does.
        with m.If(complete if self.config.sram == "macro" else 1):
            m.d.sync += total.eq(_chosen(m, choices, needs.total_bits))

    def _sum_and_less(
        self, m: Module, operands: tuple[Value, Value, Value], adds: Value, possible: Capabilities
    ) -> tuple[Value, Value]:
        """Of a, b and c: the sum of a and c if it ``adds``, and whether a is less than b if not; c
        is b then. Gates take one adder for both: a comparison beside it would be as large, and move
        with every sum. FPGAs have fast carries for each."""
        a, b, c = operands
        both = ReductionOp.ADD in possible.reductions and len(possible.reductions) > 1
        if self.config.sram != "macro" or not both:
            bits = max(len(a), len(b))
            apart = _extended(a, bits), _extended(b, bits)
            less = Signal()
            total = Signal(signed(max(len(a), len(c)) + 1))
            m.d.comb += [
                less.eq(signed_less(*apart, chained=self.config.sram != "macro")),
                total.eq(a.as_signed() + c.as_signed()),
            ]
            return total, less
        bits = max(len(a), len(c)) + 1
        carried = Signal(bits + 1)
        operand = _extended(c, bits) ^ copies(m, ~adds, bits)
        m.d.comb += carried.eq(Cat(Const(1, 1), _extended(a, bits)) + Cat(~adds, operand))
        return carried[1:].as_signed(), carried[-1]

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
        total, less = self._sum_and_less(m, (lower, upper, addend), adds | long, pairs)
        m.d.comb += takes_upper.eq(both & (less ^ least))
        choices: list[tuple[Value, Value]] = [
            (reduces & adds & ~long, total),
            (compares & takes_upper, upper),
            (compares & ~takes_upper, lower),
            (~reduces & ~long, apart),
        ]
        if needs.has_long_products:
            choices.append((long, Cat(pair.below_lower, total).as_signed()))
        return _chosen(m, choices, needs.beat_bits)


def _chosen(m: Module, choices: list[tuple[Value, Value]], bits: int) -> Value:
    """The ``bits`` bits of the signed value whose flag, the only one, is 1."""
    chosen: Value = Const(0, bits)
    for flag, value in choices:
        chosen = chosen | (_extended(value, bits) & copies(m, flag, bits))
    return chosen


def _extended(value: Value, bits: int) -> Value:
    """Signed ``value`` in ``bits`` bits."""
    return Cat(value, value[-1].replicate(max(0, bits - len(value))))[:bits]
