"""A first-in first-out queue in an SRAM."""

from amaranth.hdl import Elaboratable, Module, Shape, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import SramKind
from hdl.emission import shared_instance
from hdl.sram import Sram


class Fifo(Component):
    """Queue of up to ``depth`` words; accepts and returns one per cycle.

    A word that enters the empty queue is at the output two cycles later.

    Parameters:
        width: bits of a word.
        depth: words; a power of two, at least 2.
        sram: implementation of the memory.

    Members:
        input (in, stream of words): words to store.
        output (out, stream of words): words in the order of their arrival.
        level (out, 0..depth): words stored.
    """

    def __init__(self, *, width: int, depth: int, sram: SramKind) -> None:
        self.width = width
        self.depth = depth
        self.sram = sram
        super().__init__(
            {
                "input": In(stream.Signature(width)),
                "output": Out(stream.Signature(width)),
                "level": Out(Shape.cast(range(depth + 1))),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        words = Sram(
            width=self.width, depth=self.depth, read_ports=1, write_ports=1, kind=self.sram
        )
        m.submodules.words = shared_instance(words, platform)
        (read,) = words.read
        (write,) = words.write
        stored = Signal(range(self.depth + 1))
        push = Signal()
        pop = Signal()
        fetch = Signal()
        m.d.comb += [
            self.input.ready.eq(self.level != self.depth),
            push.eq(self.input.valid & self.input.ready),
            pop.eq(self.output.valid & self.output.ready),
            # A word can't be fetched in the cycle in which it is written.
            fetch.eq((stored != 0) & (~self.output.valid | self.output.ready)),
            write.enable.eq(push),
            write.data.eq(self.input.payload),
            read.enable.eq(fetch),
            self.output.payload.eq(read.data),
        ]
        m.d.sync += [
            self.level.eq(self.level + push - pop),
            stored.eq(stored + push - fetch),
            write.address.eq(write.address + push),
            read.address.eq(read.address + fetch),
        ]
        with m.If(fetch):
            m.d.sync += self.output.valid.eq(1)
        with m.Elif(self.output.ready):
            m.d.sync += self.output.valid.eq(0)
        return m
