"""Errors of this room."""

from support.errors import VipError

__all__ = ["CoverageError", "DeclarationError", "SynthesisError", "TrimError"]


class SynthesisError(VipError):
    """A synthesis that can't be done; one line says what, where and what is allowed."""


class TrimError(SynthesisError):
    """A program that no processing engine can be trimmed to; one line says why."""


class CoverageError(TrimError):
    """A profile that does not cover its program; the line names the branches."""


class DeclarationError(TrimError):
    """Declared constants or ranges that the memory or the program contradicts; names the place."""
