"""Responses of the controller: words read, acknowledgements of writes and errors, on one stream."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import memory_response
from memory.config import VaultConfig
from memory.fifo import Fifo

from .read_path import read_beat

#: Acknowledgements that wait while words are sent.
ACKNOWLEDGEMENTS = 16


class Responses(Component):
    """Merges responses. Those of one beat go before reads, but never into one.

    Members:
        ready (out, 1): a WRITE may be issued in this cycle.
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
                "ready": Out(1),
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
        acknowledgements = Fifo(width=short.size, depth=ACKNOWLEDGEMENTS, sram=config.sram)
        m.submodules.acknowledgements = shared_instance(acknowledgements, platform)
        m.d.comb += [
            self.ready.eq(acknowledgements.input.ready),
            self.rejected.ready.eq(acknowledgements.input.ready & ~self.written),
            acknowledgements.input.valid.eq(self.written | self.rejected.valid),
            acknowledgements.input.payload.eq(
                Mux(self.written, self.written_tag, Cat(self.rejected.payload, 1))
            ),
        ]

        acknowledgement: Any = Signal(short)
        in_response = Signal()
        advance = Signal()
        use_acknowledgement = Signal()
        out: Any = self.response.payload
        word: Any = self.reads.payload
        m.d.comb += [
            acknowledgement.eq(acknowledgements.output.payload),
            advance.eq(~self.response.valid | self.response.ready),
            use_acknowledgement.eq(acknowledgements.output.valid & ~in_response),
            acknowledgements.output.ready.eq(advance & ~in_response),
            self.reads.ready.eq(advance & ~use_acknowledgement),
        ]
        with m.If(advance):
            m.d.sync += [
                self.response.valid.eq(use_acknowledgement | self.reads.valid),
                out.tag.eq(Mux(use_acknowledgement, acknowledgement.tag, word.tag)),
                out.data.eq(word.data),
                out.last.eq(use_acknowledgement | word.last),
                out.error.eq(use_acknowledgement & acknowledgement.error),
            ]
        with m.If(self.reads.valid & self.reads.ready):
            m.d.sync += in_response.eq(~word.last)
        return m
