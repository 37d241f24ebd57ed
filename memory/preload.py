"""On-chip memory instead of a range of a vault's addresses."""

from typing import Any

from amaranth.hdl import Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import SramKind
from hdl.emission import shared_instance
from hdl.ports import COLUMN_WORDS, WORD_BITS, MemoryPort
from hdl.sram import Sram

from .preload_range import check_preload
from .response_merge import merge_responses

_BYTES = WORD_BITS // 8
_WORD_ADDRESS_BITS = (_BYTES - 1).bit_length()


class Preload(Component):
    """Serves a range of a vault's addresses from on-chip memory; it *is* the memory there.

    The other accesses pass to the back end. Host and engines access the range like the rest of the
    vault: the host fills it before a launch, the engines work on it. Its contents are undefined
    after reset. It corresponds to SCRATCH's prefetch memory (MIAOW2.0): data that fit are there
    before the program runs.

    A read in the range is answered from two cycles after its request on, a write two cycles after
    its last beat, if nothing else is being answered; one word per cycle. Accesses that pass take no
    longer than without it, unless their responses meet one of the range. The guarantees of
    :class:`hdl.ports.MemoryPort` hold: a column is on one side, and each side keeps the order.

    Parameters:
        size, base: see :func:`memory.preload_range.check_preload`; ``size`` not 0.
        address_bits: of a byte address on the port. tag_bits: of the port.
        sram: of the memories, one for each byte of a word.

    Members:
        port (in, :class:`hdl.ports.MemoryPort`): from the requesters.
        memory (out, ``MemoryPort``): to the back end.

    Raises:
        memory.errors.MemoryConfigError: a value outside its range.
    """

    def __init__(
        self, *, size: int, base: int, address_bits: int, tag_bits: int, sram: SramKind
    ) -> None:
        check_preload(size, base, 1 << address_bits)
        self.size = size
        self.base = base
        self.address_bits = address_bits
        self.tag_bits = tag_bits
        self.sram = sram
        port = MemoryPort(address_bits=address_bits, tag_bits=tag_bits)
        super().__init__({"port": In(port), "memory": Out(port)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        request = self.port.request
        inside = Signal()
        ready = Signal()
        own_bits = (self.size - 1).bit_length()
        m.d.comb += [
            inside.eq(request.payload.address[own_bits:] == self.base >> own_bits),
            request.ready.eq(Mux(inside, ready, self.memory.request.ready)),
            self.memory.request.valid.eq(request.valid & ~inside),
            self.memory.request.payload.eq(request.payload),
        ]
        valid, take, beat = self._serve(m, request.valid & inside, ready, platform)
        merge_responses(m, self.port.response, self.memory.response, valid, take, beat)
        return m

    def _serve(
        self, m: Module, arrives: Value, ready: Signal, platform: object
    ) -> tuple[Signal, Signal, Any]:
        """Perform the accesses of the range, each beat a cycle after its arrival. Returns the
        response's valid, its ready, and its beat."""
        beat: Any = Signal.like(self.port.request.payload, name="beat")
        waiting = Signal()
        done = Signal()
        words = Signal(range(COLUMN_WORDS))
        last = Signal()
        valid = Signal()
        take = Signal()
        free = Signal()
        answer: Any = Signal.like(self.port.response.payload, name="answer")
        m.d.comb += [
            ready.eq(~waiting | done),
            free.eq(~valid | take),
            last.eq(beat.write | (words == beat.words)),
        ]
        with m.If(ready):
            m.d.sync += [waiting.eq(arrives), beat.eq(self.port.request.payload)]
        responds = waiting & (~beat.write | beat.last)
        acts = waiting & (free | ~responds)
        m.d.comb += done.eq(acts & last)
        with m.If(acts & ~beat.write):
            m.d.sync += words.eq(Mux(last, 0, words + 1))
        with m.If(responds & free):
            m.d.sync += [valid.eq(1), answer.tag.eq(beat.tag), answer.last.eq(last)]
        with m.Elif(take):
            m.d.sync += valid.eq(0)

        word = Signal(range(self.size // _BYTES))
        data: list[Value] = []
        m.d.comb += word.eq(beat.address[_WORD_ADDRESS_BITS:] + words)
        for number in range(_BYTES):
            column = Sram(
                width=8,
                depth=self.size // _BYTES,
                read_ports=1,
                write_ports=1,
                kind=self.sram,
            )
            m.submodules[f"bytes_{number}"] = shared_instance(column, platform)
            (read,), (write,) = column.read, column.write
            m.d.comb += [
                read.enable.eq(acts & ~beat.write),
                read.address.eq(word),
                write.enable.eq(acts & beat.write & beat.strobe[number]),
                write.address.eq(word),
                write.data.eq(beat.data.word_select(number, 8)),
            ]
            data.append(read.data)
        filled: Any = Signal.like(self.port.response.payload, name="filled")
        m.d.comb += [
            filled.eq(answer),
            *(filled.data.word_select(number, 8).eq(value) for number, value in enumerate(data)),
        ]
        return valid, take, filled
