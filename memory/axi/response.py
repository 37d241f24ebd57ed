"""Response side of the AXI back end: gathers AXI's beats into whole responses."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import AxiResponse as Answer
from hdl.component import Component
from hdl.emission import once
from hdl.ports import COLUMN_WORDS, WORD_BITS, memory_response
from hdl.round_robin import RoundRobin
from hdl.sram import Sram
from hdl.stream_buffer import StreamBuffer

from .layout import AxiConfig, transfer_layout

__all__ = ["AxiResponse"]

#: Beats that the output buffer needs for one a cycle through the data memory's read cycle.
_OUTPUT_WORDS = 3


class AxiResponse(Component):
    """Stores the data of each read until it is complete, then sends it as one response.

    There is room for everything in flight, so AXI's responses are always accepted at once,
    interleaved or not. Complete transfers are answered round robin, one beat a cycle without gaps;
    the first beat of a response comes 4 cycles after AXI's last.

    Members:
        take (in, 1): see :class:`memory.axi.request.AxiRequest`.
        id (in, id_bits): see AxiRequest.
        transfer (in, :func:`memory.axi.layout.transfer_layout`): see AxiRequest.
        wrote (in, 1): a beat of AXI's write response channel.
        wrote_id (in, id_bits): its identifier.
        wrote_resp (in, :class:`hdl.axi.Answer`): its response.
        beat (in, 1): a beat of AXI's read data channel.
        beat_id (in, id_bits): its identifier.
        beat_data (in, data_bits): its data.
        beat_resp (in, :class:`hdl.axi.Answer`): its response.
        beat_last (in, 1): it is the last of its burst.
        free (out, 1): the response of an identifier has started.
        free_id (out, id_bits): that identifier.
        response (out, stream of :func:`hdl.ports.memory_response`): all responses.
    """

    def __init__(self, config: AxiConfig) -> None:
        self.config = config
        super().__init__(
            {
                "take": In(1),
                "id": In(config.id_bits),
                "transfer": In(transfer_layout(config)),
                "wrote": In(1),
                "wrote_id": In(config.id_bits),
                "wrote_resp": In(Answer),
                "beat": In(1),
                "beat_id": In(config.id_bits),
                "beat_data": In(config.data_bits),
                "beat_resp": In(Answer),
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
        m.submodules.transfers = once(transfers, platform)
        m.submodules.words = once(words, platform)
        m.submodules["chooser"] = once(arbiter, platform)
        m.submodules.output = once(output, platform)
        connect(m, output.output, flipped(self.response))
        chosen = _Chosen(config)
        self._arrive(m, chosen, transfers, words)
        self._choose(m, chosen, transfers, arbiter)
        self._answer(
            m, chosen, data.View(transfer_layout(config), transfers.read[0].data), words, output
        )
        return m

    def _arrive(self, m: Module, chosen: "_Chosen", transfers: Sram, words: Sram) -> None:
        """What comes in goes into the memories."""
        config = self.config
        place = Signal(config.beat_bits)
        m.d.comb += chosen.read_done.eq(self.beat & self.beat_last)
        for number in range(config.outstanding):
            error = chosen.error[number]
            mine = self.beat & (self.beat_id == number)
            with m.If(self.take & (self.id == number)):
                m.d.sync += error.eq(0)
            with m.If(mine & self._failed(self.beat_resp)):
                m.d.sync += error.eq(1)
            with m.If(self.wrote & (self.wrote_id == number)):
                m.d.sync += error.eq(self._failed(self.wrote_resp))
            if config.beats > 1:
                count = Signal(config.beat_bits, name=f"beats_{number}")
                with m.If(mine):
                    m.d.sync += count.eq(Mux(self.beat_last, 0, count + 1))
                with m.If(self.beat_id == number):
                    m.d.comb += place.eq(count)
        (transfer_write,), (word_write,) = transfers.write, words.write
        m.d.comb += [
            transfer_write.enable.eq(self.take),
            transfer_write.address.eq(self.id),
            transfer_write.data.eq(self.transfer),
            word_write.enable.eq(self.beat),
            word_write.address.eq(Cat(place, self.beat_id)),
            word_write.data.eq(self.beat_data),
        ]

    def _choose(self, m: Module, chosen: "_Chosen", transfers: Sram, arbiter: RoundRobin) -> None:
        """First stage: select a complete transfer and read its properties."""
        done = Signal(self.config.outstanding)
        number_chosen = Signal(self.config.id_bits, name="chosen")
        choose = Signal()
        for number in range(self.config.outstanding):
            with m.If(arbiter.grant[number]):
                m.d.comb += number_chosen.eq(number)
            arrives = self.wrote & (self.wrote_id == number)
            arrives |= chosen.read_done & (self.beat_id == number)
            with m.If(arrives):
                m.d.sync += done[number].eq(1)
            with m.Elif(choose & arbiter.grant[number]):
                m.d.sync += done[number].eq(0)
        (transfer_read,) = transfers.read
        m.d.comb += [
            arbiter.requests.eq(done),
            choose.eq(done.any() & (~chosen.held | chosen.ends)),
            arbiter.advance.eq(choose),
            transfer_read.enable.eq(choose),
            transfer_read.address.eq(number_chosen),
        ]
        with m.If(choose):
            m.d.sync += [chosen.held.eq(1), chosen.held_id.eq(number_chosen)]
        with m.Elif(chosen.ends):
            m.d.sync += chosen.held.eq(0)

    def _answer(
        self, m: Module, chosen: "_Chosen", transfer: Any, words: Sram, output: StreamBuffer
    ) -> None:
        """Second stage: read the words of ``transfer``, one a cycle. Third: they go into the output
        buffer."""
        config = self.config
        (word_read,) = words.read
        held, held_id = chosen.held, chosen.held_id
        word = Signal(range(COLUMN_WORDS))
        position = Signal(range(config.lanes - 1 + COLUMN_WORDS))
        last = Signal()
        step = Signal()
        third = Signal()
        third_lane = Signal(config.lane_bits)
        beat: Any = output.input.payload
        third_beat: Any = Signal(data.StructLayout({"tag": config.tag_bits, "last": 1, "error": 1}))
        m.d.comb += [
            position.eq(transfer.lane + word),
            last.eq(transfer.write | (word == transfer.words)),
            step.eq(held & (output.level + third < _OUTPUT_WORDS)),
            chosen.ends.eq(step & last),
            word_read.enable.eq(step),
            word_read.address.eq(Cat((position >> config.lane_bits)[: config.beat_bits], held_id)),
            self.free.eq(chosen.ends),
            self.free_id.eq(held_id),
            output.input.valid.eq(third),
            beat.tag.eq(third_beat.tag),
            beat.last.eq(third_beat.last),
            beat.error.eq(third_beat.error),
            beat.data.eq(word_read.data.word_select(third_lane, WORD_BITS)),
        ]
        m.d.sync += third.eq(step)
        with m.If(step):
            m.d.sync += [
                word.eq(Mux(last, 0, word + 1)),
                third_lane.eq(position[: config.lane_bits]),
                third_beat.tag.eq(transfer.tag),
                third_beat.last.eq(last),
                third_beat.error.eq(chosen.error.bit_select(held_id, 1) & last),
            ]

    @staticmethod
    def _failed(response: Any) -> Any:
        """Whether ``response`` is an error."""
        return (response == Answer.SLVERR) | (response == Answer.DECERR)


class _Chosen:
    """The transfer that is answered.

    Attributes:
        held, held_id: there is one, and its identifier. ends: its last beat is read.
        error: of each identifier, an answer was an error. read_done: the last beat of a read came.
    """

    def __init__(self, config: AxiConfig) -> None:
        self.error = Signal(config.outstanding, name="error")
        self.read_done = Signal(name="read_done")
        self.held = Signal(name="held")
        self.held_id = Signal(config.id_bits, name="held_id")
        self.ends = Signal(name="ends")
