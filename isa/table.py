"""The instruction table: the one description of every instruction of the processing engine.

The encoder, assembler, disassembler, simulator, manual, trimming analysis and the hardware's
decoder are all derived from :data:`INSTRUCTIONS`. Source: thesis Table 4.1 and Figures 6.3, 6.5;
our own instructions are marked :attr:`Origin.OURS`.

Encoding: 32 bits; opcode in 31:26, register fields A 25:20, B 19:14 and C 13:8, function bits 7:0
(width 1:0, vertical operation 4:2, reduction 6:5, pairs 7), a 14-bit signed immediate in 13:0 or a
20-bit signed immediate in 19:0. Bits that an instruction does not use are 0. Opcode 0 is always
illegal, so cleared memory faults. :func:`encode` and :func:`decode` translate to words and back.

The pseudo-instruction ``li`` loads any 64-bit constant with instructions on one register
(:func:`load_constant`).
"""

from collections.abc import Sequence
from functools import lru_cache

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


#: The pseudo-instruction that loads any 64-bit constant.
LOAD_IMMEDIATE = "li"
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
        For each instruction its key (:attr:`Instruction.key`) and its constant. The
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
