"""Buffer at the end of a link: one FIFO queue per virtual channel, in one memory."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import SramKind
from hdl.emission import shared_instance
from hdl.sram import Sram


class ChannelBuffer(Component):
    """Queues of words; per cycle, one word enters and one leaves.

    The first word of each queue is in a register, so that all are visible; the others share a
    memory. A word that enters an empty queue is its first in the next cycle. One word passes per
    cycle, without gaps.

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
        m.submodules.memory = shared_instance(memory, platform)
        (read,) = memory.read
        (write,) = memory.write
        m.d.comb += write.data.eq(self.word)
        for number in range(self.channels):
            self._queue(m, number, read, write)
        return m

    def _queue(self, m: Module, number: int, read: Any, write: Any) -> None:
        """The queue ``number``, in its part of the memory of ``read`` and ``write``."""
        head: Any = Signal(self.shape, name=f"head_{number}")
        head_valid = Signal(name=f"head_valid_{number}")
        fetched = Signal(name=f"fetched_{number}")
        place = range(self.depth)
        write_pointer = Signal(place, name=f"write_pointer_{number}")
        read_pointer = Signal(place, name=f"read_pointer_{number}")
        level = Signal(place, name=f"level_{number}")
        push, bypass, store, fetch = (
            Signal(name=f"{name}_{number}") for name in ("push", "bypass", "store", "fetch")
        )
        pop = self.pop[number]
        m.d.comb += [
            self.valid[number].eq(head_valid),
            self.heads[number].eq(Mux(fetched, read.data, head.as_value())),
            push.eq(self.write & (self.channel == number)),
            bypass.eq(push & (level == 0) & (~head_valid | pop)),
            store.eq(push & ~bypass),
            fetch.eq(pop & (level != 0)),
        ]
        with m.If(fetch):
            m.d.comb += [read.enable.eq(1), read.address.eq(Cat(read_pointer, self._part(number)))]
            m.d.sync += read_pointer.eq(read_pointer + 1)
        with m.If(store):
            m.d.comb += [
                write.enable.eq(1),
                write.address.eq(Cat(write_pointer, self._part(number))),
            ]
            m.d.sync += write_pointer.eq(write_pointer + 1)
        m.d.sync += [
            level.eq(level + store - fetch),
            fetched.eq(fetch),
            head_valid.eq(bypass | fetch | (head_valid & ~pop)),
        ]
        with m.If(bypass):
            m.d.sync += head.eq(self.word)
        with m.Elif(fetched):
            m.d.sync += head.eq(read.data)

    def _part(self, number: int) -> Value:
        """Address bits of the part of the memory that belongs to queue ``number``."""
        return Const(number, (self.channels - 1).bit_length())
