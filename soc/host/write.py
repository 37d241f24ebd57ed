"""Writes of the host's data port."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import AxiResponse
from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import COLUMN_WORDS, WORD_BITS, MemoryPort
from hdl.stream_buffer import StreamBuffer
from memory.fifo import Fifo

from .burst import (
    BYTE_ADDRESS_BITS,
    COLUMN_ADDRESS_BITS,
    WORD_ADDRESS_BITS,
    BurstWalker,
    burst_layout,
    ends,
)
from .config import HostConfig
from .reorder_buffer import ReorderBuffer

#: Most bursts whose addresses wait for data.
BURSTS = 4

_STROBE_BITS = WORD_BITS // 8


def data_beat() -> data.StructLayout:
    """A beat of write data: ``data`` and ``strobe``."""
    return data.StructLayout({"data": WORD_BITS, "strobe": _STROBE_BITS})


def write_response(config: HostConfig) -> data.StructLayout:
    """The response to a burst: its ``id`` and :class:`hdl.axi.AxiResponse` ``response``."""
    return data.StructLayout({"id": config.id_bits, "response": AxiResponse})


class HostWrite(Component):
    """Turns bursts of writes into requests of up to one column, and answers each burst, in the
    order of the bursts, when the last of its requests has been performed.

    The beats of a piece (:func:`soc.host.burst.burst_beat`) gather until it is complete; meanwhile
    the previous piece is sent. One beat is accepted per cycle. If a part of a burst failed, the
    rest is written.

    Members:
        bursts (in, stream of :func:`soc.host.burst.burst_layout`): addresses.
        beats (in, stream of :func:`data_beat`): data.
        responses (out, stream of :func:`write_response`): responses.
        port (out, :class:`hdl.ports.MemoryPort` with ``tag_bits - 1``): to the memory.
    """

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        self._tag_bits = config.tag_bits - 1
        super().__init__(
            {
                "bursts": In(stream.Signature(burst_layout(config))),
                "beats": In(stream.Signature(data_beat())),
                "responses": Out(stream.Signature(write_response(config))),
                "port": Out(MemoryPort(address_bits=config.address_bits, tag_bits=self._tag_bits)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        walker = BurstWalker(self.config)
        bursts = StreamBuffer(shape=burst_layout(self.config), depth=BURSTS)
        beats = StreamBuffer(shape=data_beat())
        reorder = ReorderBuffer(tag_bits=self._tag_bits)
        m.submodules.walker = shared_instance(walker, platform)
        m.submodules.bursts = shared_instance(bursts, platform)
        m.submodules.beats = shared_instance(beats, platform)
        m.submodules["reorder_buffer"] = shared_instance(reorder, platform)
        connect(m, flipped(self.bursts), bursts.input)
        connect(m, flipped(self.beats), beats.input)
        connect(m, bursts.output, walker.burst)

        beat: Any = walker.beat.payload
        fire, send_ready = Signal(), Signal()
        m.d.comb += [
            fire.eq(
                walker.beat.valid
                & beats.output.valid
                & (~beat.closes | (send_ready & reorder.ready))
            ),
            walker.beat.ready.eq(fire),
            beats.output.ready.eq(fire),
            reorder.allocate.eq(fire & beat.closes),
            reorder.refused.eq(beat.response != AxiResponse.OKAY),
        ]
        words, touched = self._gather(m, beat, beats.output.payload, fire)
        self._send(m, beat, reorder, words, touched, send_ready)
        self._respond(m, platform, beat, reorder)
        return m

    def _gather(self, m: Module, beat: Any, new: Any, fire: Value) -> tuple[list[Any], Value]:
        """The words of the piece, with those of this beat, and the words present."""
        touched, all_touched = Signal(COLUMN_WORDS), Signal(COLUMN_WORDS)
        m.d.comb += all_touched.eq(touched | (1 << beat.word))
        with m.If(fire):
            m.d.sync += touched.eq(Mux(beat.closes, 0, all_touched))
        words = []
        for number in range(COLUMN_WORDS):
            old: Any = Signal(data_beat(), name=f"gathered_{number}")
            word: Any = Signal(data_beat(), name=f"merged_{number}")
            m.d.comb += word.eq(old)
            for byte in range(_STROBE_BITS):
                with m.If((beat.word == number) & new.strobe[byte]):
                    m.d.comb += [
                        word.data.word_select(byte, 8).eq(new.data.word_select(byte, 8)),
                        word.strobe[byte].eq(1),
                    ]
            with m.If(fire):
                m.d.sync += old.eq(word)
                with m.If(beat.closes):
                    m.d.sync += old.strobe.eq(0)
            words.append(word)
        return words, all_touched

    def _send(
        self,
        m: Module,
        beat: Any,
        reorder: ReorderBuffer,
        words: Sequence[Any],
        touched: Value,
        send_ready: Signal,
    ) -> None:
        """Send the allocated piece, one word per cycle; ``send_ready`` when none is being sent."""
        request: Any = self.port.request.payload
        sending = Signal()
        column = Signal(self.config.address_bits - COLUMN_ADDRESS_BITS)
        place, end = Signal(WORD_ADDRESS_BITS), Signal(WORD_ADDRESS_BITS)
        tag = Signal(self._tag_bits)
        word: Any = Signal(data_beat())
        send_words = [
            Signal(data_beat(), name=f"send_word_{number}") for number in range(COLUMN_WORDS)
        ]
        with m.Switch(place):
            for number, value in enumerate(send_words):
                with m.Case(number):
                    m.d.comb += word.eq(value)
        m.d.comb += [
            send_ready.eq(~sending | (self.port.request.ready & request.last)),
            self.port.request.valid.eq(sending),
            request.address.eq(Cat(Const(0, BYTE_ADDRESS_BITS), place, column)),
            request.tag.eq(tag),
            request.write.eq(1),
            request.words.eq(end - place),
            request.data.eq(word.data),
            request.strobe.eq(word.strobe),
            request.last.eq(place == end),
        ]
        with m.If(sending & self.port.request.ready):
            m.d.sync += place.eq(place + 1)
            with m.If(request.last):
                m.d.sync += sending.eq(0)
        low, high = ends(m, touched)
        with m.If(reorder.allocate):
            m.d.sync += [
                sending.eq(~reorder.refused),
                column.eq(beat.column),
                place.eq(low),
                end.eq(high),
                tag.eq(reorder.tag),
                *(mine.eq(value) for mine, value in zip(send_words, words, strict=True)),
            ]

    def _respond(self, m: Module, platform: object, beat: Any, reorder: ReorderBuffer) -> None:
        """Answer the oldest burst once all its pieces are complete."""
        layout = _piece(self.config)
        pieces = Fifo(width=layout.size, depth=1 << self._tag_bits, sram=self.config.pe.sram)
        m.submodules.pieces = shared_instance(pieces, platform)
        allocated: Any = Signal(layout)
        piece: Any = Signal(layout)
        response: Any = self.port.response.payload
        burst_response, piece_response = Signal(AxiResponse), Signal(AxiResponse)
        complete = Signal()
        m.d.comb += [
            allocated.id.eq(beat.id),
            allocated.last.eq(beat.last),
            allocated.response.eq(beat.response),
            pieces.input.valid.eq(reorder.allocate),
            pieces.input.payload.eq(allocated),
            piece.eq(pieces.output.payload),
            self.port.response.ready.eq(1),
            reorder.response_valid.eq(self.port.response.valid),
            reorder.response_tag.eq(response.tag),
            reorder.response_error.eq(response.error),
            complete.eq(pieces.output.valid & reorder.complete),
            reorder.retire.eq(complete & (self.responses.ready | ~piece.last)),
            pieces.output.ready.eq(reorder.retire),
            self.responses.valid.eq(complete & piece.last),
            self.responses.payload.id.eq(piece.id),
            self.responses.payload.response.eq(piece_response),
            piece_response.eq(burst_response),
        ]
        with m.If(reorder.failed):
            m.d.comb += piece_response.eq(AxiResponse.SLVERR)
        with m.If(piece.response != AxiResponse.OKAY):
            m.d.comb += piece_response.eq(piece.response)
        with m.If(reorder.retire):
            m.d.sync += burst_response.eq(Mux(piece.last, AxiResponse.OKAY, piece_response))


def _piece(config: HostConfig) -> data.StructLayout:
    """The properties of a piece needed for its response."""
    return data.StructLayout({"id": config.id_bits, "last": 1, "response": AxiResponse})
