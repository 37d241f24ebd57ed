"""Reads of the host's data port."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Elaboratable, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import AxiResponse
from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import COLUMN_WORDS, WORD_BITS, MemoryPort, memory_request
from hdl.sram import Sram
from hdl.stream_buffer import StreamBuffer
from memory.fifo import Fifo

from .burst import BYTE_ADDRESS_BITS, WORD_ADDRESS_BITS, BurstWalker, burst_layout, ends
from .config import HostConfig
from .reorder_buffer import ReorderBuffer

#: Beats that the output buffer needs to deliver one per cycle through the word memory's read cycle.
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
    beat passes per cycle. There is room for every request's words, so responses are always
    accepted.

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
        request_walker, response_walker = BurstWalker(config), BurstWalker(config)
        request_bursts = StreamBuffer(shape=burst_layout(config))
        open_bursts = Fifo(
            width=burst_layout(config).size, depth=1 << self._tag_bits, sram=config.pe.sram
        )
        m.submodules.request_walker = shared_instance(request_walker, platform)
        m.submodules.response_walker = shared_instance(response_walker, platform)
        m.submodules.request_bursts = shared_instance(request_bursts, platform)
        m.submodules.open_bursts = shared_instance(open_bursts, platform)
        fire = Signal()
        m.d.comb += [
            fire.eq(self.bursts.valid & self.bursts.ready),
            self.bursts.ready.eq(request_bursts.input.ready & open_bursts.input.ready),
            request_bursts.input.valid.eq(fire),
            request_bursts.input.payload.eq(self.bursts.payload),
            open_bursts.input.valid.eq(fire),
            open_bursts.input.payload.eq(self.bursts.payload),
            response_walker.burst.valid.eq(open_bursts.output.valid),
            open_bursts.output.ready.eq(response_walker.burst.ready),
            response_walker.burst.payload.eq(open_bursts.output.payload),
        ]
        connect(m, request_bursts.output, request_walker.burst)

        reorder = ReorderBuffer(tag_bits=self._tag_bits)
        m.submodules["reorder_buffer"] = shared_instance(reorder, platform)
        lowest = Array(
            Signal(WORD_ADDRESS_BITS, name=f"lowest_{tag}") for tag in range(1 << self._tag_bits)
        )
        self._send_requests(m, platform, request_walker, reorder, lowest)

        words = Sram(
            width=WORD_BITS,
            depth=COLUMN_WORDS << self._tag_bits,
            read_ports=1,
            write_ports=1,
            kind=config.pe.sram,
        )
        m.submodules.words = shared_instance(words, platform)
        self._collect(m, words, reorder, lowest)
        self._respond(m, platform, response_walker, words, reorder)
        return m

    def _send_requests(
        self, m: Module, platform: object, walker: BurstWalker, reorder: ReorderBuffer, lowest: Any
    ) -> None:
        """Send requests."""
        config = self.config
        requests = StreamBuffer(shape=memory_request(config.address_bits, self._tag_bits))
        m.submodules.requests = shared_instance(requests, platform)
        connect(m, requests.output, flipped(self.port.request))
        beat: Any = walker.beat.payload
        request: Any = requests.input.payload
        touched, all_touched = Signal(COLUMN_WORDS), Signal(COLUMN_WORDS)
        low, high = ends(m, all_touched)
        m.d.comb += [
            walker.beat.ready.eq(~beat.closes | (requests.input.ready & reorder.ready)),
            all_touched.eq(touched | (1 << beat.word)),
            reorder.allocate.eq(walker.beat.valid & walker.beat.ready & beat.closes),
            reorder.refused.eq(beat.response != AxiResponse.OKAY),
            requests.input.valid.eq(reorder.allocate & ~reorder.refused),
            request.address.eq(Cat(Const(0, BYTE_ADDRESS_BITS), low, beat.column)),
            request.tag.eq(reorder.tag),
            request.words.eq(high - low),
            request.strobe.eq(-1),
            request.last.eq(1),
        ]
        with m.If(walker.beat.valid & walker.beat.ready):
            m.d.sync += touched.eq(Mux(beat.closes, 0, all_touched))
        with m.If(reorder.allocate):
            m.d.sync += lowest[reorder.tag].eq(low)

    def _collect(self, m: Module, words: Sram, reorder: ReorderBuffer, lowest: Any) -> None:
        """Store the memory's responses."""
        response: Any = self.port.response.payload
        (write,) = words.write
        received_words, place = Signal(WORD_ADDRESS_BITS), Signal(WORD_ADDRESS_BITS)
        m.d.comb += [
            self.port.response.ready.eq(1),
            place.eq(lowest[response.tag] + received_words),
            write.enable.eq(self.port.response.valid),
            write.address.eq(Cat(place, response.tag)),
            write.data.eq(response.data),
            reorder.response_valid.eq(self.port.response.valid & response.last),
            reorder.response_tag.eq(response.tag),
            reorder.response_error.eq(response.error),
        ]
        with m.If(self.port.response.valid):
            m.d.sync += received_words.eq(Mux(response.last, 0, received_words + 1))

    def _respond(
        self, m: Module, platform: object, walker: BurstWalker, words: Sram, reorder: ReorderBuffer
    ) -> None:
        """Send the beats of the oldest burst as soon as their piece has arrived."""
        layout = read_beat(self.config)
        output = StreamBuffer(shape=layout, depth=_OUTPUT_WORDS)
        m.submodules.output = shared_instance(output, platform)
        connect(m, output.output, flipped(self.beats))
        beat: Any = walker.beat.payload
        (read,) = words.read
        fetched: Any = Signal(layout)
        fetching, fire = Signal(), Signal()
        m.d.comb += [
            fire.eq(
                walker.beat.valid & reorder.complete & (output.level + fetching < _OUTPUT_WORDS)
            ),
            walker.beat.ready.eq(fire),
            reorder.retire.eq(fire & beat.closes),
            read.enable.eq(fire),
            read.address.eq(Cat(beat.word, reorder.head)),
            output.input.valid.eq(fetching),
            output.input.payload.eq(fetched),
            output.input.payload.data.eq(read.data),
        ]
        m.d.sync += [
            fetching.eq(fire),
            fetched.id.eq(beat.id),
            fetched.last.eq(beat.last),
            fetched.response.eq(beat.response),
        ]
        with m.If((beat.response == AxiResponse.OKAY) & reorder.failed):
            m.d.sync += fetched.response.eq(AxiResponse.SLVERR)
