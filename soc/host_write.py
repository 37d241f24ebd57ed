"""Writes of the host's data port."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import AxiResponse
from hdl.component import Component
from hdl.emission import once
from hdl.ports import COLUMN_BYTES, COLUMN_WORDS, WORD_BITS, MemoryPort
from hdl.stream_buffer import StreamBuffer
from memory.fifo import Fifo

from .host_burst import BurstWalker, burst_layout
from .host_config import HostConfig

__all__ = ["BURSTS", "HostWrite", "answer_layout", "data_beat"]

#: Bursts whose addresses wait for their data.
BURSTS = 4

_STROBE_BITS = WORD_BITS // 8
_WORD_BITS = (COLUMN_WORDS - 1).bit_length()
_COLUMN_BITS = (COLUMN_BYTES - 1).bit_length()


def data_beat() -> data.StructLayout:
    """A beat of write data: ``data`` and ``strobe``."""
    return data.StructLayout({"data": WORD_BITS, "strobe": _STROBE_BITS})


def answer_layout(config: HostConfig) -> data.StructLayout:
    """The answer to a burst: its ``id`` and :class:`hdl.axi.AxiResponse` ``response``."""
    return data.StructLayout({"id": config.id_bits, "response": AxiResponse})


class HostWrite(Component):
    """Turns bursts of writes into requests of up to one column, and answers each burst, in the
    order of the bursts, when the last of its requests has been performed.

    The beats of a piece (:func:`soc.host_burst.burst_beat`) gather until it is complete; meanwhile
    the piece before it is sent. One beat a cycle is taken. Of a burst of which a part failed, the
    rest is written.

    Members:
        bursts: stream of :func:`soc.host_burst.burst_layout`, in.
        beats: stream of :func:`data_beat`, in.
        answers: stream of :func:`answer_layout`, out.
        port: :class:`hdl.ports.MemoryPort`, out, with ``config.tag_bits - 1``.
    """

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        self._tag_bits = config.tag_bits - 1
        super().__init__(
            {
                "bursts": In(stream.Signature(burst_layout(config))),
                "beats": In(stream.Signature(data_beat())),
                "answers": Out(stream.Signature(answer_layout(config))),
                "port": Out(MemoryPort(address_bits=config.address_bits, tag_bits=self._tag_bits)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        walker = BurstWalker(config)
        bursts = StreamBuffer(shape=burst_layout(config), depth=BURSTS)
        beats = StreamBuffer(shape=data_beat())
        pieces = Fifo(width=_piece(config).size, depth=1 << self._tag_bits, sram=config.pe.sram)
        m.submodules.walker = once(walker, platform)
        m.submodules.bursts = once(bursts, platform)
        m.submodules.beats = once(beats, platform)
        m.submodules.pieces = once(pieces, platform)
        connect(m, flipped(self.bursts), bursts.input)
        connect(m, flipped(self.beats), beats.input)
        connect(m, bursts.output, walker.burst)

        # Gather a piece.
        beat: Any = walker.beat.payload
        touched = Signal(COLUMN_WORDS)
        words: list[Any] = [
            Signal(data_beat(), name=f"gathered_{word}") for word in range(COLUMN_WORDS)
        ]
        merged: list[Any] = [
            Signal(data_beat(), name=f"merged_{word}") for word in range(COLUMN_WORDS)
        ]
        all_touched = Signal(COLUMN_WORDS)
        room = Signal()
        take = Signal()
        m.d.comb += [
            take.eq(
                walker.beat.valid
                & beats.output.valid
                & (~beat.closes | (room & pieces.input.ready))
            ),
            walker.beat.ready.eq(take),
            beats.output.ready.eq(take),
            all_touched.eq(touched | (1 << beat.word)),
        ]
        new: Any = beats.output.payload
        for number, (old, result) in enumerate(zip(words, merged, strict=True)):
            here = beat.word == number
            m.d.comb += result.eq(old)
            for byte in range(_STROBE_BITS):
                with m.If(here & new.strobe[byte]):
                    m.d.comb += [
                        result.data.word_select(byte, 8).eq(new.data.word_select(byte, 8)),
                        result.strobe[byte].eq(1),
                    ]
            with m.If(take):
                m.d.sync += old.eq(result)
                with m.If(beat.closes):
                    m.d.sync += old.strobe.eq(0)
        with m.If(take):
            m.d.sync += touched.eq(Mux(beat.closes, 0, all_touched))

        # Send it, meanwhile gather the next.
        sending = Signal()
        column = Signal(config.address_bits - _COLUMN_BITS)
        place, end = Signal(_WORD_BITS), Signal(_WORD_BITS)
        held = [Signal(data_beat(), name=f"held_{word}") for word in range(COLUMN_WORDS)]
        tag = Signal(self._tag_bits)
        request: Any = self.port.request.payload
        word: Any = Signal(data_beat())
        with m.Switch(place):
            for number, value in enumerate(held):
                with m.Case(number):
                    m.d.comb += word.eq(value)
        m.d.comb += [
            room.eq(~sending | (self.port.request.ready & request.last)),
            self.port.request.valid.eq(sending),
            request.address.eq(Cat(place, column) << (_COLUMN_BITS - _WORD_BITS)),
            request.tag.eq(tag),
            request.write.eq(1),
            request.words.eq(end - place),
            request.data.eq(word.data),
            request.strobe.eq(word.strobe),
            request.last.eq(place == end),
        ]
        with m.If(self.port.request.valid & self.port.request.ready):
            m.d.sync += place.eq(place + 1)
            with m.If(request.last):
                m.d.sync += sending.eq(0)
        entering = Signal()
        following = Signal(self._tag_bits)
        okay = beat.response == AxiResponse.OKAY
        m.d.comb += entering.eq(take & beat.closes)
        with m.If(entering):
            m.d.sync += [
                following.eq(following + 1),
                sending.eq(okay),
                column.eq(beat.column),
                tag.eq(following),
                *(mine.eq(value) for mine, value in zip(held, merged, strict=True)),
            ]
            # The words of a piece lie one behind the other.
            for number in range(COLUMN_WORDS):
                with m.If(all_touched[number]):
                    m.d.sync += end.eq(number)
            for number in reversed(range(COLUMN_WORDS)):
                with m.If(all_touched[number]):
                    m.d.sync += place.eq(number)

        # Answer in order.
        done, failed = Signal(1 << self._tag_bits), Signal(1 << self._tag_bits)
        response: Any = self.port.response.payload
        m.d.comb += self.port.response.ready.eq(1)
        with m.If(self.port.response.valid):
            m.d.sync += [
                done.bit_select(response.tag, 1).eq(1),
                failed.bit_select(response.tag, 1).eq(response.error),
            ]
        with m.If(entering & ~okay):
            m.d.sync += [
                done.bit_select(following, 1).eq(1),
                failed.bit_select(following, 1).eq(0),
            ]
        piece: Any = Signal(_piece(config))
        entered: Any = Signal(_piece(config))
        oldest = Signal(self._tag_bits)
        worst, now = Signal(AxiResponse), Signal(AxiResponse)
        retire = Signal()
        m.d.comb += [
            entered.id.eq(beat.id),
            entered.last.eq(beat.last),
            entered.response.eq(beat.response),
            pieces.input.valid.eq(entering),
            pieces.input.payload.eq(entered),
            piece.eq(pieces.output.payload),
            now.eq(worst),
            retire.eq(
                pieces.output.valid
                & done.bit_select(oldest, 1)
                & (self.answers.ready | ~piece.last)
            ),
            pieces.output.ready.eq(retire),
            self.answers.valid.eq(pieces.output.valid & done.bit_select(oldest, 1) & piece.last),
            self.answers.payload.id.eq(piece.id),
            self.answers.payload.response.eq(now),
        ]
        with m.If(failed.bit_select(oldest, 1)):
            m.d.comb += now.eq(AxiResponse.SLVERR)
        with m.If(piece.response != AxiResponse.OKAY):
            m.d.comb += now.eq(piece.response)
        with m.If(retire):
            m.d.sync += [
                oldest.eq(oldest + 1),
                done.bit_select(oldest, 1).eq(0),
                worst.eq(Mux(piece.last, AxiResponse.OKAY, now)),
            ]
        return m


def _piece(config: HostConfig) -> data.StructLayout:
    """What the answer needs to know of a piece."""
    return data.StructLayout({"id": config.id_bits, "last": 1, "response": AxiResponse})
