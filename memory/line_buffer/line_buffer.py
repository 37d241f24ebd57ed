"""The shared line buffer of a vault: columns that several requesters read are fetched once."""

from typing import Any

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component
from hdl.config import SramKind
from hdl.counter_bank import COUNTER_BITS, CounterBank
from hdl.emission import shared_instance
from hdl.ports import COLUMN_BYTES, COLUMN_WORDS, MemoryPort
from memory.controller.counters import INDEX_BITS

from .answers import LineAnswers
from .directory import LineDirectory
from .layout import LineCounter, check_lines

_COLUMN_ADDRESS_BITS = (COLUMN_BYTES - 1).bit_length()
_WORD_ADDRESS_BITS = 3
_COUNTERS = 16


class LineBuffer(Component):
    """Holds columns that were read, between the crossbar and the back end of a vault.

    A read of a column that a line holds is answered without the memory. A read of a column that is
    being fetched waits for it. Any other read fetches its whole column into a line, or passes to
    the memory if no line is free or too many reads wait. A write passes to the memory and removes
    the line of its column. So the accesses of all requesters to a column are performed in the order
    in which they arrive here: a read that arrives after a write sees it, even before its
    acknowledgement, and the guarantees of :class:`hdl.ports.MemoryPort` hold as without the buffer.
    This is the memory-side coalescing that the thesis names (7.2.2), and the sharing of L registers
    among the engines of a vault.

    A read of a line is answered from three cycles after its request on. A request reaches the
    memory one cycle later than without the buffer, and a response the requester one cycle later.
    One beat passes per cycle.

    Parameters:
        lines, merges: see :func:`memory.line_buffer.layout.check_lines`; ``lines`` not 0.
        address_bits: of a byte address on the port. memory_bits: of one within the memory; accesses
            beyond it pass.
        tag_bits: of the port. counters: whether the counters exist. sram: of the memories.

    Members:
        port (in, :class:`hdl.ports.MemoryPort`): from the crossbar.
        memory (out, ``MemoryPort``): to the back end.
        counter_index (in, INDEX_BITS): counter of :class:`memory.line_buffer.layout.LineCounter`.
        counter_value (out, COUNTER_BITS): its value one cycle later.

    Raises:
        hdl.config.ConfigurationError: a value outside its range.
    """

    def __init__(
        self,
        *,
        lines: int,
        merges: int,
        address_bits: int,
        memory_bits: int,
        tag_bits: int,
        counters: bool,
        sram: SramKind,
    ) -> None:
        check_lines(lines, merges)
        self.lines = lines
        self.merges = merges
        self.address_bits = address_bits
        self.memory_bits = memory_bits
        self.tag_bits = tag_bits
        self.counters = counters
        self.sram = sram
        port = MemoryPort(address_bits=address_bits, tag_bits=tag_bits)
        super().__init__(
            {
                "port": In(port),
                "memory": Out(port),
                "counter_index": In(INDEX_BITS),
                "counter_value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        directory = LineDirectory(
            lines=self.lines, merges=self.merges, address_bits=self.memory_bits
        )
        answers = LineAnswers(
            lines=self.lines, merges=self.merges, tag_bits=self.tag_bits, sram=self.sram
        )
        m.submodules.directory = shared_instance(directory, platform)
        m.submodules.answers = shared_instance(answers, platform)
        connect(m, flipped(self.memory.response), answers.memory)
        connect(m, answers.response, flipped(self.port.response))
        m.d.comb += [
            directory.finish.eq(answers.finish),
            directory.finish_line.eq(answers.finish_line),
            directory.failed.eq(answers.failed),
            answers.finish_waiting.eq(directory.finish_waiting),
            directory.busy.eq(answers.busy),
            directory.busy_line.eq(answers.busy_line),
        ]
        self._requests(m, directory, answers)
        if self.counters:
            self._count(m, directory, answers, platform)
        return m

    def _requests(self, m: Module, directory: LineDirectory, answers: LineAnswers) -> None:
        """Each beat waits in a register while its column is compared; then it leaves."""
        request = self.port.request
        arrival: Any = request.payload
        beat: Any = Signal.like(arrival, name="beat")
        out: Any = self.memory.request.payload
        valid = Signal()
        within = Signal()
        accepted = Signal()
        handed_on = Signal()
        passing = Signal()
        inside = Signal()
        fetch = Signal()
        direct = Signal()
        first = beat.address[_WORD_ADDRESS_BITS:_COLUMN_ADDRESS_BITS]
        note: Any = answers.note_value
        self._write = beat.write
        m.d.comb += [
            request.ready.eq(~valid | accepted),
            directory.lookup.eq(request.valid & request.ready),
            directory.column.eq(arrival.address[_COLUMN_ADDRESS_BITS : self.memory_bits]),
            inside.eq(beat.address[self.memory_bits :] == 0),
            direct.eq(first + beat.words == COLUMN_WORDS - 1),
            self.memory.request.valid.eq(handed_on),
            out.eq(beat),
            answers.note_tag.eq(beat.tag),
            note.fill.eq(fetch),
            note.line.eq(directory.next_line),
            note.direct.eq(direct),
            note.first.eq(first),
            answers.hit.payload.tag.eq(beat.tag),
            answers.hit.payload.line.eq(directory.line),
            answers.hit.payload.first.eq(first),
            answers.hit.payload.last.eq(first + beat.words),
            answers.wait_value.eq(answers.hit.payload),
            answers.wait_place.eq(directory.waiting),
            directory.first_waits.eq(~direct),
        ]
        with m.If(request.ready):
            m.d.sync += [valid.eq(request.valid), beat.eq(arrival)]
        with m.If(accepted):
            m.d.sync += within.eq(~beat.last)
        with m.If(fetch):
            m.d.comb += [
                out.address[:_COLUMN_ADDRESS_BITS].eq(0),
                out.words.eq(COLUMN_WORDS - 1),
                answers.wait_value.line.eq(directory.next_line),
                answers.wait_place.eq(0),
            ]
        finishing = answers.finish & (answers.finish_line == directory.line)
        with m.If(~valid):
            pass
        with m.Elif(within):
            m.d.comb += handed_on.eq(1)
        with m.Elif(beat.write):
            m.d.comb += [handed_on.eq(1), directory.kill.eq(1)]
        with m.Elif(passing | ~inside):
            m.d.comb += handed_on.eq(1)
        with m.Elif(directory.present & ~directory.filling):
            m.d.comb += [
                answers.hit.valid.eq(1),
                directory.use.eq(answers.hit.ready),
                accepted.eq(answers.hit.ready),
            ]
        with m.Elif(directory.present & finishing):
            # In the next cycle the line is complete, or removed.
            pass
        with m.Elif(directory.present & ~directory.full):
            m.d.comb += [answers.wait.eq(1), directory.merge.eq(1), accepted.eq(1)]
        with m.Else():
            # An offer stays until it is accepted.
            m.d.comb += [handed_on.eq(1), fetch.eq(~directory.present & directory.free)]
            m.d.sync += passing.eq(~fetch & ~self.memory.request.ready)
        with m.If(handed_on & self.memory.request.ready):
            m.d.comb += [
                accepted.eq(1),
                answers.note.eq(~within),
                directory.allocate.eq(fetch),
                answers.wait.eq(fetch & ~direct),
            ]
            m.d.sync += passing.eq(0)

    def _count(
        self, m: Module, directory: LineDirectory, answers: LineAnswers, platform: object
    ) -> None:
        max_steps = [0] * _COUNTERS
        for counter in LineCounter:
            max_steps[counter] = 1
        bank = CounterBank(max_steps=tuple(max_steps), kind=self.sram)
        m.submodules.counters = shared_instance(bank, platform)
        read = answers.note & ~self._write
        steps = {
            LineCounter.LINE_HITS: directory.use,
            LineCounter.LINE_MERGED: directory.merge,
            LineCounter.LINE_FILLS: directory.allocate,
            LineCounter.LINE_KILLED: directory.kill & directory.present,
            LineCounter.LINE_PASSED: read & ~directory.allocate,
        }
        m.d.comb += [getattr(bank, f"step_{int(index)}").eq(step) for index, step in steps.items()]
        m.d.comb += [bank.index.eq(self.counter_index), self.counter_value.eq(bank.value)]
