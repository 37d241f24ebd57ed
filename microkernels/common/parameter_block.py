"""Parameter blocks: after a kernel-specific header, one 64-bit word for each engine of the vault,
the address of that engine's part. Each kernel defines the contents of the parts.

A *record* describes words of a part once: a frozen dataclass whose fields are :func:`word`, its
words in their order, each with its purpose. The host makes records of numbers. A program has one of
register names (:func:`word_registers`), reads the words into them, and lists their purposes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from typing import Any, Generic, TypeVar

import numpy as np

from .builder import WORD_BYTES, KernelBuilder
from .feature_map import round_up

__all__ = [
    "Word",
    "WordRecord",
    "block_bytes",
    "block_size",
    "idle_block",
    "part_sizes",
    "word",
    "word_registers",
]

#: Words of an engine's part that no kernel's fixed words exceed.
_IDLE_WORDS = 16


def part_sizes(lines: int, sharers: int, *, fixed: int, each: int) -> list[int]:
    """Words of each engine's part, where ``sharers`` engines take ``lines`` in turns and a further
    line ends each list.

    Parameters:
        fixed: words of a part beside its lines. each: words of a line.
    """
    return [fixed + each * (len(range(slot, lines, sharers)) + 1) for slot in range(sharers)]


def block_size(parts: Sequence[int]) -> int:
    """Bytes of a parameter block without a header; ``parts`` are the words of each part."""
    return WORD_BYTES * (len(parts) + sum(parts))


def block_bytes(
    base: int, parts: Sequence[Sequence[int]], *, header: Sequence[int] = (), align: int = 1
) -> bytes:
    """The parameter block at address ``base``; ``parts`` are the words of each engine, by slot.

    Parameters:
        header: words before the addresses.
        align: the parts begin at a multiple of ``align`` words.
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

    For kernels that read at most 16 words before they test for work, and take 0 for none.
    """
    return block_bytes(base, [[0] * _IDLE_WORDS] * sharers)


Word = TypeVar("Word", int, str)


def word(purpose: str, **options: Any) -> Any:
    """A field of a record.

    Parameters:
        purpose: of the word, for the head of the program.
        options: of :func:`dataclasses.field`, such as a default.
    """
    return field(metadata={"purpose": purpose}, **options)


class WordRecord(Generic[Word]):
    """Words of a parameter block: numbers, or the registers that hold them."""

    def words(self) -> list[Word]:
        """The words in their order."""
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
    """Registers for the words of a record, by the names of its fields.

    Parameters:
        stem: of the purposes that the program lists.
        followers: by the name of a field, names and purposes of registers that are allocated right
            after that field's.
    """
    result = {}
    for one in fields(record):  # type: ignore[arg-type]
        purpose = f"{stem}: {one.metadata['purpose']}"
        result[one.name] = writer.register(one.name, purpose)
        for name, meaning in (followers or {}).get(one.name, {}).items():
            writer.register(name, meaning)
    return result
