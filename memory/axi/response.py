"""Response side of the AXI back end: collects AXI beats into complete responses."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import AxiResponse
from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import COLUMN_WORDS, WORD_BITS, memory_response
from hdl.round_robin import RoundRobin
from hdl.sram import Sram
from hdl.stream_buffer import StreamBuffer

from .layout import AxiConfig, transfer_layout

#: Beats that the output buffer needs to deliver one per cycle through the data memory's read cycle.
_OUTPUT_WORDS = 3


class AxiResponsePath(Component):
    """Stores the data of each read until it is complete, then sends it as one response.

    There is room for everything in flight, so AXI's responses are always accepted at once,
    interleaved or not. Complete transfers are answered round robin, one beat per cycle without
    gaps; the first beat of a response comes 4 cycles after AXI's last.

    Members:
        allocate (in, 1): see :class:`memory.axi.request.AxiRequestPath`.
        id (in, id_bits): see AxiRequestPath.
        transfer (in, :func:`memory.axi.layout.transfer_layout`): see AxiRequestPath.
        write_done (in, 1): a beat of AXI's write response channel.
        write_done_id (in, id_bits): its identifier.
        write_done_resp (in, :class:`hdl.axi.AxiResponse`): its response.
        beat (in, 1): a beat of AXI's read data channel.
        beat_id (in, id_bits): its identifier.
        beat_data (in, data_bits): its data.
        beat_resp (in, :class:`hdl.axi.AxiResponse`): its response.
        beat_last (in, 1): it is the last of its burst.
        free (out, 1): the response of an identifier has started.
        free_id (out, id_bits): that identifier.
        response (out, stream of :func:`hdl.ports.memory_response`): all responses.
    """

    def __init__(self, config: AxiConfig) -> None:
        self.config = config
        super().__init__(
            {
                "allocate": In(1),
                "id": In(config.id_bits),
                "transfer": In(transfer_layout(config)),
                "write_done": In(1),
                "write_done_id": In(config.id_bits),
                "write_done_resp": In(AxiResponse),
                "beat": In(1),
                "beat_id": In(config.id_bits),
                "beat_data": In(config.data_bits),
                "beat_resp": In(AxiResponse),
                "beat_last": In(1),
                "free": Out(1),
                "free_id": Out(config.id_bits),
                "response": Out(stream.Signature(memory_response(config.tag_bits))),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        transfers = Sram(
            width=transfer_layout(config).size,
            depth=config.outstanding,
            read_ports=1,
            write_ports=1,
            kind=config.sram,
        )
        words = Sram(
            width=config.data_bits,
            depth=config.outstanding * config.beats,
            read_ports=1,
            write_ports=1,
            kind=config.sram,
        )
        arbiter = RoundRobin(count=config.outstanding)
        output = StreamBuffer(shape=memory_response(config.tag_bits), depth=_OUTPUT_WORDS)
        m.submodules.transfers = shared_instance(transfers, platform)
        m.submodules.words = shared_instance(words, platform)
        m.submodules["arbiter"] = shared_instance(arbiter, platform)
        m.submodules.output = shared_instance(output, platform)
        connect(m, output.output, flipped(self.response))
        active = _Active(config)
        self._arrive(m, active, transfers, words)
        self._select(m, active, transfers, arbiter)
        self._respond(
            m, active, data.View(transfer_layout(config), transfers.read[0].data), words, output
        )
        return m

    def _arrive(self, m: Module, active: "_Active", transfers: Sram, words: Sram) -> None:
        """Store the answers of AXI and the properties of transfers."""
        config = self.config
        place = Signal(config.beat_bits)
        m.d.comb += active.read_done.eq(self.beat & self.beat_last)
        for number in range(config.outstanding):
            error = active.error[number]
            mine = self.beat & (self.beat_id == number)
            with m.If(self.allocate & (self.id == number)):
                m.d.sync += error.eq(0)
            with m.If(mine & self._failed(self.beat_resp)):
                m.d.sync += error.eq(1)
            with m.If(self.write_done & (self.write_done_id == number)):
                m.d.sync += error.eq(self._failed(self.write_done_resp))
            if config.beats > 1:
                count = Signal(config.beat_bits, name=f"beats_{number}")
                with m.If(mine):
                    m.d.sync += count.eq(Mux(self.beat_last, 0, count + 1))
                with m.If(self.beat_id == number):
                    m.d.comb += place.eq(count)
        (transfer_write,), (word_write,) = transfers.write, words.write
        m.d.comb += [
            transfer_write.enable.eq(self.allocate),
            transfer_write.address.eq(self.id),
            transfer_write.data.eq(self.transfer),
            word_write.enable.eq(self.beat),
            word_write.address.eq(Cat(place, self.beat_id)),
            word_write.data.eq(self.beat_data),
        ]

    def _select(self, m: Module, active: "_Active", transfers: Sram, arbiter: RoundRobin) -> None:
        """First stage: select a complete transfer and read its properties."""
        done = Signal(self.config.outstanding)
        selected_id = Signal(self.config.id_bits)
        select = Signal()
        for number in range(self.config.outstanding):
            with m.If(arbiter.grant[number]):
                m.d.comb += selected_id.eq(number)
            done_now = self.write_done & (self.write_done_id == number)
            done_now |= active.read_done & (self.beat_id == number)
            with m.If(done_now):
                m.d.sync += done[number].eq(1)
            with m.Elif(select & arbiter.grant[number]):
                m.d.sync += done[number].eq(0)
        (transfer_read,) = transfers.read
        m.d.comb += [
            arbiter.requests.eq(done),
            select.eq(done.any() & (~active.valid | active.pop)),
            arbiter.advance.eq(select),
            transfer_read.enable.eq(select),
            transfer_read.address.eq(selected_id),
        ]
        with m.If(select):
            m.d.sync += [active.valid.eq(1), active.id.eq(selected_id)]
        with m.Elif(active.pop):
            m.d.sync += active.valid.eq(0)

    def _respond(
        self, m: Module, active: "_Active", transfer: Any, words: Sram, output: StreamBuffer
    ) -> None:
        """Second stage: read the words of ``transfer``, one per cycle. Third: buffer them."""
        config = self.config
        (word_read,) = words.read
        valid, active_id = active.valid, active.id
        word = Signal(range(COLUMN_WORDS))
        position = Signal(range(config.lanes - 1 + COLUMN_WORDS))
        last = Signal()
        step = Signal()
        output_valid = Signal()
        output_lane = Signal(config.lane_bits)
        beat: Any = output.input.payload
        output_beat: Any = Signal(
            data.StructLayout({"tag": config.tag_bits, "last": 1, "error": 1})
        )
        m.d.comb += [
            position.eq(transfer.lane + word),
            last.eq(transfer.write | (word == transfer.words)),
            step.eq(valid & (output.level + output_valid < _OUTPUT_WORDS)),
            active.pop.eq(step & last),
            word_read.enable.eq(step),
            word_read.address.eq(
                Cat((position >> config.lane_bits)[: config.beat_bits], active_id)
            ),
            self.free.eq(active.pop),
            self.free_id.eq(active_id),
            output.input.valid.eq(output_valid),
            beat.tag.eq(output_beat.tag),
            beat.last.eq(output_beat.last),
            beat.error.eq(output_beat.error),
            beat.data.eq(word_read.data.word_select(output_lane, WORD_BITS)),
        ]
        m.d.sync += output_valid.eq(step)
        with m.If(step):
            m.d.sync += [
                word.eq(Mux(last, 0, word + 1)),
                output_lane.eq(position[: config.lane_bits]),
                output_beat.tag.eq(transfer.tag),
                output_beat.last.eq(last),
                output_beat.error.eq(active.error.bit_select(active_id, 1) & last),
            ]

    @staticmethod
    def _failed(response: Any) -> Any:
        """Whether ``response`` is an error."""
        return (response == AxiResponse.SLVERR) | (response == AxiResponse.DECERR)


class _Active:
    """The transfer that is answered.

    Attributes:
        valid: there is one.
        id: its identifier.
        pop: its last beat is read.
        error: for each identifier, AXI has answered with an error.
        read_done: the last beat of a read arrives.
    """

    def __init__(self, config: AxiConfig) -> None:
        self.error = Signal(config.outstanding, name="error")
        self.read_done = Signal(name="read_done")
        self.valid = Signal(name="active_valid")
        self.id = Signal(config.id_bits, name="active_id")
        self.pop = Signal(name="active_pop")
