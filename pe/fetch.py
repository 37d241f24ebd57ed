"""Fetch: the instruction buffer and the program counter."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import PeConfig
from hdl.emission import once
from hdl.ports import load_word, pc_shape
from hdl.sram import Sram

__all__ = ["WORD_BITS", "Fetch"]

#: Bits of an instruction.
WORD_BITS = 32


class Fetch(Component):
    """Reads one instruction a cycle from the instruction buffer (thesis 5.1, 7.1.3).

    An instruction is at the output in the cycle after it is read. After ``start`` in cycle t the
    first one is there in t + 2; after ``redirect`` in cycle t the one at ``target`` in t + 1.

    Members:
        load: stream of :func:`hdl.ports.load_word`, in: writes the buffer; ready unless ``run``.
        run: in; 0 discards everything.
        start: in; sets the program counter to 0 (with ``run`` 0).
        words: in, length of the program; stable while ``run``.
        redirect, target: in; continue at ``target`` and discard what is at the output.
        ready: in; the output is taken at the end of this cycle.
        valid: out; an instruction is at the output.
        pc: out, its address. word: out, itself. outside: out; ``pc`` is not in the program (and
            ``word`` is meaningless).
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "load": In(stream.Signature(load_word(config))),
                "run": In(1),
                "start": In(1),
                "words": In(config.pc_bits + 1),
                "redirect": In(1),
                "target": In(pc_shape(config)),
                "ready": In(1),
                "valid": Out(1),
                "pc": Out(pc_shape(config)),
                "word": Out(WORD_BITS),
                "outside": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        buffer = Sram(
            width=WORD_BITS,
            depth=config.instruction_words,
            read_ports=1,
            write_ports=1,
            kind=config.sram,
        )
        m.submodules.buffer = once(buffer, platform)
        (read,) = buffer.read
        (write,) = buffer.write

        following = Signal(pc_shape(config))
        address = Signal(pc_shape(config))
        advance = Signal()
        m.d.comb += [
            self.load.ready.eq(~self.run),
            write.enable.eq(self.load.valid & self.load.ready),
            write.address.eq(self.load.payload.address),
            write.data.eq(self.load.payload.word),
            advance.eq(self.run & (self.ready | ~self.valid | self.redirect)),
            address.eq(following),
            read.enable.eq(advance),
            read.address.eq(address[: config.pc_bits]),
            self.word.eq(read.data),
            # Negative addresses are large ones here; and the buffer ends, whatever the launch says.
            self.outside.eq(
                (self.pc.as_unsigned() >= self.words) | self.pc[config.pc_bits :].any()
            ),
        ]
        with m.If(self.redirect):
            m.d.comb += address.eq(self.target)
        with m.If(~self.run):
            m.d.sync += self.valid.eq(0)
        with m.If(self.start):
            m.d.sync += following.eq(0)
        with m.Elif(advance):
            m.d.sync += [
                self.valid.eq(1),
                self.pc.eq(address),
                following.eq(address + 1),
            ]
        return m
