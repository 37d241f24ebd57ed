"""Records of 64-bit words in parameter blocks.

A record is a frozen dataclass whose fields are :func:`word`: its words in their order, each with
its purpose. The host makes records of numbers. A program has one of register names
(:func:`word_registers`), reads the words into them, and lists their purposes.
"""

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, Generic, TypeVar

from .builder import KernelBuilder

__all__ = ["Word", "WordRecord", "word", "word_registers"]

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
