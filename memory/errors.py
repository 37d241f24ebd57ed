"""Exceptions of the memory room."""

from support.errors import VipError


class MemoryConfigError(VipError):
    """A memory that can't be built; the message names the value and the allowed range."""
