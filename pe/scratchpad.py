"""Scratchpad: byte-addressable memory that serves any eight bytes, unaligned, in one access."""

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In

from hdl.coded_ram import CodedRam
from hdl.component import Component
from hdl.emission import shared_instance
from hdl.simd import rotate_units_right
from hdl.sram import Sram
from hdl.sram_fpga import DISTRIBUTED_DEPTH
from pe.vector.stages import read_cycles

from .capabilities import Capabilities
from .config import PeConfig
from .extensions.units import extensions
from .ports import ScratchpadReadPort, ScratchpadWritePort, rows_between
from .scratchpad_shared import Access, share

#: Banks, each a byte wide: together one word (thesis 5.1).
BANKS = 8
_OFFSET_BITS = (BANKS - 1).bit_length()
_STORE, _RESULT = "store", "result"


def read_roles(config: PeConfig) -> tuple[str, ...]:
    """Users of the read ports: the vector operands ``first`` and ``second``, ``store``, whose port
    extensions may use, too; only those that an instruction needs."""
    caps = Capabilities.of(config)
    roles = {
        "first": caps.vector,
        "second": caps.binary,
        _STORE: caps.transfers.stores or any(e.reads_scratchpad for e in extensions(config)),
    }
    return tuple(role for role, used in roles.items() if used)


def write_roles(config: PeConfig) -> tuple[str, ...]:
    """Users of the write ports: the vector ``result``, ``load``; only those that an instruction
    needs."""
    caps = Capabilities.of(config)
    roles = {_RESULT: caps.vector, "load": caps.transfers.loads}
    return tuple(role for role, used in roles.items() if used)


def _places(address: Value) -> tuple[Value, Value]:
    """Where an access lies among the even rows, and among the odd ones."""
    place = address[_OFFSET_BITS + 1 :]
    return (place + address[_OFFSET_BITS])[: len(place)], place


def _odd_lanes(start: Value, address: Value) -> Value:
    """For each bank, whether the byte of an access that begins in bank ``start`` lies in an odd
    row."""
    row = address[_OFFSET_BITS]
    return Cat(row ^ (start > index) for index in range(BANKS))


class Scratchpad(Component):
    """Byte-addressed memory with up to 3 read and 2 write ports of eight bytes at any alignment.

    Bank ``b`` of eight holds the bytes whose address is ``b`` modulo 8; sixteen are two such sets,
    one of the even rows of eight bytes and one of the odd rows. An access that is not aligned takes
    the next row of the banks in front of its first byte, and the bytes are rotated into order on
    their way (thesis 5.1 and Figure 5.1).

    With ``scratchpad_alignment``, the lower bits of all addresses are taken as 0, which leaves less
    to rotate, but not those of an element that an ``m.v`` instruction writes. With word alignment
    only such elements are rotated, and one memory replaces two.

    If no instruction uses it, there is no memory.

    With 16 banks (``scratchpad_banks``), the ports wait for each other
    (:class:`pe.scratchpad_shared.PortArbiter`), and a result is written up to a cycle later.

    In block RAMs the banks lie side by side in two memories, one of the even rows and one of the
    odd rows, of which every access touches one row each.

    Members:
        read: array of :class:`pe.ports.ScratchpadReadPort`, in, one for each of
            :func:`read_roles`: vector operands with their data after
            :func:`pe.vector.stages.read_cycles`, store with its data after one and not in order:
            byte ``b`` is that of bank ``b``.
        write: array of :class:`pe.ports.ScratchpadWritePort`, in, one for each of
            :func:`write_roles`. A byte that they write in one cycle or in successive ones is
            undefined.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        self.roles = read_roles(config)
        # A memory has at least one port of each kind.
        self._reads = max(1, len(self.roles))
        self._written = write_roles(config)
        self._writes = max(1, len(self._written))
        super().__init__(
            {
                "read": In(ScratchpadReadPort(config)).array(len(self.roles)),
                "write": In(ScratchpadWritePort(config)).array(len(self._written)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        if not (self.roles or self._written):
            return m
        rows = self.config.scratchpad_bytes // BANKS
        self._unused_bits = self.config.scratchpad_alignment.bit_length() - 1
        if self.config.shared_ports:
            words = self._shared(m, platform)
        elif self.config.sram != "fpga" or rows <= DISTRIBUTED_DEPTH:
            words = self._banks(m, platform)
        elif self.config.scratchpad_alignment == BANKS:
            words = self._words(m, platform)
        else:
            words = self._halves(m, platform)
        for number, (port, read) in enumerate(zip(self.read, words, strict=True)):
            if self.roles[number] == _STORE:
                m.d.comb += port.data.eq(read)
                continue
            word = read
            offset = Signal(_OFFSET_BITS, name=f"read_offset_{number}")
            goes = port.enable & port.ready if self.config.shared_ports else port.enable
            with m.If(goes):
                m.d.sync += offset.eq(self._offset(port.address))
            if read_cycles(self.config) > 1:
                fresh = Signal(name=f"read_fresh_{number}")
                late_word = Signal(8 * BANKS, name=f"read_word_{number}", reset_less=True)
                late_offset = Signal.like(offset, name=f"late_offset_{number}", reset_less=True)
                m.d.sync += fresh.eq(goes)
                with m.If(fresh):
                    m.d.sync += [late_word.eq(word), late_offset.eq(offset)]
                word, offset = late_word, late_offset
            m.d.comb += port.data.eq(rotate_units_right(word, offset, 8))
        return m

    def _banks(self, m: Module, platform: object) -> list[Value]:
        """One memory per bank; each read port's word, not yet in order, after a cycle."""
        config = self.config
        row_bits = config.scratchpad_bits - _OFFSET_BITS
        banks = [
            Sram(
                width=8,
                depth=config.scratchpad_bytes // BANKS,
                read_ports=self._reads,
                write_ports=self._writes,
                kind=config.sram,
            )
            for _ in range(BANKS)
        ]
        for index, bank in enumerate(banks):
            m.submodules[f"bank{index}"] = shared_instance(bank, platform)
        for number, port in enumerate(self.read):
            row = port.address[_OFFSET_BITS:]
            next_row = Signal(row_bits, name=f"read_next_row_{number}")
            m.d.comb += next_row.eq(row + 1)
            for index, bank in enumerate(banks):
                wraps = self._offset(port.address) > index
                m.d.comb += [
                    bank.read[number].enable.eq(port.enable),
                    bank.read[number].address.eq(Mux(wraps, next_row, row)),
                ]
        for number, write in enumerate(self.write):
            start = self._write_offset(number)
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
        return [Cat(bank.read[number].data for bank in banks) for number in range(len(self.roles))]

    def _shared(self, m: Module, platform: object) -> list[Value]:
        """As :meth:`_banks`, with banks of even and of odd rows, whose ports all accesses share."""
        accesses: dict[str, Access] = {}
        for role, port in zip(self.roles, self.read, strict=True):
            odd = self._odd(port.address)
            rows = rows_between(port.address, 0, BANKS - 1) & port.enable.replicate(2)
            accesses[role] = Access(rows, (~odd, odd), _places(port.address))
        for number, (role, write) in enumerate(zip(self._written, self.write, strict=True)):
            start = self._write_offset(number)
            word, lanes = self._placed(m, number, start, write.data, write.strobe)
            odd = _odd_lanes(start, write.address)
            accesses[role] = Access(
                write.rows, (lanes & ~odd, lanes & odd), _places(write.address), word
            )
        arbiter, rows = share(m, platform, self.config, accesses)
        for role, write in zip(self._written, self.write, strict=True):
            m.d.comb += write.ready.eq(1 if role == _RESULT else arbiter.load_ready)
        words: list[Value] = []
        for role, port in zip(self.roles, self.read, strict=True):
            stores = role == _STORE
            m.d.comb += port.ready.eq(arbiter.store_ready if stores else arbiter.beat)
            is_odd = Signal(BANKS, name=f"{role}_odd", reset_less=True)
            goes = port.enable & port.ready
            with m.If(goes):
                m.d.sync += is_odd.eq(self._odd(port.address))
            shows: Value = Cat(map(Mux, is_odd, *reversed(rows[role])))
            if stores:
                # Other words come to the port while the store waits for the memory.
                fresh = Signal(name="store_fresh")
                late_word = Signal(8 * BANKS, name="store_word", reset_less=True)
                m.d.sync += fresh.eq(goes)
                with m.If(fresh):
                    m.d.sync += late_word.eq(shows)
                shows = Mux(fresh, shows, late_word)
            words.append(shows)
        return words

    def _halves(self, m: Module, platform: object) -> list[Value]:
        """As :meth:`_banks`, with all banks in two memories. A write is performed in the cycle
        after, as its address must be known a cycle ahead."""
        config = self.config
        halves = [
            CodedRam(
                width=8 * BANKS,
                lanes=BANKS,
                depth=config.scratchpad_bytes // BANKS // 2,
                read_ports=self._reads,
                write_ports=self._writes,
            )
            for _ in range(2)
        ]
        for name, half in zip(("even", "odd"), halves, strict=True):
            m.submodules[name] = shared_instance(half, platform)

        words: list[Value] = []
        for number, port in enumerate(self.read):
            is_odd = Signal(BANKS, name=f"read_odd_{number}", reset_less=True)
            with m.If(port.enable):
                m.d.sync += is_odd.eq(self._odd(port.address))
            for half, place in zip(halves, _places(port.address), strict=True):
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
                late_start.eq(self._write_offset(number)),
                is_odd.eq(self._odd(write.address)),
            ]
            data, strobe = self._placed(m, number, late_start, late_data, late_strobe)
            for half, place, mine in zip(
                halves, _places(write.address), (~is_odd, is_odd), strict=True
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

    def _words(self, m: Module, platform: object) -> list[Value]:
        """As :meth:`_halves`, in one memory, as an aligned access touches one row."""
        ram = CodedRam(
            width=8 * BANKS,
            lanes=BANKS,
            depth=self.config.scratchpad_bytes // BANKS,
            read_ports=self._reads,
            write_ports=self._writes,
        )
        m.submodules.words = shared_instance(ram, platform)
        for number, port in enumerate(self.read):
            m.d.comb += [
                ram.read[number].enable.eq(port.enable),
                ram.read[number].address.eq(port.address[_OFFSET_BITS:]),
            ]
        for number, write in enumerate(self.write):
            data, strobe = self._placed(
                m, number, self._write_offset(number), write.data, write.strobe
            )
            m.d.comb += ram.write[number].next_address.eq(write.address[_OFFSET_BITS:])
            m.d.sync += [
                ram.write[number].address.eq(write.address[_OFFSET_BITS:]),
                ram.write[number].data.eq(data),
                ram.write[number].lanes.eq(strobe),
            ]
        return [ram.read[number].data for number in range(len(self.roles))]

    def _offset(self, address: Value) -> Value:
        """Place of an access's first byte within its row."""
        return Cat(Const(0, self._unused_bits), address[self._unused_bits : _OFFSET_BITS])

    def _odd(self, address: Value) -> Value:
        """For each bank, whether the byte of an access lies in an odd row."""
        return _odd_lanes(self._offset(address), address)

    def _write_offset(self, number: int) -> Value:
        """The same as :meth:`_offset` at write port ``number``; elements of ``m.v`` lie within the
        rows, too."""
        address = self.write[number].address
        unused = self._unused_bits
        reduced = Capabilities.of(self.config).reduced
        if self._written[number] == _RESULT and reduced:
            unused = min(unused, *reduced.widths)
        return Cat(Const(0, unused), address[unused:_OFFSET_BITS])

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
