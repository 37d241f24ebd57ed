"""Syntax of Liberty files: groups, attributes and lists. :mod:`.cell_library` interprets them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from synth.errors import SynthesisError


class LibertyError(SynthesisError):
    """An unusable Liberty file; one line says where and why."""


#: Attribute of a wire load that repeats, once per number of pins.
_REPEATED = "fanout_length"

# Comments and line continuations count as blanks. A word is a number, a name or a string.
_BLANK = re.compile(r"(?:\s|\\\r?\n|/\*.*?(?:\*/|\Z)|//[^\n]*)+", re.DOTALL)
_WORD = re.compile(r'"([^"]*)"|([^\s(){};:,"]+)|([(){};:,])')


@dataclass
class Group:
    """A group of a Liberty text.

    Attributes:
        kind: e.g. ``cell``.
        arguments: the words in its parentheses.
        values: simple attributes.
        lists: attributes with parentheses, as words; the last one of a name wins.
        repeated: words of each ``fanout_length``, the only attribute that repeats.
        groups: nested groups, in order.
    """

    kind: str
    arguments: tuple[str, ...]
    values: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    repeated: list[list[str]] = field(default_factory=list)
    groups: list["Group"] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its first argument, or ""."""
        return self.arguments[0] if self.arguments else ""

    def of(self, *kinds: str) -> Iterator["Group"]:
        """Its nested groups of these kinds."""
        return (group for group in self.groups if group.kind in kinds)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.token = ""
        self.quoted = False
        self.advance()

    def fail(self, problem: str) -> LibertyError:
        line = self.text.count("\n", 0, self.at) + 1
        return LibertyError(f"line {line}: {problem}")

    def advance(self) -> None:
        blank = _BLANK.match(self.text, self.at)
        if blank is not None:
            self.at = blank.end()
        match = _WORD.match(self.text, self.at)
        if match is None:
            if self.at < len(self.text):
                raise self.fail(f"unexpected {self.text[self.at]!r}")
            self.token, self.quoted = "", False
            return
        self.at = match.end()
        self.quoted = match[1] is not None
        self.token = match[1] if self.quoted else match[0]

    def take(self, expected: str) -> None:
        if self.quoted or self.token != expected:
            actual = repr(self.token) if self.token else "the end of the file"
            raise self.fail(f"{expected!r} expected, not {actual}")
        self.advance()

    def is_sign(self, sign: str) -> bool:
        return not self.quoted and self.token == sign

    def word(self) -> str:
        if not self.quoted and (not self.token or self.token in "(){};:,"):
            actual = repr(self.token) if self.token else "the end of the file"
            raise self.fail(f"a name or a value expected, not {actual}")
        word = self.token
        self.advance()
        return word

    def statement(self, into: Group) -> None:
        name = self.word()
        if self.is_sign(":"):
            self.advance()
            words = [self.word()]
            while self.quoted or self.token not in ("", ";", "}"):
                if "\n" in self.text[self.at - len(self.token) - 2 : self.at - len(self.token)]:
                    break
                words.append(self.word() if self.token not in "():," else self._sign())
            into.values[name] = " ".join(words)
            if self.is_sign(";"):
                self.advance()
            return
        self.take("(")
        arguments = []
        while not self.is_sign(")"):
            arguments.append(self.word())
            if self.is_sign(","):
                self.advance()
        self.take(")")
        if self.is_sign("{"):
            self.advance()
            group = Group(name, tuple(arguments))
            while not self.is_sign("}"):
                if self.is_sign(";"):
                    self.advance()
                else:
                    self.statement(group)
            self.advance()
            into.groups.append(group)
        else:
            into.lists[name] = arguments
            if name == _REPEATED:
                into.repeated.append(arguments)
            if self.is_sign(";"):
                self.advance()

    def _sign(self) -> str:
        sign = self.token
        self.advance()
        return sign


def read_groups(text: str) -> Group:
    """Parse Liberty text into groups nested in an unnamed root.

    Raises:
        LibertyError: it isn't Liberty; the message names the line.
    """
    reader = _Reader(text)
    root = Group("", ())
    while reader.token or reader.quoted:
        reader.statement(root)
    return root


def number(text: str, place: str) -> float:
    """Parse ``text`` as a number; messages name ``place``.

    Raises:
        LibertyError: it is not a number.
    """
    try:
        return float(text)
    except ValueError:
        raise LibertyError(f"{place}: {text!r} is not a number") from None


def numbers(words: list[str], place: str) -> list[float]:
    """The numbers in ``words``, separated by blanks or commas; errors as for :func:`number`."""
    return [number(word, place) for word in re.split(r"[\s,]+", " ".join(words)) if word]


def unit(text: str, name: str, units: Mapping[str, float]) -> float:
    """Value of ``text``, a number with one of ``units`` (lower case); messages name ``name``.

    Raises:
        LibertyError: it is not such a value.
    """
    match = re.fullmatch(r"([\d.]+)\s*([a-z]+)", text.lower())
    if match is None or match[2] not in units:
        raise LibertyError(f"{name} {text!r}: the unit must be one of {', '.join(units)}")
    return float(match[1]) * units[match[2]]
