"""Sizes that may differ across and down, or from side to side."""

from typing import NamedTuple

__all__ = ["Pads", "Pair", "pads", "pair"]


class Pair(NamedTuple):
    """Pixels across and down."""

    across: int
    down: int

    @property
    def other(self) -> int | None:
        """Pixels down, if they are others than across."""
        return None if self.down == self.across else self.down


class Pads(NamedTuple):
    """Pixels on each side of a map."""

    left: int
    top: int
    right: int
    bottom: int


def pair(value: int | Pair) -> Pair:
    """``value`` as a pair."""
    return value if isinstance(value, Pair) else Pair(value, value)


def pads(value: int | Pads) -> Pads:
    """``value`` as pixels on each side."""
    return value if isinstance(value, Pads) else Pads(value, value, value, value)
