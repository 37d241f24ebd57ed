"""Fields that keep only the bits in which the values that occur differ."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Cat, Const, Shape, Value

from .simd import one_of

__all__ = ["Packing"]


@dataclass(frozen=True)
class Packing:
    """How to keep a field of which only some values ever occur.

    A bit that is the same in all of them is not kept, nor one that always equals another one or its
    inverse. Packing and unpacking are wires; of a value that is not foreseen, what comes back is
    meaningless.

    Parameters:
        values: those that occur, 0 or more; none at all counts as 0 alone.
        bits: width of the field, 0 or more.
        whole: shape of the field if all its bits are kept; None: unsigned.
    """

    values: frozenset[int]
    bits: int
    whole: Any = None

    @cached_property
    def _columns(self) -> list[tuple[int | None, int]]:
        """For each bit the kept bit that it follows, and what it is xored with; without the former
        it is constant."""
        rows = sorted(self.values) or [0]
        seen: dict[tuple[int, ...], int] = {}
        columns: list[tuple[int | None, int]] = []
        for bit in range(self.bits):
            column = tuple(value >> bit & 1 for value in rows)
            inverse = tuple(1 - value for value in column)
            if len(set(column)) == 1:
                columns.append((None, column[0]))
            elif column in seen:
                columns.append((seen[column], 0))
            elif inverse in seen:
                columns.append((seen[inverse], 1))
            else:
                seen[column] = bit
                columns.append((bit, 0))
        return columns

    @cached_property
    def _kept(self) -> list[int]:
        return [bit for bit, (source, _) in enumerate(self._columns) if source == bit]

    @property
    def width(self) -> int:
        """Bits that are kept."""
        return len(self._kept)

    @property
    def shape(self) -> Any:
        """Shape of the field as it is kept."""
        if self.whole is not None and self.width == self.bits:
            return self.whole
        return Shape(self.width)

    def code(self, value: int) -> int:
        """``value``, one of those that occur, as it is kept."""
        return sum((value >> bit & 1) << place for place, bit in enumerate(self._kept))

    def pack(self, value: Value) -> Value:
        """What is kept of ``value`` (``bits`` wide)."""
        return Cat(Value.cast(value)[bit] for bit in self._kept)

    def unpack(self, packed: Value) -> Value:
        """The whole field from what is kept of it."""
        places = {bit: place for place, bit in enumerate(self._kept)}
        packed = Value.cast(packed)
        return Cat(
            Const(invert, 1) if source is None else packed[places[source]] ^ invert
            for source, invert in self._columns
        )

    def is_one_of(self, packed: Value, wanted: Iterable[int]) -> Value:
        """Whether the field is one of ``wanted``; constant where none or all that occur are."""
        chosen = [self.code(value) for value in wanted if value in self.values]
        return one_of(Value.cast(packed), chosen, [self.code(value) for value in self.values])
