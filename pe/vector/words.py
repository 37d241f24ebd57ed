"""Arranges the elements of a beat for the stages that reduce them."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Value
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.ports import WORD_BITS
from isa.table import Width
from pe.capabilities import FOLDED, Capabilities
from pe.config import PeConfig

from .beat import REDUCTION_BITS, WIDTH_BITS, is_product, is_reduced, is_width
from .products import PRODUCTS_BITS


class VectorWords(Component):
    """Puts products, or other elements, where the fold and the pair expect them, combinational.

    Elements to be reduced are widened to the size of a product, if there are any products; 32-bit
    ones fill both halves, a 64-bit one the lower half. Others stay where they are.

    Members:
        plain: in; elements that are not products. products: in; elements that are.
        width, reduction: in, as in :mod:`pe.vector.beat`. product: in; take ``products``.
        words: out.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.needs = Capabilities.of(config).vector
        super().__init__(
            {
                "plain": In(WORD_BITS),
                "products": In(PRODUCTS_BITS),
                "width": In(WIDTH_BITS),
                "reduction": In(REDUCTION_BITS),
                "product": In(1),
                "words": Out(PRODUCTS_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        needs = self.needs
        plain = self.plain
        words: Value = Cat(plain, self.products[WORD_BITS:])
        reduced = is_reduced(self.reduction, needs)
        spread = needs.plain.reduced
        widths = [Width.W64, Width.W32]
        if needs.reduced.of_widths(FOLDED).products.rows:
            # Otherwise the fold takes the elements as they are.
            widths += [Width.W16, Width.W8]
        for width in widths:
            if spread.of_widths([width]).rows:
                chosen = reduced & is_width(self.width, [width], needs)
                words = Mux(chosen, self._widened(width.bits), words)
        m.d.comb += self.words.eq(Mux(is_product(self.product, needs), self.products, words))
        return m

    def _widened(self, bits: int) -> Value:
        """The word's elements of ``bits`` bits, each sign-extended to twice as many."""
        return Cat(
            Cat(self.plain[at : at + bits], self.plain[at + bits - 1].replicate(bits))
            for at in range(0, WORD_BITS, bits)
        )
