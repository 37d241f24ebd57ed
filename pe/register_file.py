"""Register file: 64-bit scalar registers with a valid bit each."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import PeConfig
from hdl.emission import once
from hdl.sram import Sram

from .scalar import REGISTER_WIDTH

__all__ = ["READ_PORTS", "RegisterFile", "RegisterReadPort"]

#: An instruction reads at most three registers.
READ_PORTS = 3


class RegisterReadPort(wiring.Signature):
    """Read port, seen from the user: ``index``, out, and in the next cycle ``value``, in, the
    register as it is after the writes of the cycle of ``index``."""

    def __init__(self, config: PeConfig) -> None:
        super().__init__({"index": Out(config.register_bits), "value": In(REGISTER_WIDTH)})


class RegisterFile(Component):
    """Three read ports, one write port, and a bit a register that says whether it holds its value
    (thesis 5.1: cleared at issue of an instruction that will write it later, set by the write).

    The memory is read before it is written, so a value written in the cycle of a read is passed
    around it.

    Members:
        read: array of :class:`RegisterReadPort`, in.
        write, index, value: in; write a register and set its valid bit.
        invalidate, pending: in; clear the valid bit of register ``pending``; ``write`` of the same
            register in the same cycle wins.
        valid: out, a bit a register.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "read": In(RegisterReadPort(config)).array(READ_PORTS),
                "write": In(1),
                "index": In(config.register_bits),
                "value": In(REGISTER_WIDTH),
                "invalidate": In(1),
                "pending": In(config.register_bits),
                "valid": Out(config.registers, init=-1),  # type: ignore[call-arg]
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        registers = Sram(
            width=REGISTER_WIDTH,
            depth=config.registers,
            read_ports=READ_PORTS,
            write_ports=1,
            kind=config.sram,
        )
        m.submodules.registers = once(registers, platform)
        (write,) = registers.write
        written = Signal(REGISTER_WIDTH)
        m.d.comb += [
            write.enable.eq(self.write),
            write.address.eq(self.index),
            write.data.eq(self.value),
        ]
        m.d.sync += written.eq(self.value)
        for number, (port, read) in enumerate(zip(self.read, registers.read, strict=True)):
            passed = Signal(name=f"passed_{number}")
            m.d.sync += passed.eq(self.write & (self.index == port.index))
            m.d.comb += [
                read.enable.eq(1),
                read.address.eq(port.index),
                port.value.eq(Mux(passed, written, read.data)),
            ]
        with m.If(self.invalidate):
            m.d.sync += self.valid.bit_select(self.pending, 1).eq(0)
        with m.If(self.write):
            m.d.sync += self.valid.bit_select(self.index, 1).eq(1)
        return m
