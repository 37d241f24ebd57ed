"""Matches an instruction as written to a row of the instruction table.

The pseudo-instruction ``li`` loads any 64-bit constant with instructions on one register.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from isa.table import (
    BY_KEY,
    IMM14,
    IMM20,
    INSTRUCTIONS,
    REGISTERS,
    Instruction,
    Operand,
    Role,
    Width,
)
from support.errors import counted, suggestion

from .syntax import Expression, LineError, Name, Statement

#: Constants that ``li`` takes: every signed and every unsigned 64-bit number.
CONSTANT_RANGE = range(-(1 << 63), 1 << 64)

_BITS = 64
#: ``mov.imm`` gives 20 bits, each shift with an addition 14 more: 20 + 4 * 14 >= 64.
_MOST_STEPS = 9

_MOV = BY_KEY["mov.imm"].key
_ADD = BY_KEY["add.imm"].key
_SLL = BY_KEY["sll.imm"].key
_SRL = BY_KEY["srl.imm"].key

_Steps = tuple[tuple[str, int], ...]


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _search(value: int, bits: int, steps: int) -> _Steps | None:
    """At most ``steps`` steps to a number whose low ``bits`` bits are those of ``value``.

    Bits above those are free, because a later shift drops them.
    """
    value = _signed(value, bits)
    if value in IMM20.range:
        return ((_MOV, value),)
    if steps < 2:
        return None
    zeros = (value & -value).bit_length() - 1
    if zeros:
        before = _search(value >> zeros, bits - zeros, steps - 1)
        if before is not None:
            return (*before, (_SLL, zeros))
    # Of all numbers that can be added, these two leave the most zeros in the low bits.
    half = -IMM14.range[0]
    for added in (value % half, value % half - half):
        if added:
            before = _search(value - added, bits, steps - 1)
            if before is not None:
                return (*before, (_ADD, added))
    # Just beyond what mov.imm can load.
    for nearest in (IMM20.range[0], IMM20.range[-1]):
        if value - nearest in IMM14.range:
            return ((_MOV, nearest), (_ADD, value - nearest))
    return None


@lru_cache(maxsize=1024)
def load_constant(value: int) -> tuple[tuple[str, int], ...]:
    """The 1 to 9 instructions that load ``value`` into a register.

    Parameters:
        value: one of :data:`CONSTANT_RANGE`.

    Returns:
        For each instruction its key (:attr:`isa.table.Instruction.key`) and its constant. The
        register is the destination of each and, where it has one, its source.

    Raises:
        ValueError: ``value`` is outside :data:`CONSTANT_RANGE`.
    """
    if value not in CONSTANT_RANGE:
        raise ValueError(
            f"a 64-bit constant is from {CONSTANT_RANGE[0]} to {CONSTANT_RANGE[-1]}, not {value}"
        )
    pattern = value % (1 << _BITS)
    top_zeros = _BITS - pattern.bit_length()
    for steps in range(1, _MOST_STEPS + 1):
        sequence = _search(pattern, _BITS, steps)
        if sequence is not None:
            return sequence
        if 0 < top_zeros < _BITS:
            # Shifted to the top, with ones below: masks are -1 shifted right.
            shifted = (pattern << top_zeros) | ((1 << top_zeros) - 1)
            before = _search(shifted, _BITS, steps - 1)
            if before is not None:
                return (*before, (_SRL, top_zeros))
    raise AssertionError(f"no sequence for {value:#x}")


#: The pseudo-instruction that loads any 64-bit constant.
LOAD_IMMEDIATE = "li"

_IMMEDIATE_SUFFIX = ".imm"
#: Registers that a name may be meant as.
_REGISTER_NAMES = tuple(f"r{number}" for number in range(REGISTERS))
_REGISTER = re.compile(r"r([0-9]+)")
_WIDTH = re.compile(r"([0-9]+)\s*-\s*bit")
_WIDTHS = {width.bits: width for width in Width}


#: Mnemonics of other machines, and what to write here.
_ELSEWHERE = {
    **dict.fromkeys(("j", "b", "br", "goto"), "write jmp"),
    **dict.fromkeys(("ret", "exit", "end", "stop"), "write halt"),
    **dict.fromkeys(("lw", "lh", "lb", "ld", "load"), "write ld.reg or ld.sram"),
    **dict.fromkeys(("sw", "sh", "sb", "st", "store"), "write st.reg or st.sram"),
    "mul": "there is no scalar product; v.v.mul and v.s.mul multiply vectors",
    "nop": "no instruction is needed to wait; v.drain waits for the vector unit",
}


def _by_spelling() -> dict[str, tuple[Instruction, ...]]:
    """Rows by the mnemonics that mean them: ``mov`` means ``mov.imm`` too."""
    rows: dict[str, tuple[Instruction, ...]] = {}
    for row in INSTRUCTIONS:
        for spelling in {row.mnemonic, row.mnemonic.removesuffix(_IMMEDIATE_SUFFIX)}:
            rows[spelling] = (*rows.get(spelling, ()), row)
    return rows


_BY_SPELLING = _by_spelling()


def is_register_name(name: str) -> bool:
    """Whether ``name`` looks like a register, existing or not."""
    return _REGISTER.fullmatch(name) is not None


def register_number(operand: Expression, aliases: Mapping[str, int]) -> int:
    """The number of the register that ``operand`` names.

    Raises:
        LineError: it is not one.
    """
    if not isinstance(operand, Name):
        raise LineError("this operand must be a register, not a constant", operand.column)
    if (number := aliases.get(operand.text)) is not None:
        return number
    match = _REGISTER.fullmatch(operand.text)
    if match is None:
        near = suggestion(operand.text, {*aliases, *_REGISTER_NAMES})
        near = near or f"; registers are r0 to r{REGISTERS - 1}"
        raise LineError(f"{operand.text!r} is not a register{near}", operand.column)
    if len(match[1]) > len(str(REGISTERS)) or int(match[1]) >= REGISTERS:
        raise LineError(
            f"there is no register {operand.text}; registers are r0 to r{REGISTERS - 1}",
            operand.column,
        )
    return int(match[1])


def constant_value(
    label: str, operand: Expression, allowed: range, constants: Mapping[str, int], hint: str = ""
) -> int:
    """The value of ``operand``, which must be in ``allowed``.

    Raises:
        LineError: it is not, or the expression has no value.
    """
    value = operand.evaluate(constants)
    if value not in allowed:
        raise LineError(
            f"{label} must be from {allowed[0]} to {allowed[-1]}, not {value}{hint}", operand.column
        )
    return value


def choose(statement: Statement) -> Instruction:
    """The row that ``statement`` denotes, by mnemonic, width and operand kinds.

    Raises:
        LineError: there is none.
    """
    rows = _BY_SPELLING.get(statement.mnemonic)
    if rows is None:
        near = suggestion(statement.mnemonic.lower(), {*_BY_SPELLING, LOAD_IMMEDIATE})
        if meant := _ELSEWHERE.get(statement.mnemonic.lower()):
            near = f"; {meant}"
        elif not near and not statement.operands:
            near = f"; a label ends with a colon: {statement.mnemonic}:"
        raise LineError(f"unknown instruction {statement.mnemonic!r}{near}", statement.column)
    rows = _with_width(statement, rows)
    count = len(rows[0].operands)
    if len(statement.operands) != count:
        extra = statement.operands[count:]
        ignored = rows[0].operands[-1:] and rows[0].operands[-1].role is Role.IGNORED
        unread = "; the last one is not read: name any register, such as r0" if ignored else ""
        raise LineError(
            f"{statement.mnemonic} takes {_form(rows)}, not {len(statement.operands)}{unread}",
            extra[0].column if extra else statement.column,
        )
    for number, operand in enumerate(statement.operands):
        fitting = [row for row in rows if _fits(operand, row.operands[number])]
        if not fitting:
            form = "a name" if isinstance(operand, Name) else "a constant"
            raise LineError(
                f"operand {number + 1} of {statement.mnemonic} must be "
                f"{_kinds(rows, number)}, not {form}",
                operand.column,
            )
        rows = tuple(fitting)
    return rows[0]


def _with_width(statement: Statement, rows: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    allowed = [row.width for row in rows if row.width is not None]
    widths = ", ".join(f"[{width.bits}-bit]" for width in sorted(set(allowed)))
    if statement.width is None:
        if allowed:
            raise LineError(f"{statement.mnemonic} needs a width: {widths}", statement.column)
        return rows
    if not allowed:
        raise LineError(f"{statement.mnemonic} takes no width", statement.width_column)
    match = _WIDTH.fullmatch(statement.width)
    width = _WIDTHS.get(int(match[1])) if match and len(match[1]) < 4 else None
    if width not in allowed:
        raise LineError(
            f"[{statement.width}] is not a width of {statement.mnemonic}; write {widths}",
            statement.width_column,
        )
    return tuple(row for row in rows if row.width is width)


def _fits(written: Expression, operand: Operand) -> bool:
    if isinstance(written, Name):
        return operand.is_register or operand.role is Role.TARGET
    return not operand.is_register


def _kinds(rows: tuple[Instruction, ...], number: int) -> str:
    kinds = []
    for row in rows:
        operand = row.operands[number]
        if operand.is_register:
            kind = "a register"
        elif operand.role is Role.TARGET:
            kind = "a label or a #distance"
        else:
            kind = "a #constant"
        if kind not in kinds:
            kinds.append(kind)
    return " or ".join(kinds)


def _form(rows: tuple[Instruction, ...]) -> str:
    count = len(rows[0].operands)
    if count == 0:
        return "no operands"
    kinds = ", ".join(_kinds(rows, number) for number in range(count))
    return f"{counted(count, 'operand')} ({kinds})"
