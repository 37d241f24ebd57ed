"""Declarations about the memory of a launch: what is fixed by the application, and what is data.

All undeclared bytes are data: they may hold anything at any time.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """``size`` bytes (1 or more) of a memory or scratchpad, from ``start`` (0 or more) on."""

    start: int
    size: int

    @property
    def end(self) -> int:
        """The first address after them."""
        return self.start + self.size

    @property
    def slice(self) -> slice:
        """The same, to index an array of bytes."""
        return slice(self.start, self.end)

    def overlaps(self, other: "Span") -> bool:
        """Whether they share a byte."""
        return max(self.start, other.start) < min(self.end, other.end)

    def __str__(self) -> str:
        return f"{self.start:#x}:{self.size}"


@dataclass(frozen=True, order=True)
class Numbers:
    """Signed numbers in memory, one after the other, each from ``low`` to ``high``.

    Attributes:
        span: their bytes, whole numbers of ``width`` bits from a multiple of their bytes on.
        width: bits of each, 8, 16, 32 or 64.
    """

    span: Span
    low: int
    high: int
    width: int = 64

    def __str__(self) -> str:
        width = "" if self.width == 64 else f"/{self.width}"
        return f"{self.span}{width}={self.low}..{self.high}"


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What holds in every launch of a program.

    Attributes:
        constants: bytes that always equal the memory image's; no engine writes them.
        numbers: bounded numbers. The bounds hold at launch, and whenever another agent writes them.
            A 64-bit number that the program itself stores with ``st.reg`` is private: nothing else
            changes it before the program ends.
        slots: the program runs in the slots below.
    """

    constants: tuple[Span, ...] = ()
    numbers: tuple[Numbers, ...] = ()
    slots: int = 1 << 16
