"""Errors of a debugger."""

from support.errors import VipError

__all__ = ["DebugError", "ExpectationError"]


class DebugError(VipError):
    """A command, place, address or type that can't be used; one line."""


class ExpectationError(VipError):
    """A value is not the one that a script expects; one line names both."""
