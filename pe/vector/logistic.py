"""Logistic functions of 16-bit elements, one per cycle (optional; :mod:`isa.logistic`)."""

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.ports import WORD_BITS
from hdl.simd import one_of
from isa.logistic import (
    LIMIT_BITS,
    MOST_FRACTION,
    PLACE_BITS,
    REGIONS,
    SEGMENTS,
    VALUE_FRACTION,
    LogisticOp,
    Region,
)
from isa.logistic import LOGISTIC as UNIT
from isa.table import Width
from pe.capabilities import Capabilities
from pe.config import PeConfig

from .beat import PASS_BITS
from .special import SpecialStep

_ELEMENT = Width.W16.bits
#: The table's value reaches 1.
_VALUE_BITS = VALUE_FRACTION + 1
_SLOPE_BITS = max(slope for _, slope, _ in SEGMENTS).bit_length()
_CURVE_BITS = max(curve for _, _, curve in SEGMENTS).bit_length()
#: Bits of ``u`` that identify the segment: all above the offset in the shortest one.
_INDEX_BITS = LIMIT_BITS - REGIONS[0].shift
_SEGMENT = data.StructLayout({"constant": _VALUE_BITS, "slope": _SLOPE_BITS, "curve": _CURVE_BITS})


def _beat() -> data.StructLayout:
    """A beat of a logistic function, which works on one element.

    Members:
        active: this is such a beat.
        function: code of :class:`isa.logistic.LogisticOp`.
        missing: how many fraction bits elements have less than
            :data:`isa.logistic.MOST_FRACTION`.
        lane: which element of the word.
    """
    return data.StructLayout(
        {
            "active": 1,
            "function": max(LogisticOp).bit_length(),
            "missing": MOST_FRACTION.bit_length(),
            "lane": PASS_BITS,
        }
    )


class VectorLogistic(Component):
    """Looks each element up in the table of :mod:`isa.logistic`, and gathers the results of a word.

    The names of signals are those of that module. Six cycles: take the element; make ``u`` of it;
    look up its segment; the two multiplications of the parabola; the last addition, with the sign.
    Then the element is rounded. Needs a configuration with a logistic instruction.

    Members:
        word: in; the word read. beat: :meth:`LogisticPort.beat`, in, with ``word``.
        result: out; the results of all elements of the word, 6 cycles after the beat of the last.
        valid: out; with ``result``; that beat was active.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "word": In(WORD_BITS),
                "beat": In(_beat()),
                "result": Out(WORD_BITS),
                "valid": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        beats: list[Any] = [
            Signal(_beat(), name=f"beat_{number}", reset_less=True) for number in range(1, 7)
        ]
        for beat, later in pairwise([self.beat, *beats]):
            m.d.sync += later.eq(beat)
        x = Signal(signed(_ELEMENT), reset_less=True)
        negative = Signal(4, reset_less=True)
        m.d.sync += [
            x.eq(self.word.word_select(self.beat.lane, _ELEMENT)),
            negative.eq(Cat(x[-1], negative)),
        ]
        constant, bend = self._table(m, x, beats[0])

        # The sign is put to the constant and to the rest of the value apart, so that no cycle has
        # to multiply and add.
        base = Signal(signed(_VALUE_BITS + 2), reset_less=True)
        twice = Signal(signed(_VALUE_BITS + 2), reset_less=True)
        start = Signal(signed(_VALUE_BITS + 1))
        rest = Signal(signed(_SLOPE_BITS + 2))
        sign = negative[3]
        m.d.comb += [
            start.eq(Mux(negative[2], -constant, constant)),
            rest.eq(Mux(self._halves(beats[4]), bend, bend << 1)),
        ]
        m.d.sync += [
            base.eq(
                Mux(self._halves(beats[3]), start + (1 << VALUE_FRACTION), start << 1),
            ),
            twice.eq(base + (rest.as_unsigned() ^ sign.replicate(len(rest))).as_signed() + sign),
        ]

        last = beats[5]
        # With one bit more than the element, by which it is rounded.
        value = Signal(signed(_ELEMENT + 1))
        element = Signal(_ELEMENT)
        gathered = Signal(WORD_BITS - _ELEMENT, reset_less=True)
        m.d.comb += [
            value.eq((twice >> (VALUE_FRACTION - MOST_FRACTION)) >> last.missing),
            element.eq((value >> 1) + value[0]),
            self.result.eq(Cat(gathered, element)),
            self.valid.eq(last.active),
        ]
        with m.If(last.active):
            m.d.sync += gathered.eq(self.result[_ELEMENT:])
        return m

    def _halves(self, beat: Any) -> Value:
        """Whether the function is the sigmoid, made from tanh of half its operand."""
        rows = Capabilities.of(self.config).of_special(UNIT.name).rows
        possible = {UNIT.function_of(row) for row in rows}
        return one_of(beat.function, [LogisticOp.SIGMOID], possible)

    def _table(self, m: Module, x: Signal, beat: Any) -> tuple[Value, Signal]:
        """The two parts of ``y`` of an element, without its sign: the constant three cycles later,
        the rest four."""
        magnitude = Signal(_ELEMENT)
        scaled = Signal(_ELEMENT + MOST_FRACTION + 1)
        u = Signal(LIMIT_BITS, reset_less=True)
        m.d.comb += [
            magnitude.eq(Mux(x[-1], -x, x)),
            scaled.eq((magnitude << beat.missing) << ~self._halves(beat)),
        ]
        beyond = Signal(3, reset_less=True)
        m.d.sync += [
            u.eq(scaled),
            beyond.eq(Cat(scaled[LIMIT_BITS:].any(), beyond)),
        ]

        segment: Any = Signal(_SEGMENT)
        place = Signal(PLACE_BITS)
        last = len(REGIONS) - 1
        with m.Switch(u[REGIONS[0].shift :]):
            for number, region in enumerate(REGIONS):
                end = len(SEGMENTS) if number == last else REGIONS[number + 1].first
                for index in range(region.first, end):
                    with m.Case(_pattern(region, index)):
                        m.d.comb += [
                            segment[member].eq(value)
                            for member, value in zip(_SEGMENT.members, SEGMENTS[index], strict=True)
                        ]
        for region in REGIONS:
            # Regions but the first begin at a power of two, and end at twice that.
            above = u >= region.start if region.start else Const(1, 1)
            with m.If(above):
                m.d.comb += place.eq(u[region.shift - PLACE_BITS : region.shift])

        looked_up: Any = Signal(_SEGMENT, reset_less=True)
        place_1 = Signal(PLACE_BITS, reset_less=True)
        place_2 = Signal(PLACE_BITS, reset_less=True)
        constant = Signal(_VALUE_BITS, reset_less=True)
        bent = Signal(_SLOPE_BITS, reset_less=True)
        bend = Signal(_SLOPE_BITS, reset_less=True)
        m.d.sync += [
            looked_up.eq(segment),
            place_1.eq(place),
            place_2.eq(place_1),
            constant.eq(looked_up.constant),
            bent.eq(looked_up.slope - (looked_up.curve * place_1 >> PLACE_BITS)),
            bend.eq(Mux(beyond[-1], 0, bent * place_2 >> PLACE_BITS)),
        ]
        return Mux(beyond[-1], 1 << VALUE_FRACTION, constant), bend


def _pattern(region: Region, index: int) -> str:
    """The bits of ``u`` that lead to a segment of ``region``; ``-``: they do not matter."""
    free = region.shift - REGIONS[0].shift
    start = region.start + (index - region.first << region.shift)
    return f"{start >> region.shift:0{_INDEX_BITS - free}b}" + "-" * free


class LogisticPort:
    """Its declaration (:class:`pe.vector.special.SpecialPort`)."""

    name = UNIT.name
    cycles = 6

    def beat(self) -> data.StructLayout:
        return _beat()

    def begin(self, beat: Any, step: SpecialStep) -> list[Any]:
        return [
            beat.active.eq(step.active),
            beat.function.eq(step.function),
            beat.missing.eq(Mux(step.fx > MOST_FRACTION, 0, MOST_FRACTION - step.fx)),
            beat.lane.eq(step.pass_index),
        ]

    def component(self, config: PeConfig) -> Component:
        return VectorLogistic(config)


LOGISTIC = LogisticPort()
