"""Effects of instructions on states of the analysis: one closure per word, created once."""

from collections.abc import Callable, Mapping

from isa.table import (
    FIELD_A,
    FIELD_B,
    FIELD_C,
    IMM14,
    IMM20,
    MAX_FX,
    Instruction,
    Opcode,
    Role,
    ScalarOp,
    Unit,
)
from isa.workspace import DESCRIPTOR_BYTES
from pe.config import PeConfig

from .contents import NOTHING_KNOWN, SELF_WRITTEN_BYTES, Contents
from .facts import Facts
from .interval import (
    ANY,
    Interval,
    Value,
    bounds,
    clip,
    evaluate,
    step_of,
)
from .needs import FX, MR, SLOTS, VL

#: Values of all registers, then VL, MR and FX, then the numbers in memory that the program itself
#: stores.
Registers = list[Value]


#: Updates the registers; returns whether a run can continue after the word.
Effect = Callable[[Registers], bool]


def held_range(operation: ScalarOp, b: Value, c: Value, result: Value) -> tuple[int, int]:
    """Numbers that registers must be wide enough for, so that a scalar instruction does not fault.

    Usually its ``result``; an ``sll`` that loses bits and an ``srl`` of a negative number need all
    bits (:meth:`isa.table.ScalarOp.evaluate_narrow`).
    """
    low, high = bounds(b)
    if operation is ScalarOp.SRL and low < 0:
        return bounds(ANY)
    if operation is ScalarOp.SLL:
        low_amount, high_amount = (c & 63, c & 63) if isinstance(c, int) else (0, 63)
        reached = [end << amount for end in (low, high) for amount in (low_amount, high_amount)]
        return max(min(*reached, ANY.high), ANY.low), min(max(*reached, ANY.low), ANY.high)
    return bounds(result)


class Overwrite(Exception):
    """Arguments: a word, first and end address, span. The word may store to ``first``..``end`` - 1,
    which overlaps the declared span."""


class SelfWritten(Exception):
    """The program stores the bounded number at its argument, which therefore needs a state slot."""


class Effects:
    """Creates the effects of words on an engine of ``config``; they record facts in ``facts``.

    A word that certainly faults ends the run. If a word may fault, its operands are narrowed
    afterwards to values with which it does not.

    Parameters:
        contents: known memory.
        self_written: addresses of the numbers in it that the program stores, in the order of their
            state slots.

    Attributes:
        varying: words whose addresses, lengths or settings depend on data.
        unknown: word that loads an unknown number -> first address and end of where it may be.
    """

    def __init__(
        self,
        config: PeConfig,
        facts: Facts,
        contents: Contents = NOTHING_KNOWN,
        self_written: tuple[int, ...] = (),
    ) -> None:
        self.facts = facts
        self.contents = contents
        self.self_written: Mapping[int, int] = {
            place: SLOTS + n for n, place in enumerate(self_written)
        }
        self.varying: set[int] = set()
        self.unknown: dict[int, tuple[int, int]] = {}
        self.pad = config.scratchpad_bytes
        self.memory = 1 << config.address_bits
        self.low = -(1 << (config.register_width - 1))
        self.high = -1 - self.low
        self.settings = {
            Opcode.SET_VL: (VL, 1, config.max_vl),
            Opcode.SET_MR: (MR, 1, config.max_mr),
            Opcode.SET_FX: (FX, 0, MAX_FX),
        }

    def of(self, row: Instruction, word: int, address: int) -> Effect:
        """The effect of ``word``, an encoding of ``row`` that is neither a branch nor ``halt``."""
        if row.scalar is not None:
            return self._scalar(row, word, address)
        if row.unit is Unit.VECTOR:
            return self._vector(row, word, address)
        if row.memory is not None:
            kind = self._transfer if row.scratchpad else self._register
            return kind(row, word, address)
        opcode = Opcode(row.opcode)
        if opcode in (Opcode.MOV, Opcode.MOV_IMM):
            return self._move(row, word, address)
        if opcode in self.settings:
            return self._setting(opcode, word, address)
        if opcode is Opcode.SET_WS:
            return self._declare(word, address)
        return lambda registers: True

    def _declare(self, word: int, address: int) -> Effect:
        """The effect of ``set.ws``, whose descriptor may name any image and window."""
        a, facts, memory = FIELD_A.extract(word), self.facts, self.memory

        def effect(registers: Registers) -> bool:
            if clip(registers[a], 0, memory - DESCRIPTOR_BYTES) is None:
                return False
            facts.reaches(address, memory)
            facts.lies(address, 1)
            return True

        return effect

    def _scalar(self, row: Instruction, word: int, address: int) -> Effect:
        operation = row.scalar
        assert operation is not None
        a, b, c = FIELD_A.extract(word), FIELD_B.extract(word), FIELD_C.extract(word)
        constant = IMM14.extract(word) if row.operands[2].field is IMM14 else None
        facts, low_limit, high_limit = self.facts, self.low, self.high

        def effect(registers: Registers) -> bool:
            first = registers[b]
            second = registers[c] if constant is None else constant
            result = evaluate(operation, first, second)
            low, high = held_range(operation, first, second, result)
            if low > high_limit or high < low_limit:
                return False
            facts.writes(address, max(low, low_limit), min(high, high_limit))
            value = clip(result, low_limit, high_limit)
            if value is None:
                return False
            registers[a] = value
            return True

        return effect

    def _move(self, row: Instruction, word: int, address: int) -> Effect:
        a, b, facts = FIELD_A.extract(word), FIELD_B.extract(word), self.facts
        constant = IMM20.extract(word) if row.opcode == Opcode.MOV_IMM else None

        def effect(registers: Registers) -> bool:
            value = registers[b] if constant is None else constant
            registers[a] = value
            facts.writes(address, *bounds(value))
            return True

        return effect

    def _setting(self, opcode: Opcode, word: int, address: int) -> Effect:
        slot, lowest, highest = self.settings[opcode]
        a, facts, varying = FIELD_A.extract(word), self.facts, self.varying

        def effect(registers: Registers) -> bool:
            value = clip(registers[a], lowest, highest)
            if value is None:
                return False
            facts.sets(address, *bounds(value))
            registers[a] = registers[slot] = value
            if value.__class__ is not int and slot != FX:
                varying.add(address)
            return True

        return effect

    def _vector(self, row: Instruction, word: int, address: int) -> Effect:
        assert row.width is not None
        width = row.width.bytes
        spans = [
            (operand.field.extract(word), operand.extent.by_vl, operand.extent.by_mr)
            for operand in row.scratchpad
        ]
        has_rows = any(by_vl and by_mr for _, by_vl, by_mr in spans)
        facts, inside, varying = self.facts, self._inside, self.varying

        def effect(registers: Registers) -> bool:
            (vl_low, vl_high), (mr_low, mr_high) = bounds(registers[VL]), bounds(registers[MR])
            ends = []
            for register, by_vl, by_mr in spans:
                smallest = width * (vl_low if by_vl else 1) * (mr_low if by_mr else 1)
                largest = width * (vl_high if by_vl else 1) * (mr_high if by_mr else 1)
                end = inside(registers, register, smallest, largest)
                if end is None:
                    return False
                if registers[register].__class__ is not int:
                    varying.add(address)
                ends.append(end)
            facts.touches(address, max(ends))
            steps = [step_of(registers[register]) for register, _, _ in spans]
            if has_rows:
                steps.append(width * step_of(registers[VL]))
            facts.lies(address, min(steps))
            return True

        return effect

    def _inside(
        self, registers: Registers, register: int, smallest: int, largest: int
    ) -> int | None:
        """End of the scratchpad bytes that a word accesses from the address in ``register`` on.

        Parameters:
            smallest, largest: number of bytes.

        Returns:
            None if it certainly faults.
        """
        place = clip(registers[register], 0, self.pad - smallest)
        if place is None:
            return None
        registers[register] = place
        return min(bounds(place)[1] + largest, self.pad)

    def _transfer(self, row: Instruction, word: int, address: int) -> Effect:
        assert row.width is not None
        width = row.width.bytes
        named = row.by_role(word)
        near, far = named[Role.SCRATCHPAD_ADDRESS], named[Role.DRAM_ADDRESS]
        length = named[Role.LENGTH]
        facts, inside, pad, memory = self.facts, self._inside, self.pad, self.memory
        held_in, varying, stores = self.contents.held_in, self.varying, row.opcode == Opcode.ST_SRAM

        def effect(registers: Registers) -> bool:
            count = clip(registers[length], 0, min(pad, memory) // width)
            if count is None:
                return False
            registers[length] = count
            smallest, largest = (end * width for end in bounds(count))
            end = inside(registers, near, smallest, largest)
            place = clip(registers[far], 0, memory - smallest)
            if end is None or place is None:
                return False
            registers[far] = place
            if any(registers[register].__class__ is not int for register in (near, far, length)):
                varying.add(address)
            last = min(bounds(place)[1] + largest, memory)
            if stores and (span := held_in(bounds(place)[0], last)) is not None:
                raise Overwrite(address, bounds(place)[0], last, span)
            facts.touches(address, end)
            facts.lies(address, min(step_of(registers[near]), step_of(place)))
            facts.reaches(address, last)
            return True

        return effect

    def _register(self, row: Instruction, word: int, address: int) -> Effect:
        assert row.width is not None
        width, bits = row.width.bytes, row.width.bits
        named = row.by_role(word)
        far, written = named[Role.DRAM_ADDRESS], named.get(Role.DESTINATION)
        stored = named.get(Role.SOURCE)
        facts, memory, varying = self.facts, self.memory, self.varying
        low = max(-(1 << (bits - 1)), self.low)
        any_number = Interval(low, -1 - low)

        def effect(registers: Registers) -> bool:
            value = registers[far]
            if isinstance(value, int) and value % width:
                return False
            place = clip(value, 0, memory - width)
            if place is None:
                return False
            registers[far] = place
            facts.reaches(address, bounds(place)[1] + width)
            if place.__class__ is not int:
                varying.add(address)
            if stored is not None:
                self._store(registers, address, place, width, registers[stored])
            if written is None:
                return True
            loaded = self._load(registers, address, place, width)
            number = clip(any_number if loaded is None else loaded, low, -1 - low)
            if number is None:
                return False
            registers[written] = number
            facts.writes(address, *bounds(number))
            return True

        return effect

    def _load(self, registers: Registers, address: int, place: Value, width: int) -> Value | None:
        """The number that word ``address`` loads; None if unknown."""
        first, last = bounds(place)
        slot = self.self_written.get(first)
        if slot is not None and first == last and width == SELF_WRITTEN_BYTES:
            return registers[slot]
        # It may load from several places, and the program may have changed one of them.
        changed = any(
            first < number + SELF_WRITTEN_BYTES and number < last + width
            for number in self.self_written
        )
        loaded = None if changed else self.contents.load(place, width)
        if loaded is None:
            self.merge_unknown({address: (first, last + width)})
        return loaded

    def merge_unknown(self, loads: Mapping[int, tuple[int, int]]) -> None:
        """Add to :attr:`unknown`."""
        for address, (first, end) in loads.items():
            extent = self.unknown.get(address, (first, end))
            self.unknown[address] = min(extent[0], first), max(extent[1], end)

    def _store(
        self, registers: Registers, address: int, place: Value, width: int, value: Value
    ) -> None:
        """Store ``value`` by word ``address``; it is remembered only in declared memory."""
        first, last = bounds(place)
        span = self.contents.held_in(first, last + width)
        if span is None:
            return
        self_written = first == last and width == SELF_WRITTEN_BYTES
        if not self_written or self.contents.numbers_at(first, width) is None:
            raise Overwrite(address, first, last + width, span)
        if first not in self.self_written:
            raise SelfWritten(first)
        registers[self.self_written[first]] = value
