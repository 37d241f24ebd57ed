"""Arithmetic on words split into lanes whose width is selected at run time.

A word is made of *granules*, the narrowest lanes; ``joins[k]`` is 1 where granule ``k + 1``
continues the lane of granule ``k``. All lanes are signed. Everything here is combinational.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from isa.table import ReductionOp

from .component import Component
from .emission import shared_instance


def copies(m: Module, flag: Value, count: int) -> Value:
    """``count`` copies of the one-bit ``flag``.

    Unlike :meth:`amaranth.hdl.Value.replicate`, it emits the logic of ``flag`` once, not ``count``
    times.
    """
    single = Signal(name="flag")
    m.d.comb += single.eq(flag)
    return single.replicate(count)


def one_of(code: Value, selected: Iterable[int], possible: Iterable[int]) -> Value:
    """1 when ``code`` is one of ``selected``, given that it is always one of ``possible``.

    The result is a constant when ``possible`` allows only one, so dependent logic is not built.
    """
    every = frozenset(possible)
    chosen = every & frozenset(selected)
    if not chosen:
        return Const(0, 1)
    if chosen == every:
        return Const(1, 1)
    rest = every - chosen
    if len(rest) < len(chosen):
        return ~Cat(code == int(value) for value in sorted(rest)).any()
    return Cat(code == int(value) for value in sorted(chosen)).any()


def lane_joins(lanes: Sequence[tuple[int, Value]], granule: int, bits: int) -> Value:
    """``joins`` of a word of ``bits`` bits in granules of ``granule`` bits.

    ``lanes`` are (width in bits, 1 while lanes have this width), of which one holds at a time.
    """
    joins = [
        Cat(active for width, active in lanes if place % width).any()
        for place in range(granule, bits, granule)
    ]
    return Cat(joins)


def lane_tops(
    flags: Sequence[Value], lanes: Sequence[tuple[int, Value]], granule: int
) -> list[Value]:
    """For each granule, the flag of the last granule of its lane (``lanes`` as in lane_joins)."""
    spread = []
    for index in range(len(flags)):
        terms = []
        for width, active in lanes:
            per = max(1, width // granule)
            top = min(index // per * per + per - 1, len(flags) - 1)
            terms.append(active & flags[top])
        spread.append(Cat(terms).any())
    return spread


def lane_bounds(
    negative: Sequence[Value], lanes: Sequence[tuple[int, Value]], granule: int
) -> list[Value]:
    """For each granule, its part of the least number of its lane if the lane's ``negative`` (at its
    last granule) is 1, of the greatest otherwise (``lanes`` as in lane_joins)."""
    bounds: list[Value] = []
    for index, is_negative in enumerate(lane_tops(negative, lanes, granule)):
        ends = [active for width, active in lanes if (index + 1) * granule % width == 0]
        is_top = Cat(ends).any() if len(ends) < len(lanes) else Const(1, 1)
        bounds.append(Cat((~is_negative).replicate(granule - 1), ~(is_negative ^ is_top)))
    return bounds


def rotate_units_right(word: Value, amount: Value, unit: int) -> Value:
    """``word`` rotated so that unit ``amount`` becomes unit 0; a unit has ``unit`` bits."""
    for level in range(len(amount)):
        word = Mux(amount[level], word.rotate_right(unit << level), word)
    return word


def signed_less(a: Value, b: Value, *, chained: bool = False) -> Value:
    """1 when signed ``a`` is less than signed ``b``, of equal width.

    The comparison is a tree over the bits, because tools build subtractions as carry chains. With
    ``chained`` it is such a chain, for the fast carries of FPGAs.
    """
    if chained:
        # Unsigned with exchanged signs: the result is the last carry alone. For a signed
        # comparison, Yosys splits the chain and selects by the signs.
        return Cat(a[:-1], b[-1]) < Cat(b[:-1], a[-1])
    # From the lowest bits on: a is less, and a is equal, in a group of bits.
    groups = [(~x & y, ~(x ^ y)) for x, y in zip(a, b, strict=True)]
    groups[-1] = (a[-1] & ~b[-1], groups[-1][1])
    while len(groups) > 1:
        pairs = [
            (high_less | (high_equal & low_less), high_equal & low_equal)
            for (low_less, low_equal), (high_less, high_equal) in zip(
                groups[::2], groups[1::2], strict=False
            )
        ]
        groups = pairs + groups[len(groups) & ~1 :]
    return groups[0][0]


class LaneAdder(Component):
    """Adds or subtracts the lanes of two words, with one carry chain for all lane widths.

    Parameters:
        granule: bits of a granule, at least 1.
        granules: at least 1.

    Members:
        a (in, word): first operand.
        b (in, word): second operand; with all bits inverted when ``subtract`` is 1.
        subtract (in, 1): subtract the inverted ``b`` instead of adding it.
        joins (in, granules - 1, at least 1): see the module; ignored with one granule.
        sum (out, word): wraps at the lane width.
        negative (out, granules): at the last granule of a lane: the exact result is negative.
        overflow (out, granules): at the last granule of a lane: the exact result does not fit.
    """

    def __init__(self, granule: int, granules: int) -> None:
        self.granule = granule
        self.granules = granules
        bits = granule * granules
        super().__init__(
            {
                "a": In(bits),
                "b": In(bits),
                "subtract": In(1),
                "joins": In(max(1, granules - 1)),
                "sum": Out(bits),
                "negative": Out(granules),
                "overflow": Out(granules),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        size, count = self.granule, self.granules
        # A guard bit after each granule passes the carry on within a lane (1 + 0); between lanes
        # it stops the carry and gives the next lane its carry in (0 + 0 or 1 + 1).
        left: list[Value] = [self.subtract]
        right: list[Value] = [self.subtract]
        for index in range(count):
            left.append(self.a.word_select(index, size))
            right.append(self.b.word_select(index, size))
            if index < count - 1:
                left.append(self.joins[index] | self.subtract)
                right.append(~self.joins[index] & self.subtract)
        total = Signal(1 + count * (size + 1))
        m.d.comb += total.eq(Cat(left) + Cat(right))
        for index in range(count):
            result = total[1 + index * (size + 1) :][:size]
            top = (index + 1) * size - 1
            differ = self.a[top] ^ self.b[top]
            m.d.comb += [
                self.sum.word_select(index, size).eq(result),
                # Operands of different sign can't overflow; of equal sign, it is the result's.
                self.negative[index].eq(Mux(differ, result[-1], self.a[top])),
                self.overflow[index].eq(~differ & (result[-1] ^ self.a[top])),
            ]
        return m


class LaneReducer(Component):
    """Combines the lanes of two words by add, min or max, without loss.

    Parameters:
        granule, granules: as of :class:`LaneAdder`.
        operations: its reductions; not empty.
        widths: lane widths in use (bits); multiples of ``granule``.
        chained: lanes that are all of one width are compared by carries (:func:`signed_less`).

    Members:
        a (in, word): first operand.
        b (in, word): second operand.
        reduction (in, 3): code of :class:`isa.table.ReductionOp`.
        active (in, 1): 0 makes all outputs 0.
        lanes (in, one bit for each of ``widths``, ascending): lane width; one bit is 1.
        use_b (in, granules): at the last granule of a lane: 0 makes min and max return ``a``; for
            add, unused lanes must be 0.
        value (out, word): the low bits of the result.
        sign (out, granules): at the last granule of a lane: the bit that extends ``value`` to the
            exact result.
    """

    def __init__(
        self,
        granule: int,
        granules: int,
        operations: frozenset[ReductionOp],
        widths: Sequence[int],
        chained: bool = False,
    ) -> None:
        self.granule = granule
        self.granules = granules
        self.operations = operations
        self.chained = chained
        self.widths = tuple(sorted(widths))
        bits = granule * granules
        super().__init__(
            {
                "a": In(bits),
                "b": In(bits),
                "reduction": In(max(ReductionOp).bit_length()),
                "active": In(1),
                "lanes": In(len(self.widths)),
                "use_b": In(granules),
                "value": Out(bits),
                "sign": Out(granules),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        size, count = self.granule, self.granules
        add = one_of(self.reduction, [ReductionOp.ADD], self.operations)
        low = one_of(self.reduction, [ReductionOp.MIN], self.operations - {ReductionOp.ADD})
        lanes = [(width, self.lanes[index]) for index, width in enumerate(self.widths)]
        if len(lanes) == 1:
            lanes = [(lanes[0][0], Const(1, 1))]
        if self.chained and len(lanes) == 1:
            total, negative, less = self._apart(m, lanes[0][0])
        else:
            total, negative, less = self._joined(m, platform, lanes)
        picks = [self.use_b[index] & (less[index] ^ low) for index in range(count)]
        adds, compares = Signal(), Signal()
        m.d.comb += [adds.eq(self.active & add), compares.eq(self.active & ~add)]
        for index, pick in enumerate(lane_tops(picks, lanes, size)):
            part = slice(index * size, (index + 1) * size)
            chosen = Signal(size, name=f"chosen_{index}")
            m.d.comb += [
                chosen.eq(Mux(pick, self.b[part], self.a[part]) & compares.replicate(size)),
                self.value[part].eq((total[part] & adds.replicate(size)) | chosen),
                self.sign[index].eq((negative[index] & adds) | chosen[-1]),
            ]
        return m

    def _joined(
        self, m: Module, platform: object, lanes: list[tuple[int, Value]]
    ) -> tuple[Value, Value, Value]:
        """Sums, and for the last granule of each lane their signs and whether ``a`` is less."""
        size, count = self.granule, self.granules
        # Separate sums and comparisons take more gates than one adder for both, but no multiplexer
        # in front of the carry chain; mapped for speed they are smaller.
        adder = LaneAdder(size, count)
        less = LaneAdder(size, count)
        for name, unit, b, operation in (("adder", adder, self.b, 0), ("less", less, ~self.b, 1)):
            m.submodules[name] = shared_instance(unit, platform)
            m.d.comb += [unit.a.eq(self.a), unit.b.eq(b), unit.subtract.eq(operation)]
            if count > 1:
                m.d.comb += unit.joins.eq(lane_joins(lanes, size, size * count))
        return adder.sum, adder.negative, less.negative

    def _apart(self, m: Module, width: int) -> tuple[Value, Value, Value]:
        """As :meth:`_joined` for lanes that all have ``width`` bits, with carries of their own."""
        per = width // self.granule
        sums: list[Value] = []
        tops: list[tuple[Value, Value]] = []
        for at in range(0, len(self.a), width):
            a, b = (word[at : at + width].as_signed() for word in (self.a, self.b))
            total = Signal(width + 1, name=f"total_{at}")
            m.d.comb += total.eq(a + b)
            sums.append(total[:width])
            tops += [(total[-1], signed_less(a, b, chained=True))] * per
        negative, less = (Cat(flags) for flags in zip(*tops, strict=True))
        return Cat(sums), negative, less


class LaneShifter(Component):
    """Shifts the lanes of a word right by one amount, filling with each lane's sign.

    Parameters:
        bits: of the word.
        granule: bits of a granule; the last granule also has the remaining bits.
        widths: lane widths in use (bits); multiples of ``granule``. The last lane also has the
            remaining bits.
        steps: its shifts, powers of two, ascending.

    Members:
        data (in, bits): the word.
        lanes (in, one bit for each of ``widths``, ascending): lane width; one bit is 1.
        amount (in, one bit for each of ``steps``): shift.
        earlier (in, granules): ``dropped`` of an earlier shift; 0 without one.
        shifted (out, bits): the result.
        dropped (out, granules): at the first granule of a lane: the last bit shifted out;
            ``earlier`` without a shift.
        sign (out, granules): sign of each granule's lane.
    """

    def __init__(
        self, bits: int, granule: int, widths: Sequence[int], steps: Sequence[int]
    ) -> None:
        self.bits = bits
        self.granule = granule
        self.granules = max(1, bits // granule)
        self.widths = tuple(sorted(widths))
        self.steps = tuple(steps)
        super().__init__(
            {
                "data": In(bits),
                "lanes": In(len(self.widths)),
                "amount": In(len(self.steps)),
                "earlier": In(self.granules),
                "shifted": Out(bits),
                "dropped": Out(self.granules),
                "sign": Out(self.granules),
            }
        )

    def _granule_of(self, bit: int) -> int:
        return min(bit // self.granule, self.granules - 1)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        lanes = [(width, self.lanes[index]) for index, width in enumerate(self.widths)]
        if len(lanes) == 1:
            lanes = [(lanes[0][0], Const(1, 1))]
        ends = [
            self.bits if index == self.granules - 1 else (index + 1) * self.granule
            for index in range(self.granules)
        ]
        m.d.comb += self.sign.eq(
            Cat(lane_tops([self.data[end - 1] for end in ends], lanes, self.granule))
        )

        # By granule, then by distance: whether the granule that far up is of the same lane.
        joined: list[list[Value]] = []
        for index in range(self.granules):
            reach: list[Value] = [Const(1, 1)]
            for other in range(index + 1, self.granules):
                inside = [active for width, active in lanes if other * self.granule % width]
                joins = Signal(name=f"joins_{index}_{other}")
                m.d.comb += joins.eq(reach[-1] & Cat(inside).any())
                reach.append(joins)
            joined.append(reach)

        word: Value = self.data
        dropped: Value = self.earlier
        for level, step in reversed(list(enumerate(self.steps))):
            after = Signal(self.bits, name=f"shifted_by_{step}")
            out = Signal(self.granules, name=f"dropped_by_{step}")
            last = Signal(self.granules, name=f"last_of_{step}")
            for index, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
                sign = self.sign[index]
                source: list[Value] = []
                for target, group in groupby(range(start + step, end + step), self._granule_of):
                    places = list(group)
                    present = min(places[-1] + 1, self.bits) - places[0]
                    if present <= 0:
                        source.append(sign.replicate(len(places)))
                        continue
                    part = Cat(
                        word[places[0] : places[0] + present], sign.replicate(len(places) - present)
                    )
                    if target == index:
                        source.append(part)
                    else:
                        same = joined[index][target - index]
                        source.append(Mux(same, part, sign.replicate(len(places))))
                m.d.comb += after[start:end].eq(
                    Mux(self.amount[level], Cat(source), word[start:end])
                )
                bit = start + step - 1
                target = self._granule_of(bit)
                same = joined[index][target - index]
                m.d.comb += last[index].eq(Mux(same, word[bit], sign) if bit < self.bits else sign)
            m.d.comb += out.eq(Mux(self.amount[level], last, dropped))
            word, dropped = after, out
        m.d.comb += [self.shifted.eq(word), self.dropped.eq(dropped)]
        return m
