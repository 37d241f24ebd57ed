"""Errors of synthesis and trimming."""

from support.errors import VipError


class SynthesisError(VipError):
    """Synthesis is impossible; one line says what, where and what is allowed."""


class TrimError(SynthesisError):
    """No processing engine can be trimmed to a program; one line says why."""


class CoverageError(TrimError):
    """A profile does not cover its program; the line names the branches."""


class DeclarationError(TrimError):
    """The memory or the program contradicts a declared constant or range; the line says where."""
