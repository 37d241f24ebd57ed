"""The last two cycles of a result: scale, round, saturate, place and write."""

from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hdl.clock_gate import needs_clock
from hdl.component import Component
from hdl.config import ConfigurationError
from hdl.emission import shared_instance
from hdl.ports import BYTE_BITS, WORD_BITS
from hdl.simd import LaneAdder, LaneShifter, lane_bounds, lane_joins, lane_tops, one_of
from isa.table import MAX_FX, ReductionOp, Width
from isa.timing import WORD_BYTES
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.ports import ScratchpadWritePort, rows_between

from .beat import ResultFields, is_product, is_reduced, is_width, lanes_of, result_beat
from .stages import shift_cycles, total_cycles
from .units import special_ports

#: Width of the shifter's lane when there is only one.
_WHOLE_BITS = 2 * WORD_BITS
#: Low bits of FX that the second cycle shifts by, where there are two.
_FINE_STEPS = 3


class _Scaled(NamedTuple):
    """A shifted result.

    Attributes:
        fields, write: travel beside it; beat: the members of ``fields``. split, undivided: its
            lanes.
            granule: bits of the narrowest of them.
        shifted, dropped, signs: as of :class:`hdl.simd.LaneShifter`.
    """

    fields: Any
    beat: ResultFields
    write: Value
    split: list[tuple[Width, Value]]
    undivided: Value
    granule: int
    shifted: Value
    dropped: Value
    signs: list[Value]


def _registered(m: Module, signal: Signal) -> Signal:
    """``signal`` a cycle later."""
    later = Signal(len(signal), name=f"{signal.name}_later", reset_less=True)
    m.d.sync += later.eq(signal)
    return later


class VectorFinish(Component):
    """Shifts products right by FX, rounds half up, saturates sums and products, and writes.

    Two cycles: shift, and compare the result with its range; round, saturate and write. A value
    that is out of range before rounding stays so, and rounding alone can only turn the largest
    number into a negative one. With two of :func:`pe.vector.stages.shift_cycles` the first cycle is
    split in two, and its comparison with the range ends in the last cycle; with none, only the
    place of the result is determined, in no cycle of its own.

    Members:
        total: in, signed, and total_beat, total_write: in; of
            :class:`pe.vector.horizontal.VectorHorizontal`.
        For each special unit that the configuration needs (:mod:`pe.vector.units`) two with its
            name, in: a word, and the same with ``_valid``, that it is the value instead of
            ``total``; as many cycles ahead of that as the unit takes fewer than the stages.
        port: :class:`pe.ports.ScratchpadWritePort`, out, :func:`pe.vector.stages.shift_cycles`
            later.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.needs = Capabilities.of(config).vector
        self.cycles = shift_cycles(config)
        self.special = special_ports(config)
        self.granule = min(self.needs.widths).bits
        members: dict[str, Any] = {
            "total": In(signed(self.needs.total_bits)),
            "total_beat": In(result_beat(config)),
            "total_write": In(1),
            "port": Out(ScratchpadWritePort(config)),
        }
        for port in self.special:
            if port.cycles not in range(total_cycles(config) + 1):
                raise ConfigurationError(
                    f"special unit {port.name}: cycles is {port.cycles}, must be from 0 to "
                    f"{total_cycles(config)}, when the value of other instructions is ready"
                )
            members |= {port.name: In(WORD_BITS), f"{port.name}_valid": In(1)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        needs = self.needs
        if not self.cycles:
            beat = ResultFields.of(self.config, self.total_beat)
            self._write(m, beat, self.total_write)
            self._ask(m, m.d.comb, beat, self.total_write)
            m.d.comb += self.port.data.eq(self.total)
            return m
        count = WORD_BITS // self.granule
        register = Signal(result_beat(self.config), name="beat", reset_less=True)
        beat = ResultFields.of(self.config, register)
        write = Signal()
        value = Signal(WORD_BITS, reset_less=True)
        round_up = Signal(count, reset_less=True)
        scaled = self._scale(m, platform)
        m.d.sync += write.eq(scaled.write)
        # Most values are those of rows that go on.
        clocked = needs_clock(m, platform, scaled.write, self.config.sram)
        with m.If(clocked):
            m.d.sync += register.eq(scaled.fields)
        self._narrow(m, scaled, clocked, value, round_up)
        out_of_range, negative = self._compare(m, scaled, beat)

        lanes = lanes_of(m, beat.width, needs)
        rounded: Value = value
        if needs.products.rows:
            adder = LaneAdder(self.granule, count)
            m.submodules.round = shared_instance(adder, platform)
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

        self._write(m, beat, write)
        # Known a cycle ahead, as what waits for ports depends on it.
        self._ask(m, m.d.sync, scaled.beat, scaled.write)
        return m

    def _write(self, m: Module, beat: ResultFields, write: Value) -> None:
        """Address and byte strobes of the result."""
        needs = self.needs
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

    def _ask(self, m: Module, domain: Any, beat: ResultFields, write: Value) -> None:
        """Rows of the result, where ports are shared."""
        if not self.config.shared_ports:
            return
        last = Signal(BYTE_BITS, name="last_byte")
        m.d.comb += last.eq(beat.tail)
        with m.If(is_reduced(beat.reduction, self.needs)):
            for width in self.needs.widths:
                with m.If(is_width(beat.width, [width], self.needs)):
                    m.d.comb += last.eq(width.bytes - 1)
        domain += self.port.rows.eq(rows_between(beat.address, 0, last) & write.replicate(2))

    def _split(self, m: Module, beat: ResultFields) -> tuple[list[tuple[Width, Value]], Value]:
        """Width of an element and 1 while there are several lanes of twice as many bits, for each
        that occurs; 1 while there are no such lanes."""
        needs = self.needs
        split: list[tuple[Width, Value]] = []
        lanes = is_product(beat.product, needs) & ~is_reduced(beat.reduction, needs)
        for width in sorted(needs.elementwise.products.widths - {Width.W64}):
            active = Signal(name=f"split_{width.bits}")
            m.d.comb += active.eq(lanes & is_width(beat.width, [width], needs))
            split.append((width, active))
        undivided = Signal()
        m.d.comb += undivided.eq(~Cat(active for _, active in split).any())
        return split, undivided

    def _scale(self, m: Module, platform: object) -> "_Scaled":
        """First cycle, or first two: shift."""
        needs = self.needs
        bits = needs.total_bits
        fields: Any = self.total_beat
        beat = ResultFields.of(self.config, fields)
        write: Value = self.total_write
        split, undivided = self._split(m, beat)
        if not needs.products.rows:
            return _Scaled(
                fields,
                beat,
                write,
                split,
                undivided,
                _WHOLE_BITS,
                self.total,
                Const(0, 1),
                [self.total[-1]],
            )
        widths = [2 * width.bits for width, _ in split] + [_WHOLE_BITS]
        steps = [1 << level for level in range(MAX_FX.bit_length())]
        coarse = LaneShifter(bits, widths[0], widths, steps[_FINE_STEPS:])
        fine = LaneShifter(bits, widths[0], widths, steps[:_FINE_STEPS])
        m.submodules.coarse = shared_instance(coarse, platform)
        m.submodules.fine = shared_instance(fine, platform)
        m.d.comb += [
            coarse.data.eq(self.total),
            coarse.amount.eq(beat.fx[_FINE_STEPS:]),
            coarse.lanes.eq(Cat(*(active for _, active in split), undivided)),
        ]
        shifted, dropped = coarse.shifted, coarse.dropped
        if self.cycles > 1:
            fields = Signal(result_beat(self.config), name="coarse_beat", reset_less=True)
            beat = ResultFields.of(self.config, fields)
            write = Signal(name="coarse_write")
            shifted = Signal(bits, name="coarse_shifted", reset_less=True)
            dropped = Signal.like(coarse.dropped, name="coarse_dropped", reset_less=True)
            m.d.sync += [
                fields.eq(self.total_beat),
                write.eq(self.total_write),
                shifted.eq(coarse.shifted),
                dropped.eq(coarse.dropped),
            ]
            self._insert_special(m, shifted)
            split, undivided = self._split(m, beat)
        m.d.comb += [
            fine.data.eq(shifted),
            fine.earlier.eq(dropped),
            fine.amount.eq(beat.fx[:_FINE_STEPS]),
            fine.lanes.eq(Cat(*(active for _, active in split), undivided)),
        ]
        return _Scaled(
            fields,
            beat,
            write,
            split,
            undivided,
            widths[0],
            fine.shifted,
            fine.dropped,
            list(fine.sign),
        )

    def _insert_special(self, m: Module, register: Signal) -> None:
        """Results of special units. Such a value is neither a product nor a sum, so no later step
        changes it."""
        for port in self.special:
            result, valid = getattr(self, port.name), getattr(self, f"{port.name}_valid")
            for _ in range(total_cycles(self.config) - port.cycles):
                result, valid = _registered(m, result), _registered(m, valid)
            with m.If(valid):
                m.d.sync += register[:WORD_BITS].eq(result)

    def _narrow(
        self, m: Module, scaled: "_Scaled", clocked: Value, value: Signal, round_up: Signal
    ) -> None:
        """The low half of each lane, and the bit below it."""
        size = self.granule
        shifted, dropped = scaled.shifted, scaled.dropped
        padded = Cat(shifted, Const(0, max(0, WORD_BITS - len(shifted))))
        for index in range(WORD_BITS // size):
            place = index * size
            part = padded[place : place + size]
            ups = [dropped[0]] if index == 0 else []
            for width, active in scaled.split:
                base = place // width.bits * 2 * width.bits
                if base:
                    start = base + place % width.bits
                    part = Mux(active, padded[start : start + size], part)
                    if place % width.bits == 0:
                        ups.append(active & dropped[base // scaled.granule])
            with m.If(clocked):
                m.d.sync += [
                    value[place : place + size].eq(part),
                    round_up[index].eq(Cat(ups).any()),
                ]
        if self.cycles == 1:
            self._insert_special(m, value)

    def _compare(
        self, m: Module, scaled: "_Scaled", later_beat: ResultFields
    ) -> tuple[Signal, Signal]:
        """For the last granule of each lane of the result, in the last cycle: whether it
        saturates, and its sign (otherwise 1)."""
        needs = self.needs
        beat, split, undivided = scaled.beat, scaled.split, scaled.undivided
        bits = needs.total_bits
        # Bits that differ from the sign of their lane, and bytes with such.
        differ = Signal(bits)
        bytes_ = Signal(-(-bits // 8))
        signs = Signal(len(scaled.signs))
        m.d.comb += [
            signs.eq(Cat(scaled.signs)),
            differ.eq(
                Cat(
                    bit ^ signs[min(place // scaled.granule, len(signs) - 1)]
                    for place, bit in enumerate(scaled.shifted)
                )
            ),
            bytes_.eq(Cat(differ[at : at + 8].any() for at in range(0, bits, 8))),
        ]
        if self.cycles > 1:
            differ, bytes_, signs = (_registered(m, signal) for signal in (differ, bytes_, signs))
            beat = later_beat
            split, undivided = self._split(m, beat)
        sums = Signal()
        m.d.comb += sums.eq(
            is_product(beat.product, needs)
            | one_of(beat.reduction, [ReductionOp.ADD], self._reduction_codes())
        )

        def exceeds(base: int, width: int, end: int) -> Value:
            return Cat(differ[base + width - 1], bytes_[(base + width) // 8 : end // 8]).any()

        bad: dict[int, list[Value]] = {}
        sign: dict[int, list[Value]] = {}
        for width, active in split:
            for lane in range(WORD_BITS // width.bits):
                base = 2 * lane * width.bits
                top = (lane + 1) * width.bits // self.granule - 1
                over = exceeds(base, width.bits, base + 2 * width.bits)
                bad.setdefault(top, []).append(active & over)
                sign.setdefault(top, []).append(active & signs[base // scaled.granule])
        for width in needs.widths:
            top = width.bits // self.granule - 1
            in_lane = undivided & is_width(beat.width, [width], needs)
            if width.bits <= bits:
                bad.setdefault(top, []).append(in_lane & exceeds(0, width.bits, bits))
            sign.setdefault(top, []).append(in_lane & signs[0])
        count = WORD_BITS // self.granule
        out_of_range = Signal(count)
        negative = Signal(count)
        for top in range(count):
            m.d.comb += [
                out_of_range[top].eq(sums & Cat(bad.get(top, [])).any()),
                # Marked as negative, a value that needs no saturation can't seem to wrap.
                negative[top].eq(~sums | Cat(sign.get(top, [])).any()),
            ]
        if self.cycles > 1:
            return out_of_range, negative
        return _registered(m, out_of_range), _registered(m, negative)

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
