"""The instruction table: the one description of every instruction of the processing engine.

The encoder, assembler, disassembler, simulator, manual, trimming analysis and the hardware's
decoder are all derived from :data:`INSTRUCTIONS`. Source: thesis Table 4.1 and Figures 6.3, 6.5;
our own instructions are marked :attr:`Origin.OURS`.

Encoding: 32 bits; opcode in 31:26, register fields A 25:20, B 19:14 and C 13:8, function bits 7:0
(width 1:0, vertical operation 4:2, reduction 6:5, pairs 7), a 14-bit signed immediate in 13:0 or a
20-bit signed immediate in 19:0. Bits that an instruction does not use are 0. Opcode 0 is always
illegal, so cleared memory faults. :func:`encode` and :func:`decode` translate to words and back.
"""

from collections.abc import Sequence

from isa.rows import load_store_rows, scalar_rows, vector_rows
from support.errors import VipError

from .instruction import (
    FIELD_A,
    FIELD_B,
    FIELD_C,
    IMM14,
    IMM20,
    OPCODE,
    PAIRS,
    REDUCTION,
    VERTICAL,
    WIDTH,
    Access,
    BitField,
    BranchOp,
    Extent,
    Format,
    Instruction,
    Opcode,
    Operand,
    Origin,
    ReductionOp,
    Role,
    ScalarOp,
    Unit,
    VerticalOp,
    Width,
)
from .limits import (
    ISA_VERSION,
    MAX_FX,
    MAX_MR,
    MAX_VL,
    MIN_REGISTER_WIDTH,
    REGISTER_WIDTH,
    REGISTERS,
)

__all__ = [
    "BY_KEY",
    "FIELD_A",
    "FIELD_B",
    "FIELD_C",
    "IMM14",
    "IMM20",
    "INSTRUCTIONS",
    "ISA_VERSION",
    "MAX_FX",
    "MAX_MR",
    "MAX_VL",
    "MIN_REGISTER_WIDTH",
    "OPCODE",
    "PAIRS",
    "REDUCTION",
    "REGISTERS",
    "REGISTER_WIDTH",
    "VERTICAL",
    "WIDTH",
    "Access",
    "BitField",
    "BranchOp",
    "EncodingError",
    "Extent",
    "Format",
    "Instruction",
    "Opcode",
    "Operand",
    "Origin",
    "ReductionOp",
    "Role",
    "ScalarOp",
    "Unit",
    "VerticalOp",
    "Width",
    "decode",
    "encode",
    "find",
    "operand_range",
]

#: Every instruction, in the manual's order.
INSTRUCTIONS: tuple[Instruction, ...] = (
    *scalar_rows(),
    *vector_rows(),
    *load_store_rows(),
)

#: The same by :attr:`Instruction.key`.
BY_KEY: dict[str, Instruction] = {row.key: row for row in INSTRUCTIONS}

_BY_MATCH: dict[int, dict[int, Instruction]] = {}
for _row in INSTRUCTIONS:
    _BY_MATCH.setdefault(_row.mask, {})[_row.match] = _row


def find(word: int) -> Instruction | None:
    """The instruction that ``word`` (32 bits) encodes, or None when it encodes none."""
    for mask, rows in _BY_MATCH.items():
        if (row := rows.get(word & mask)) is not None:
            return row
    return None


_SHIFT_AMOUNTS = range(64)


class EncodingError(VipError):
    """Operand values that an instruction can't encode; one line names the operand and its range."""


def operand_range(operand: Operand) -> range:
    """Values that assembly accepts for ``operand``: register numbers, constants or distances.

    An encoded shift amount may be any constant of its field, of which the machine uses the low six
    bits; assembly takes only 0 to 63.
    """
    return _SHIFT_AMOUNTS if operand.role is Role.SHIFT else operand.field.range


def encode(instruction: Instruction, values: Sequence[int]) -> int:
    """The 32-bit word of ``instruction`` with ``values`` as operands.

    Parameters:
        values: one for each of ``instruction.operands``, in that order: register numbers 0..63,
            signed constants, or the distance of a branch in words.

    Raises:
        EncodingError: a wrong number of values, or one that its field can't hold.
    """
    if len(values) != len(instruction.operands):
        raise EncodingError(
            f"{instruction.key} takes {len(instruction.operands)} operands, not {len(values)}"
        )
    word = instruction.match
    for number, (operand, value) in enumerate(zip(instruction.operands, values, strict=True), 1):
        allowed = operand.field.range
        if value not in allowed:
            raise EncodingError(
                f"operand {number} of {instruction.key} must be from {allowed[0]} to "
                f"{allowed[-1]}, not {value}"
            )
        word |= operand.field.insert(value)
    return word


def decode(word: int) -> tuple[Instruction, tuple[int, ...]] | None:
    """The instruction that ``word`` (32 bits) encodes and its operand values, or None if illegal.

    The values are as :func:`encode` takes them.
    """
    row = find(word)
    if row is None:
        return None
    return row, tuple(operand.field.extract(word) for operand in row.operands)
