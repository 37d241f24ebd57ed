"""Scratchpad: eight byte-wide banks that serve any unaligned eight bytes in one access."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import In

from hdl.component import Component
from hdl.config import PeConfig
from hdl.emission import once
from hdl.simd import rotate_units_right
from hdl.sram import Sram

from .ports import ScratchpadReadPort, ScratchpadWritePort

__all__ = ["BANKS", "READ_PORTS", "WRITE_PORTS", "Scratchpad"]

#: Banks, each a byte wide: together one word (thesis 5.1).
BANKS = 8
#: Vector operands ``first`` and ``second``, and the read of a store.
READ_PORTS = 3
#: Vector result and the write of a load.
WRITE_PORTS = 2

_OFFSET_BITS = (BANKS - 1).bit_length()


class Scratchpad(Component):
    """Byte-addressed memory with 3 read and 2 write ports of eight bytes at any alignment.

    Bank ``b`` holds the bytes whose address is ``b`` modulo 8. An access that is not aligned takes
    the next row of the banks in front of its first byte, and the bytes are rotated into order on
    their way (thesis 5.1 and Figure 5.1).

    Members:
        read: array of 3 :class:`pe.ports.ScratchpadReadPort`, in: vector operands first and second,
            store.
        write: array of 2 :class:`pe.ports.ScratchpadWritePort`, in: vector result, load. Two writes
            of one byte in one cycle leave it undefined.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "read": In(ScratchpadReadPort(config)).array(READ_PORTS),
                "write": In(ScratchpadWritePort(config)).array(WRITE_PORTS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        row_bits = config.scratchpad_bits - _OFFSET_BITS
        banks = [
            Sram(
                width=8,
                depth=config.scratchpad_bytes // BANKS,
                read_ports=READ_PORTS,
                write_ports=WRITE_PORTS,
                kind=config.sram,
            )
            for _ in range(BANKS)
        ]
        for index, bank in enumerate(banks):
            m.submodules[f"bank{index}"] = once(bank, platform)
        for number, port in enumerate(self.read):
            offset = Signal(_OFFSET_BITS, name=f"read_offset_{number}")
            with m.If(port.enable):
                m.d.sync += offset.eq(port.address[:_OFFSET_BITS])
            row = port.address[_OFFSET_BITS:]
            next_row = Signal(row_bits, name=f"read_next_row_{number}")
            m.d.comb += next_row.eq(row + 1)
            for index, bank in enumerate(banks):
                wraps = port.address[:_OFFSET_BITS] > index
                m.d.comb += [
                    bank.read[number].enable.eq(port.enable),
                    bank.read[number].address.eq(Mux(wraps, next_row, row)),
                ]
            word = Cat(bank.read[number].data for bank in banks)
            m.d.comb += port.data.eq(rotate_units_right(word, offset, 8))
        for number, write in enumerate(self.write):
            start = write.address[:_OFFSET_BITS]
            row = write.address[_OFFSET_BITS:]
            next_row = Signal(row_bits, name=f"write_next_row_{number}")
            data = Signal(8 * BANKS, name=f"write_data_{number}")
            strobe = Signal(BANKS, name=f"write_strobe_{number}")
            turn = Signal(_OFFSET_BITS, name=f"write_turn_{number}")
            m.d.comb += [
                next_row.eq(row + 1),
                turn.eq(-start),
                data.eq(rotate_units_right(write.data, turn, 8)),
                strobe.eq(rotate_units_right(write.strobe, turn, 1)),
            ]
            for index, bank in enumerate(banks):
                m.d.comb += [
                    bank.write[number].enable.eq(strobe[index]),
                    bank.write[number].address.eq(Mux(start > index, next_row, row)),
                    bank.write[number].data.eq(data.word_select(index, 8)),
                ]
        return m
