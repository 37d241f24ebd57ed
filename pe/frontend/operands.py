"""Operand fetch, between fetch and issue: reads registers and waits for them."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hdl.bundle import Bundle
from hdl.component import Component, Probes
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.interface import PC_BITS, pc_shape

from .crosses import cover_operands
from .decode import decoded, issued, read_operands, register_operands
from .fetch import fetched
from .instruction_word import whole_word, word_bits
from .register_file import READ_PORTS


def with_operands(config: PeConfig) -> data.StructLayout:
    """An instruction with the values of its operands.

    Members:
        decoded: :func:`pe.frontend.decode.issued`. pc: its address. outside: that is not in the
            program.
        target: where it branches to.
        a: register A. first, second: operands of a scalar instruction, ``second`` inverted where
            ``decoded`` says so; registers B and C of an instruction that is not scalar.
    """
    width = config.register_width
    return data.StructLayout(
        {
            "decoded": issued(config),
            "pc": pc_shape(config),
            "outside": 1,
            "target": pc_shape(config),
            "a": width,
            "first": width,
            "second": width,
        }
    )


def waiting(config: PeConfig) -> Bundle:
    """``waits``: an instruction waits for a register; ``pc``, its address."""
    return Bundle(waits=1, pc=pc_shape(config))


class Operands(Component):
    """Holds one instruction while its registers are read, until all of them hold their values.

    The registers are addressed by the fetched word itself; the word is decoded while they are
    read. The result of the scalar instruction ahead is bypassed in the cycle in which it is
    computed; a loaded value is available two cycles after it is written.

    Members:
        run: in; 0 discards the instruction. redirect: in; so does 1, and it is not offered.
        next_valid, next_pc, next_outside, next_word: :func:`pe.frontend.fetch.fetched`, in; the
            instruction after this one. ready: out; it moves here at the end of this cycle, unless
            it is to be discarded.
        word: out; instruction here. decoded: in; the same, decoded
            (:func:`pe.frontend.decode.decoded`).
        index, read: out, and value: in; see :class:`pe.frontend.register_file.RegisterFile`. valid:
            in; its valid bits.
        ahead: in, register A of the instruction ahead, at issue. writes: in; a scalar instruction
            that writes it, with ``result``, in, when it executes. loads: in; a load that writes it
            later.
        offer: stream of :func:`with_operands`, out.
        waits, pc: :func:`waiting`, out.
    """

    probes = Probes("again", "occupied", "outside", "pc", "word")

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "run": In(1),
                "redirect": In(1),
                **fetched(config).inputs("next_"),
                "ready": Out(1),
                "word": Out(word_bits(config)),
                "decoded": In(decoded(config)),
                "index": Out(config.register_bits).array(READ_PORTS),
                "read": Out(1).array(READ_PORTS),
                "value": In(config.register_width).array(READ_PORTS),
                "valid": In(config.registers),
                "ahead": In(config.register_bits),
                "writes": In(1),
                "loads": In(1),
                "result": In(config.register_width),
                "offer": Out(stream.Signature(with_operands(config))),
                **waiting(config).outputs(),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        d = self.decoded
        occupied = Signal()
        word = Signal(word_bits(self.config), name="held_word", reset_less=True)
        pc = Signal(pc_shape(self.config), name="held_pc", reset_less=True)
        outside = Signal(reset_less=True)
        fire = Signal()
        take = Signal()
        m.d.comb += [
            fire.eq(self.offer.valid & self.offer.ready),
            self.word.eq(word),
            self.pc.eq(pc),
            self.ready.eq(~occupied | fire),
            take.eq(self.run & self.next_valid & ~self.redirect & self.ready),
        ]
        with m.If(~self.run | self.redirect | fire):
            m.d.sync += occupied.eq(0)
        with m.If(take):
            m.d.sync += [
                occupied.eq(1),
                word.eq(self.next_word),
                pc.eq(self.next_pc),
                outside.eq(self.next_outside),
            ]

        numbers, following = (
            register_operands(self.config, whole_word(self.config, encoded)[0])
            for encoded in (word, self.next_word)
        )
        same = [Signal(name=f"same_{name}") for name in "abc"]
        m.d.comb += [s.eq(number == self.ahead) for s, number in zip(same, numbers, strict=True)]
        missing: list[Value] = [Const(0, 1)] * len(numbers)
        if Capabilities.of(self.config).registers.loads:
            missing = [
                ~self.valid.bit_select(number, 1) | (s & self.loads)
                for s, number in zip(same, numbers, strict=True)
            ]
        # Whether there is such an instruction is known by now.
        waits = Signal()
        again = Signal()
        m.d.comb += [
            # An illegal word may also wait, for the registers it seems to read.
            waits.eq(
                ((d.reads_a | d.writes) & missing[0])
                | (d.reads_b & missing[1])
                | (d.reads_c & missing[2])
            ),
            self.waits.eq(occupied & (waits | again) & ~self.redirect),
        ]
        # Registers are read again when all have their values after a cycle in which one did not,
        # and only then: nothing else changes them meanwhile. So the choice of an address depends on
        # a register.
        m.d.sync += again.eq(occupied & waits & self.run & ~self.redirect)
        # They are also read when the instruction here begins to wait. That is harmless, as they are
        # read again, and an exact condition would be slower.
        comes = self.next_valid & ~self.redirect & (~occupied | self.offer.ready)
        # A word from block RAM comes too late to tell which registers it reads.
        needs: list[Value] = [Const(1, 1)] * READ_PORTS
        if self.config.sram != "fpga":
            needs = read_operands(self.config, whole_word(self.config, self.next_word)[0])
        for number, (old, new) in enumerate(zip(numbers, following, strict=True)):
            m.d.comb += [
                self.index[number].eq(Mux(again, old, new)),
                self.read[number].eq(Mux(again, ~waits, comes & needs[number])),
            ]

        self._offer(m, occupied & ~waits & ~again, same, pc, outside)
        whole, _ = whole_word(self.config, word)
        reads = zip(same, (d.reads_a, d.reads_b, d.reads_c), strict=True)
        passed = self.writes & Cat(one & read for one, read in reads).any()
        cover_operands(m, self.config, whole, fire & d.legal, again, passed)
        return m

    def _offer(
        self, m: Module, valid: Value, same: list[Signal], pc: Value, outside: Value
    ) -> None:
        """Offer the instruction with its operands; ``same``: its registers A, B and C are that of
        the result."""

        def passed(flag: Value, otherwise: Value) -> Value:
            # If the instruction ahead stays, so does this one.
            return Mux(self.writes & flag, self.result, otherwise)

        d = self.decoded
        a, b, c = self.value
        width = self.config.register_width
        immediate = Signal(width)
        target = Signal(signed(PC_BITS))
        m.d.comb += [immediate.eq(d.value), target.eq(pc + d.value)]
        offer: Any = self.offer.payload
        m.d.comb += [
            self.offer.valid.eq(valid),
            *(offer.decoded[name].eq(d[name]) for name, _ in issued(self.config)),
            offer.pc.eq(pc),
            offer.outside.eq(outside),
            offer.target.eq(self._shortened(target)),
            offer.a.eq(passed(same[0], a)),
            offer.first.eq(
                passed(
                    Mux(d.branch, same[0], same[1] & ~d.zero),
                    Mux(d.branch, a, Mux(d.zero, 0, b)),
                )
            ),
            offer.second.eq(
                passed(
                    Mux(d.branch, same[1], same[2] & ~d.immediate),
                    Mux(d.branch, b, Mux(d.immediate, immediate, c)),
                )
                ^ d.inverted.replicate(width)
            ),
        ]

    def _shortened(self, target: Signal) -> Value:
        """The branch target in the form of :func:`pe.interface.pc_shape`."""
        bits = self.config.pc_bits
        if len(target) == pc_shape(self.config).width:
            return target
        return Cat(target[:bits], target[bits:].any())
