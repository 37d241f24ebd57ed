"""Reads of the host's data port."""

from typing import Any

from amaranth.hdl import Array, Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import AxiResponse
from hdl.component import Component
from hdl.emission import once
from hdl.ports import COLUMN_BYTES, COLUMN_WORDS, WORD_BITS, MemoryPort, memory_request
from hdl.sram import Sram
from hdl.stream_buffer import StreamBuffer
from memory.fifo import Fifo

from .host_burst import BurstWalker, burst_layout
from .host_config import HostConfig

__all__ = ["HostRead", "read_beat"]

_WORD_BITS = (COLUMN_WORDS - 1).bit_length()
_COLUMN_BITS = (COLUMN_BYTES - 1).bit_length()
#: Beats that the output buffer needs for one a cycle through the read cycle of the words' memory.
_OUTPUT_WORDS = 3


def read_beat(config: HostConfig) -> data.StructLayout:
    """A beat of read data: ``id``, ``data``, ``response`` (:class:`hdl.axi.AxiResponse`) and
    ``last``."""
    return data.StructLayout(
        {"id": config.id_bits, "data": WORD_BITS, "response": AxiResponse, "last": 1}
    )


class HostRead(Component):
    """Turns bursts of reads into requests of up to one column, and answers the bursts in their
    order.

    A burst is walked through twice: by the requests, and by the answers, for which the words of
    each piece (:func:`soc.host_burst.burst_beat`) are kept by the tag of its request. One beat a
    cycle passes. As there is room for every request's words, responses are always taken.

    Members:
        bursts: stream of :func:`soc.host_burst.burst_layout`, in.
        beats: stream of :func:`read_beat`, out.
        port: :class:`hdl.ports.MemoryPort`, out, with ``config.tag_bits - 1``.
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

        pieces = Signal(range((1 << self._tag_bits) + 1))
        done, failed = Signal(1 << self._tag_bits), Signal(1 << self._tag_bits)
        lowest = Array(
            Signal(_WORD_BITS, name=f"lowest_{tag}") for tag in range(1 << self._tag_bits)
        )
        entering, leaving = Signal(), Signal()
        m.d.sync += pieces.eq(pieces + entering - leaving)
        self._ask(m, platform, asking, pieces=pieces, entering=entering, done=done, lowest=lowest)

        words = Sram(
            width=WORD_BITS,
            depth=COLUMN_WORDS << self._tag_bits,
            read_ports=1,
            write_ports=1,
            kind=config.pe.sram,
        )
        m.submodules.words = once(words, platform)
        self._collect(m, words, done=done, failed=failed, lowest=lowest)
        self._answer(
            m, platform, answering, words, pieces=pieces, leaving=leaving, done=done, failed=failed
        )
        return m

    def _ask(
        self,
        m: Module,
        platform: object,
        walker: BurstWalker,
        *,
        pieces: Signal,
        entering: Signal,
        done: Signal,
        lowest: Any,
    ) -> None:
        """Send the requests."""
        config = self.config
        requests = StreamBuffer(shape=memory_request(config.address_bits, self._tag_bits))
        m.submodules.requests = once(requests, platform)
        connect(m, requests.output, flipped(self.port.request))
        beat: Any = walker.beat.payload
        touched, all_touched = Signal(COLUMN_WORDS), Signal(COLUMN_WORDS)
        low, high = Signal(_WORD_BITS), Signal(_WORD_BITS)
        following = Signal(self._tag_bits)
        okay = beat.response == AxiResponse.OKAY
        request: Any = requests.input.payload
        m.d.comb += [
            walker.beat.ready.eq(
                ~beat.closes | (requests.input.ready & (pieces != 1 << self._tag_bits))
            ),
            entering.eq(walker.beat.valid & walker.beat.ready & beat.closes),
            all_touched.eq(touched | (1 << beat.word)),
            requests.input.valid.eq(entering & okay),
            request.address.eq(Cat(low, beat.column) << (_COLUMN_BITS - _WORD_BITS)),
            request.tag.eq(following),
            request.words.eq(high - low),
            request.strobe.eq(-1),
            request.last.eq(1),
        ]
        # The words of a piece lie one behind the other.
        for number in range(COLUMN_WORDS):
            with m.If(all_touched[number]):
                m.d.comb += high.eq(number)
        for number in reversed(range(COLUMN_WORDS)):
            with m.If(all_touched[number]):
                m.d.comb += low.eq(number)
        with m.If(walker.beat.valid & walker.beat.ready):
            m.d.sync += touched.eq(Mux(beat.closes, 0, all_touched))
        with m.If(entering):
            m.d.sync += [following.eq(following + 1), lowest[following].eq(low)]
            with m.If(~okay):
                m.d.sync += done.bit_select(following, 1).eq(1)

    def _collect(
        self, m: Module, words: Sram, *, done: Signal, failed: Signal, lowest: Any
    ) -> None:
        """Keep what the memory answers."""
        response: Any = self.port.response.payload
        (write,) = words.write
        moved = Signal(_WORD_BITS)
        place = Signal(_WORD_BITS)
        m.d.comb += [
            self.port.response.ready.eq(1),
            place.eq(lowest[response.tag] + moved),
            write.enable.eq(self.port.response.valid),
            write.address.eq(Cat(place, response.tag)),
            write.data.eq(response.data),
        ]
        with m.If(self.port.response.valid):
            m.d.sync += moved.eq(Mux(response.last, 0, moved + 1))
            with m.If(response.last):
                m.d.sync += [
                    done.bit_select(response.tag, 1).eq(1),
                    failed.bit_select(response.tag, 1).eq(response.error),
                ]

    def _answer(
        self,
        m: Module,
        platform: object,
        walker: BurstWalker,
        words: Sram,
        *,
        pieces: Signal,
        leaving: Signal,
        done: Signal,
        failed: Signal,
    ) -> None:
        """Send the beats of the oldest burst as soon as their piece is there."""
        layout = read_beat(self.config)
        output = StreamBuffer(shape=layout, depth=_OUTPUT_WORDS)
        m.submodules.output = once(output, platform)
        connect(m, output.output, flipped(self.beats))
        beat: Any = walker.beat.payload
        (read,) = words.read
        oldest = Signal(self._tag_bits)
        fetched: Any = Signal(layout)
        fetching = Signal()
        take = Signal()
        m.d.comb += [
            take.eq(
                walker.beat.valid
                & done.bit_select(oldest, 1)
                & (output.level + fetching < _OUTPUT_WORDS)
            ),
            walker.beat.ready.eq(take),
            leaving.eq(take & beat.closes),
            read.enable.eq(take),
            read.address.eq(Cat(beat.word, oldest)),
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
        with m.If((beat.response == AxiResponse.OKAY) & failed.bit_select(oldest, 1)):
            m.d.sync += fetched.response.eq(AxiResponse.SLVERR)
        with m.If(leaving):
            m.d.sync += [oldest.eq(oldest + 1), done.bit_select(oldest, 1).eq(0)]
