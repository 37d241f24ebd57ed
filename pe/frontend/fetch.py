"""Fetch: the instruction buffer and the program counter."""

from amaranth.hdl import Const, Elaboratable, Module, Signal, Value
from amaranth.lib import stream
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.bundle import Bundle
from hdl.component import Component, Probes
from hdl.emission import shared_instance
from hdl.sram import Sram
from pe.config import PeConfig
from pe.interface import load_word, pc_shape

from .instruction_word import WORD_BITS, is_legal, word_bits, word_packing

#: Built-in programs of at most this many words are made of gates, as a lookup table of an FPGA
#: holds a bit of each; longer ones of block RAM.
GATES_DEPTH = 64


def run(config: PeConfig) -> Bundle:
    """``run``: the program runs; 0 discards everything. ``start``: the program begins in the next
    cycle.
    ``words``: its length, stable while ``run``."""
    return Bundle(run=1, start=1, words=config.pc_bits + 1)


def redirection(config: PeConfig) -> Bundle:
    """``redirect``: discard fetched instructions, and continue at ``target``."""
    return Bundle(redirect=1, target=pc_shape(config))


def fetched(config: PeConfig) -> Bundle:
    """``valid``: there is an instruction; ``pc``, its address; ``outside``, that is not in the
    program; ``word``, itself, as :mod:`pe.frontend.instruction_word` keeps it."""
    return Bundle(valid=1, pc=pc_shape(config), outside=1, word=word_bits(config))


class Fetch(Component):
    """Reads one instruction a cycle from the instruction buffer (thesis 5.1, 7.1.3).

    An instruction is at the output in the cycle after it is read. After ``start`` in cycle t the
    first one is there in t + 2; after ``redirect`` in cycle t the one at ``target`` in t + 1.

    A built-in program is read from a ROM: loaded words are dropped, and ``words`` is ignored.

    Members:
        load: stream of :func:`pe.interface.load_word`, in: writes the buffer; ready unless ``run``.
        run, start, words: :func:`run`, in.
        redirect, target: :func:`redirection`, in.
        ready: in; the output is taken at the end of this cycle.
        valid, pc, word, outside: :func:`fetched`, out; ``word`` is undefined with ``outside``.
    """

    probes = Probes("buffer", "following", "pc", "valid")

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "load": In(stream.Signature(load_word(config))),
                **run(config).inputs(),
                **redirection(config).inputs(),
                "ready": In(1),
                "valid": Out(1),
                "pc": Out(pc_shape(config)),
                "word": Out(word_bits(config)),
                "outside": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        words = self.words if config.program is None else Const(len(config.program))
        following = Signal(pc_shape(config))
        address = Signal(pc_shape(config))
        advance = Signal()
        m.d.comb += [
            self.load.ready.eq(~self.run),
            advance.eq(self.run & (self.ready | ~self.valid | self.redirect)),
            address.eq(following),
            # Negative addresses count as large ones; and the buffer ends, whatever the launch says.
            self.outside.eq((self.pc.as_unsigned() >= words) | self.pc[config.pc_bits :].any()),
        ]
        if config.program is None:
            self._buffer(m, platform, address, advance)
        else:
            self._rom(m, config.program, address, advance)
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

    def _buffer(self, m: Module, platform: object, address: Signal, advance: Signal) -> None:
        """The instruction buffer that the host loads."""
        config = self.config
        buffer = Sram(
            width=WORD_BITS,
            depth=config.instruction_words,
            read_ports=1,
            write_ports=1,
            kind=config.sram,
        )
        m.submodules.buffer = shared_instance(buffer, platform)
        (read,) = buffer.read
        (write,) = buffer.write
        m.d.comb += [
            write.enable.eq(self.load.valid & self.load.ready),
            write.address.eq(self.load.payload.address),
            write.data.eq(self.load.payload.word),
            read.enable.eq(advance),
            read.address.eq(address[: config.pc_bits]),
            self.word.eq(read.data),
        ]

    def _rom(self, m: Module, program: tuple[int, ...], address: Signal, advance: Signal) -> None:
        """The program that is built in."""
        config = self.config
        packing = word_packing(config)
        assert packing is not None
        if not packing.width:
            return
        gates = len(program) <= GATES_DEPTH or config.sram == "macro"
        words = [packing.code(word | is_legal(config, word) << WORD_BITS) for word in program]
        memory: Memory[int, Value] = Memory(
            shape=packing.width,
            depth=len(words),
            init=words,
            attrs={"rom_style": "logic" if gates else "block"},
        )
        m.submodules.program = memory
        read = memory.read_port(domain="comb" if gates else "sync")
        m.d.comb += self.word.eq(read.data)
        if gates:
            m.d.comb += read.addr.eq(self.pc[: len(read.addr)])
        else:
            m.d.comb += [read.en.eq(advance), read.addr.eq(address[: len(read.addr)])]
