"""Register file: scalar registers with a valid bit each."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.component import Component, Probes
from hdl.emission import shared_instance
from hdl.priority import set_flags
from hdl.sram import Sram
from hdl.sram_fpga import DISTRIBUTED_DEPTH
from pe.capabilities import Capabilities
from pe.config import PeConfig

from .decode import operand_readers

#: An instruction reads at most three registers.
READ_PORTS = 3
#: An FPGA has at most this many bits of registers in LUT RAM, and more of them in block RAM: there
#: 64 registers of 64 bits take a tenth of the engine's lookup tables.
LOOKUP_BITS = 1 << 11


class RegisterFile(Component):
    """Three read ports, one write port, and a bit a register that says whether it holds its value
    (thesis 5.1: cleared at issue of an instruction that will write it later, set by the write).

    Members:
        read: in, array; read this port. index: in, array; register of each port. value: out, array;
            in the next cycle, the registers as they are after the writes of the cycle of ``read``;
            held while no port is read, undefined if only others are. In LUT RAM a later write shows
            in what is held.
        write, target, data: in; write a register and set its valid bit.
        invalidate, pending: in; clear the valid bit of register ``pending``; ``write`` of the same
            register in the same cycle wins.
        valid: out, one bit per register; always 1 without ``ld.reg``.
    """

    probes = Probes(
        "registers", "valid", "written_word", *(f"passed_{number}" for number in range(READ_PORTS))
    )

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "read": In(1).array(READ_PORTS),
                "index": In(config.register_bits).array(READ_PORTS),
                "value": Out(config.register_width).array(READ_PORTS),
                "write": In(1),
                "target": In(config.register_bits),
                "data": In(config.register_width),
                "invalidate": In(1),
                "pending": In(config.register_bits),
                "valid": Out(config.registers, init=-1),  # type: ignore[call-arg]
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        read = Signal()
        m.d.comb += read.eq(Cat(self.read).any())
        config = self.config
        if config.sram != "fpga":
            self._words(m, platform, read)
        elif config.registers * config.register_width <= LOOKUP_BITS:
            self._lookup(m, read)
        else:
            self._blocks(m, platform, read)
        if Capabilities.of(self.config).registers.loads:
            cleared = (self.invalidate, self.pending, False)
            set_flags(m, self.valid, (cleared, (self.write, self.target, True)))
        else:
            m.d.comb += self.valid.eq(-1)
        return m

    def _words(self, m: Module, platform: object, read: Signal) -> None:
        """Registers in a memory that reads before it writes, so a value written in the cycle of a
        ``read`` is bypassed."""
        config = self.config
        registers = self._memory(m, platform, config.registers, READ_PORTS)
        (write,) = registers.write
        word = Signal(config.register_width, name="written_word", reset_less=True)
        m.d.comb += [
            write.enable.eq(self.write),
            write.address.eq(self.target),
            write.data.eq(self.data),
        ]
        with m.If(read & self.write):
            m.d.sync += word.eq(self.data)
        for number, port in enumerate(registers.read):
            passed = Signal(name=f"passed_{number}")
            index = self.index[number]
            with m.If(read):
                m.d.sync += passed.eq(self.write & (self.target == index))
            m.d.comb += [
                port.enable.eq(self.read[number]),
                port.address.eq(index),
                self.value[number].eq(Mux(passed, word, port.data)),
            ]

    def _blocks(self, m: Module, platform: object, read: Signal) -> None:
        """Registers in block RAM, which is far from the scalar unit and so is written a cycle
        later. A read sees neither what is written to it then nor what comes meanwhile. Ports that
        no instruction reads have none."""
        config = self.config
        readers = operand_readers(config)
        ports = [number for number, opcodes in enumerate(readers) if opcodes] or [0]
        # Shallower memories would be LUT RAM.
        registers = self._memory(m, platform, 2 * DISTRIBUTED_DEPTH, len(ports))
        (write,) = registers.write
        layout = data.StructLayout(
            {"write": 1, "target": config.register_bits, "word": config.register_width}
        )
        comes: Any = Signal(layout)
        goes: Any = Signal(layout)
        unseen: list[Any] = [Signal(layout, name=f"unseen_{n}", reset_less=True) for n in range(2)]
        m.d.comb += [
            comes.eq(Cat(self.write, self.target, self.data)),
            write.enable.eq(goes.write),
            write.address.eq(goes.target),
            write.data.eq(goes.word),
        ]
        m.d.sync += goes.eq(comes)
        with m.If(read):
            m.d.sync += [unseen[0].eq(goes), unseen[1].eq(comes)]
        for number, port in zip(ports, registers.read, strict=True):
            index = self.index[number]
            # An index from block RAM comes too late to be compared before the registers.
            late = Signal.like(index, name=f"index_{number}", reset_less=True)
            with m.If(read):
                m.d.sync += late.eq(index)
            older, newer = (one.write & (one.target == late) for one in unseen)
            word = Mux(newer, unseen[1].word, unseen[0].word)
            m.d.comb += [
                port.enable.eq(self.read[number]),
                port.address.eq(index),
                self.value[number].eq(Mux(older | newer, word, port.data)),
            ]

    def _memory(self, m: Module, platform: object, depth: int, read_ports: int) -> Sram:
        """The registers in a memory of ``depth`` words with one write port."""
        config = self.config
        registers = Sram(
            width=config.register_width,
            depth=depth,
            read_ports=read_ports,
            write_ports=1,
            kind=config.sram,
        )
        m.submodules.registers = shared_instance(registers, platform)
        return registers

    def _lookup(self, m: Module, read: Signal) -> None:
        """Registers in LUT RAM, read in the cycle after ``read``: an index from block RAM comes too
        late for more than a register. Ports that no instruction reads have none."""
        config = self.config
        for number, readers in enumerate(operand_readers(config)):
            if not readers:
                continue
            index = Signal(config.register_bits, name=f"index_{number}", reset_less=True)
            memory: Memory[int, Value] = Memory(
                shape=config.register_width,
                depth=config.registers,
                init=[],
                attrs={"ram_style": "distributed"},
            )
            m.submodules[f"registers_for_{number}"] = memory
            port, write = memory.read_port(domain="comb"), memory.write_port()
            with m.If(read):
                m.d.sync += index.eq(self.index[number])
            m.d.comb += [
                write.en.eq(self.write),
                write.addr.eq(self.target),
                write.data.eq(self.data),
                port.addr.eq(index),
                self.value[number].eq(port.data),
            ]
