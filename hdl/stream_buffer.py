"""A small first-in first-out buffer between two streams, made of registers."""

from typing import Any

from amaranth.hdl import Array, Elaboratable, Module, Mux, Signal
from amaranth.hdl._ast import ShapeLike
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from .component import Component
from .config import ConfigurationError

#: Larger buffers belong in an SRAM.
MAX_BUFFER_WORDS = 64
_PAIR = 2


class StreamBuffer(Component):
    """First-in first-out buffer that cuts every path between its two sides.

    All outputs depend only on registers. A word takes one cycle; one word passes per cycle, without
    gaps.

    Parameters:
        shape: of a word.
        depth: words, 2..64.

    Members:
        input (in, stream of ``shape``): words to buffer.
        output (out, stream of ``shape``): words in the order of their arrival.
        level (out, 0..depth): words stored.

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
            push.eq(self.input.valid & self.input.ready),
            pop.eq(self.output.valid & self.output.ready),
        ]
        with m.If(push & ~pop):
            m.d.sync += level.eq(level + 1)
        with m.If(~push & pop):
            m.d.sync += level.eq(level - 1)
        if self.depth == _PAIR:
            self._pair(m, words, level, push, pop)
        else:
            self._shifted(m, words, level, push)
        return m

    def _pair(self, m: Module, words: list[Any], level: Signal, push: Signal, pop: Signal) -> None:
        """Two words, the first of which is the output: no logic follows its register."""
        first, second = words
        m.d.comb += self.output.payload.eq(first)
        with m.If(push & Mux(pop, level == 1, level == 0)):
            m.d.sync += first.eq(self.input.payload)
        with m.Elif(pop):
            m.d.sync += first.eq(second)
        with m.If(push & Mux(pop, 0, level == 1)):
            m.d.sync += second.eq(self.input.payload)

    def _shifted(self, m: Module, words: list[Any], level: Signal, push: Signal) -> None:
        """More words, which all shift when one arrives: one selection of ``depth`` for each bit is
        smaller than a selection at each place.
        """
        oldest = Signal(range(self.depth))
        m.d.comb += [oldest.eq(level - 1), self.output.payload.eq(Array(words)[oldest])]
        with m.If(push):
            m.d.sync += [
                word.eq(before)
                for word, before in zip(words, [self.input.payload, *words[:-1]], strict=True)
            ]
