"""Exceptions of this room."""

__all__ = ["MemoryConfigError"]


class MemoryConfigError(ValueError):
    """A memory that can't be built; the message names the value and what is allowed."""
