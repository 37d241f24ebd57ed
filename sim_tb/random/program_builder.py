"""Builds random programs word by word and tracks known register values and hazards."""

from random import Random

from isa.instruction import fits
from isa.launch import START_FX, START_MR, START_VL
from isa.program import Span
from isa.table import BY_KEY, IMM14, IMM20, Instruction
from isa.timing import HazardModel
from isa.workspace import Workspace
from pe.config import PeConfig

_M64 = (1 << 64) - 1
#: Vector settings of a launch.
_START: dict[str, int | None] = {"vl": START_VL, "mr": START_MR, "fx": START_FX}
#: Values that expose errors of 64-bit arithmetic.
HOSTILE = (0, 1, _M64, 1 << 63, (1 << 63) - 1, 0x8000_0000, 0x7FFF_FFFF, 0x8000, 0x7F80, 0x55AA)

_CHUNK = 13
#: Register allocation: loop counters and limits at the top, then pointers, then data.
_LOOP_REGISTERS = 4
NEEDED = ("mov.imm", "add.imm", "sll.imm", "or.imm", "bne", "blt", "bge", "jmp", "v.drain")


class ProgramBuilder:
    """A program under construction.

    There are three kinds of registers: loop counters; pointers, set to a known value right before
    each use; and data, with any values.

    Attributes:
        words: the program so far.
        known: values of the registers whose value is known.
        settings: ``vl``, ``mr``, ``fx``; None where unknown.
        workspace: the declared one; None: unknown.
        hazards: of the vector unit.
        table: read-only memory from which pointers are loaded.
        table_values: address -> its initial 64-bit value.

    Raises:
        ValueError: the engine lacks an instruction that every program needs.
    """

    def __init__(self, random: Random, config: PeConfig, table: Span) -> None:
        lacking = [key for key in NEEDED if key not in config.instructions]
        if lacking:
            raise ValueError(f"random programs need an engine with the instruction {lacking[0]!r}")
        self.random = random
        self.config = config
        self.table = table
        self.table_values: dict[int, int] = {}
        self.words: list[int] = []
        self.known: dict[int, int] = {}
        self.settings: dict[str, int | None] = dict(_START)
        self.workspace: Workspace | None = None
        self.hazards = HazardModel()
        self.loop_registers = range(config.registers - _LOOP_REGISTERS, config.registers)
        pointers = config.registers - _LOOP_REGISTERS
        self._pointers = range(pointers - max(3, pointers // 4), pointers)
        self._next_pointer = 0

    def word(self, word: int) -> None:
        """Append a word that is data, or that must not be executed."""
        self.words.append(word)

    def emit(self, key: str, *operands: int) -> int:
        """Append an instruction with its operands in assembly order; returns its address."""
        row = BY_KEY[key]
        word = row.match
        for operand, value in zip(row.operands, operands, strict=True):
            word |= operand.field.insert(value)
        self.words.append(word)
        if row.writes is not None:
            self.known.pop(row.writes.extract(word), None)
        return len(self.words) - 1

    def patch(self, at: int, key: str, *operands: int) -> None:
        """Replace the instruction at address ``at``."""
        row = BY_KEY[key]
        self.words[at] = row.match
        for operand, value in zip(row.operands, operands, strict=True):
            self.words[at] |= operand.field.insert(value)

    def join(self) -> None:
        """Join several control paths: forget known values and drain."""
        self.known.clear()
        self.workspace = None
        self.settings = {
            which: None if f"set.{which}" in self.config.instructions else start
            for which, start in _START.items()
        }
        self.drain()

    def drain(self) -> None:
        """Append ``v.drain``."""
        self.emit("v.drain")
        self.hazards.drained()

    def pad(self, length: int) -> None:
        """Append instructions that change nothing, until the program has ``length`` words. Later
        random numbers are the same as without it."""
        random = Random(length)
        while len(self.words) < length:
            register = random.randrange(self.config.registers)
            key, operands = random.choice(
                (("jmp", (1,)), ("v.drain", ()), ("bne", (register, register, 1)))
            )
            self.emit(key, *operands)

    # State that can't be set or read in another way.

    def fill(self, window: Span) -> None:
        """Load the whole scratchpad from the start of ``window``."""
        count = self.config.scratchpad_bytes // 8
        self.emit("ld.sram[64]", *self.addresses(0, window.start, count))

    def dump(self, scratchpad: Span, registers: Span) -> None:
        """Store the whole scratchpad and all registers except one to the starts of two windows."""
        self.drain()
        pointer = self.loop_registers[0]
        self.constant(pointer, registers.start)
        for number in range(self.config.registers):
            self.emit("st.reg[64]", pointer, number)
            self.emit("add.imm", pointer, pointer, 8)
        count = self.config.scratchpad_bytes // 8
        self.emit("st.sram[64]", *self.addresses(scratchpad.start, 0, count))

    # Registers.

    def data_register(self) -> int:
        """A register on whose value no later instruction relies."""
        return self.random.randrange(self._pointers.start)

    def any_register(self) -> int:
        """Any register, for reading."""
        return self.random.randrange(self.config.registers)

    def holds(self, value: int) -> bool:
        """Whether a register of the engine can hold ``value`` (modulo 2**64)."""
        value &= _M64
        return fits(value - (1 << 64) if value >> 63 else value, self.config.register_width)

    def constant(self, register: int, value: int) -> None:
        """Load ``value`` (modulo 2**64) into ``register``."""
        value &= _M64
        signed = value - (1 << 64) if value >> 63 else value
        if signed in IMM20.range:
            self.emit("mov.imm", register, signed)
        else:
            chunks = []
            rest = signed
            while rest not in IMM20.range:
                chunks.append(rest & ((1 << _CHUNK) - 1))
                rest >>= _CHUNK
            self.emit("mov.imm", register, rest)
            for chunk in reversed(chunks):
                self.emit("sll.imm", register, register, _CHUNK)
                self.emit("or.imm", register, register, chunk)
        self.known[register] = value

    def addresses(self, *values: int) -> list[int]:
        """Load ``values`` into pointer registers in one of several ways; returns the registers."""
        registers: list[int] = []
        for value in values:
            registers.append(self._address(value & _M64, registers))
        return registers

    def address(self, value: int) -> int:
        """Load ``value`` into a pointer register; returns the register."""
        return self.addresses(value)[0]

    def _address(self, value: int, reserved: list[int]) -> int:
        holders = [number for number in self._pointers if self.known.get(number) == value]
        if holders and self.random.random() < 0.7:
            return self.random.choice(holders)
        free = [number for number in self._pointers if number not in reserved]
        self._next_pointer += 1
        register = free[self._next_pointer % len(free)]
        near = [number for number in self.known if value - self.known[number] in IMM14.range]
        how = self.random.random()
        if near and how < 0.8:
            base = self.random.choice(near)
            distance = value - self.known[base]
            self.emit("add.imm", register, base, distance)
            self.known[register] = value
            return register
        how = self.random.random()
        if how < 0.15 and "ld.reg[64]" in self.config.instructions and self.holds(value):
            self._from_table(register, value)
        elif how < 0.3:
            offset = self.random.choice(IMM14.range)
            if not self.holds(value - offset):
                offset = 0
            self.constant(register, value - offset)
            self.emit("add.imm", register, register, offset)
        elif how < 0.4 and "mov" in self.config.instructions:
            self.constant(other := self.data_register(), value)
            self.emit("mov", register, other)
        else:
            self.constant(register, value)
        self.known[register] = value
        return register

    def _from_table(self, register: int, value: int) -> None:
        free = range(self.table.start, self.table.start + self.table.size, 8)
        for address in free:
            if self.table_values.setdefault(address, value) == value:
                self.constant(register, address)
                self.emit("ld.reg[64]", register, register)
                return
        self.constant(register, value)

    def set_vector(self, which: str, value: int) -> None:
        """Set ``vl``, ``mr`` or ``fx``."""
        self.emit(f"set.{which}", self.address(value))
        self.settings[which] = value

    # Addresses.

    def scratchpad_address(self, size: int) -> int:
        """A scratchpad address with room for ``size`` bytes, likely near earlier ones."""
        last = self.config.scratchpad_bytes - size
        addresses = [value for value in self.known.values() if value <= last]
        if addresses and self.random.random() < 0.5:
            return self._aligned(self.random.choice(addresses))
        near = self.random.randint(0, min(last, 96))
        anywhere = self.random.randint(0, last)
        return self._aligned(self.random.choice((near, anywhere, last, near & ~7)))

    def dram_address(self, window: Span, size: int) -> int:
        """An address in ``window`` with room for ``size`` bytes, likely near earlier ones."""
        last = window.start + window.size - size
        addresses = [value for value in self.known.values() if window.start <= value <= last]
        if addresses and self.random.random() < 0.3:
            return self._aligned(self.random.choice(addresses))
        near = self.random.randint(max(window.start, last - 128), last)
        low = window.start + self.table.size
        chosen = (near, self.random.randint(window.start, last), last, near & ~31)
        return self._aligned(max(window.start, self.random.choice((*chosen, min(last, low)))))

    def _aligned(self, address: int) -> int:
        """``address``, rounded down to where the engine can begin an access."""
        return address & -self.config.scratchpad_alignment

    def ragged(self, row: Instruction, vl: int) -> bool:
        """Whether ``row`` has a matrix with rows of ``vl`` elements that begin where no access of
        the engine can."""
        if row.reduction is None or row.width is None:
            return False
        return vl * row.width.bytes % self.config.scratchpad_alignment != 0

    def in_table(self, span: Span) -> bool:
        """Whether ``span`` overlaps the table, which must not be written."""
        end = self.table.start + self.table.size
        return span.start < end and self.table.start < span.start + span.size
