"""Instruction words: from a table row and operand values to 32 bits and back."""

from collections.abc import Sequence

from support.errors import VipError

from .table import Instruction, Operand, Role, find

__all__ = ["EncodingError", "decode", "encode", "operand_range"]

_SHIFT_AMOUNTS = range(64)


class EncodingError(VipError):
    """Operand values that an instruction can't hold; one line names the operand and its range."""


def operand_range(operand: Operand) -> range:
    """Values that assembly accepts for ``operand``: register numbers, constants or distances.

    An encoded shift amount may be any constant of its field, of which the machine uses the low six
    bits; assembly takes 0 to 63 alone.
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
