"""From READ to the words of a response."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import COLUMN_WORDS, WORD_BITS
from memory.config import VaultConfig
from memory.fifo import Fifo
from memory.timing import BURST_CLOCKS

from .transaction import word_range

#: Clocks, in addition to tCL, that an unstalled read occupies its place in the buffer.
_OVERHEAD = 4 * BURST_CLOCKS


def read_beat(config: VaultConfig) -> data.StructLayout:
    """A word read: ``tag``, ``data``, ``last`` of its response."""
    return data.StructLayout({"tag": config.tag_bits, "data": WORD_BITS, "last": 1})


def buffered_columns(config: VaultConfig) -> int:
    """Columns in the buffer: twice the number for full bandwidth, to absorb some stalls."""
    needed = -(-(config.timing.tcl + _OVERHEAD) // BURST_CLOCKS)
    return 1 << (2 * needed - 1).bit_length()


class ReadPath(Component):
    """Follows reads to their data, buffers the requested words, and returns them in order.

    A READ is on the DRAM's port in the cycle after it was issued. Each READ reserves room for a
    whole column, so that data never waits.

    Members:
        ready (out, 1): a READ may be issued in this cycle.
        issue (in, 1): a READ is issued.
        tag (in, tag_bits): tag of its request.
        words (in, :func:`memory.controller.transaction.word_range`): words of its request.
        read_data (in, 64): from the DRAM.
        output (out, stream of :func:`read_beat`): the words of a response follow each other.
    """

    def __init__(self, config: VaultConfig) -> None:
        self.config = config
        super().__init__(
            {
                "ready": Out(1),
                "issue": In(1),
                "tag": In(config.tag_bits),
                "words": In(word_range()),
                "read_data": In(WORD_BITS),
                "output": Out(stream.Signature(read_beat(config))),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        columns = buffered_columns(config)
        reads = data.StructLayout({"tag": config.tag_bits, "words": word_range()})
        pending = Fifo(width=reads.size, depth=columns, sram=config.sram)
        beats = Fifo(width=read_beat(config).size, depth=columns * COLUMN_WORDS, sram=config.sram)
        m.submodules.pending = shared_instance(pending, platform)
        m.submodules.beats = shared_instance(beats, platform)
        current: Any = Signal(reads)
        m.d.comb += [
            pending.input.valid.eq(self.issue),
            pending.input.payload.eq(Cat(self.tag, self.words)),
            current.eq(pending.output.payload),
        ]

        # Bit n: a READ was issued n + 1 cycles ago.
        in_flight = Signal(config.timing.tcl + 1)
        word = Signal(range(COLUMN_WORDS))
        data_valid = Signal()
        m.d.sync += in_flight.eq(Cat(self.issue, in_flight)[: len(in_flight)])
        m.d.comb += data_valid.eq(in_flight[-1] | (word != 0))
        with m.If(data_valid):
            m.d.sync += word.eq(word + 1)
        requested = (word >= current.words.first) & (word <= current.words.last)
        beat: Any = Signal(read_beat(config))
        m.d.comb += [
            pending.output.ready.eq(data_valid & (word == COLUMN_WORDS - 1)),
            beat.tag.eq(current.tag),
            beat.data.eq(self.read_data),
            beat.last.eq(word == current.words.last),
            beats.input.valid.eq(data_valid & requested),
            beats.input.payload.eq(beat),
        ]

        out: Any = self.output.payload
        released = Signal()
        reserved = Signal(range(columns + 1))
        m.d.comb += [
            self.output.valid.eq(beats.output.valid),
            out.eq(beats.output.payload),
            beats.output.ready.eq(self.output.ready),
            released.eq(self.output.valid & self.output.ready & out.last),
            self.ready.eq(reserved != columns),
        ]
        m.d.sync += reserved.eq(reserved + self.issue - released)
        return m
