"""Addresses for data with lifetimes, in a memory that all vaults have alike."""

from dataclasses import dataclass

from microkernels.common.errors import CHECK
from microkernels.common.feature_map import ROW_BYTES, round_up

__all__ = ["ALIGNMENT", "ALWAYS", "Places"]

#: A time after all others.
ALWAYS = 1 << 30
#: Alignment of places: bytes of a row in each of the 16 banks of a vault (thesis, section 5.2).
ALIGNMENT = 16 * ROW_BYTES


@dataclass(frozen=True)
class _Taken:
    first: int
    end: int
    start: int
    last: int


class Places:
    """Allocates offsets within a vault: each at the lowest that is free throughout its lifetime.

    Attributes:
        end: first byte after all that was allocated.
    """

    def __init__(self) -> None:
        self._taken: list[_Taken] = []
        self.end = 0

    def take(self, size: int, *, start: int = 0, last: int = ALWAYS) -> int:
        """Offset, a multiple of :data:`ALIGNMENT`, of ``size`` bytes (0 or more) that are in use
        from time ``start`` to ``last``, both included.

        Raises:
            KernelError: a value outside its range.
        """
        CHECK.at_least("size", size, 0)
        CHECK.at_least("last", last, start)
        at = 0
        for held in sorted(self._taken, key=lambda each: each.first):
            if held.start <= last and start <= held.last:
                if at + size <= held.first:
                    break
                at = max(at, round_up(held.end, ALIGNMENT))
        self._taken.append(_Taken(at, at + size, start, last))
        self.end = max(self.end, at + size)
        return at
