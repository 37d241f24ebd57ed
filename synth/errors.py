"""Errors of this room."""

__all__ = ["SynthesisError", "TrimError"]


class SynthesisError(ValueError):
    """A synthesis that can't be done; one line says what, where and what is allowed."""


class TrimError(SynthesisError):
    """A program that no processing engine can be trimmed to; one line says why."""
