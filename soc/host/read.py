"""Reads of the host's data port."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Elaboratable, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import AxiResponse
from hdl.component import Component
from hdl.emission import once
from hdl.ports import COLUMN_WORDS, WORD_BITS, MemoryPort, memory_request
from hdl.sram import Sram
from hdl.stream_buffer import StreamBuffer
from memory.fifo import Fifo

from .burst import BYTE_ADDRESS_BITS, WORD_ADDRESS_BITS, BurstWalker, burst_layout, ends
from .config import HostConfig
from .order import HostOrder

__all__ = ["HostRead", "read_beat"]

#: Beats that the output buffer needs for one a cycle through the read cycle of the words' memory.
_OUTPUT_WORDS = 3


def read_beat(config: HostConfig) -> data.StructLayout:
    """A beat of read data.

    Members:
        id (id_bits): of the burst.
        data (64): word.
        response (:class:`hdl.axi.AxiResponse`): of the beat.
        last (1): last beat of the burst.
    """
    return data.StructLayout(
        {"id": config.id_bits, "data": WORD_BITS, "response": AxiResponse, "last": 1}
    )


class HostRead(Component):
    """Turns bursts of reads into requests of up to one column, and answers the bursts in their
    order.

    A walker steps through a burst twice, for the requests and for the responses. The words of each
    piece (:func:`soc.host.burst.burst_beat`) are stored by the tag of its request in between. One
    beat a cycle passes. There is room for every request's words, so responses are always accepted.

    Members:
        bursts (in, stream of :func:`soc.host.burst.burst_layout`): addresses.
        beats (out, stream of :func:`read_beat`): data.
        port (out, :class:`hdl.ports.MemoryPort` with ``tag_bits - 1``): to the memory.
    """

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        self._tag_bits = config.tag_bits - 1
        super().__init__(
            {
                "bursts": In(stream.Signature(burst_layout(config))),
                "beats": Out(stream.Signature(read_beat(config))),
                "port": Out(MemoryPort(address_bits=config.address_bits, tag_bits=self._tag_bits)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        asking, answering = BurstWalker(config), BurstWalker(config)
        asked = StreamBuffer(shape=burst_layout(config))
        open_bursts = Fifo(
            width=burst_layout(config).size, depth=1 << self._tag_bits, sram=config.pe.sram
        )
        m.submodules.asking = once(asking, platform)
        m.submodules.answering = once(answering, platform)
        m.submodules.asked = once(asked, platform)
        m.submodules.open_bursts = once(open_bursts, platform)
        enter = Signal()
        m.d.comb += [
            enter.eq(self.bursts.valid & self.bursts.ready),
            self.bursts.ready.eq(asked.input.ready & open_bursts.input.ready),
            asked.input.valid.eq(enter),
            asked.input.payload.eq(self.bursts.payload),
            open_bursts.input.valid.eq(enter),
            open_bursts.input.payload.eq(self.bursts.payload),
            answering.burst.valid.eq(open_bursts.output.valid),
            open_bursts.output.ready.eq(answering.burst.ready),
            answering.burst.payload.eq(open_bursts.output.payload),
        ]
        connect(m, asked.output, asking.burst)

        order = HostOrder(tag_bits=self._tag_bits)
        m.submodules.order = once(order, platform)
        lowest = Array(
            Signal(WORD_ADDRESS_BITS, name=f"lowest_{tag}") for tag in range(1 << self._tag_bits)
        )
        self._ask(m, platform, asking, order, lowest)

        words = Sram(
            width=WORD_BITS,
            depth=COLUMN_WORDS << self._tag_bits,
            read_ports=1,
            write_ports=1,
            kind=config.pe.sram,
        )
        m.submodules.words = once(words, platform)
        self._collect(m, words, order, lowest)
        self._answer(m, platform, answering, words, order)
        return m

    def _ask(
        self, m: Module, platform: object, walker: BurstWalker, order: HostOrder, lowest: Any
    ) -> None:
        """Send the requests."""
        config = self.config
        requests = StreamBuffer(shape=memory_request(config.address_bits, self._tag_bits))
        m.submodules.requests = once(requests, platform)
        connect(m, requests.output, flipped(self.port.request))
        beat: Any = walker.beat.payload
        request: Any = requests.input.payload
        touched, all_touched = Signal(COLUMN_WORDS), Signal(COLUMN_WORDS)
        low, high = ends(m, all_touched)
        m.d.comb += [
            walker.beat.ready.eq(~beat.closes | (requests.input.ready & order.room)),
            all_touched.eq(touched | (1 << beat.word)),
            order.enter.eq(walker.beat.valid & walker.beat.ready & beat.closes),
            order.refused.eq(beat.response != AxiResponse.OKAY),
            requests.input.valid.eq(order.enter & ~order.refused),
            request.address.eq(Cat(Const(0, BYTE_ADDRESS_BITS), low, beat.column)),
            request.tag.eq(order.tag),
            request.words.eq(high - low),
            request.strobe.eq(-1),
            request.last.eq(1),
        ]
        with m.If(walker.beat.valid & walker.beat.ready):
            m.d.sync += touched.eq(Mux(beat.closes, 0, all_touched))
        with m.If(order.enter):
            m.d.sync += lowest[order.tag].eq(low)

    def _collect(self, m: Module, words: Sram, order: HostOrder, lowest: Any) -> None:
        """Store the memory's responses."""
        response: Any = self.port.response.payload
        (write,) = words.write
        moved, place = Signal(WORD_ADDRESS_BITS), Signal(WORD_ADDRESS_BITS)
        m.d.comb += [
            self.port.response.ready.eq(1),
            place.eq(lowest[response.tag] + moved),
            write.enable.eq(self.port.response.valid),
            write.address.eq(Cat(place, response.tag)),
            write.data.eq(response.data),
            order.answered.eq(self.port.response.valid & response.last),
            order.answered_tag.eq(response.tag),
            order.error.eq(response.error),
        ]
        with m.If(self.port.response.valid):
            m.d.sync += moved.eq(Mux(response.last, 0, moved + 1))

    def _answer(
        self, m: Module, platform: object, walker: BurstWalker, words: Sram, order: HostOrder
    ) -> None:
        """Send the beats of the oldest burst as soon as their piece has arrived."""
        layout = read_beat(self.config)
        output = StreamBuffer(shape=layout, depth=_OUTPUT_WORDS)
        m.submodules.output = once(output, platform)
        connect(m, output.output, flipped(self.beats))
        beat: Any = walker.beat.payload
        (read,) = words.read
        fetched: Any = Signal(layout)
        fetching, take = Signal(), Signal()
        m.d.comb += [
            take.eq(walker.beat.valid & order.complete & (output.level + fetching < _OUTPUT_WORDS)),
            walker.beat.ready.eq(take),
            order.leave.eq(take & beat.closes),
            read.enable.eq(take),
            read.address.eq(Cat(beat.word, order.oldest)),
            output.input.valid.eq(fetching),
            output.input.payload.eq(fetched),
            output.input.payload.data.eq(read.data),
        ]
        m.d.sync += [
            fetching.eq(take),
            fetched.id.eq(beat.id),
            fetched.last.eq(beat.last),
            fetched.response.eq(beat.response),
        ]
        with m.If((beat.response == AxiResponse.OKAY) & order.failed):
            m.d.sync += fetched.response.eq(AxiResponse.SLVERR)
