"""The first levels of the reduction tree, for lanes of 8 and 16 bits."""

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import WORD_BITS
from hdl.quad_reducer import QuadReducer
from hdl.simd import LaneReducer
from isa.table import Width
from pe.capabilities import FOLDED, Capabilities
from pe.config import PeConfig

from .beat import REDUCTION_BITS, TAIL_BITS, WIDTH_BITS, is_width
from .products import PRODUCTS_BITS

_HALF_BYTES = WORD_BITS // 8 // 2


class VectorFold(Component):
    """Reduces the elements of a word to two values, combinational.

    Narrow products are ready while long ones are still being added up, so the levels that only
    narrow lanes have are done beside :class:`pe.vector.products.PassSum`. The upper half of the
    word is combined with the lower one; of 8-bit elements, the four results once more, or in
    FPGAs all at once (:mod:`hdl.quad_reducer`).

    Members:
        words: in; the elements as :class:`pe.vector.words.VectorWords` arranges them.
        width: in; of the numbers that are reduced.
        reduction, tail: in, as in :mod:`pe.vector.beat`.
        active: in; elements of one of :data:`pe.capabilities.FOLDED` are to be reduced.
        lower, upper: out, signed; ``upper`` is meaningless when the row's tail does not reach its
            elements. Both are 0 unless ``active``.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.needs = Capabilities.of(config).vector.of_numbers.reduced.of_widths(FOLDED)
        self.bits = self.needs.lower_bits
        super().__init__(
            {
                "words": In(PRODUCTS_BITS),
                "width": In(WIDTH_BITS),
                "reduction": In(REDUCTION_BITS),
                "tail": In(TAIL_BITS),
                "active": In(1),
                "lower": Out(signed(self.bits)),
                "upper": Out(signed(self.bits)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        needs = self.needs
        scale = 2 if needs.products.rows else 1
        words = Signal(scale * WORD_BITS)
        m.d.comb += words.eq(self.words)
        bytewise = is_width(self.width, [Width.W8], needs)
        apart = self.config.sram != "macro" and Width.W8 in needs.widths
        wider = needs.of_widths([Width.W16]) if apart else needs
        results: list[Value] = [Const(0, 1), Const(0, 1)]
        if wider.rows:
            active = self.active & ~bytewise if apart else self.active
            results = self._halved(m, platform, words, scale, wider, active)
        if apart:
            active = self.active & bytewise
            results = [
                self._quad(m, platform, words, scale, side, active) | result
                for side, result in enumerate(results)
            ]
        m.d.comb += [self.lower.eq(results[0]), self.upper.eq(results[1])]
        return m

    def _quad(
        self, m: Module, platform: object, words: Value, scale: int, side: int, active: Value
    ) -> Value:
        """Of 8-bit elements, those that end up on one side, reduced in one step."""
        size = Width.W8.bits * scale
        quad = QuadReducer(size, self.needs.of_widths([Width.W8]).reductions)
        m.submodules[f"quad_{side}"] = shared_instance(quad, platform)
        for index, element in enumerate(_side(side)):
            m.d.comb += [
                quad.values[index].eq(words.word_select(element, size)),
                quad.use[index].eq(self.tail >= element),
            ]
        m.d.comb += [quad.reduction.eq(self.reduction), quad.active.eq(active)]
        result: Value = quad.result
        return result

    def _halved(
        self,
        m: Module,
        platform: object,
        words: Value,
        scale: int,
        needs: Capabilities,
        active: Value,
    ) -> list[Value]:
        """Elements of the widths of ``needs``: the word's halves combined, and of 8-bit ones the
        results once more."""
        half = len(words) // 2
        narrowest = min(needs.widths)
        granule = narrowest.bits * scale
        count = half // granule
        widths = [width.bits * scale for width in sorted(needs.widths)]
        halves = LaneReducer(granule, count, needs.reductions, widths, self.config.sram != "macro")
        m.submodules.halves = shared_instance(halves, platform)
        m.d.comb += [
            halves.a.eq(words[:half]),
            halves.b.eq(words[half:]),
            halves.reduction.eq(self.reduction),
            halves.active.eq(active),
            halves.lanes.eq(Cat(is_width(self.width, [w], needs) for w in sorted(needs.widths))),
            # Exact for wider lanes too: their tails end with their last byte.
            halves.use_b.eq(
                Cat(
                    self.tail >= _HALF_BYTES + (index + 1) * narrowest.bytes - 1
                    for index in range(count)
                )
            ),
        ]

        def lane(first: int, last: int) -> Value:
            value = halves.value[first * granule : (last + 1) * granule]
            return Cat(value, halves.sign[last]).as_signed()

        per = count // 2
        results: list[Value] = [lane(0, per - 1), lane(per, count - 1)]
        if narrowest is Width.W8:
            bytewise = is_width(self.width, [Width.W8], needs)
            for side in range(2):
                pair = LaneReducer(granule + 1, 1, needs.reductions, [granule + 1])
                m.submodules[f"pair_{side}"] = shared_instance(pair, platform)
                m.d.comb += [
                    pair.a.eq(lane(2 * side, 2 * side)),
                    pair.b.eq(lane(2 * side + 1, 2 * side + 1)),
                    pair.reduction.eq(self.reduction),
                    pair.active.eq(1),
                    pair.lanes.eq(1),
                    pair.use_b.eq(self.tail >= 2 * side + 1),
                ]
                folded = Cat(pair.value, pair.sign).as_signed()
                results[side] = Mux(bytewise, folded, results[side])
        return results


def _side(side: int) -> tuple[int, int, int, int]:
    """Elements of a word of eight that are folded to the lower (0) or upper (1) result: a pair of
    one from each half of the word, and another."""
    first, second = 2 * side, 2 * side + 1
    return first, first + _HALF_BYTES, second, second + _HALF_BYTES
