"""The base of every exception by which VIP refuses what a user gave it."""

__all__ = ["VipError"]


class VipError(ValueError):
    """Input that can't be used: a file, an argument, a program. One line: what, where, allowed.

    Every room derives its own from it; the command line shows any of them without a traceback.
    """
