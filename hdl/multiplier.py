"""A multiplier of 16-bit limbs that can also multiply two pairs of bytes."""

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from .component import Component
from .emission import shared_instance

_BYTE = 8
_LIMB = 16
_PRODUCT = 2 * _LIMB
#: Radix-4 digits of a limb.
_DIGITS = _LIMB // 2


class LimbMultiplier(Component):
    """Product of two limbs as two numbers to be added by :class:`ProductSum`, combinational.

    The second factor is the signed ``b`` plus ``b_carry``: a number of several limbs is the sum of
    its signed limbs, if each gets the top bit of the next lower limb as its carry.

    Parameters:
        bytewise: whether bytes can be multiplied, too.
        limbwise: whether limbs can be multiplied; at least one of the two.
        gates: build from gates (:class:`BoothMultiplier`) where one serves both limbs and bytes,
            not from operators that tools map to the multipliers of an FPGA.

    Members:
        a (in, 16): first factor.
        a_signed (in, 1): ``a`` is signed.
        b (in, 16): second factor, signed.
        b_carry (in, 1): added to ``b``.
        bytes (in, 1): multiply the low bytes and the high bytes instead, all signed; then
            ``a_signed`` must be 1 and ``b_carry`` 0.
        partial (out, 32): one part of the product.
        carry (out, 32): the other; 0 unless :attr:`saves_carries`. The sum is the product: 32 bits,
            signed; or 16 bits of the low bytes, then 16 of the high ones.
    """

    def __init__(self, bytewise: bool, limbwise: bool, gates: bool) -> None:
        self.bytewise = bytewise
        self.limbwise = limbwise
        self.gates = gates
        super().__init__(
            {
                "a": In(_LIMB),
                "b": In(_LIMB),
                "a_signed": In(1),
                "b_carry": In(1),
                "bytes": In(1),
                "partial": Out(_PRODUCT),
                "carry": Out(_PRODUCT),
            }
        )

    @property
    def saves_carries(self) -> bool:
        """Whether the product has two parts."""
        return self.gates and self.limbwise

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        if self.saves_carries:
            booth = BoothMultiplier(self.bytewise)
            m.submodules.booth = shared_instance(booth, platform)
            m.d.comb += [
                booth.a.eq(self.a),
                booth.a_signed.eq(self.a_signed),
                booth.b.eq(self.b),
                booth.b_carry.eq(self.b_carry),
                booth.bytes.eq(self.bytes),
                self.partial.eq(booth.partial),
                self.carry.eq(booth.carry),
            ]
            return m
        low_a, low_b = self.a[:_BYTE].as_signed(), self.b[:_BYTE].as_signed()
        high_a, high_b = self.a[_BYTE:].as_signed(), self.b[_BYTE:].as_signed()
        if not self.limbwise:
            m.d.comb += self.partial.eq(Cat((low_a * low_b)[:_LIMB], (high_a * high_b)[:_LIMB]))
            return m
        left = Signal(signed(_LIMB + 1))
        right = Signal(signed(_LIMB + 1))
        product = Signal(_PRODUCT)
        whole_a = Cat(self.a, self.a[-1] & self.a_signed).as_signed()
        whole_b = self.b.as_signed() + self.b_carry
        m.d.comb += [left.eq(whole_a), right.eq(whole_b), product.eq(left * right)]
        m.d.comb += self.partial.eq(product)
        if self.bytewise:
            odd = Signal(signed(_LIMB))
            m.d.comb += [
                left.eq(Mux(self.bytes, low_a, whole_a)),
                right.eq(Mux(self.bytes, low_b, whole_b)),
                odd.eq(high_a * high_b),
                self.partial[_LIMB:].eq(Mux(self.bytes, odd, product[_LIMB:])),
            ]
        return m


class ProductSum(Component):
    """Adds the two parts of a product of :class:`LimbMultiplier`, combinational.

    Parameters:
        bytewise: whether they may be products of bytes.

    Members:
        partial (in, 32): one part.
        carry (in, 32): the other.
        bytes (in, 1): they are products of bytes.
        product (out, 32): their sum.
    """

    def __init__(self, bytewise: bool) -> None:
        self.bytewise = bytewise
        super().__init__(
            {
                "partial": In(_PRODUCT),
                "carry": In(_PRODUCT),
                "bytes": In(1),
                "product": Out(_PRODUCT),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        if not self.bytewise:
            m.d.comb += self.product.eq(self.partial + self.carry)
            return m
        # A guard bit passes the carry from the low half to the high one, or stops it.
        total = Signal(_PRODUCT + 1)
        m.d.comb += [
            total.eq(
                Cat(self.partial[:_LIMB], ~self.bytes, self.partial[_LIMB:])
                + Cat(self.carry[:_LIMB], Const(0, 1), self.carry[_LIMB:])
            ),
            self.product.eq(Cat(total[:_LIMB], total[_LIMB + 1 :])),
        ]
        return m


class BoothMultiplier(Component):
    """:class:`LimbMultiplier` from gates: radix-4 Booth digits and a tree of full adders.

    Bytes use the two diagonal quarters of the same array: bits and carries from the low product
    into the high one are suppressed, all but those of the last addition.

    Parameters:
        bytewise: whether bytes can be multiplied, too.

    Members: of :class:`LimbMultiplier`.
    """

    def __init__(self, bytewise: bool) -> None:
        self.bytewise = bytewise
        super().__init__(
            {
                "a": In(_LIMB),
                "b": In(_LIMB),
                "a_signed": In(1),
                "b_carry": In(1),
                "bytes": In(1),
                "partial": Out(_PRODUCT),
                "carry": Out(_PRODUCT),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        limbs = Signal()
        m.d.comb += limbs.eq(~self.bytes if self.bytewise else 1)
        columns = self._columns(m, limbs)
        while max(len(column) for column in columns) > 2:
            columns = self._reduce(m, columns, limbs)
        for k, row in enumerate((self.partial, self.carry)):
            m.d.comb += row.eq(Cat(c[k] if len(c) > k else Const(0, 1) for c in columns))
        return m

    def _columns(self, m: Module, limbs: Signal) -> list[list[Value]]:
        """Bits of the partial products by weight."""
        columns: list[list[Value]] = [[] for _ in range(_PRODUCT)]

        def put(column: int, bit: Value) -> None:
            if column < _PRODUCT:
                columns[column].append(bit)

        multiplicand = Signal(_LIMB + 1)
        low_byte = Signal(_LIMB + 1)
        m.d.comb += [
            multiplicand.eq(Cat(self.a, self.a[-1] & self.a_signed)),
            low_byte.eq(
                Mux(limbs, multiplicand, Cat(self.a[:_BYTE], self.a[_BYTE - 1].replicate(_BYTE)))
            ),
        ]
        constant = 0
        for digit in range(_DIGITS):
            place = 2 * digit
            is_low = digit < _DIGITS // 2
            below = self.b_carry if digit == 0 else self.b[place - 1]
            if digit == _DIGITS // 2:
                below = below & limbs
            low, high = self.b[place], self.b[place + 1]
            one, two, negative = Signal(), Signal(), Signal()
            m.d.comb += [
                one.eq(low ^ below),
                two.eq(Mux(high, ~(low | below), low & below)),
                negative.eq(high),
            ]
            source = low_byte if is_low else multiplicand
            bits = Cat(source, source[-1])
            doubled = Cat(Const(0, 1), source)
            if not is_low:
                # The low byte is not part of the high one.
                doubled = Cat(doubled[:_BYTE], doubled[_BYTE] & limbs, doubled[_BYTE + 1 :])
            row = Signal(_LIMB + 2, name=f"row_{digit}")
            m.d.comb += row.eq(
                ((bits & one.replicate(len(row))) | (doubled & two.replicate(len(row))))
                ^ negative.replicate(len(row))
            )
            for index in range(len(row) - 1):
                # With bytes, low digits stay in the low half, high ones omit the low byte.
                crosses = place + index >= _LIMB if is_low else index < _BYTE
                put(place + index, row[index] & limbs if crosses else row[index])
            # -s * 2**k is (1 - s) * 2**k - 2**k; all the subtracted powers make one constant.
            put(place + len(row) - 1, ~row[-1] | ~limbs if is_low else ~row[-1])
            constant -= 1 << (place + len(row) - 1)
            if is_low:
                put(place, negative)
            else:
                put(place, negative & limbs)
                if self.bytewise:
                    put(place + _BYTE, negative & ~limbs)
        for column in range(_PRODUCT):
            if constant >> column & 1:
                put(column, Const(1, 1))
        return columns

    def _reduce(self, m: Module, columns: list[list[Value]], limbs: Signal) -> list[list[Value]]:
        """One level of Dadda's tree: columns no higher than the next of 2, 3, 4, 6, 9, 13."""
        height = max(len(column) for column in columns)
        target = 2
        while target * 3 // 2 < height:
            target = target * 3 // 2
        reduced: list[list[Value]] = []
        carries: list[Value] = []
        for place, bits in enumerate(columns):
            column = list(bits) + carries
            carries = []
            while len(column) > target:
                count = 3 if len(column) > target + 1 else 2
                addends, column = column[:count], column[count:]
                total, carry = Signal(), Signal()
                m.d.comb += [Cat(total, carry).eq(sum(addends, Const(0, 1)))]
                column.append(total)
                carries.append(carry)
            if place == _LIMB - 1:
                carries = [carry & limbs for carry in carries]
            reduced.append(column)
        return reduced
