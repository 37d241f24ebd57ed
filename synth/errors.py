"""Errors of this room."""

from isa.errors import VipError

__all__ = ["SynthesisError", "TrimError"]


class SynthesisError(VipError):
    """A synthesis that can't be done; one line says what, where and what is allowed."""


class TrimError(SynthesisError):
    """A program that no processing engine can be trimmed to; one line says why."""
