"""Buffer at the end of a link: one first-in first-out queue a virtual channel, in one memory."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import SramKind
from hdl.emission import once
from hdl.sram import Sram

__all__ = ["ChannelBuffer"]


class ChannelBuffer(Component):
    """Queues of words; one word a cycle enters, and one leaves.

    The first word of each queue is in a register, so that all are visible; the others share a
    memory. A word that enters an empty queue is its first in the next cycle. Words pass at one a
    cycle without gaps.

    Parameters:
        channels: queues; a power of two.
        depth: words of each queue, at most; a power of two, at least 2.
        shape: of a word.
        kind: implementation of the memory.

    Members:
        write (in, 1): ``word`` enters the queue ``channel``, which must have room.
        channel (in, 0..channels - 1): number of the queue.
        word (in, shape): the word.
        valid (out, channels): queues that hold a word.
        heads (out, channels x shape): the first word of each queue.
        pop (in, channels): at most one bit, of a queue that holds a word: its first word leaves.
    """

    def __init__(
        self, *, channels: int, depth: int, shape: data.StructLayout, kind: SramKind
    ) -> None:
        self.channels = channels
        self.depth = depth
        self.shape = shape
        self.kind = kind
        super().__init__(
            {
                "write": In(1),
                "channel": In(range(channels)),
                "word": In(shape),
                "valid": Out(channels),
                "heads": Out(shape).array(channels),
                "pop": In(channels),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        memory = Sram(
            width=self.shape.size,
            depth=self.channels * self.depth,
            read_ports=1,
            write_ports=1,
            kind=self.kind,
        )
        m.submodules.memory = once(memory, platform)
        (read,) = memory.read
        (write,) = memory.write
        m.d.comb += write.data.eq(self.word)
        for number in range(self.channels):
            self._queue(m, number, read, write)
        return m

    def _queue(self, m: Module, number: int, read: Any, write: Any) -> None:
        """The queue ``number``, in its part of the memory of ``read`` and ``write``."""
        first: Any = Signal(self.shape, name=f"first_{number}")
        full = Signal(name=f"full_{number}")
        fetched = Signal(name=f"fetched_{number}")
        place = range(self.depth)
        entry = Signal(place, name=f"entry_{number}")
        exit_ = Signal(place, name=f"exit_{number}")
        level = Signal(place, name=f"level_{number}")
        arrives, direct, stores, fetches = (
            Signal(name=f"{name}_{number}") for name in ("arrives", "direct", "stores", "fetches")
        )
        pop = self.pop[number]
        m.d.comb += [
            self.valid[number].eq(full),
            self.heads[number].eq(Mux(fetched, read.data, first.as_value())),
            arrives.eq(self.write & (self.channel == number)),
            direct.eq(arrives & (level == 0) & (~full | pop)),
            stores.eq(arrives & ~direct),
            fetches.eq(pop & (level != 0)),
        ]
        with m.If(fetches):
            m.d.comb += [read.enable.eq(1), read.address.eq(Cat(exit_, self._part(number)))]
            m.d.sync += exit_.eq(exit_ + 1)
        with m.If(stores):
            m.d.comb += [write.enable.eq(1), write.address.eq(Cat(entry, self._part(number)))]
            m.d.sync += entry.eq(entry + 1)
        m.d.sync += [
            level.eq(level + stores - fetches),
            fetched.eq(fetches),
            full.eq(direct | fetches | (full & ~pop)),
        ]
        with m.If(direct):
            m.d.sync += first.eq(self.word)
        with m.Elif(fetched):
            m.d.sync += first.eq(read.data)

    def _part(self, number: int) -> Value:
        """Address bits of the part of the memory that belongs to queue ``number``."""
        return Const(number, (self.channels - 1).bit_length())
