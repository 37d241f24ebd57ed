"""Errors of a debugger."""

from support.errors import VipError


class DebugError(VipError):
    """An invalid command, place, address or type; one line."""


class ExpectationError(VipError):
    """A value differs from the one a script expects; one line names both."""
