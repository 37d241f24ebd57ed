"""A small first-in first-out buffer between two streams, made of registers."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.hdl._ast import ShapeLike
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from .component import Component
from .config import ConfigurationError

__all__ = ["MAX_BUFFER_WORDS", "StreamBuffer"]

#: More words than this belong into an SRAM.
MAX_BUFFER_WORDS = 64


class StreamBuffer(Component):
    """First-in first-out buffer that cuts every path between its two sides.

    All outputs depend on registers alone. A word passes in one cycle, and one word a cycle passes
    without gaps.

    Parameters:
        shape: of a word.
        depth: words, 2..64.

    Members:
        input: stream of ``shape``, in.
        output: stream of ``shape``, out.
        level: out; words held.

    Raises:
        ConfigurationError: ``depth`` outside its range.
    """

    def __init__(self, *, shape: ShapeLike, depth: int = 2) -> None:
        if not 2 <= depth <= MAX_BUFFER_WORDS:
            raise ConfigurationError(
                f"a stream buffer holds 2 to {MAX_BUFFER_WORDS} words, not {depth!r}"
            )
        self.shape = shape
        self.depth = depth
        super().__init__(
            {
                "input": In(stream.Signature(shape)),
                "output": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        words = [Signal(self.shape, name=f"word_{i}") for i in range(self.depth)]
        level = Signal(range(self.depth + 1))
        push, pop = Signal(), Signal()
        m.d.comb += [
            self.level.eq(level),
            self.input.ready.eq(level != self.depth),
            self.output.valid.eq(level != 0),
            self.output.payload.eq(words[0]),
            push.eq(self.input.valid & self.input.ready),
            pop.eq(self.output.valid & self.output.ready),
        ]
        with m.If(push & ~pop):
            m.d.sync += level.eq(level + 1)
        with m.If(~push & pop):
            m.d.sync += level.eq(level - 1)
        for place, word in enumerate(words):
            # A new word goes behind those that stay; the last place is never behind a departure.
            follows = level == place + 1 if place + 1 < self.depth else 0
            with m.If(push & Mux(pop, follows, level == place)):
                m.d.sync += word.eq(self.input.payload)
            if place + 1 < self.depth:
                with m.Elif(pop):
                    m.d.sync += word.eq(words[place + 1])
        return m
