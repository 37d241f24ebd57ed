"""Faults in words: where, which instruction, with what operands, and what is allowed."""

from collections.abc import Callable, Sequence

from isa.assembly.disassembler import located
from isa.faults import FaultCause
from isa.instruction import BranchOp
from isa.launch import START_REGISTERS
from isa.program import Program
from isa.table import FIELD_A, FIELD_C, MAX_FX, Extent, Instruction, Opcode, Unit, find
from isa.workspace import DESCRIPTOR_BYTES, Workspace, WorkspaceError
from support.errors import counted

from .state import ProcessorState

#: What a cause means where the operands are not known.
_MEANS = {
    FaultCause.VECTOR_SETTING: "the value is outside the range of this setting",
    FaultCause.SCRATCHPAD_RANGE: "an operand or result is outside the scratchpad or not aligned",
    FaultCause.MISALIGNED: "the address is not aligned as this instruction or engine needs",
    FaultCause.DRAM_RANGE: "a byte lies outside the memory",
    FaultCause.MEMORY_ERROR: (
        "the memory answered a request with an error, of this instruction or an earlier one"
    ),
    FaultCause.REGISTER_RANGE: (
        "a value does not fit the registers of this engine: of this instruction, of a load before "
        "it, or the launch's parameter"
    ),
    FaultCause.WORKSPACE: "the descriptor declares no workspace",
    FaultCause.STORE_TO_WORKSPACE: "a store may not touch the window or the image of the workspace",
    FaultCause.WORKSPACE_EDGE: (
        "a load lies in the window of the workspace in part only, or is not ld.sram"
    ),
}


def fault_line(
    program: Program | Sequence[int],
    cause: FaultCause,
    pc: int,
    state: ProcessorState | None = None,
) -> str:
    """One line for a person: ``unal.s:3: ld.reg [64-bit] r9, r1: address 0x3 (r1) is not a multiple
    of 8``.

    Parameters:
        program: that ran; words alone have no source lines. pc: word address that the engine
            reports.
        state: of the engine, which the instruction has left as it was; None: not known, so that the
            line has no values.
    """
    if not isinstance(program, Program):
        program = Program(tuple(program))
    if cause is FaultCause.PC_OUT_OF_PROGRAM or not 0 <= pc < len(program.words):
        return _out_of_program(program, pc)
    row = find(program.words[pc])
    return f"{located(program, pc)}: {_reason(program.words[pc], row, cause, state)}"


def _out_of_program(program: Program, pc: int) -> str:
    size = len(program.words)
    last = find(program.words[-1]) if size else None
    through = last is None or (last.opcode != Opcode.HALT and last.branch is not BranchOp.JMP)
    if pc == size and size and through:
        return f"{located(program, size - 1)}: ran past the last instruction: is a `halt` missing?"
    for address, word in enumerate(program.words):
        row = find(word)
        if row and row.branch is not None and address + row.operands[-1].field.extract(word) == pc:
            hint = ": is a `halt` missing there?" if pc == size else ""
            outside = f"branches to word {pc}, outside the program, 0 to {size - 1}"
            return f"{located(program, address)}: {outside}{hint}"
    return f"word {pc} is outside the program of {size} words"


def _reason(
    word: int, row: Instruction | None, cause: FaultCause, state: ProcessorState | None
) -> str:
    if row is None:
        return "not an instruction; does the program run into data, with a `halt` missing?"
    if cause is FaultCause.ILLEGAL_INSTRUCTION:
        return _illegal(word, row, state)
    explain = _EXPLAIN.get(cause)
    if state is None or explain is None:
        return _MEANS[cause]
    return explain(word, row, state) or _MEANS[cause]


def _illegal(word: int, row: Instruction, state: ProcessorState | None) -> str:
    numbers = [one.field.extract(word) for one in row.operands if one.is_register]
    number = max(numbers, default=0)
    reason = f"this engine is built without {row.key}"
    if state is None:
        # A launch sets registers that every engine has.
        return f"{reason}, or without r{number}" if number > max(START_REGISTERS) else reason
    highest = len(state.registers) - 1
    if number > highest:
        return f"this engine has no r{number}; its registers are r0 to r{highest}"
    return reason


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _setting(word: int, row: Instruction, state: ProcessorState) -> str:
    low, high = {
        Opcode.SET_VL: (1, state.max_vl),
        Opcode.SET_MR: (1, state.max_mr),
        Opcode.SET_FX: (0, MAX_FX),
    }[Opcode(row.opcode)]
    register = FIELD_A.extract(word)
    return f"{_signed(state.registers[register])} (r{register}) is not from {low} to {high}"


def _bytes(size: int, start: int, register: int, verb: str) -> str:
    """``size`` bytes, and the ``verb`` of what they do."""
    where = f"from {start:#x} (r{register})"
    return f"{counted(size, 'byte')} {where} {verb}{'s' if size == 1 else ''}"


def _length(word: int, row: Instruction, state: ProcessorState) -> int:
    """Bytes that a load or store moves."""
    assert row.width is not None
    count = state.registers[FIELD_C.extract(word)] if row.scratchpad else 1
    return count * row.width.bytes


def _count(word: int, row: Instruction, state: ProcessorState) -> str:
    """The register with the number of elements of a load or store, and its value."""
    register = FIELD_C.extract(word)
    return f"; r{register} is {state.registers[register]:,}" if row.scratchpad else ""


def _scratchpad(word: int, row: Instruction, state: ProcessorState) -> str:
    assert row.width is not None
    settings = f"; VL {state.vl}, MR {state.mr}"
    if row.unit is not Unit.VECTOR:
        settings = _count(word, row, state)
    for operand in (*row.scratchpad[1:], row.scratchpad[0]):
        register = operand.field.extract(word)
        start = state.registers[register]
        if row.unit is Unit.VECTOR:
            extent = operand.extent
            rows, columns = state.mr if extent.by_mr else 1, state.vl if extent.by_vl else 1
            size = rows * columns * row.width.bytes
        else:
            size = _length(word, row, state)
        if start & state.unaligned:
            return (
                f"scratchpad address {start:#x} (r{register}) is not a multiple of "
                f"{state.unaligned + 1}, as this engine needs"
            )
        if operand.extent is Extent.MATRIX and state.vl * row.width.bytes & state.unaligned:
            return (
                f"a row of {counted(state.vl * row.width.bytes, 'byte')} is not a multiple of "
                f"{state.unaligned + 1}, as this engine needs{settings}"
            )
        if start + size > len(state.scratchpad):
            return (
                f"{_bytes(size, start, register, 'leave')} the scratchpad, 0x0 to "
                f"{len(state.scratchpad) - 1:#x}{settings}"
            )
    return ""


def _memory(row: Instruction, word: int, state: ProcessorState) -> tuple[int, int]:
    """The register with the memory address of a load, a store or ``set.ws``, and the address."""
    register = (FIELD_A if row.memory is None else row.memory.field).extract(word)
    return register, state.registers[register]


def _misaligned(word: int, row: Instruction, state: ProcessorState) -> str:
    register, start = _memory(row, word, state)
    multiple = DESCRIPTOR_BYTES
    if row.opcode != Opcode.SET_WS:
        assert row.width is not None
        multiple = state.unaligned + 1 if row.scratchpad else row.width.bytes
    return f"address {start:#x} (r{register}) is not a multiple of {multiple}"


def _outside_memory(word: int, row: Instruction, state: ProcessorState) -> str:
    register, start = _memory(row, word, state)
    size = DESCRIPTOR_BYTES if row.opcode == Opcode.SET_WS else _length(word, row, state)
    if start + size <= state.memory_bytes:
        return "a pixel of the workspace lies outside the memory"
    end, settings = state.memory_bytes - 1, _count(word, row, state)
    return f"{_bytes(size, start, register, 'leave')} the memory, 0x0 to {end:#x}{settings}"


def _register(word: int, row: Instruction, state: ProcessorState) -> str:
    read = ", ".join(
        f"r{number} is {_signed(state.registers[number])}"
        for number in dict.fromkeys(field.extract(word) for field in row.reads)
    )
    what = "the loaded value" if row.loads else "the result"
    return f"{what} does not fit a register of {state.register_width} bits ({read})"


def _workspace(word: int, row: Instruction, state: ProcessorState) -> str:
    register, start = _memory(row, word, state)
    try:
        workspace = Workspace.unpack(state.memory.read(start, DESCRIPTOR_BYTES))
        workspace.check(state.address_space, state.unaligned + 1)
    except WorkspaceError as error:
        return f"the descriptor at {start:#x} (r{register}) declares no workspace: {error}"
    return ""


def _workspace_access(word: int, row: Instruction, state: ProcessorState) -> str:
    register, start = _memory(row, word, state)
    size = _length(word, row, state)
    if not row.loads:
        overlap = _bytes(size, start, register, "overlap")
        return f"{overlap} the window or the image of the workspace, which are read only"
    lie = f"{_bytes(size, start, register, 'lie')} in the window of the workspace"
    return f"{lie} in part only" if row.scratchpad else f"{lie}, from which only ld.sram loads"


_EXPLAIN: dict[FaultCause, Callable[[int, Instruction, ProcessorState], str]] = {
    FaultCause.VECTOR_SETTING: _setting,
    FaultCause.SCRATCHPAD_RANGE: _scratchpad,
    FaultCause.MISALIGNED: _misaligned,
    FaultCause.DRAM_RANGE: _outside_memory,
    FaultCause.REGISTER_RANGE: _register,
    FaultCause.WORKSPACE: _workspace,
    FaultCause.STORE_TO_WORKSPACE: _workspace_access,
    FaultCause.WORKSPACE_EDGE: _workspace_access,
}
