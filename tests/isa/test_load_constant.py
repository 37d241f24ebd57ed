import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.assembly.assembler import assemble
from isa.table import CONSTANT_RANGE, decode, load_constant

_PATTERN = 1 << 64


def _run(words: tuple[int, ...]) -> int:
    """Value of r9 after the instructions, computed with the table's own operations."""
    r9 = 0x5555_5555_5555_5555
    for word in words:
        decoded = decode(word)
        assert decoded is not None
        row, values = decoded
        constant = values[-1] % _PATTERN
        if row.key == "mov.imm":
            assert values[0] == 9
            r9 = constant
        else:
            assert row.scalar is not None
            assert row.key.endswith(".imm")
            assert values[:-1] == (9, 9)
            r9 = row.scalar.evaluate(r9, constant)
    return r9


def _check(value: int) -> int:
    words = assemble(f"li r9, #{value}").words
    assert _run(words) == value % _PATTERN, hex(value)
    return len(words)


_HOSTILE = sorted(
    {
        *(sign * (1 << k) + near for k in range(64) for near in (-2, -1, 0, 1) for sign in (1, -1)),
        *(
            edge * (1 << shift) + near
            for edge in (8191, 8192, -8192, -8193, 524287, 524288, -524288, -524289)
            for shift in (0, 1, 13, 14, 20, 44)
            for near in (-8193, -8192, -1, 0, 1, 8191, 8192)
        ),
        *(pattern * 0x0101_0101_0101_0101 for pattern in (0x55, 0xAA, 0x7F, 0x80, 0x81, 0x01)),
        0x2000_4000_8001_0002,
        0xDEAD_BEEF_CAFE_BABE,
        (1 << 64) - 1,
        (1 << 64) - 8193,
    }
)


def test_hostile_constants() -> None:
    for value in _HOSTILE:
        if value in CONSTANT_RANGE:
            _check(value)


@settings(deadline=None, derandomize=True)
@given(st.integers(CONSTANT_RANGE[0], CONSTANT_RANGE[-1]))
def test_any_constant(value: int) -> None:
    assert _check(value) <= 9


def test_signed_and_unsigned_spellings_of_a_pattern_agree() -> None:
    for value in (-1, -2, -(1 << 63), -0x1234_5678_9ABC):
        assert load_constant(value) == load_constant(value % _PATTERN)


@pytest.mark.parametrize(
    ("value", "length"),
    [
        (0, 1),
        (-524288, 1),
        (524287, 1),
        (524288, 2),
        (524289, 2),
        (524287 + 8190, 2),
        (-524289, 2),
        (-524288 - 8191, 2),
        (-524288 - 8192, 2),
        (1 << 63, 2),
        (524287 << 44, 2),
        ((1 << 64) - 1, 1),
        ((1 << 63) - 1, 2),
        ((1 << 32) - 1, 2),
        ((1 << 33) + 5, 3),
        (0x7FFF_FFFF, 2),
    ],
)
def test_short_constants_take_few_instructions(value: int, length: int) -> None:
    assert _check(value) == length


def test_length_follows_the_number_of_bits() -> None:
    """20 signed bits at once, and 14 more for each two instructions."""
    source = random.Random(5)
    for bits, most in ((19, 1), (33, 3), (47, 5), (61, 7), (64, 9)):
        for _ in range(300):
            assert _check(source.getrandbits(bits)) <= most
            assert _check(-source.getrandbits(bits - 1)) <= most


@pytest.mark.parametrize("value", [CONSTANT_RANGE[0] - 1, CONSTANT_RANGE[-1] + 1])
def test_more_than_64_bits_are_refused(value: int) -> None:
    with pytest.raises(ValueError, match=f"not {value}"):
        load_constant(value)
