"""The base of every exception by which VIP refuses a user's input."""

from collections.abc import Collection
from difflib import get_close_matches

__all__ = ["VipError", "clipped", "printable", "suggestion", "unknown"]

#: Beyond these, looking for names that are near takes too long: characters, and known names.
_LONGEST_GUESS, _MOST_GUESSES = 64, 2000


def printable(text: str) -> str:
    """``text`` with line breaks, control characters and bytes that are no text as escapes.

    File names and sources may hold anything; shown as they are, they could break a line in two or
    command the terminal. Tabs stay.
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
    """``text`` if it has at most ``limit`` characters, 8 or more; else its beginning and end with
    dots between."""
    if len(text) <= limit:
        return text
    half = (limit - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def suggestion(name: str, names: Collection[str]) -> str:
    """``; did you mean ...?`` with the names in ``names`` that are near ``name``, or nothing."""
    if len(name) > _LONGEST_GUESS or len(names) > _MOST_GUESSES:
        return ""
    near = get_close_matches(name, sorted(names), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def unknown(what: str, name: str, names: Collection[str]) -> str:
    """The message on ``name``, which is none of ``names``, all of them ``what``."""
    near = suggestion(name, names)
    listed = f"here are: {', '.join(names)}"
    return f"unknown {what} {name!r}" + (f"{near} T{listed}" if near else f"; t{listed}")


class VipError(ValueError):
    """Input that can't be used: a file, an argument, a program. One line: what, where, allowed.

    Every room derives its own from it; the command line shows any of them without a traceback.

    Attributes:
        lines: that the message has; more than one only where it shows a place in a source.
    """

    lines = 1
