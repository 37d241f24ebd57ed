"""Responses of the controller: words read, acknowledgements of writes and errors, on one stream."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import once
from hdl.ports import memory_response
from memory.config import VaultConfig
from memory.fifo import Fifo

from .read_path import read_beat

__all__ = ["Responses"]

#: Acknowledgements that wait while words are sent.
_ACKNOWLEDGEMENTS = 16


class Responses(Component):
    """Merges responses. Those of one beat go before reads, but never into one.

    Members:
        room (out, 1): a WRITE may be issued in this cycle.
        written (in, 1): a WRITE is issued.
        written_tag (in, tag_bits): tag of its request.
        rejected (in, stream of tags): requests to be answered with an error.
        reads (in, stream of :func:`memory.controller.read_path.read_beat`): words read.
        response (out, stream of :func:`hdl.ports.memory_response`): all responses.
    """

    def __init__(self, config: VaultConfig) -> None:
        self.config = config
        super().__init__(
            {
                "room": Out(1),
                "written": In(1),
                "written_tag": In(config.tag_bits),
                "rejected": In(stream.Signature(config.tag_bits)),
                "reads": In(stream.Signature(read_beat(config))),
                "response": Out(stream.Signature(memory_response(config.tag_bits))),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        short = data.StructLayout({"tag": config.tag_bits, "error": 1})
        ends = Fifo(width=short.size, depth=_ACKNOWLEDGEMENTS, sram=config.sram)
        m.submodules.ends = once(ends, platform)
        m.d.comb += [
            self.room.eq(ends.input.ready),
            self.rejected.ready.eq(ends.input.ready & ~self.written),
            ends.input.valid.eq(self.written | self.rejected.valid),
            ends.input.payload.eq(
                Mux(self.written, self.written_tag, Cat(self.rejected.payload, 1))
            ),
        ]

        end: Any = Signal(short)
        inside = Signal()
        move = Signal()
        use_end = Signal()
        out: Any = self.response.payload
        word: Any = self.reads.payload
        m.d.comb += [
            end.eq(ends.output.payload),
            move.eq(~self.response.valid | self.response.ready),
            use_end.eq(ends.output.valid & ~inside),
            ends.output.ready.eq(move & ~inside),
            self.reads.ready.eq(move & ~use_end),
        ]
        with m.If(move):
            m.d.sync += [
                self.response.valid.eq(use_end | self.reads.valid),
                out.tag.eq(Mux(use_end, end.tag, word.tag)),
                out.data.eq(word.data),
                out.last.eq(use_end | word.last),
                out.error.eq(use_end & end.error),
            ]
        with m.If(self.reads.valid & self.reads.ready):
            m.d.sync += inside.eq(~word.last)
        return m
