"""A stream from one clock domain to another."""

from typing import Any

from amaranth.hdl import Elaboratable, Module, ResetSignal, Value
from amaranth.hdl._ast import ShapeLike
from amaranth.lib import stream
from amaranth.lib.fifo import AsyncFIFO
from amaranth.lib.wiring import In, Out

from support.checks import Checks

from .component import Component
from .config import ConfigurationError

#: With fewer words, each would wait for the last to be acknowledged.
MIN_CROSSING_DEPTH = 4
#: Cycles of the slower clock for which both resets are 1 together, at least. Pointers that a reset
#: finds on their way to the other side have to cross twice within it, or a source that offers words
#: at once may write over some that were not taken.
RESET_CYCLES = 8
#: Larger buffers belong on one side of the crossing.
MAX_CROSSING_DEPTH = 64

_CHECK = Checks(ConfigurationError)


class StreamCrossing(Component):
    """First-in first-out buffer whose two sides have clocks of their own, of any ratio and phase.

    It is Amaranth's ``AsyncFIFO``: pointers in Gray code, each synchronised by two registers
    (Cummings, SNUG 2002). A word is offered within a cycle of the source and three cycles of the
    target after it was taken; with 8 words or more, one passes in each cycle of the slower clock.

    Both resets are asserted together, for RESET_CYCLES of the slower clock at least, and released
    in any order. Words sent after the source's reset is released wait for the target's.

    Parameters:
        shape: of a word.
        depth: words; a power of two, MIN_CROSSING_DEPTH..MAX_CROSSING_DEPTH.
        source, target: domain of ``input``, and of ``output``.

    Members:
        input (in, stream of ``shape``): in domain ``source``.
        output (out, stream of ``shape``): in domain ``target``.

    Raises:
        ConfigurationError: a ``depth`` outside its range.
    """

    def __init__(self, *, shape: ShapeLike, depth: int, source: str, target: str) -> None:
        _CHECK.power_of_two("depth", depth, MIN_CROSSING_DEPTH, MAX_CROSSING_DEPTH)
        self.shape = shape
        self.depth = depth
        self.source = source
        self.target = target
        super().__init__(
            {"input": In(stream.Signature(shape)), "output": Out(stream.Signature(shape))}
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        written: Any = Value.cast(self.input.payload)
        read: Any = Value.cast(self.output.payload)
        fifo = AsyncFIFO(
            width=len(written), depth=self.depth, w_domain=self.source, r_domain=self.target
        )
        m.submodules.fifo = fifo
        # A side in reset would appear to accept a word, and lose it.
        open_ = ~ResetSignal(self.target)
        m.d.comb += [
            fifo.w_data.eq(written),
            fifo.w_en.eq(self.input.valid),
            self.input.ready.eq(fifo.w_rdy),
            read.eq(fifo.r_data),
            self.output.valid.eq(fifo.r_rdy & open_),
            fifo.r_en.eq(self.output.ready & open_),
        ]
        return m
