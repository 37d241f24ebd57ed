"""The memory interface that jobs need; any host can implement it over any transport."""

from typing import Protocol


class Writable(Protocol):
    """A memory that can be written, such as :class:`isa.image.DramImage`."""

    def write(self, address: int, data: bytes, /) -> None:
        """Write ``data`` at ``address``."""


class Readable(Protocol):
    """A memory that can be read."""

    def read(self, address: int, n: int, /) -> bytes:
        """Read ``n`` bytes at ``address``."""
