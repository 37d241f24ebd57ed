"""Vector control: takes commands and turns them into beats."""

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.simd import one_of
from isa.table import Opcode
from isa.timing import VECTOR_LATENCY, WORD_BYTES
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.ports import vector_command

from .beat import PASS_BITS, TAIL_BITS, is_width, operand_beat, pass_bits
from .special import SpecialStep
from .stages import read_cycles
from .units import special_ports

__all__ = ["VectorControl"]


def _row_bits(config: PeConfig) -> int:
    """Bits of the number of a byte within the longest row, and one more than within a word."""
    widest = max(width.bytes for width in Capabilities.of(config).vector.widths)
    return max((config.vl_limit * widest - 1).bit_length(), TAIL_BITS + 1)


class VectorControl(Component):
    """Steps through the words of a command, one beat a cycle, and holds one command in waiting.

    A command that is accepted while no other runs starts in the next cycle. One that is accepted
    while another runs, up to and including the cycle of that one's last beat, starts in the cycle
    after that last beat. A word of an operand is read in the first pass only, and the element of a
    ``v.s`` in the first beat only, so that later beats see it as it was then.

    Members:
        command: stream of :func:`pe.ports.vector_command`, in.
        read_first, read_second: out; read the operand at ``address_first``, ``address_second`` in
            this cycle.
        address_first, address_second: out, scratchpad byte addresses.
        operands, complete, write: out, as in :mod:`pe.vector.beat`, together with the data read:
            :func:`pe.vector.stages.read_cycles` after the beat.
        For each special unit that the configuration needs (:mod:`pe.vector.units`) one with its
            name, out, with ``operands``: its :meth:`pe.vector.special.SpecialPort.beat`.
        beat: out; this cycle is a beat.
        busy: out; from the cycle after a command is accepted to the one in which its last result is
            written, :data:`isa.timing.VECTOR_LATENCY` - 1 cycles after its last beat.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.needs = Capabilities.of(config).vector
        self.special = special_ports(config)
        members: dict[str, Any] = {
            "command": In(stream.Signature(vector_command(config))),
            "read_first": Out(1),
            "read_second": Out(1),
            "address_first": Out(config.scratchpad_bits),
            "address_second": Out(config.scratchpad_bits),
            "operands": Out(operand_beat(config)),
            "complete": Out(1),
            "write": Out(1),
            "beat": Out(1),
            "busy": Out(1),
        }
        members |= {port.name: Out(port.beat()) for port in self.special}
        super().__init__(members)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        needs = self.needs
        now: Any = Signal(vector_command(config), reset_less=True)
        waiting: Any = Signal(vector_command(config), reset_less=True)
        width = needs.width.unpack(now.width)
        vertical = needs.vertical.unpack(now.vertical)
        running = Signal()
        is_waiting = Signal()
        # Where the second operand goes on; a row of a matrix starts it anew.
        second = Signal(len(now.second), reset_less=True)
        # Number of the row's last byte; words of the row behind this one; this is its first.
        row_end = Signal(_row_bits(config), reset_less=True)
        left = Signal(_row_bits(config) - TAIL_BITS, reset_less=True)
        first_word = Signal(reset_less=True)
        pass_index = Signal(pass_bits(config))
        following: Any = Signal(vector_command(config))
        m.d.comb += following.eq(Mux(is_waiting, waiting, self.command.payload))

        reduces = needs.is_form(now.kind, Opcode.MATRIX_VECTOR)
        scalar = needs.is_form(now.kind, Opcode.VECTOR_SCALAR)
        special = needs.is_form(now.kind, Opcode.SPECIAL)
        unary = needs.is_unary(now.kind, now.vertical)
        product = needs.multiplies(now.kind, now.vertical)

        following_end = Signal(_row_bits(config))
        last_element = Signal((config.vl_limit - 1).bit_length())
        m.d.comb += last_element.eq(following.vl - 1)
        for each in needs.widths:
            with m.If(is_width(needs.width.unpack(following.width), [each], needs)):
                m.d.comb += following_end.eq(Cat(Const(each.bytes - 1, each.value), last_element))
        final_pass = Signal(PASS_BITS)
        for each in needs.products.widths:
            with m.If(product & is_width(width, [each], needs)):
                m.d.comb += final_pass.eq(needs.products.of_widths([each]).most_passes - 1)
        active: dict[str, Value] = {}
        for port in self.special:
            own = needs.of_special(port.name)
            active[port.name] = special
            if len(self.special) > 1:
                every = needs.special.functions
                active[port.name] = special & one_of(vertical, own.functions, every)
            with m.If(active[port.name]):
                m.d.comb += final_pass.eq(own.most_passes - 1)

        last_row = ~reduces | (now.mr == 1) if needs.reduced else Const(1, 1)
        last_pass = Signal()
        last_word = Signal()
        last = Signal()
        m.d.comb += [
            last_pass.eq(pass_index == final_pass),
            last_word.eq(left == 0),
            last.eq(last_pass & last_word & last_row),
        ]
        tail = Signal(TAIL_BITS)
        m.d.comb += tail.eq(Mux(last_word, row_end[:TAIL_BITS], WORD_BYTES - 1))

        m.d.comb += self.command.ready.eq(~is_waiting)
        accept = self.command.valid & self.command.ready
        with m.If(running & ~last):
            with m.If(accept):
                m.d.sync += [is_waiting.eq(1), waiting.eq(self.command.payload)]
            with m.If(last_pass):
                m.d.sync += [
                    pass_index.eq(0),
                    # Rows follow one another without a gap, whatever their length.
                    now.first.eq(now.first + tail + 1),
                    left.eq(left - 1),
                    first_word.eq(0),
                ]
                with m.If(~scalar):
                    m.d.sync += second.eq(second + WORD_BYTES)
                with m.If(~reduces):
                    m.d.sync += now.result.eq(now.result + WORD_BYTES)
                with m.Elif(last_word):
                    m.d.sync += [
                        left.eq(row_end[TAIL_BITS:]),
                        first_word.eq(1),
                        second.eq(now.second),
                        now.mr.eq(now.mr - 1),
                        now.result.eq(now.result + (Const(1, 1) << width)),
                    ]
            with m.Else():
                m.d.sync += pass_index.eq(pass_index + 1)
        with m.Else():
            m.d.sync += [
                running.eq(is_waiting | accept),
                is_waiting.eq(0),
                now.eq(following),
                second.eq(following.second),
                row_end.eq(following_end),
                left.eq(following_end[TAIL_BITS:]),
                first_word.eq(1),
                pass_index.eq(0),
            ]

        start = Signal()
        m.d.comb += [
            start.eq(running & (pass_index == 0)),
            self.read_first.eq(start),
            self.read_second.eq(start & ~unary & (~scalar | first_word)),
            self.address_first.eq(now.first),
            self.address_second.eq(second),
            self.beat.eq(running),
        ]
        cycles = range(1, read_cycles(config) + 1)
        operands: list[Any] = [
            Signal(operand_beat(config), name=f"operands_{cycle}", reset_less=True)
            for cycle in cycles
        ]
        complete = Signal(len(cycles) - 1, name="early_complete")
        write = Signal(len(cycles) - 1, name="early_write")
        value = operands[0].value
        m.d.sync += [
            operands[0].vertical.eq(now.vertical),
            operands[0].broadcast.eq(scalar),
            operands[0].pass_index.eq(pass_index),
            value.first.eq(first_word | ~reduces),
            value.result.width.eq(now.width),
            value.result.product.eq(product),
            value.result.reduction.eq(now.reduction),
            value.result.tail.eq(tail),
            value.result.address.eq(now.result),
            value.result.fx.eq(Mux(product, now.fx, 0)),
            *(later.eq(beat) for beat, later in pairwise(operands)),
            Cat(complete, self.complete).eq(Cat(running & last_pass, complete)),
            Cat(write, self.write).eq(Cat(running & last_pass & (last_word | ~reduces), write)),
        ]
        m.d.comb += self.operands.eq(operands[-1])
        for port in self.special:
            step = SpecialStep(running & active[port.name], vertical, now.fx, pass_index)
            functions: list[Any] = [
                Signal(port.beat(), name=f"function_{cycle}", reset_less=True) for cycle in cycles
            ]
            m.d.comb += getattr(self, port.name).eq(functions[-1])
            m.d.sync += [
                *port.begin(functions[0], step),
                *(later.eq(beat) for beat, later in pairwise(functions)),
            ]
        unwritten = Signal(range(VECTOR_LATENCY))
        with m.If(running):
            m.d.sync += unwritten.eq(VECTOR_LATENCY - 1)
        with m.Elif(unwritten != 0):
            m.d.sync += unwritten.eq(unwritten - 1)
        # Known a cycle ahead, as whether issue goes on depends on it.
        m.d.sync += self.busy.eq(accept | running | (unwritten > 1))
        return m
