"""Scratchpad: byte addressable memory that serves any unaligned eight bytes in one access."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In

from hdl.coded_ram import CodedRam
from hdl.component import Component
from hdl.config import PeConfig
from hdl.emission import once
from hdl.simd import rotate_units_right
from hdl.sram import Sram
from hdl.sram_fpga import DISTRIBUTED_DEPTH

from .ports import ScratchpadReadPort, ScratchpadWritePort
from .stages import read_cycles

__all__ = ["BANKS", "READ_PORTS", "WRITE_PORTS", "Scratchpad"]

#: Banks, each a byte wide: together one word (thesis 5.1).
BANKS = 8
#: Vector operands ``first`` and ``second``, and the read of a store.
READ_PORTS = 3
#: Read ports of the vector unit, the first ones.
VECTOR_READ_PORTS = 2
#: Vector result and the write of a load.
WRITE_PORTS = 2

_OFFSET_BITS = (BANKS - 1).bit_length()


class Scratchpad(Component):
    """Byte-addressed memory with 3 read and 2 write ports of eight bytes at any alignment.

    Bank ``b`` holds the bytes whose address is ``b`` modulo 8. An access that is not aligned takes
    the next row of the banks in front of its first byte, and the bytes are rotated into order on
    their way (thesis 5.1 and Figure 5.1).

    In block RAMs the banks lie side by side in two memories, one of the even rows and one of the
    odd rows, of which every access touches one row each.

    Members:
        read: array of 3 :class:`pe.ports.ScratchpadReadPort`, in: vector operands first and second
            with their data after :func:`pe.stages.read_cycles`, store with its data after one.
        write: array of 2 :class:`pe.ports.ScratchpadWritePort`, in: vector result, load. A byte
            that they write in one cycle or in successive ones is undefined.
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
        rows = self.config.scratchpad_bytes // BANKS
        if self.config.sram == "fpga" and rows > DISTRIBUTED_DEPTH:
            words = self._halves(m, platform)
        else:
            words = self._banks(m, platform)
        for number, (port, read) in enumerate(zip(self.read, words, strict=True)):
            word = read
            offset = Signal(_OFFSET_BITS, name=f"read_offset_{number}")
            with m.If(port.enable):
                m.d.sync += offset.eq(port.address[:_OFFSET_BITS])
            if number < VECTOR_READ_PORTS and read_cycles(self.config) > 1:
                fresh = Signal(name=f"read_fresh_{number}")
                late_word = Signal(8 * BANKS, name=f"read_word_{number}", reset_less=True)
                late_offset = Signal.like(offset, name=f"late_offset_{number}", reset_less=True)
                m.d.sync += fresh.eq(port.enable)
                with m.If(fresh):
                    m.d.sync += [late_word.eq(word), late_offset.eq(offset)]
                word, offset = late_word, late_offset
            m.d.comb += port.data.eq(rotate_units_right(word, offset, 8))
        return m

    def _banks(self, m: Module, platform: object) -> list[Value]:
        """A memory a bank; the word of each read port, not yet in order, after a cycle."""
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
            row = port.address[_OFFSET_BITS:]
            next_row = Signal(row_bits, name=f"read_next_row_{number}")
            m.d.comb += next_row.eq(row + 1)
            for index, bank in enumerate(banks):
                wraps = port.address[:_OFFSET_BITS] > index
                m.d.comb += [
                    bank.read[number].enable.eq(port.enable),
                    bank.read[number].address.eq(Mux(wraps, next_row, row)),
                ]
        for number, write in enumerate(self.write):
            start = write.address[:_OFFSET_BITS]
            row = write.address[_OFFSET_BITS:]
            next_row = Signal(row_bits, name=f"write_next_row_{number}")
            data, strobe = self._placed(m, number, start, write.data, write.strobe)
            m.d.comb += next_row.eq(row + 1)
            for index, bank in enumerate(banks):
                m.d.comb += [
                    bank.write[number].enable.eq(strobe[index]),
                    bank.write[number].address.eq(Mux(start > index, next_row, row)),
                    bank.write[number].data.eq(data.word_select(index, 8)),
                ]
        return [Cat(bank.read[number].data for bank in banks) for number in range(READ_PORTS)]

    def _halves(self, m: Module, platform: object) -> list[Value]:
        """As :meth:`_banks`, with all banks in two memories. A write is performed in the cycle
        after, as its address must be known a cycle ahead."""
        config = self.config
        halves = [
            CodedRam(
                width=8 * BANKS,
                lanes=BANKS,
                depth=config.scratchpad_bytes // BANKS // 2,
                read_ports=READ_PORTS,
                write_ports=WRITE_PORTS,
            )
            for _ in range(2)
        ]
        for name, half in zip(("even", "odd"), halves, strict=True):
            m.submodules[name] = once(half, platform)

        def places(address: Value) -> tuple[Value, Value]:
            """Place in the half of the even rows, and in that of the odd ones."""
            place = address[_OFFSET_BITS + 1 :]
            return (place + address[_OFFSET_BITS])[: len(place)], place

        def odd(address: Value) -> Value:
            """For each bank, whether its byte lies in an odd row."""
            start, row = address[:_OFFSET_BITS], address[_OFFSET_BITS]
            return Cat(row ^ (start > index) for index in range(BANKS))

        words: list[Value] = []
        for number, port in enumerate(self.read):
            is_odd = Signal(BANKS, name=f"read_odd_{number}", reset_less=True)
            with m.If(port.enable):
                m.d.sync += is_odd.eq(odd(port.address))
            for half, place in zip(halves, places(port.address), strict=True):
                m.d.comb += [
                    half.read[number].enable.eq(port.enable),
                    half.read[number].address.eq(place),
                ]
            even_word, odd_word = (half.read[number].data for half in halves)
            words.append(
                Cat(
                    Mux(
                        is_odd[index],
                        odd_word.word_select(index, 8),
                        even_word.word_select(index, 8),
                    )
                    for index in range(BANKS)
                )
            )
        for number, write in enumerate(self.write):
            late_data = Signal(8 * BANKS, name=f"late_data_{number}", reset_less=True)
            late_strobe = Signal(BANKS, name=f"late_strobe_{number}")
            late_start = Signal(_OFFSET_BITS, name=f"late_start_{number}", reset_less=True)
            is_odd = Signal(BANKS, name=f"write_odd_{number}", reset_less=True)
            m.d.sync += [
                late_data.eq(write.data),
                late_strobe.eq(write.strobe),
                late_start.eq(write.address[:_OFFSET_BITS]),
                is_odd.eq(odd(write.address)),
            ]
            data, strobe = self._placed(m, number, late_start, late_data, late_strobe)
            for half, place, mine in zip(
                halves, places(write.address), (~is_odd, is_odd), strict=True
            ):
                late_place = Signal(len(place), reset_less=True)
                m.d.sync += late_place.eq(place)
                m.d.comb += [
                    half.write[number].next_address.eq(place),
                    half.write[number].address.eq(late_place),
                    half.write[number].data.eq(data),
                    half.write[number].lanes.eq(strobe & mine),
                ]
        return words

    @staticmethod
    def _placed(
        m: Module, number: int, start: Value, data: Value, strobe: Value
    ) -> tuple[Signal, Signal]:
        """Bytes of write port ``number``, the first of which goes to bank ``start``, by bank."""
        placed_data = Signal(8 * BANKS, name=f"write_data_{number}")
        placed_strobe = Signal(BANKS, name=f"write_strobe_{number}")
        turn = Signal(_OFFSET_BITS, name=f"write_turn_{number}")
        m.d.comb += [
            turn.eq(-start),
            placed_data.eq(rotate_units_right(data, turn, 8)),
            placed_strobe.eq(rotate_units_right(strobe, turn, 1)),
        ]
        return placed_data, placed_strobe
