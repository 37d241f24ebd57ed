"""Records facts about a program on the instruction set simulator, word by word.

The facts of an instruction are recorded after it, so one that faults leaves none.
"""

from collections.abc import Callable

from isa.iss.operations import Operation, ProcessorState
from isa.iss.simulator import Observer
from isa.table import FIELD_A, FIELD_B, FIELD_C, IMM14, Instruction, Opcode, Unit
from isa.workspace import DESCRIPTOR_BYTES

from .effects import held_range
from .facts import Facts
from .interval import signed, step_of
from .spans import register_access, transfer, vector_spans

__all__ = ["recorder"]


def recorder(facts: Facts) -> Observer:
    """An observer that records the program's actions in ``facts``, but not the words executed
    (:attr:`isa.iss.simulator.Simulator.visits` has those)."""

    def observe(
        state: ProcessorState, row: Instruction, word: int, address: int, operation: Operation
    ) -> Operation:
        if row.branch is not None:
            return _branch(facts, row, word, address, operation)
        if row.scalar is not None:
            return _scalar(facts, state, row, word, address, operation)
        if row.unit is Unit.VECTOR:
            return _vector(facts, state, row, word, address, operation)
        if row.opcode in (Opcode.LD_SRAM, Opcode.ST_SRAM):
            return _transfer(facts, state, row, word, address, operation)
        if row.opcode in (Opcode.LD_REG, Opcode.ST_REG):
            return _register(facts, state, row, word, address, operation)
        if row.opcode in (Opcode.MOV, Opcode.MOV_IMM):
            return _noted(facts.writes, state, word, address, operation)
        if row.opcode in (Opcode.SET_VL, Opcode.SET_MR, Opcode.SET_FX):
            return _noted(facts.sets, state, word, address, operation)
        if row.opcode == Opcode.SET_WS:
            return _declare(facts, state, word, address, operation)
        return operation

    return observe


def _branch(
    facts: Facts, row: Instruction, word: int, address: int, operation: Operation
) -> Operation:
    next_word = address + 1
    # Both sides of a branch to the next word are the same.
    to_next = row.operands[-1].field.extract(word) == 1

    def observed() -> int:
        following = operation()
        if following != next_word or to_next:
            facts.taken.add(address)
        if following == next_word:
            facts.passed.add(address)
        return following

    return observed


def _scalar(
    facts: Facts,
    state: ProcessorState,
    row: Instruction,
    word: int,
    address: int,
    operation: Operation,
) -> Operation:
    assert row.scalar is not None
    registers, which = state.registers, row.scalar
    a, b, c = FIELD_A.extract(word), FIELD_B.extract(word), FIELD_C.extract(word)
    constant = IMM14.extract(word) if row.operands[2].field is IMM14 else None

    def observed() -> int:
        first = signed(registers[b])
        second = signed(registers[c]) if constant is None else constant
        following = operation()
        facts.writes(address, *held_range(which, first, second, signed(registers[a])))
        return following

    return observed


def _noted(
    note: Callable[[int, int, int], None],
    state: ProcessorState,
    word: int,
    address: int,
    operation: Operation,
) -> Operation:
    """The value of register A goes to ``note``."""
    registers, a = state.registers, FIELD_A.extract(word)

    def observed() -> int:
        following = operation()
        value = signed(registers[a])
        note(address, value, value)
        return following

    return observed


def _declare(
    facts: Facts, state: ProcessorState, word: int, address: int, operation: Operation
) -> Operation:
    registers, a = state.registers, FIELD_A.extract(word)

    def observed() -> int:
        following = operation()
        now = state.workspace
        assert now is not None
        ends = (now.image + now.image_bytes, now.window + now.window_bytes)
        facts.reaches(address, max(registers[a] + DESCRIPTOR_BYTES, *ends))
        facts.lies(address, min(map(step_of, (now.image, now.window, now.pixel_bytes))))
        return following

    return observed


def _vector(
    facts: Facts,
    state: ProcessorState,
    row: Instruction,
    word: int,
    address: int,
    operation: Operation,
) -> Operation:
    assert row.width is not None
    registers, width, spans = state.registers, row.width.bytes, vector_spans(row, word)

    def observed() -> int:
        following = operation()
        vl, mr = state.vl, state.mr
        facts.touches(
            address,
            max(
                registers[span.register] + width * (vl if span.vl else 1) * (mr if span.mr else 1)
                for span in spans
            ),
        )
        facts.lies(address, min(step_of(registers[span.register]) for span in spans))
        return following

    return observed


def _transfer(
    facts: Facts,
    state: ProcessorState,
    row: Instruction,
    word: int,
    address: int,
    operation: Operation,
) -> Operation:
    assert row.width is not None
    registers, width, used = state.registers, row.width.bytes, transfer(row, word)

    def observed() -> int:
        following = operation()
        size = registers[used.length] * width
        facts.touches(address, registers[used.near] + size)
        facts.lies(address, min(step_of(registers[used.near]), step_of(registers[used.far])))
        facts.reaches(address, registers[used.far] + size)
        return following

    return observed


def _register(
    facts: Facts,
    state: ProcessorState,
    row: Instruction,
    word: int,
    address: int,
    operation: Operation,
) -> Operation:
    assert row.width is not None
    registers, width = state.registers, row.width.bytes
    far, loaded, _ = register_access(row, word)

    def observed() -> int:
        end = registers[far] + width
        following = operation()
        facts.reaches(address, end)
        if loaded is not None:
            value = signed(registers[loaded])
            facts.writes(address, value, value)
        return following

    return observed
