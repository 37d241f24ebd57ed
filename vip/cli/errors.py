"""The error of arguments that the command line itself can't use."""

from support.errors import VipError

__all__ = ["UserError"]


class UserError(VipError):
    """Arguments that can't be used, or that exclude each other; one line."""
