"""Exceptions of the memory room."""

from support.errors import VipError

__all__ = ["MemoryConfigError"]


class MemoryConfigError(VipError):
    """A memory that can't be built; the message names the value and the allowed range."""
