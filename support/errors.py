"""The base of every exception by which VIP refuses a user's input."""

__all__ = ["VipError", "clipped", "printable"]


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


class VipError(ValueError):
    """Input that can't be used: a file, an argument, a program. One line: what, where, allowed.

    Every room derives its own from it; the command line shows any of them without a traceback.

    Attributes:
        lines: that the message has; more than one only where it shows a place in a source.
    """

    lines = 1
