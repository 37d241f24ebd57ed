"""Products of vector elements, from products of their 16-bit limbs.

The second operand's long elements (32 and 64 bits) are processed one limb per pass, lowest first. A
pass multiplies all limbs of the first operand with it, adds the products for each half of the word,
and adds the sum of the earlier passes, shifted down by a limb. These limbs are treated as signed; a
carry into the next limb compensates.
"""

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.multiplier import LimbMultiplier, ProductSum
from hdl.ports import WORD_BITS
from hdl.simd import copies
from isa.table import Width
from pe.capabilities import LONG, Capabilities
from pe.config import PeConfig

from .beat import LIMB_BITS, PASS_BITS, WIDTH_BITS, is_width

#: Bits of all products of a word.
PRODUCTS_BITS = 2 * WORD_BITS
#: Limbs of a word, and of half of one.
_LIMBS = WORD_BITS // LIMB_BITS
_HALF_LIMBS = _LIMBS // 2
_HALVES = 2
_LIMB_PRODUCT_BITS = 2 * LIMB_BITS
#: Bits of the product of half of a word and one limb.
_SUM_BITS = (_HALF_LIMBS + 1) * LIMB_BITS
_BYTE = Width.W8.bits


class LimbSelect(Component):
    """Arranges the second operand as the beat needs it, combinational.

    The element of a ``v.s`` goes to all lanes; of a long element to be multiplied, the limb of this
    pass goes to the place of each of its limbs.

    Members:
        word: in. width, product, broadcast, pass_index: in, as in :mod:`pe.vector.beat`.
        value: out.
        carry: out, a bit for each half of the word: the top bit of the limb below that of this
            pass.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.needs = Capabilities.of(config).vector
        super().__init__(
            {
                "word": In(WORD_BITS),
                "width": In(WIDTH_BITS),
                "product": In(1),
                "broadcast": In(1),
                "pass_index": In(PASS_BITS),
                "value": Out(WORD_BITS),
                "carry": Out(_HALVES),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        needs = self.needs

        def when(rows: Capabilities, flag: Value, *widths: Width) -> Value:
            if not rows.of_widths(widths).rows:
                return Const(0, 1)
            return flag & is_width(self.width, widths, needs)

        limbs = [self.word.word_select(index, LIMB_BITS) for index in range(_LIMBS)]
        by_pass = when(needs.products, self.product, *LONG)
        by_far_pass = when(needs.products, self.product, Width.W64)
        to_all = when(needs.broadcast, self.broadcast, Width.W8, Width.W16)
        to_halves = when(needs.broadcast, self.broadcast, Width.W8, Width.W16, Width.W32)
        double = when(needs.broadcast, self.broadcast, Width.W8)
        for index in range(_LIMBS):
            odd = Mux(by_pass, self.pass_index[0], ~to_all if index % 2 else 0)
            high = Mux(by_far_pass, self.pass_index[1], ~to_halves if index // 2 else 0)
            limb = Signal(LIMB_BITS, name=f"limb_{index}")
            m.d.comb += [
                limb.eq(Mux(high, Mux(odd, limbs[3], limbs[2]), Mux(odd, limbs[1], limbs[0]))),
                self.value.word_select(index, LIMB_BITS).eq(
                    Cat(limb[:_BYTE], Mux(double, limb[:_BYTE], limb[_BYTE:]))
                ),
            ]
        tops = [limb[-1] for limb in limbs]
        for half in range(_HALVES):
            top = tops[half * _HALF_LIMBS]
            second_pass = Mux(by_far_pass | to_halves, tops[0], top)
            later_pass = Mux(self.pass_index[0], tops[2], tops[1])
            m.d.comb += self.carry[half].eq(
                by_pass & Mux(self.pass_index[1], later_pass, self.pass_index[0] & second_pass)
            )
        return m


class LimbProducts(Component):
    """Multiplies the words of a beat limb by limb, combinational.

    Members:
        a, b: in; the operands' words, ``b`` and ``carry`` as arranged by :class:`LimbSelect`.
        carry: in. width: in; of the numbers that are multiplied.
        partial, carries: out; to be added by :class:`LimbSums`.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.needs = Capabilities.of(config).vector.products.of_numbers
        super().__init__(
            {
                "a": In(WORD_BITS),
                "b": In(WORD_BITS),
                "carry": In(_HALVES),
                "width": In(WIDTH_BITS),
                "partial": Out(PRODUCTS_BITS),
                "carries": Out(PRODUCTS_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        needs = self.needs
        bytewise = Signal()
        m.d.comb += bytewise.eq(is_width(self.width, [Width.W8], needs))
        for index in range(_LIMBS):
            # Limbs of the first operand below the top of their element are unsigned.
            tops = [
                width
                for width in Width
                if (index + 1) * LIMB_BITS % width.bits == 0 or width is Width.W8
            ]
            multiplier = LimbMultiplier(
                Width.W8 in needs.widths,
                needs.widths != {Width.W8},
                self.config.sram == "macro",
            )
            m.submodules[f"limb_{index}"] = shared_instance(multiplier, platform)
            m.d.comb += [
                multiplier.a.eq(self.a.word_select(index, LIMB_BITS)),
                multiplier.b.eq(self.b.word_select(index, LIMB_BITS)),
                multiplier.a_signed.eq(is_width(self.width, tops, needs)),
                multiplier.b_carry.eq(self.carry[index // _HALF_LIMBS]),
                multiplier.bytes.eq(bytewise),
                self.partial.word_select(index, _LIMB_PRODUCT_BITS).eq(multiplier.partial),
                self.carries.word_select(index, _LIMB_PRODUCT_BITS).eq(multiplier.carry),
            ]
        return m


class LimbSums(Component):
    """Completes what :class:`LimbProducts` has begun, combinational.

    Members:
        partial, carries: in. width: in; of the numbers that are multiplied.
        products: out; 8 of 16 bits for 8-bit elements, else 4 of 32 bits, lowest limb first; all
            signed.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.needs = Capabilities.of(config).vector.products.of_numbers
        super().__init__(
            {
                "partial": In(PRODUCTS_BITS),
                "carries": In(PRODUCTS_BITS),
                "width": In(WIDTH_BITS),
                "products": Out(PRODUCTS_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        needs = self.needs
        bytewise = Signal()
        m.d.comb += bytewise.eq(is_width(self.width, [Width.W8], needs))
        for index in range(_LIMBS):
            adder = ProductSum(Width.W8 in needs.widths)
            m.submodules[f"limb_{index}"] = shared_instance(adder, platform)
            m.d.comb += [
                adder.partial.eq(self.partial.word_select(index, _LIMB_PRODUCT_BITS)),
                adder.carry.eq(self.carries.word_select(index, _LIMB_PRODUCT_BITS)),
                adder.bytes.eq(bytewise),
                self.products.word_select(index, _LIMB_PRODUCT_BITS).eq(adder.product),
            ]
        return m


class PassSum(Component):
    """Adds up the passes of long products, combinational; the user keeps the state.

    Members:
        products: in; of :class:`LimbSums`.
        active: in; the products are long. Otherwise the 64 top bits of each state are 0, and gates
            of its adder rest.
        first_pass: in; ignore the state.
        state_lower, state_upper: in; result of the last pass for each half of the word: 96 bits, or
            64 without 64-bit products.
        lower, upper: out; the state after this pass. After the last one, of 32-bit elements, each
            half's product in its 64 top bits; of 64-bit ones, the signed 96-bit products of each
            half of the first operand (the lower half taken as unsigned) and the second.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.rests = config.sram == "macro"
        self.state_bits = pass_sum_bits(Capabilities.of(config).vector.products)
        super().__init__(
            {
                "products": In(PRODUCTS_BITS),
                "active": In(1),
                "first_pass": In(1),
                "state_lower": In(self.state_bits),
                "state_upper": In(self.state_bits),
                "lower": Out(self.state_bits),
                "upper": Out(self.state_bits),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        products: Value = self.products
        ignores: Value = self.first_pass
        if self.rests:
            products = products & copies(m, self.active, PRODUCTS_BITS)
            ignores = ignores | ~self.active
        halves = (
            ("lower", self.state_lower, self.lower),
            ("upper", self.state_upper, self.upper),
        )
        for number, (name, state, out) in enumerate(halves):
            low = products.word_select(2 * number, _LIMB_PRODUCT_BITS)
            high = products.word_select(2 * number + 1, _LIMB_PRODUCT_BITS)
            upper = state[-(_SUM_BITS - LIMB_BITS) :]
            earlier = state[LIMB_BITS : -(_SUM_BITS - LIMB_BITS)]
            total = Signal(_SUM_BITS, name=f"total_{name}")
            carried = Signal(signed(_SUM_BITS - LIMB_BITS), name=f"carried_{name}")
            whole = Cat(earlier[-LIMB_BITS:], total)
            kept, rest = (whole[:LIMB_BITS], total) if self.rests else (whole, Const(0, 0))
            m.d.comb += [
                carried.eq(Mux(ignores, 0, upper)),
                total.eq(low.as_signed() + Cat(Const(0, LIMB_BITS), high) + carried),
                out.eq(Cat(earlier[:-LIMB_BITS], kept & copies(m, self.active, len(kept)), rest)),
            ]
        return m


def pass_sum_bits(needs: Capabilities) -> int:
    """Bits of the state of each half in :class:`PassSum`."""
    return _SUM_BITS + LIMB_BITS * (needs.most_passes - 1)
