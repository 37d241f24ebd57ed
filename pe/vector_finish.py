"""The last two cycles of a result: scale, round, saturate, place and write."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import PeConfig
from hdl.emission import once
from hdl.ports import WORD_BITS
from hdl.simd import LaneAdder, LaneShifter, lane_bounds, lane_joins, lane_tops, one_of
from isa.table import MAX_FX, ReductionOp, Width
from isa.timing import WORD_BYTES

from .ports import ScratchpadWritePort
from .vector_beat import is_product, is_reduced, is_width, lanes_of, result_beat
from .vector_needs import VectorNeeds

__all__ = ["VectorFinish"]

#: Width of the shifter's lane when there is only one.
_WHOLE_BITS = 2 * WORD_BITS


class VectorFinish(Component):
    """Shifts products right by FX, rounds half up, saturates sums and products, and writes.

    Two cycles: shift, and see whether the result is out of range; round, saturate and write. What
    is out of range before rounding is so after it, and rounding alone can only turn the largest
    number into a negative one.

    Members:
        total: in, signed, and total_beat, total_write: in; of
            :class:`pe.vector_horizontal.VectorHorizontal`.
        logistic, logistic_valid: in, with ``total``; this word is the value instead, of a unit of
            its own; only if the configuration has a logistic instruction.
        port: :class:`pe.ports.ScratchpadWritePort`, out, one cycle later.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.needs = VectorNeeds.of(config)
        self.granule = min(self.needs.widths).bits
        members: dict[str, Any] = {
            "total": In(signed(self.needs.total_bits)),
            "total_beat": In(result_beat(config)),
            "total_write": In(1),
            "port": Out(ScratchpadWritePort(config)),
        }
        if self.needs.logistic.rows:
            members |= {"logistic": In(WORD_BITS), "logistic_valid": In(1)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        needs = self.needs
        count = WORD_BITS // self.granule
        value = Signal(WORD_BITS, reset_less=True)
        round_up = Signal(count, reset_less=True)
        out_of_range = Signal(count, reset_less=True)
        negative = Signal(count, reset_less=True)
        beat: Any = Signal(result_beat(self.config), reset_less=True)
        write = Signal()
        m.d.sync += [beat.eq(self.total_beat), write.eq(self.total_write)]
        self._scale(m, platform, value, round_up, out_of_range, negative)

        lanes = lanes_of(m, beat.width, needs)
        rounded: Value = value
        if needs.products.rows:
            adder = LaneAdder(self.granule, count)
            m.submodules.round = once(adder, platform)
            m.d.comb += [
                adder.a.eq(value),
                adder.b.eq(Cat(Cat(bit, Const(0, self.granule - 1)) for bit in round_up)),
            ]
            if count > 1:
                m.d.comb += adder.joins.eq(lane_joins(lanes, self.granule, WORD_BITS))
            rounded = adder.sum
        if needs.products.rows or needs.summed.rows:
            m.d.comb += self.port.data.eq(self._saturate(rounded, out_of_range, negative, lanes))
        else:
            m.d.comb += self.port.data.eq(rounded)

        strobe = Signal(WORD_BYTES)
        for width in needs.widths:
            with m.If(is_width(beat.width, [width], needs)):
                m.d.comb += strobe.eq((1 << width.bytes) - 1)
        with m.If(~is_reduced(beat.reduction, needs)):
            m.d.comb += strobe.eq(Cat(beat.tail >= byte for byte in range(WORD_BYTES)))
        m.d.comb += [
            self.port.address.eq(beat.address),
            self.port.strobe.eq(strobe & write.replicate(WORD_BYTES)),
        ]
        return m

    def _scale(
        self,
        m: Module,
        platform: object,
        value: Signal,
        round_up: Signal,
        out_of_range: Signal,
        negative: Signal,
    ) -> None:
        """First cycle: shift, narrow to the element width, compare with its range."""
        needs = self.needs
        beat = self.total_beat
        lanewise = needs.elementwise.products
        bits = needs.total_bits
        # (lane bits of the element, 1 while there are several lanes of twice as many).
        split: list[tuple[Width, Value]] = []
        lanes = is_product(beat.product, needs) & ~is_reduced(beat.reduction, needs)
        for width in sorted(lanewise.widths - {Width.W64}):
            active = Signal(name=f"split_{width.bits}")
            m.d.comb += active.eq(lanes & is_width(beat.width, [width], needs))
            split.append((width, active))
        whole = Signal()
        m.d.comb += whole.eq(~Cat(active for _, active in split).any())
        shifted: Value = self.total
        dropped: Value = Const(0, 1)
        granule = _WHOLE_BITS
        signs: list[Value] = [self.total[-1]]
        if needs.products.rows:
            widths = [2 * width.bits for width, _ in split] + [_WHOLE_BITS]
            granule = widths[0]
            shifter = LaneShifter(bits, granule, widths, MAX_FX.bit_length())
            m.submodules.shifter = once(shifter, platform)
            m.d.comb += [
                shifter.data.eq(self.total),
                shifter.amount.eq(beat.fx),
                shifter.lanes.eq(Cat(*(active for _, active in split), whole)),
            ]
            shifted, dropped, signs = shifter.shifted, shifter.dropped, list(shifter.sign)
        self._narrow(m, value, round_up, shifted, dropped, split, granule)
        self._compare(m, out_of_range, negative, shifted, signs, split, whole, granule)

    def _narrow(
        self,
        m: Module,
        value: Signal,
        round_up: Signal,
        shifted: Value,
        dropped: Value,
        split: list[tuple[Width, Value]],
        granule: int,
    ) -> None:
        """The low half of each lane, and the bit below it."""
        size = self.granule
        padded = Cat(shifted, Const(0, max(0, WORD_BITS - len(shifted))))
        for index in range(WORD_BITS // size):
            place = index * size
            part = padded[place : place + size]
            ups = [dropped[0]] if index == 0 else []
            for width, active in split:
                base = place // width.bits * 2 * width.bits
                if base:
                    start = base + place % width.bits
                    part = Mux(active, padded[start : start + size], part)
                    if place % width.bits == 0:
                        ups.append(active & dropped[base // granule])
            m.d.sync += [
                value[place : place + size].eq(part),
                round_up[index].eq(Cat(ups).any()),
            ]
        if self.needs.logistic.rows:
            # Such a value is no product and no sum, so nothing behind this changes it.
            with m.If(self.logistic_valid):
                m.d.sync += value.eq(self.logistic)

    def _compare(
        self,
        m: Module,
        out_of_range: Signal,
        negative: Signal,
        shifted: Value,
        signs: list[Value],
        split: list[tuple[Width, Value]],
        whole: Value,
        granule: int,
    ) -> None:
        """For the last granule of each lane of the result: whether it saturates, and its sign."""
        needs = self.needs
        beat = self.total_beat
        bits = needs.total_bits
        scaled = Signal()
        m.d.comb += scaled.eq(
            is_product(beat.product, needs)
            | one_of(beat.reduction, [ReductionOp.ADD], self._reduction_codes())
        )
        differ = Signal(bits)
        m.d.comb += differ.eq(
            Cat(shifted[bit] ^ signs[min(bit // granule, len(signs) - 1)] for bit in range(bits))
        )
        differing_bytes = [differ[at : at + 8].any() for at in range(0, bits, 8)]

        def exceeds(base: int, width: int, end: int) -> Value:
            upper = differing_bytes[(base + width) // 8 : end // 8]
            return Cat(differ[base + width - 1], *upper).any()

        bad: dict[int, list[Value]] = {}
        sign: dict[int, list[Value]] = {}
        for width, active in split:
            for lane in range(WORD_BITS // width.bits):
                base = 2 * lane * width.bits
                top = (lane + 1) * width.bits // self.granule - 1
                over = exceeds(base, width.bits, base + 2 * width.bits)
                bad.setdefault(top, []).append(active & over)
                sign.setdefault(top, []).append(active & signs[base // granule])
        for width in needs.widths:
            top = width.bits // self.granule - 1
            here = whole & is_width(beat.width, [width], needs)
            if width.bits <= bits:
                bad.setdefault(top, []).append(here & exceeds(0, width.bits, bits))
            sign.setdefault(top, []).append(here & signs[0])
        for top in range(WORD_BITS // self.granule):
            m.d.sync += [
                out_of_range[top].eq(scaled & Cat(bad.get(top, [])).any()),
                # So marked, a value that is in range as it is can't seem to wrap.
                negative[top].eq(~scaled | Cat(sign.get(top, [])).any()),
            ]

    def _reduction_codes(self) -> set[int]:
        codes = {int(reduction) for reduction in self.needs.reductions}
        return codes | ({0} if self.needs.elementwise.rows else set())

    def _saturate(
        self,
        rounded: Value,
        out_of_range: Signal,
        negative: Signal,
        lanes: list[tuple[int, Value]],
    ) -> Value:
        """``rounded`` with each lane that is out of range replaced by its bound."""
        size = self.granule
        count = WORD_BITS // size
        parts = [rounded[index * size : (index + 1) * size] for index in range(count)]
        saturates = lane_tops(
            [out_of_range[i] | (~negative[i] & parts[i][-1]) for i in range(count)], lanes, size
        )
        bounds = lane_bounds(list(negative), lanes, size)
        return Cat(
            Mux(saturate, bound, part)
            for saturate, bound, part in zip(saturates, bounds, parts, strict=True)
        )
