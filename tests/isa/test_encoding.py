import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.instruction import FIELD_A, FIELD_B, IMM14, Format
from isa.table import (
    BY_KEY,
    INSTRUCTIONS,
    EncodingError,
    Instruction,
    Role,
    decode,
    encode,
    find,
    operand_range,
)

_ROWS = pytest.mark.parametrize("row", INSTRUCTIONS, ids=lambda row: row.key)


def _with(row: Instruction, number: int, value: int) -> list[int]:
    values = [0] * len(row.operands)
    values[number] = value
    return values


@_ROWS
def test_ends_of_every_operand_come_back(row: Instruction) -> None:
    for number, operand in enumerate(row.operands):
        for value in (operand.field.range[0], operand.field.range[-1]):
            values = _with(row, number, value)
            assert decode(encode(row, values)) == (row, tuple(values))


@_ROWS
def test_each_operand_has_bits_of_its_own(row: Instruction) -> None:
    seen = row.mask
    for number, operand in enumerate(row.operands):
        full = -1 if operand.field.signed else operand.field.range[-1]
        bits = encode(row, _with(row, number, full)) ^ row.match
        assert bits == operand.field.mask
        assert not bits & seen
        seen |= bits
    assert seen == 0xFFFF_FFFF


@_ROWS
def test_values_beyond_a_field_are_refused(row: Instruction) -> None:
    for number, operand in enumerate(row.operands):
        low, high = operand.field.range[0], operand.field.range[-1]
        for value in (low - 1, high + 1):
            with pytest.raises(EncodingError, match=f"from {low} to {high}, not {value}") as error:
                encode(row, _with(row, number, value))
            assert f"operand {number + 1} of {row.key}" in str(error.value)


@_ROWS
def test_number_of_operands_is_checked(row: Instruction) -> None:
    with pytest.raises(EncodingError, match=f"takes {len(row.operands)} operands"):
        encode(row, [0] * (len(row.operands) + 1))


def test_words_of_thesis_figure_6_3() -> None:
    load = encode(BY_KEY["ld.sram[16]"], (14, 10, 61))
    assert load == 0x30 << 26 | 14 << 20 | 10 << 14 | 61 << 8 | 1
    step = encode(BY_KEY["blt"], (2, 20, -8))
    assert step == 0x20 << 26 | 2 << 20 | 20 << 14 | (-8 & 0x3FFF)
    assert encode(BY_KEY["mov.imm"], (1, -1)) == 0x19 << 26 | 1 << 20 | 0xFFFFF


def test_erased_memory_is_illegal() -> None:
    assert decode(0) is None
    assert decode(0xFFFF_FFFF) is None


@settings(deadline=None, derandomize=True)
@given(st.integers(0, 0xFFFF_FFFF))
def test_decode_is_the_inverse_of_encode(word: int) -> None:
    decoded = decode(word)
    if decoded is None:
        assert find(word) is None
    else:
        assert encode(*decoded) == word


@_ROWS
def test_a_set_bit_that_an_instruction_does_not_use_makes_another_or_none(row: Instruction) -> None:
    for bit in range(32):
        if row.mask >> bit & 1:
            decoded = decode(row.match ^ 1 << bit)
            assert decoded is None or decoded[0] is not row


def test_assembly_takes_shift_amounts_that_mean_themselves() -> None:
    shift = BY_KEY["sll.imm"].operands[-1]
    assert shift.role is Role.SHIFT
    assert operand_range(shift) == range(64)
    assert operand_range(BY_KEY["add.imm"].operands[-1]) == range(-8192, 8192)


def test_formats_have_their_values_on_every_python() -> None:
    # Python 3.11.2 gives another value to a member of an Enum that is defined as ().
    assert Format.NONE.value == ()
    assert Format.AB_IMM.value == (FIELD_A, FIELD_B, IMM14)
