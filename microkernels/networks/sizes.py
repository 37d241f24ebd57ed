"""Sizes of maps and windows, and pixels on the sides of a map."""

from typing import NamedTuple

from microkernels.common.errors import CHECK

__all__ = ["MapSize", "Pads", "Size2", "pads", "size2"]


class MapSize(NamedTuple):
    """Sizes of a feature map; a vector is one pixel of so many channels."""

    width: int
    height: int
    channels: int

    @property
    def elements(self) -> int:
        """Elements in all."""
        return self.width * self.height * self.channels

    def __str__(self) -> str:
        return " x ".join(map(str, self))

    def check(self, name: str) -> None:
        """Refuse a size below 1.

        Parameters:
            name: of the map, for the message.

        Raises:
            KernelError: there is one.
        """
        for axis, value in self._asdict().items():
            CHECK.at_least(f"{axis} of {name}", value, 1)


class Size2(NamedTuple):
    """Pixels across and down."""

    width: int
    height: int


class Pads(NamedTuple):
    """Pixels on each side of a map."""

    left: int
    top: int
    right: int
    bottom: int


def size2(value: int | Size2) -> Size2:
    """``value`` as pixels across and down."""
    return value if isinstance(value, Size2) else Size2(value, value)


def pads(value: int | Pads) -> Pads:
    """``value`` as pixels on each side."""
    return value if isinstance(value, Pads) else Pads(value, value, value, value)
