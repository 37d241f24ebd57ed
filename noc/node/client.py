"""Packetises accesses by a vault's requesters to other vaults."""

from typing import Any

from amaranth.hdl import Array, Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.ports import COLUMN_WORDS, WORD_BITS, MemoryPort
from noc.config import NetworkConfig
from noc.packet import WORD_ADDRESS, request_header, response_header
from noc.ports import flit
from noc.topology import position

_STROBES = WORD_BITS // 8
_ALL_BYTES = (1 << _STROBES) - 1


class Client(Component):
    """Makes a packet of each request, and a response of each packet that returns.

    A read leaves in the cycle in which it is accepted. The words of a write are buffered until the
    last has arrived, when it is known whether a mask is needed; then the header leaves. While the
    words of one write leave, those of the next take their places, so a flit leaves in every cycle.

    Parameters:
        config: of the network, of at least two vaults.
        tag_bits: tag width of ``port``.

    Members:
        x (in, x_bits): column of the vault.
        y (in, y_bits): row of the vault.
        port (in, :class:`hdl.ports.MemoryPort` with ``chip_address_bits``): accesses to other
            vaults, which exist.
        requests (out, stream of :func:`noc.ports.flit`): packets of requests.
        responses (in, stream of :func:`noc.ports.flit`): packets of responses.
    """

    def __init__(self, config: NetworkConfig, *, tag_bits: int) -> None:
        self.config = config
        self.tag_bits = tag_bits
        flits = stream.Signature(flit())
        super().__init__(
            {
                "x": In(config.x_bits),
                "y": In(config.y_bits),
                "port": In(MemoryPort(address_bits=config.chip_address_bits, tag_bits=tag_bits)),
                "requests": Out(flits),
                "responses": In(flits),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        self._requests(m)
        self._responses(m)
        return m

    def _requests(self, m: Module) -> None:
        beat = self.port.request
        output = self.requests
        place = range(COLUMN_WORDS)
        words = Array(Signal(WORD_BITS, name=f"word_{n}") for n in place)
        strobes = Array(Signal(_STROBES, name=f"strobe_{n}") for n in place)
        stored_words = Signal(place)
        partial = Signal()
        # Words of the write whose header has left.
        sending = Signal()
        mask_first = Signal()
        sent = Signal(place)
        last = Signal(place)

        masked = Signal()
        fire = Signal()
        m.d.comb += [
            masked.eq(beat.payload.write & (partial | (beat.payload.strobe != _ALL_BYTES))),
            fire.eq(beat.valid & beat.ready),
        ]
        with m.If(sending):
            m.d.comb += [
                output.valid.eq(1),
                output.payload.data.eq(Mux(mask_first, Cat(*strobes), words[sent])),
                output.payload.last.eq(~mask_first & (sent == last)),
                # A word may enter each place whose word has left.
                beat.ready.eq(~beat.payload.last & (stored_words < sent)),
            ]
            with m.If(output.ready):
                m.d.sync += mask_first.eq(0)
                with m.If(~mask_first):
                    m.d.sync += sent.eq(sent + 1)
                    with m.If(sent == last):
                        m.d.sync += sending.eq(0)
        with m.Else():
            m.d.comb += [
                output.valid.eq(beat.valid & beat.payload.last),
                output.payload.data.eq(self._header(m, stored_words, masked)),
                output.payload.last.eq(~beat.payload.write),
                beat.ready.eq(~beat.payload.last | output.ready),
            ]
        with m.If(fire & beat.payload.write):
            m.d.sync += [
                words[stored_words].eq(beat.payload.data),
                strobes[stored_words].eq(beat.payload.strobe),
                stored_words.eq(stored_words + 1),
                partial.eq(masked),
            ]
            with m.If(beat.payload.last):
                m.d.sync += [
                    stored_words.eq(0),
                    partial.eq(0),
                    sending.eq(1),
                    mask_first.eq(masked),
                    sent.eq(0),
                    last.eq(stored_words),
                ]

    def _header(self, m: Module, stored_words: Value, masked: Value) -> Value:
        """Header of the request whose last beat is offered, after the words ``stored_words``."""
        config = self.config
        beat = self.port.request.payload
        header: Any = Signal(request_header(config, self.tag_bits))
        word = Signal(config.address_bits - WORD_ADDRESS)
        column_bits = (COLUMN_WORDS - 1).bit_length()
        # All words of a request lie in one column.
        first = (word[:column_bits] - stored_words)[:column_bits]
        m.d.comb += [
            word.eq(beat.address[WORD_ADDRESS : config.address_bits]),
            header.from_x.eq(self.x),
            header.from_y.eq(self.y),
            header.tag.eq(beat.tag),
            header.write.eq(beat.write),
            header.masked.eq(masked),
            header.words.eq(Mux(beat.write, stored_words, beat.words)),
            header.word.eq(Cat(Mux(beat.write, first, word[:column_bits]), word[column_bits:])),
        ]
        vault = beat.address[config.address_bits :]
        with m.Switch(vault):
            for number in range(config.vaults):
                x, y = position(config, number)
                with m.Case(number):
                    m.d.comb += [header.to_x.eq(x), header.to_y.eq(y)]
        value: Value = header.as_value()
        return value

    def _responses(self, m: Module) -> None:
        packet = self.responses
        beat = self.port.response
        layout = response_header(self.config, self.tag_bits)
        header: Any = data.View(layout, packet.payload.data[: layout.size])
        in_packet = Signal()
        tag = Signal(self.tag_bits)
        m.d.comb += [
            beat.payload.data.eq(packet.payload.data),
            beat.payload.last.eq(packet.payload.last),
            beat.payload.error.eq(packet.payload.error),
            beat.payload.tag.eq(Mux(in_packet, tag, header.tag)),
            # A header with words after it is not a beat of its own.
            beat.valid.eq(packet.valid & (in_packet | packet.payload.last)),
            packet.ready.eq(beat.ready | ~(in_packet | packet.payload.last)),
        ]
        with m.If(packet.valid & packet.ready):
            m.d.sync += in_packet.eq(~packet.payload.last)
            with m.If(~in_packet):
                m.d.sync += tag.eq(header.tag)
