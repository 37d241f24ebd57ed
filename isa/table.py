"""The instruction table: the one description of every instruction of the processing engine.

The encoder, assembler, disassembler, simulator, manual, trimming analysis and the hardware's
decoder are all derived from :data:`INSTRUCTIONS`. Source: thesis Table 4.1 and Figures 6.3, 6.5;
our own instructions are marked :attr:`Origin.OURS`.

Encoding: 32 bits; opcode in 31:26, register fields A 25:20, B 19:14 and C 13:8, function bits 7:0
(width 1:0, vertical operation 4:2, reduction 6:5, pairs 7), a 14-bit signed immediate in 13:0 or a
20-bit signed immediate in 19:0. Bits that an instruction does not use are 0. Opcode 0 is always
illegal, so cleared memory faults. :func:`encode` and :func:`decode` translate to words and back.
"""

from isa.rows import load_store_rows, scalar_rows, vector_rows

from .instruction import (
    CONSTANT_RANGE,
    FIELD_A,
    FIELD_B,
    FIELD_C,
    IMM14,
    IMM20,
    LOAD_IMMEDIATE,
    OPCODE,
    PAIRS,
    REDUCTION,
    VERTICAL,
    WIDTH,
    Access,
    BitField,
    BranchOp,
    EncodingError,
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
    encode,
    load_constant,
    operand_range,
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
    "CONSTANT_RANGE",
    "FIELD_A",
    "FIELD_B",
    "FIELD_C",
    "IMM14",
    "IMM20",
    "INSTRUCTIONS",
    "ISA_VERSION",
    "LOAD_IMMEDIATE",
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
    "load_constant",
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


def decode(word: int) -> tuple[Instruction, tuple[int, ...]] | None:
    """The instruction that ``word`` (32 bits) encodes and its operand values, or None if illegal.

    The values are as :func:`encode` takes them.
    """
    row = find(word)
    if row is None:
        return None
    return row, tuple(operand.field.extract(word) for operand in row.operands)
