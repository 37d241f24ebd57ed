"""Parameter blocks: after a kernel-specific header, one 64-bit word per engine of the vault, which
is the address of that engine's part. Each kernel defines what its parts contain.

A *record* describes words of a part once: a frozen dataclass whose fields, made by :func:`word`,
are the words in order, each with its purpose. The host creates records of numbers. A program has a
record of register names (:func:`word_registers`), reads the words into them, and lists their
purposes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from typing import Any, Generic, TypeVar

import numpy as np

from .builder import WORD_BYTES, KernelBuilder
from .feature_map import round_up

#: Maximum number of fixed words that any kernel has in an engine's part.
_IDLE_WORDS = 16


def part_sizes(lines: int, sharers: int, *, fixed: int, each: int) -> list[int]:
    """Words in each engine's part if ``sharers`` engines take ``lines`` in turns and one extra line
    ends each list.

    Parameters:
        fixed: words of a part besides its lines. each: words per line.
    """
    return [fixed + each * (len(range(slot, lines, sharers)) + 1) for slot in range(sharers)]


def block_size(parts: Sequence[int]) -> int:
    """Bytes in a parameter block without header; ``parts`` gives the words of each part."""
    return WORD_BYTES * (len(parts) + sum(parts))


def block_bytes(
    base: int, parts: Sequence[Sequence[int]], *, header: Sequence[int] = (), align: int = 1
) -> bytes:
    """The parameter block at address ``base``; ``parts`` contains each engine's words, by slot.

    Parameters:
        header: words before the part addresses.
        align: parts start at a multiple of ``align`` words.
    """
    start = round_up(len(header) + len(parts), align)
    starts = start + np.cumsum([0, *map(len, parts)])[:-1]
    words = np.zeros(start + sum(map(len, parts)), "<i8")
    words[: len(header)] = header
    words[len(header) : len(header) + len(parts)] = base + WORD_BYTES * starts
    words[start:] = [word for part in parts for word in part]
    return words.tobytes()


def idle_block(base: int, sharers: int) -> bytes:
    """A parameter block that gives ``sharers`` engines nothing to do: all words of a part are 0.

    For kernels that read at most 16 words before checking for work and treat 0 as none.
    """
    return block_bytes(base, [[0] * _IDLE_WORDS] * sharers)


Word = TypeVar("Word", int, str)


def word(purpose: str, **options: Any) -> Any:
    """Declare a field of a record.

    Parameters:
        purpose: of the word, listed at the top of the program.
        options: passed to :func:`dataclasses.field`, such as a default.
    """
    return field(metadata={"purpose": purpose}, **options)


class WordRecord(Generic[Word]):
    """Words of a parameter block: numbers, or the registers that contain them."""

    def words(self) -> list[Word]:
        """The words, in order."""
        return [getattr(self, one.name) for one in fields(self)]  # type: ignore[arg-type]

    @classmethod
    def length(cls) -> int:
        """Number of words."""
        return len(fields(cls))  # type: ignore[arg-type]


def word_registers(
    record: type[WordRecord[Any]],
    writer: KernelBuilder,
    stem: str,
    followers: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, str]:
    """Registers for a record's words, by field name.

    Parameters:
        stem: start of the purposes that the program lists.
        followers: by field name: names and purposes of registers to allocate right after that
            field's.
    """
    result = {}
    for one in fields(record):  # type: ignore[arg-type]
        purpose = f"{stem}: {one.metadata['purpose']}"
        result[one.name] = writer.register(one.name, purpose)
        for name, meaning in (followers or {}).get(one.name, {}).items():
            writer.register(name, meaning)
    return result
