"""Serves accesses from other vaults to a vault's memory."""

from typing import Any

from amaranth.hdl import Array, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import COLUMN_WORDS, WORD_BITS, MemoryPort, memory_request, memory_response
from hdl.sram import Sram
from hdl.stream_buffer import StreamBuffer
from noc.config import NetworkConfig
from noc.packet import WORD_ADDRESS, request_header, response_header
from noc.ports import flit

_STROBES = WORD_BITS // 8
_ALL_BYTES = (1 << _STROBES) - 1
_MASK_BITS = COLUMN_WORDS * _STROBES


class Server(Component):
    """Performs the requests of packets on a memory port, and returns the responses.

    Each request gets the next tag of the port in turn, when that is free; a table maps the tag to
    the vault of the request and its tag there. A request is offered only when its whole packet has
    arrived.

    Parameters:
        config: of the network, of at least two vaults.
        tag_bits: tag width of the requests in packets.

    Members:
        packets (in, stream of :func:`noc.ports.flit`): requests.
        packet_complete (in, 1): the first packet has arrived to its last flit.
        port (out, :class:`hdl.ports.MemoryPort` with ``address_bits`` and ``tag_bits``): to the
            memory; a beat is offered in the cycle after its flit is accepted.
        responses (out, stream of :func:`noc.ports.flit`): the responses.
    """

    def __init__(self, config: NetworkConfig, *, tag_bits: int) -> None:
        self.config = config
        self.tag_bits = tag_bits
        flits = stream.Signature(flit())
        port = MemoryPort(address_bits=config.address_bits, tag_bits=config.tag_bits)
        super().__init__(
            {
                "packets": In(flits),
                "packet_complete": In(1),
                "port": Out(port),
                "responses": Out(flits),
            }
        )

    @property
    def _origin(self) -> data.StructLayout:
        """The entry of the table for a request."""
        config = self.config
        return data.StructLayout(
            {"x": config.x_bits, "y": config.y_bits, "tag": self.tag_bits, "write": 1}
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        tags = 1 << config.tag_bits
        table = Sram(
            width=self._origin.size, depth=tags, read_ports=1, write_ports=1, kind=config.sram
        )
        m.submodules.table = shared_instance(table, platform)
        busy = Signal(tags)
        next_tag = Signal(config.tag_bits)
        begins = self._requests(m, next_tag, ~Array(busy)[next_tag], table.write[0], platform)
        ends, ended = self._responses(m, table.read[0])
        with m.If(begins):
            m.d.sync += next_tag.eq(next_tag + 1)
        for tag in range(tags):
            with m.If(begins & (next_tag == tag)):
                m.d.sync += busy[tag].eq(1)
            with m.Elif(ends & (ended == tag)):
                m.d.sync += busy[tag].eq(0)
        return m

    def _requests(
        self, m: Module, tag: Value, tag_free: Value, table: Any, platform: object
    ) -> Value:
        """Turn packets into memory requests; returns whether one begins, which gets ``tag``."""
        config = self.config
        packet = self.packets
        layout = request_header(config, self.tag_bits)
        header: Any = data.View(layout, packet.payload.data[: layout.size])
        buffer = StreamBuffer(shape=memory_request(config.address_bits, config.tag_bits))
        m.submodules.requests = shared_instance(buffer, platform)
        connect(m, buffer.output, flipped(self.port.request))
        beat = buffer.input

        in_packet = Signal()
        masked = Signal()
        mask = Signal(_MASK_BITS)
        word = Signal(config.address_bits - WORD_ADDRESS)
        words = Signal(range(COLUMN_WORDS))
        own_tag = Signal(config.tag_bits)
        begins = Signal()
        origin: Any = Signal(self._origin)
        m.d.comb += [
            beat.payload.data.eq(packet.payload.data),
            beat.payload.last.eq(packet.payload.last),
            origin.x.eq(header.from_x),
            origin.y.eq(header.from_y),
            origin.tag.eq(header.tag),
            origin.write.eq(header.write),
            table.enable.eq(begins),
            table.address.eq(tag),
            table.data.eq(origin),
        ]
        with m.If(in_packet):
            m.d.comb += [
                beat.valid.eq(packet.valid & ~masked),
                packet.ready.eq(masked | beat.ready),
                _address(beat.payload, word),
                beat.payload.tag.eq(own_tag),
                beat.payload.write.eq(1),
                beat.payload.words.eq(words),
                beat.payload.strobe.eq(mask[:_STROBES]),
            ]
        with m.Else():
            m.d.comb += [
                begins.eq(
                    packet.valid & self.packet_complete & tag_free & (header.write | beat.ready)
                ),
                beat.valid.eq(packet.valid & self.packet_complete & tag_free & ~header.write),
                packet.ready.eq(begins),
                _address(beat.payload, header.word),
                beat.payload.tag.eq(tag),
                beat.payload.words.eq(header.words),
                beat.payload.strobe.eq(_ALL_BYTES),
            ]
        with m.If(begins):
            m.d.sync += [
                in_packet.eq(header.write),
                masked.eq(header.masked),
                mask.eq(~0),
                word.eq(header.word),
                words.eq(header.words),
                own_tag.eq(tag),
            ]
        with m.Elif(packet.valid & packet.ready):
            m.d.sync += masked.eq(0)
            with m.If(masked):
                m.d.sync += mask.eq(packet.payload.data)
            with m.Else():
                m.d.sync += [
                    in_packet.eq(~packet.payload.last),
                    mask.eq(mask >> _STROBES),
                    word.eq(word + 1),
                    words.eq(words - 1),
                ]
        return begins

    def _responses(self, m: Module, table: Any) -> tuple[Value, Value]:
        """Turn responses into packets; returns whether one ends, and its tag."""
        config = self.config
        response = self.port.response
        output = self.responses
        # A beat waits here for a cycle while the table is read.
        valid = Signal()
        beat: Any = Signal(memory_response(config.tag_bits))
        first = Signal()
        in_response = Signal()
        header_sent = Signal()
        pop = Signal()
        push = Signal()
        origin: Any = data.View(self._origin, table.data)
        header: Any = Signal(response_header(config, self.tag_bits))
        is_header = Signal()
        ends = Signal()
        m.d.comb += [
            response.ready.eq(~valid | pop),
            push.eq(response.valid & response.ready),
            ends.eq(push & response.payload.last),
            table.enable.eq(push),
            table.address.eq(response.payload.tag),
            header.to_x.eq(origin.x),
            header.to_y.eq(origin.y),
            header.tag.eq(origin.tag),
            is_header.eq(first & ~header_sent),
            output.valid.eq(valid),
            output.payload.data.eq(Mux(is_header, header, beat.data)),
            # The response to a write is just a header.
            output.payload.last.eq(Mux(is_header, origin.write, beat.last)),
            output.payload.error.eq(beat.error),
            pop.eq(valid & output.ready & (~is_header | origin.write)),
        ]
        with m.If(output.ready & valid):
            m.d.sync += header_sent.eq(is_header & ~origin.write)
        with m.If(push):
            m.d.sync += [
                beat.eq(response.payload),
                first.eq(~in_response),
                in_response.eq(~response.payload.last),
            ]
        m.d.sync += valid.eq(push | (valid & ~pop))
        return ends, response.payload.tag


def _address(beat: Any, word: Value) -> Any:
    """Assignment of the byte address of ``word``."""
    return beat.address[WORD_ADDRESS:].eq(word)
