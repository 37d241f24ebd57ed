"""Instruction words on their way from the instruction buffer to the decoder."""

from functools import cache

from amaranth.hdl import Value

from hdl.packing import Packing
from isa.table import find
from pe.config import PeConfig

#: Bits of an instruction.
WORD_BITS = 32


def is_legal(config: PeConfig, word: int) -> bool:
    """Whether an engine of ``config`` has the instruction ``word`` and the registers it names."""
    row = find(word)
    return (
        row is not None
        and row.key in config.instructions
        and all(
            operand.field.extract(word) < config.registers
            for operand in row.operands
            if operand.is_register
        )
    )


@cache
def word_packing(config: PeConfig) -> Packing | None:
    """Encoding of a built-in program's words, with an extra top bit for legality; None without such
    a program: all 32 bits unchanged."""
    if config.program is None:
        return None
    words = (word | is_legal(config, word) << WORD_BITS for word in config.program)
    return Packing(frozenset(words), WORD_BITS + 1)


def word_bits(config: PeConfig) -> int:
    """Bits of an encoded instruction word."""
    packing = word_packing(config)
    return WORD_BITS if packing is None else packing.width


def whole_word(config: PeConfig, encoded: Value) -> tuple[Value, Value | None]:
    """The instruction word, and for a built-in program whether it is legal."""
    packing = word_packing(config)
    if packing is None:
        return encoded, None
    word = packing.unpack(encoded)
    return word[:WORD_BITS], word[WORD_BITS]
