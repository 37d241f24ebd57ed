"""The bytes and registers that an instruction is about to access."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from isa.iss.state import ProcessorState
from isa.table import FIELD_A, FIELD_B, FIELD_C, Instruction, Unit
from isa.timing import VectorOperation

#: Where bytes lie; for a register, its number stands for the address.
Space = Literal["scratchpad", "memory", "register"]


class Access(NamedTuple):
    """Bytes ``start .. start + size`` of ``space``, and whether they are written."""

    space: Space
    start: int
    size: int
    writes: bool

    def overlaps(self, space: Space, start: int, size: int) -> bool:
        """Whether a byte is among ``size`` bytes of ``space`` from ``start`` on."""
        first, last = max(start, self.start), min(start + size, self.start + self.size)
        return space == self.space and first < last


def accesses(
    state: ProcessorState, row: Instruction, word: int
) -> Callable[[], tuple[Access, ...]] | None:
    """A function that returns the accesses of ``word`` under the current registers and settings;
    None if the instruction accesses nothing.

    Parameters:
        row: the instruction that ``word`` encodes.

    The addresses are those that the instruction uses, legal or not.
    """
    target = row.writes
    if row.unit is Unit.VECTOR:
        return _vector(state, row, word)
    if row.memory is not None:
        return _transfer(state, row, word)
    if target is not None:
        written = (Access("register", target.extract(word), 1, True),)
        return lambda: written
    return None


def vector_operation(
    state: ProcessorState, row: Instruction, word: int
) -> Callable[[], VectorOperation]:
    """A function that returns the vector instruction ``word``, an encoding of ``row``, under the
    current registers and settings."""
    registers = state.registers
    a, b, c = FIELD_A.extract(word), FIELD_B.extract(word), FIELD_C.extract(word)
    return lambda: VectorOperation(
        row, registers[a], registers[b], registers[c], state.vl, state.mr
    )


def _vector(state: ProcessorState, row: Instruction, word: int) -> Callable[[], tuple[Access, ...]]:
    issued = vector_operation(state, row, word)
    return lambda: tuple(
        Access("scratchpad", *span, writes=not number) for number, span in enumerate(issued().spans)
    )


def _transfer(
    state: ProcessorState, row: Instruction, word: int
) -> Callable[[], tuple[Access, ...]]:
    assert row.width is not None
    assert row.memory is not None
    registers, width, loads = state.registers, row.width.bytes, row.loads
    far, length = row.memory.field.extract(word), FIELD_C.extract(word)
    if not row.scratchpad:
        target = row.writes

        def register() -> tuple[Access, ...]:
            memory = Access("memory", registers[far], width, not loads)
            if target is None:
                return (memory,)
            return (memory, Access("register", target.extract(word), 1, True))

        return register
    (near,) = (operand.field.extract(word) for operand in row.scratchpad)

    def both() -> tuple[Access, ...]:
        size = registers[length] * width
        return (
            Access("memory", registers[far], size, not loads),
            Access("scratchpad", registers[near], size, loads),
        )

    return both
