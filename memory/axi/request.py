"""Request side of the AXI back end: requests become AXI bursts."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.ports import COLUMN_BYTES, COLUMN_WORDS, WORD_BITS, memory_request

from .layout import AxiConfig, address_beat, transfer_layout, write_beat

_WORD_ADDRESS_BITS = (WORD_BITS // 8 - 1).bit_length()


class AxiRequestPath(Component):
    """Turns requests into address beats and write data beats in the cycle of their arrival.

    A request starts when no access in flight conflicts with it and an identifier is free. One beat
    is accepted per cycle.

    Members:
        request (in, stream of :func:`hdl.ports.memory_request`): beats of requests.
        column (out, column_address_bits): to :class:`memory.axi.scoreboard.AxiScoreboard`.
        write (out, 1): to AxiScoreboard.
        conflict (in, 1): from AxiScoreboard.
        id_ready (in, 1): from AxiScoreboard.
        id (in, id_bits): from AxiScoreboard.
        allocate (out, 1): to AxiScoreboard.
        transfer (out, :func:`memory.axi.layout.transfer_layout`): for ``id``; valid with
            ``allocate``.
        write_address (out, stream of :func:`memory.axi.layout.address_beat`): AXI's AW channel.
        read_address (out, stream of :func:`memory.axi.layout.address_beat`): AXI's AR channel.
        write_data (out, stream of :func:`memory.axi.layout.write_beat`): AXI's W channel.
    """

    def __init__(self, config: AxiConfig) -> None:
        self.config = config
        super().__init__(
            {
                "request": In(
                    stream.Signature(memory_request(config.address_bits, config.tag_bits))
                ),
                "column": Out(config.column_address_bits),
                "write": Out(1),
                "conflict": In(1),
                "id_ready": In(1),
                "id": In(config.id_bits),
                "allocate": Out(1),
                "transfer": Out(transfer_layout(config)),
                "write_address": Out(stream.Signature(address_beat(config))),
                "read_address": Out(stream.Signature(address_beat(config))),
                "write_data": Out(stream.Signature(write_beat(config))),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        request = self.request.payload
        word = request.address[_WORD_ADDRESS_BITS:]
        lane = word[: config.lane_bits]
        beat_address_bits = _WORD_ADDRESS_BITS + config.lane_bits

        # Address.
        length = Signal(range(config.lanes - 1 + COLUMN_WORDS))
        m.d.comb += [
            self.column.eq(request.address[(COLUMN_BYTES - 1).bit_length() :]),
            self.write.eq(request.write),
            length.eq(lane + request.words),
            self.transfer.tag.eq(request.tag),
            self.transfer.write.eq(request.write),
            self.transfer.words.eq(request.words),
            self.transfer.lane.eq(lane),
        ]
        for channel in (self.write_address, self.read_address):
            m.d.comb += [
                channel.payload.id.eq(self.id),
                channel.payload.address.eq(
                    Cat(Const(0, beat_address_bits), request.address[beat_address_bits:])
                ),
                channel.payload.length.eq(length >> config.lane_bits),
            ]

        # Write data: words gather until their beat is complete.
        data = Signal(config.data_bits)
        strobe = Signal(config.data_bits // 8)
        beat: Any = self.write_data.payload
        m.d.comb += [
            beat.data.eq(data),
            beat.strobe.eq(strobe),
            beat.data.word_select(lane, WORD_BITS).eq(request.data),
            beat.strobe.word_select(lane, WORD_BITS // 8).eq(request.strobe),
            beat.last.eq(request.last),
        ]
        full = Signal()
        m.d.comb += full.eq(request.last | (lane == config.lanes - 1))

        # Handshakes. A channel's valid does not depend on its ready, only on the others'.
        in_burst = Signal()
        accept = Signal()
        data_ready = Signal()
        m.d.comb += [
            accept.eq(in_burst | (~self.conflict & self.id_ready)),
            data_ready.eq(~full | self.write_data.ready),
            self.read_address.valid.eq(self.request.valid & ~request.write & accept),
            self.write_address.valid.eq(
                self.request.valid & request.write & ~in_burst & accept & data_ready
            ),
            self.write_data.valid.eq(
                self.request.valid
                & request.write
                & accept
                & full
                & (in_burst | self.write_address.ready)
            ),
            self.request.ready.eq(
                accept
                & Mux(
                    request.write,
                    data_ready & (in_burst | self.write_address.ready),
                    self.read_address.ready,
                )
            ),
        ]
        fire = Signal()
        m.d.comb += [
            fire.eq(self.request.valid & self.request.ready),
            self.allocate.eq(fire & ~in_burst),
        ]
        with m.If(fire & request.write):
            m.d.sync += [in_burst.eq(~request.last), data.eq(beat.data)]
            m.d.sync += strobe.eq(Mux(full, 0, beat.strobe))
        return m
