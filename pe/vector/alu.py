"""Element-wise operations other than products."""

from collections.abc import Callable

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import WORD_BITS
from hdl.simd import LaneAdder, lane_bounds, lane_joins, lane_tops, one_of
from isa.table import VerticalOp, Width
from pe.capabilities import Capabilities
from pe.config import PeConfig

from .beat import WIDTH_BITS, is_width, lanes_of

#: Bits of the flags of a word: one for each of its narrowest elements.
GRANULES = WORD_BITS // min(Width).bits

#: Operations that start from a difference.
_SUBTRACTING = (VerticalOp.SUB, VerticalOp.MIN, VerticalOp.MAX, VerticalOp.ABSDIFF)
#: Operations whose sum may not fit the element.
_SATURATING = frozenset({VerticalOp.ADD, VerticalOp.SUB, VerticalOp.ABSDIFF})


def subtracts(vertical: Value, needs: Capabilities) -> Value:
    """Whether the operation of ``needs`` with the code ``vertical`` takes a difference."""
    return one_of(vertical, _SUBTRACTING, needs.verticals)


def carries(vertical: Value, needs: Capabilities) -> Value:
    """Whether that operation adds 1 to the sum of its operands: a difference, whose second one is
    inverted, or an average, which is rounded."""
    return one_of(vertical, (*_SUBTRACTING, VerticalOp.AVG), needs.verticals)


def adder_joins(width: Value, needs: Capabilities) -> Value:
    """``joins`` of the adder in :class:`VectorAlu` for elements of this width."""
    granule = min(needs.plain.widths).bits
    lanes = [(lane.bits, is_width(width, [lane], needs)) for lane in sorted(needs.plain.widths)]
    return lane_joins(lanes, granule, WORD_BITS)


class VectorAlu(Component):
    """Add, subtract, minimum, maximum, absolute difference, average and pass on lanes of any width,
    combinational.

    Sums still wrap; :class:`VectorSaturate` replaces those that are out of range.

    Minimum and maximum go by the sign of the difference.
    Contains only what the configuration needs, which has at least one row that does not multiply.

    Members:
        a, b: in; the operands' words, ``b`` with all bits inverted where :func:`subtracts` says so.
        subtract, joins: in; :func:`carries` and :func:`adder_joins`, made a cycle ahead, as the
            carries wait for them.
        vertical: in; code of :class:`isa.table.VerticalOp`. width: in; of :class:`isa.table.Width`.
        value: out. overflows, negative: out, a bit for each of the configuration's narrowest
            elements, valid at the last one of a lane: the sum is out of range, the exact one is
            negative.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.needs = Capabilities.of(config).vector
        super().__init__(
            {
                "a": In(WORD_BITS),
                "b": In(WORD_BITS),
                "subtract": In(1),
                "joins": In(GRANULES - 1),
                "vertical": In(max(VerticalOp).bit_length()),
                "width": In(WIDTH_BITS),
                "value": Out(WORD_BITS),
                "overflows": Out(GRANULES),
                "negative": Out(GRANULES),
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
        m.submodules.adder = shared_instance(adder, platform)
        m.d.comb += [
            adder.a.eq(self.a),
            adder.b.eq(self.b),
            adder.subtract.eq(self.subtract),
        ]
        if count > 1:
            m.d.comb += adder.joins.eq(self.joins)

        def spread(flag: Callable[[int], Value]) -> list[Value]:
            return lane_tops([flag(index) for index in range(count)], lanes, granule)

        maximum, select, keep = Signal(), Signal(), Signal()
        m.d.comb += [
            maximum.eq(is_(VerticalOp.MAX)),
            select.eq(is_(VerticalOp.MIN, VerticalOp.MAX)),
            keep.eq(is_(VerticalOp.NOP)),
        ]
        sums = [adder.sum[index * granule : (index + 1) * granule] for index in range(count)]
        overflows, negative = adder.overflow & (~select & ~keep).replicate(count), adder.negative
        if VerticalOp.ABSDIFF in needs.verticals:
            absolute = Signal()
            m.d.comb += absolute.eq(is_(VerticalOp.ABSDIFF))
            sums = self._absolute(m, platform, adder, spread, absolute)
            # It always fits as an unsigned number, and as a signed one unless its top bit is 1.
            tops = Cat(part[-1] for part in sums)
            overflows = Mux(absolute, tops, overflows)
            negative = negative & ~absolute.replicate(count)
        if VerticalOp.AVG in needs.verticals:
            average = Signal()
            m.d.comb += average.eq(is_(VerticalOp.AVG))
            sums = self._halved(adder, sums, average)
            overflows = overflows & ~average.replicate(count)
        picks_b = spread(lambda index: select & ~keep & ~(adder.negative[index] ^ maximum))
        for index in range(count):
            part = slice(index * granule, (index + 1) * granule)
            m.d.comb += self.value[part].eq(
                Mux(
                    picks_b[index],
                    # Only comparisons use it, and they subtract.
                    ~self.b[part],
                    Mux(select | keep, self.a[part], sums[index]),
                )
            )
        m.d.comb += [self.overflows.eq(overflows), self.negative.eq(negative)]
        return m

    def _absolute(
        self,
        m: Module,
        platform: object,
        adder: LaneAdder,
        spread: Callable[[Callable[[int], Value]], list[Value]],
        absolute: Value,
    ) -> list[Value]:
        """Granules of the sums of ``adder``; of a difference below 0 those of its opposite, if
        ``absolute``."""
        granule, count = adder.granule, adder.granules
        # As b is inverted, a + b is the difference less one, and its inverse the opposite.
        opposite = LaneAdder(granule, count)
        m.submodules.opposite = shared_instance(opposite, platform)
        m.d.comb += [opposite.a.eq(self.a), opposite.b.eq(self.b)]
        if count > 1:
            m.d.comb += opposite.joins.eq(self.joins)
        turned = spread(lambda index: absolute & adder.negative[index])
        parts = [slice(index * granule, (index + 1) * granule) for index in range(count)]
        return [
            Mux(turned[index], ~opposite.sum[part], adder.sum[part])
            for index, part in enumerate(parts)
        ]

    def _halved(self, adder: LaneAdder, sums: list[Value], average: Value) -> list[Value]:
        """Granules of ``sums``; of half the exact sums of ``adder``, if ``average``."""
        granule, count = adder.granule, adder.granules
        halves: list[Value] = []
        for index in range(count):
            above = adder.negative[index]
            if index < count - 1:
                above = Mux(self.joins[index], adder.sum[(index + 1) * granule], above)
            halves.append(Cat(adder.sum[index * granule + 1 : (index + 1) * granule], above))
        return [Mux(average, half, part) for half, part in zip(halves, sums, strict=True)]


class VectorSaturate(Component):
    """Replaces sums of :class:`VectorAlu` that are out of range by their bounds, combinational.

    Members:
        value, overflows, negative: in; of the unit above. width: in.
        saturated: out.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.needs = Capabilities.of(config).vector
        super().__init__(
            {
                "value": In(WORD_BITS),
                "overflows": In(GRANULES),
                "negative": In(GRANULES),
                "width": In(WIDTH_BITS),
                "saturated": Out(WORD_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        needs = self.needs.plain
        if not needs.verticals & _SATURATING:
            m.d.comb += self.saturated.eq(self.value)
            return m
        granule = min(needs.widths).bits
        count = WORD_BITS // granule
        lanes = lanes_of(m, self.width, needs)
        saturates = lane_tops([self.overflows[index] for index in range(count)], lanes, granule)
        bounds = lane_bounds([self.negative[index] for index in range(count)], lanes, granule)
        for index in range(count):
            part = slice(index * granule, (index + 1) * granule)
            m.d.comb += self.saturated[part].eq(
                Mux(saturates[index], bounds[index], self.value[part])
            )
        return m
