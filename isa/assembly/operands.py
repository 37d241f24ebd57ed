"""Matches an instruction as written to a row of the instruction table."""

import re
from collections.abc import Mapping

from isa.table import (
    INSTRUCTIONS,
    LOAD_IMMEDIATE,
    REGISTERS,
    Instruction,
    Operand,
    Role,
    Width,
)
from support.errors import counted, suggestion

from .syntax import Expression, LineError, Name, Statement

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
