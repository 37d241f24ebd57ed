"""Matching of an instruction as written with a row of the instruction table."""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches

from isa.table import INSTRUCTIONS, REGISTERS, Instruction, Operand, Role, Width

from .syntax import Immediate, LineError, Name, Statement

__all__ = [
    "LOAD_IMMEDIATE",
    "choose",
    "constant_value",
    "is_register_name",
    "register_number",
    "suggestion",
]

#: The pseudo-instruction that loads any 64-bit constant.
LOAD_IMMEDIATE = "li"

#: Beyond these, looking for names that are near takes too long: characters, and known names.
_LONGEST_GUESS = 64
_MOST_GUESSES = 2000

_IMMEDIATE_SUFFIX = ".imm"
_REGISTER = re.compile(r"r([0-9]+)")
_WIDTH = re.compile(r"([0-9]+)\s*-\s*bit")
_WIDTHS = {width.bits: width for width in Width}


def _by_spelling() -> dict[str, tuple[Instruction, ...]]:
    """Rows by the mnemonics that mean them: ``mov`` means ``mov.imm`` too."""
    rows: dict[str, tuple[Instruction, ...]] = {}
    for row in INSTRUCTIONS:
        for spelling in {row.mnemonic, row.mnemonic.removesuffix(_IMMEDIATE_SUFFIX)}:
            rows[spelling] = (*rows.get(spelling, ()), row)
    return rows


_BY_SPELLING = _by_spelling()


def suggestion(name: str, names: Collection[str]) -> str:
    """``; did you mean ...?`` with the names in ``names`` that are near ``name``, or nothing."""
    if len(name) > _LONGEST_GUESS or len(names) > _MOST_GUESSES:
        return ""
    near = get_close_matches(name, sorted(names), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def is_register_name(name: str) -> bool:
    """Whether ``name`` is spelled like a register, existing or not."""
    return _REGISTER.fullmatch(name) is not None


def register_number(operand: Name | Immediate, aliases: Mapping[str, int]) -> int:
    """The number of the register that ``operand`` names.

    Raises:
        LineError: it names none.
    """
    if isinstance(operand, Immediate):
        raise LineError("this operand must be a register, not a constant", operand.column)
    if (number := aliases.get(operand.text)) is not None:
        return number
    match = _REGISTER.fullmatch(operand.text)
    if match is None:
        near = suggestion(operand.text, aliases)
        raise LineError(f"{operand.text!r} is no register{near}", operand.column)
    if len(match[1]) > len(str(REGISTERS)) or int(match[1]) >= REGISTERS:
        raise LineError(
            f"there is no register {operand.text}; registers are r0 to r{REGISTERS - 1}",
            operand.column,
        )
    return int(match[1])


def constant_value(
    label: str, operand: Immediate, allowed: range, constants: Mapping[str, int], hint: str = ""
) -> int:
    """The value of ``operand``, which must be in ``allowed``.

    Raises:
        LineError: it is not, or the expression has no value.
    """
    value = operand.value.evaluate(constants)
    if value not in allowed:
        raise LineError(
            f"{label} must be from {allowed[0]} to {allowed[-1]}, not {value}{hint}", operand.column
        )
    return value


def choose(statement: Statement) -> Instruction:
    """The row that ``statement`` means, by mnemonic, width and kinds of operands.

    Raises:
        LineError: there is none.
    """
    rows = _BY_SPELLING.get(statement.mnemonic)
    if rows is None:
        near = suggestion(statement.mnemonic.lower(), {*_BY_SPELLING, LOAD_IMMEDIATE})
        raise LineError(f"unknown instruction {statement.mnemonic!r}{near}", statement.column)
    rows = _with_width(statement, rows)
    count = len(rows[0].operands)
    if len(statement.operands) != count:
        extra = statement.operands[count:]
        raise LineError(
            f"{statement.mnemonic} takes {_form(rows)}, not {len(statement.operands)}",
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
            f"[{statement.width}] is no width of {statement.mnemonic}: {widths}",
            statement.width_column,
        )
    return tuple(row for row in rows if row.width is width)


def _fits(written: Name | Immediate, operand: Operand) -> bool:
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
    return f"{count} operand{'s' if count > 1 else ''} ({kinds})"
