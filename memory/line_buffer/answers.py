"""Answers of the line buffer: from the memory, and from its lines."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import SramKind
from hdl.emission import shared_instance
from hdl.ports import COLUMN_WORDS, WORD_BITS, memory_response
from hdl.sram import Sram
from memory.response_merge import merge_responses

from .layout import line_answer, line_note

_WORDS = range(COLUMN_WORDS)
#: Reads of lines that wait for the response path.
_QUEUE = 4


class LineAnswers(Component):
    """Merges the memory's responses with those of lines, and stores what is fetched.

    A fetched column is written into its line as it arrives. Its requester gets the words in the
    same cycles if its words are the last of the column; otherwise it waits, as those do who asked
    for the column in the meantime. When the column is complete, those who wait are answered from
    the line. The words of a line are not overwritten while a read of its former column waits.

    A response of the memory passes in one cycle, a read of a line begins two cycles after it is
    accepted. One beat leaves per cycle.

    Parameters:
        lines, merges: see :func:`memory.line_buffer.layout.check_lines`.
        tag_bits: of the memory's port. sram: implementation of the memories.

    Members:
        note (in, 1), note_tag (in, tag_bits),
        note_value (in, :func:`memory.line_buffer.layout.line_note`): a request leaves for the
            memory.
        hit (in, stream of :func:`memory.line_buffer.layout.line_answer`): reads of lines.
        wait (in, 1), wait_place (in), wait_value (in, ``line_answer``): a read waits for the words
            of its line, in this place of the line's list.
        finish (out, 1), finish_line (out), failed (out, 1): the last word of a line arrives, or
            its fetch has failed.
        finish_waiting (in): reads that wait for ``finish_line``.
        busy (out, 1), busy_line (out): reads that wait for this line are being answered.
        memory (in, stream of :func:`hdl.ports.memory_response`): from the memory.
        response (out, stream of ``memory_response``): to the requesters.
    """

    def __init__(self, *, lines: int, merges: int, tag_bits: int, sram: SramKind) -> None:
        self.lines = lines
        self.merges = merges
        self.tag_bits = tag_bits
        self.sram = sram
        self._answer = line_answer(lines, tag_bits)
        response = stream.Signature(memory_response(tag_bits))
        super().__init__(
            {
                "note": In(1),
                "note_tag": In(tag_bits),
                "note_value": In(line_note(lines)),
                "hit": In(stream.Signature(self._answer)),
                "wait": In(1),
                "wait_place": In(range(merges)),
                "wait_value": In(self._answer),
                "finish": Out(1),
                "finish_line": Out(range(lines)),
                "failed": Out(1),
                "finish_waiting": In(range(merges + 1)),
                "busy": Out(1),
                "busy_line": Out(range(lines)),
                "memory": In(response),
                "response": Out(response),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        words = Sram(
            width=WORD_BITS,
            depth=self.lines * COLUMN_WORDS,
            read_ports=1,
            write_ports=1,
            kind=self.sram,
        )
        m.submodules.words = shared_instance(words, platform)
        queued = self._queue(m, words, platform)
        self._memory(m, words, queued, platform)
        self._merge(m)
        return m

    def _queue(self, m: Module, words: Sram, platform: object) -> Value:
        """Reads of lines in their order. Returns for each line whether one waits for it."""
        line_beat: Any = Signal(memory_response(self.tag_bits))
        self.line_beat = line_beat
        self.line_valid = Signal()
        self.line_take = Signal()
        queue: list[Any] = [Signal(self._answer, name=f"answer_{n}") for n in range(_QUEUE)]
        level = Signal(range(_QUEUE + 1))
        done = Signal(_WORDS)
        replay: Any = Signal(self._answer)
        replay_valid = Signal()
        pop = Signal()
        push = Signal()
        head = queue[0]
        room = level != _QUEUE
        with m.If(replay_valid):
            m.d.comb += push.eq(room)
        with m.Else():
            m.d.comb += [push.eq(room & self.hit.valid), self.hit.ready.eq(room)]
        entering = Mux(replay_valid, replay, self.hit.payload)
        m.d.sync += level.eq(level + push - pop)
        for number, entry in enumerate(queue):
            with m.If(push & (level - pop == number)):
                m.d.sync += entry.eq(entering)
            with m.Elif(pop & (number + 1 < _QUEUE)):
                m.d.sync += entry.eq(queue[min(number + 1, _QUEUE - 1)])

        # Words of the head.
        (read,) = words.read
        issue = Signal()
        word = Signal(_WORDS)
        last = Signal()
        last_sent = Signal()
        error_sent = Signal()
        tag_sent = Signal(self.tag_bits)
        m.d.comb += [
            issue.eq((level != 0) & (~self.line_valid | self.line_take)),
            word.eq(head.first + done),
            last.eq(word == head.last),
            pop.eq(issue & last),
            read.enable.eq(issue),
            read.address.eq(Cat(word, head.line)),
            line_beat.tag.eq(tag_sent),
            line_beat.data.eq(read.data),
            line_beat.last.eq(last_sent),
            line_beat.error.eq(error_sent),
        ]
        with m.If(issue):
            m.d.sync += [
                self.line_valid.eq(1),
                done.eq(Mux(last, 0, done + 1)),
                last_sent.eq(last),
                error_sent.eq(head.failed),
                tag_sent.eq(head.tag),
            ]
        with m.Elif(self.line_take):
            m.d.sync += self.line_valid.eq(0)
        self._replay(m, replay, replay_valid, push, platform)
        waits = Signal()
        m.d.comb += waits.eq(
            Cat(
                (level > number) & (entry.line == self.finish_line)
                for number, entry in enumerate(queue)
            ).any()
        )
        return waits

    def _replay(
        self, m: Module, replay: Any, valid: Signal, push: Signal, platform: object
    ) -> None:
        """Reads that waited for a column enter the queue when it is complete."""
        lists = Sram(
            width=self._answer.size,
            depth=self.lines * self.merges,
            read_ports=1,
            write_ports=1,
            kind=self.sram,
        )
        m.submodules.lists = shared_instance(lists, platform)
        (read,) = lists.read
        (write,) = lists.write
        place = Signal(range(self.merges))
        left = Signal(range(self.merges + 1))
        failed = Signal()
        stored: Any = Signal(self._answer)
        m.d.comb += [
            write.enable.eq(self.wait),
            write.address.eq(Cat(self.wait_place, self.wait_value.line)),
            write.data.eq(self.wait_value),
            self.busy.eq(left != 0),
            read.enable.eq(self.busy & ~valid),
            read.address.eq(Cat(place, self.busy_line)),
            stored.eq(read.data),
            replay.eq(stored),
            replay.failed.eq(failed),
        ]
        with m.If(self.finish):
            m.d.sync += [
                left.eq(self.finish_waiting),
                self.busy_line.eq(self.finish_line),
                place.eq(0),
                failed.eq(self.failed),
            ]
        with m.Elif(valid & push):
            m.d.sync += [left.eq(left - 1), place.eq(place + 1)]
        m.d.sync += valid.eq(Mux(valid, ~push, self.busy))

    def _memory(self, m: Module, words: Sram, queued: Value, platform: object) -> None:
        """Responses of the memory: each passes, or goes into its line, or both."""
        layout = line_note(self.lines)
        notes = Sram(
            width=layout.size,
            depth=1 << self.tag_bits,
            read_ports=1,
            write_ports=1,
            kind=self.sram,
        )
        m.submodules.notes = shared_instance(notes, platform)
        (read,) = notes.read
        (note_write,) = notes.write
        (write,) = words.write
        note: Any = Signal(layout)
        arrival: Any = self.memory.payload
        beat: Any = Signal(memory_response(self.tag_bits))
        self.beat = beat
        self.forward = Signal()
        self.forward_take = Signal()
        valid = Signal()
        take = Signal()
        passes = Signal()
        stored = Signal()
        number = Signal(_WORDS)
        m.d.comb += [
            note_write.enable.eq(self.note),
            note_write.address.eq(self.note_tag),
            note_write.data.eq(self.note_value),
            self.memory.ready.eq(~valid | take),
            read.enable.eq(self.memory.valid & self.memory.ready),
            read.address.eq(arrival.tag),
            note.eq(read.data),
        ]
        with m.If(self.memory.ready):
            m.d.sync += [valid.eq(self.memory.valid), beat.eq(arrival)]
        m.d.comb += [
            # The line's former column, or the reads that wait for another line, are still needed.
            stored.eq(note.fill & (number == 0) & (queued | self.busy)),
            passes.eq(~note.fill | (note.direct & ((number >= note.first) | beat.last))),
            self.forward.eq(valid & ~stored & passes),
            take.eq(valid & ~stored & (~passes | self.forward_take)),
            write.enable.eq(valid & ~stored & note.fill),
            write.address.eq(Cat(number, note.line)),
            write.data.eq(beat.data),
            self.finish.eq(take & note.fill & beat.last),
            self.finish_line.eq(note.line),
            self.failed.eq(beat.error),
        ]
        with m.If(take):
            m.d.sync += number.eq(Mux(beat.last, 0, number + 1))

    def _merge(self, m: Module) -> None:
        """Responses leave one at a time; the two sources take turns."""
        memory = stream.Signature(memory_response(self.tag_bits)).create(path=("passing",))
        m.d.comb += [
            memory.valid.eq(self.forward),
            memory.payload.eq(self.beat),
            self.forward_take.eq(self.forward & memory.ready),
        ]
        merge_responses(m, self.response, memory, self.line_valid, self.line_take, self.line_beat)
