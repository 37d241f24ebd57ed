"""Packed fields: only the bits in which the possible values differ are stored."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Cat, Const, Shape, Value

from .simd import one_of


@dataclass(frozen=True)
class Packing:
    """Encoding of a field with few possible values.

    A bit that is the same in all values is not stored, nor is one that always equals another bit or
    its inverse. Packing and unpacking are just wires; values outside the set do not survive.

    Parameters:
        values: possible values, 0 or more; none at all counts as 0 alone.
        bits: width of the field, 0 or more.
        full_shape: shape of the field if all its bits are stored; None: unsigned.
    """

    values: frozenset[int]
    bits: int
    full_shape: Any = None

    @cached_property
    def _columns(self) -> list[tuple[int | None, int]]:
        """For each bit, the stored bit that it follows and the bit to XOR it with.

        A bit without the former is constant.
        """
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
    def _used_bits(self) -> list[int]:
        return [bit for bit, (source, _) in enumerate(self._columns) if source == bit]

    @property
    def width(self) -> int:
        """Stored bits."""
        return len(self._used_bits)

    @property
    def shape(self) -> Any:
        """Shape of the packed field."""
        if self.full_shape is not None and self.width == self.bits:
            return self.full_shape
        return Shape(self.width)

    def code(self, value: int) -> int:
        """Code of ``value``, one of the possible values."""
        return sum((value >> bit & 1) << place for place, bit in enumerate(self._used_bits))

    def pack(self, value: Value) -> Value:
        """Code of ``value`` (``bits`` wide)."""
        return Cat(Value.cast(value)[bit] for bit in self._used_bits)

    def unpack(self, packed: Value) -> Value:
        """The whole field of a code."""
        places = {bit: place for place, bit in enumerate(self._used_bits)}
        packed = Value.cast(packed)
        return Cat(
            Const(invert, 1) if source is None else packed[places[source]] ^ invert
            for source, invert in self._columns
        )

    def is_one_of(self, packed: Value, selected: Iterable[int]) -> Value:
        """Whether the field is one of ``selected``; constant for none or all possible values."""
        chosen = [self.code(value) for value in selected if value in self.values]
        return one_of(Value.cast(packed), chosen, [self.code(value) for value in self.values])
