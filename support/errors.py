"""Base class of the exceptions for invalid input, and text helpers for messages."""

from collections.abc import Collection
from difflib import get_close_matches

__all__ = ["VipError", "clipped", "counted", "printable", "suggestion", "unknown"]

#: Beyond these, looking for names that are near takes too long: characters, and known names.
_LONGEST_GUESS, _MOST_GUESSES = 64, 2000


def printable(text: str) -> str:
    """``text`` with line breaks, control characters and undecodable bytes as escapes.

    File names and sources may contain anything; printed raw, they could break a line or send
    commands to the terminal. Tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable() or char == "\t"
        else char.encode("unicode_escape", "surrogatepass").decode("ascii")
        for char in text
    )


def clipped(text: str, limit: int) -> str:
    """``text`` if it has at most ``limit`` characters (8 or more); otherwise its beginning and end
    with dots between."""
    if len(text) <= limit:
        return text
    half = (limit - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def suggestion(name: str, names: Collection[str]) -> str:
    """``; did you mean ...?`` with the names in ``names`` that are near ``name``, or nothing."""
    if len(name) > _LONGEST_GUESS or len(names) > _MOST_GUESSES:
        return ""
    lower = {one.lower(): one for one in sorted(names)}
    exact = [name.lower()] if name.lower() in lower else []
    near = exact or get_close_matches(name.lower(), lower, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(lower[one] for one in near)}?" if near else ""


def unknown(what: str, name: str, names: Collection[str]) -> str:
    """The message on ``name``, which is none of ``names``, all of them ``what``."""
    return f"unknown {what} {name!r}; there are: {', '.join(names)}{suggestion(name, names)}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """ "1 word", "2,000 words": ``number`` and ``noun``, whose plural adds an s unless given."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


class VipError(ValueError):
    """Invalid input: a file, an argument, a program. One line: what, where, what is allowed.

    Every room derives its own errors from this one; the command line shows them without a
    traceback.

    Attributes:
        lines: of the message; more than one only if it quotes a place in a source.
    """

    lines = 1
