"""Vector control: takes commands and turns them into beats."""

from contextlib import nullcontext
from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component, Probes
from hdl.simd import one_of
from isa.table import Opcode
from isa.timing import VECTOR_LATENCY, WORD_BYTES
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.ports import vector_command

from .beat import PASS_BITS, TAIL_BITS, is_width, keep_place, operand_beat, pass_bits
from .special import SpecialStep
from .stages import read_cycles
from .units import special_ports


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
        ready: in, only with shared ports of the scratchpad; without it, the beat waits.
        read_first, read_second: out; read the operand at ``address_first``, ``address_second`` in
            this cycle.
        address_first, address_second: out, scratchpad byte addresses.
        operands, complete, write: out, as in :mod:`pe.vector.beat`, together with the data read:
            :func:`pe.vector.stages.read_cycles` after the beat.
        For each special unit that the configuration needs (:mod:`pe.vector.units`) one with its
            name, out, with ``operands``: its :meth:`pe.vector.special.SpecialPort.beat`.
        beat: out; this cycle is a beat, for which its words are read.
        busy: out; from the cycle after a command is accepted to the one in which its last result is
            written, :data:`isa.timing.VECTOR_LATENCY` - 1 cycles after its last beat.
    """

    probes = Probes(
        "address_first",
        "address_second",
        "busy",
        "current",
        "first_word",
        "is_waiting",
        "left",
        "pass_index",
        "read_first",
        "read_second",
        "row_end",
        "running",
        "unwritten",
        "waiting",
    )

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
        if config.shared_ports:
            members["ready"] = In(1)
        members |= {port.name: Out(port.beat()) for port in self.special}
        super().__init__(members)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        work = _Work(self.config, self.needs)
        m.d.comb += work.following.eq(Mux(work.is_waiting, work.waiting, self.command.payload))
        following_end = self._row_end(m, work.following)
        active = self._last(m, work)
        m.d.comb += work.tail.eq(Mux(work.last_word, work.row_end[:TAIL_BITS], WORD_BYTES - 1))
        m.d.comb += self.command.ready.eq(~work.is_waiting)
        accept = self.command.valid & self.command.ready
        # Without shared ports each beat goes; `goes` here would only add gates.
        ends: Value = work.last
        shared = self.config.shared_ports
        if shared:
            m.d.comb += work.goes.eq(work.running & self.ready)
            ends = work.last & work.goes
        with m.If(work.running & ~ends):
            with m.If(accept):
                m.d.sync += [work.is_waiting.eq(1), work.waiting.eq(self.command.payload)]
            with m.If(work.goes) if shared else nullcontext():
                self._advance(m, work)
                if shared:
                    self._read_next(m, work.last_pass, ~work.unary & ~work.scalar)
        with m.Else():
            m.d.sync += [
                work.running.eq(work.is_waiting | accept),
                work.is_waiting.eq(0),
                work.current.eq(work.following),
                work.second.eq(work.following.second),
                work.row_end.eq(following_end),
                work.left.eq(following_end[TAIL_BITS:]),
                work.first_word.eq(1),
                work.pass_index.eq(0),
            ]
            if shared:
                unary = self.needs.is_unary(work.following.kind, work.following.vertical)
                self._read_next(m, work.is_waiting | accept, ~unary)
        if not shared:
            start = Signal()
            m.d.comb += [
                start.eq(work.running & (work.pass_index == 0)),
                self.read_first.eq(start),
                self.read_second.eq(start & ~work.unary & (~work.scalar | work.first_word)),
            ]
        m.d.comb += [
            self.address_first.eq(work.current.first),
            self.address_second.eq(work.second),
            self.beat.eq(work.goes),
        ]
        self._hand_on(m, platform, work)
        self._hand_to_special(m, work, active)
        unwritten = Signal(range(VECTOR_LATENCY))
        with m.If(work.running):
            m.d.sync += unwritten.eq(VECTOR_LATENCY - 1)
        with m.Elif(unwritten != 0):
            m.d.sync += unwritten.eq(unwritten - 1)
        # Known a cycle ahead, as issue depends on it.
        m.d.sync += self.busy.eq(accept | work.running | (unwritten > 1))
        return m

    def _row_end(self, m: Module, following: Any) -> Signal:
        """Number of the last byte in a row of the command ``following``."""
        needs = self.needs
        following_end = Signal(_row_bits(self.config))
        last_element = Signal((self.config.vl_limit - 1).bit_length())
        m.d.comb += last_element.eq(following.vl - 1)
        for width in needs.widths:
            with m.If(is_width(needs.width.unpack(following.width), [width], needs)):
                m.d.comb += following_end.eq(Cat(Const(width.bytes - 1, width.value), last_element))
        return following_end

    def _last(self, m: Module, work: "_Work") -> dict[str, Value]:
        """Whether the beat is the last one of its word, its row, and the command; the result says
        for each special unit whether it has the command."""
        needs = self.needs
        final_pass = Signal(PASS_BITS)
        for width in needs.products.widths:
            with m.If(work.product & is_width(work.width, [width], needs)):
                m.d.comb += final_pass.eq(needs.products.of_widths([width]).most_passes - 1)
        active: dict[str, Value] = {}
        for port in self.special:
            subset = needs.of_special(port.name)
            active[port.name] = work.special
            if len(self.special) > 1:
                every = needs.special.functions
                active[port.name] = work.special & one_of(work.vertical, subset.functions, every)
            with m.If(active[port.name]):
                m.d.comb += final_pass.eq(subset.most_passes - 1)
        last_row = ~work.reduces | (work.current.mr == 1) if needs.reduced else Const(1, 1)
        m.d.comb += [
            work.last_pass.eq(work.pass_index == final_pass),
            work.last_word.eq(work.left == 0),
            work.last.eq(work.last_pass & work.last_word & last_row),
        ]
        return active

    def _read_next(self, m: Module, first: Value, second: Value) -> None:
        """Read the ``first`` operand in the next cycle, and if so perhaps the ``second``: known
        ahead, as what waits for ports depends on it."""
        m.d.sync += [self.read_first.eq(first), self.read_second.eq(first & second)]

    def _advance(self, m: Module, work: "_Work") -> None:
        """To the next pass, word or row."""
        current = work.current
        with m.If(work.last_pass):
            m.d.sync += [
                work.pass_index.eq(0),
                # Rows follow each other without a gap, whatever their length.
                current.first.eq(current.first + work.tail + 1),
                work.left.eq(work.left - 1),
                work.first_word.eq(0),
            ]
            with m.If(~work.scalar):
                m.d.sync += work.second.eq(work.second + WORD_BYTES)
            with m.If(~work.reduces):
                m.d.sync += current.result.eq(current.result + WORD_BYTES)
            with m.Elif(work.last_word):
                m.d.sync += [
                    work.left.eq(work.row_end[TAIL_BITS:]),
                    work.first_word.eq(1),
                    work.second.eq(current.second),
                    current.mr.eq(current.mr - 1),
                    current.result.eq(current.result + (Const(1, 1) << work.width)),
                ]
        with m.Else():
            m.d.sync += work.pass_index.eq(work.pass_index + 1)

    def _hand_on(self, m: Module, platform: object, work: "_Work") -> None:
        """Pass the fields of a beat to the stages when the data that it reads arrive."""
        current = work.current
        operands: list[Any] = [
            Signal(operand_beat(self.config), name=f"operands_{cycle}", reset_less=True)
            for cycle in range(1, read_cycles(self.config) + 1)
        ]
        complete = Signal(len(operands) - 1, name="early_complete")
        write = Signal(len(operands) - 1, name="early_write")
        value = operands[0].value
        ends = work.goes & work.last_pass
        writes = ends & (work.last_word | ~work.reduces)
        m.d.sync += [
            operands[0].vertical.eq(current.vertical),
            operands[0].broadcast.eq(work.scalar),
            operands[0].pass_index.eq(work.pass_index),
            value.first.eq(work.first_word | ~work.reduces),
            value.pairs.eq(current.pairs),
            value.result.width.eq(current.width),
            value.result.product.eq(work.product),
            value.result.reduction.eq(current.reduction),
            value.result.tail.eq(work.tail),
            value.result.address.eq(current.result),
            value.result.fx.eq(Mux(work.product, current.fx, 0)),
            *(later.eq(beat) for beat, later in pairwise(operands)),
            Cat(complete, self.complete).eq(Cat(ends, complete)),
            Cat(write, self.write).eq(Cat(writes, write)),
        ]
        keep_place(m, platform, self.config, value.result, writes)
        m.d.comb += self.operands.eq(operands[-1])

    def _hand_to_special(self, m: Module, work: "_Work", active: dict[str, Value]) -> None:
        """Pass the fields of a beat to special units."""
        for port in self.special:
            step = SpecialStep(
                work.goes & active[port.name], work.vertical, work.current.fx, work.pass_index
            )
            functions: list[Any] = [
                Signal(port.beat(), name=f"function_{cycle}", reset_less=True)
                for cycle in range(1, read_cycles(self.config) + 1)
            ]
            m.d.comb += getattr(self, port.name).eq(functions[-1])
            m.d.sync += [
                *port.begin(functions[0], step),
                *(later.eq(beat) for beat, later in pairwise(functions)),
            ]


class _Work:
    """The current command of the control, and its progress.

    Attributes:
        current: the command; ``first``, ``result`` and ``mr`` are those of its remaining part.
        waiting, is_waiting: the command after it; following: that one, or the one offered.
        running: there is a command. goes: a beat of it does.
        second: address at which the second operand goes on; it starts again with each row of a
            matrix.
        row_end: number of the row's last byte. left: words of the row after this one.
        first_word: this is its first. pass_index: pass of the word. tail: last byte of the word.
        last_pass, last_word, last: this is the last pass, word, beat of the command.
        reduces, scalar, special, unary, product: of the operation.
        width, vertical: its codes.
    """

    def __init__(self, config: PeConfig, needs: Capabilities) -> None:
        command = vector_command(config)
        current: Any = Signal(command, name="current", reset_less=True)
        self.current = current
        self.waiting: Any = Signal(command, name="waiting", reset_less=True)
        self.following: Any = Signal(command, name="following")
        self.running = Signal(name="running")
        self.goes = Signal(name="goes") if config.shared_ports else self.running
        self.is_waiting = Signal(name="is_waiting")
        self.second = Signal(len(current.second), name="second", reset_less=True)
        self.row_end = Signal(_row_bits(config), name="row_end", reset_less=True)
        self.left = Signal(_row_bits(config) - TAIL_BITS, name="left", reset_less=True)
        self.first_word = Signal(name="first_word", reset_less=True)
        self.pass_index = Signal(pass_bits(config), name="pass_index")
        self.tail = Signal(TAIL_BITS, name="tail")
        self.last_pass = Signal(name="last_pass")
        self.last_word = Signal(name="last_word")
        self.last = Signal(name="last")
        self.reduces = needs.is_form(current.kind, Opcode.MATRIX_VECTOR)
        self.scalar = needs.is_form(current.kind, Opcode.VECTOR_SCALAR)
        self.special = needs.is_form(current.kind, Opcode.SPECIAL)
        self.unary = needs.is_unary(current.kind, current.vertical)
        self.product = needs.multiplies(current.kind, current.vertical)
        self.width = needs.width.unpack(current.width)
        self.vertical = needs.vertical.unpack(current.vertical)
