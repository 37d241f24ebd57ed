"""Text for people: the base class of exceptions for invalid input, parts of messages, and how
results show themselves."""

from collections.abc import Collection, Iterator, Mapping, Sized
from difflib import get_close_matches
from html import escape
from pathlib import PurePath
from typing import TypeGuard

#: Beyond these, looking for names that are near takes too long: characters, and known names.
_LONGEST_GUESS, _MOST_GUESSES = 64, 2000
#: Characters of a result that shows itself as a line, and rows of a table in a notebook.
_LINE, _MOST_ROWS = 100, 40


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


class Shown:
    """A result that shows itself: as one line, and as tables in a notebook.

    Both come from :meth:`_facts`: numbers, text and truth values; a collection counts as its size,
    and mappings are tables of their own in a notebook. A class with ``line=False`` keeps its
    representation: configurations do, as failures of random ones are reproduced from it.
    """

    def __init_subclass__(cls, *, line: bool = True, **settings: object) -> None:
        super().__init_subclass__(**settings)
        if line:
            # A dataclass keeps a representation that its class has, but not an inherited one.
            cls.__repr__ = Shown.__repr__  # type: ignore[method-assign]

    def _facts(self) -> Mapping[str, object]:
        """What is shown: ``to_json``, else the fields."""
        to_json = getattr(self, "to_json", None)
        names = getattr(self, "__dataclass_fields__", {})
        return to_json() if to_json else {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        facts = dict(self._facts())
        program = getattr(self, "program", None) if "name" not in facts else None
        source = program._facts() if isinstance(program, Shown) else facts
        name = facts.pop("name", "") or source.get("name") or getattr(self, "title", "")
        line = f"{type(self).__name__} {name!r}" if name else type(self).__name__
        parts: list[str] = []
        while not parts and facts:
            for key, value in facts.items():
                part = _part(key.replace("_", " "), value)
                if part and len(", ".join([line, *parts, part])) < _LINE:
                    parts.append(part)
            # Results that hold nothing but other results show the first of these.
            facts = next((dict(one) for one in facts.values() if isinstance(one, Mapping)), {})
        return clipped(f"{line}: {', '.join(parts)}" if parts else line, _LINE)

    def _repr_html_(self) -> str:
        tables: dict[str, list[tuple[object, ...]]] = {}
        _add_rows(tables, type(self).__name__, self._facts())
        return "".join(_html(title, rows) for title, rows in tables.items() if rows)


def _plain(value: object) -> str:
    """A number, text or truth value as a cell, a member of an enumeration by its name; "" of
    anything else."""
    name = str(value) if isinstance(value, PurePath) else getattr(value, "name", value)
    if isinstance(name, str):
        return name if name != "NONE" else ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else ""


def _is_collection(value: object) -> TypeGuard[Sized]:
    return isinstance(value, Sized) and not isinstance(value, str)


def _part(key: str, value: object) -> str:
    """``value`` in a line: "14 words", "halted", "pc 13", "match: no"; "" if there is none."""
    cell = f"{len(value):,}" if _is_collection(value) else _plain(value)
    if isinstance(value, bool):
        return f"{key}: {cell}"
    if isinstance(value, str):
        return printable(clipped(cell, 60))
    if key.endswith("s") and cell:
        one = key.removesuffix("es" if key.endswith("ches") else "s")
        return f"{cell} {one if cell == '1' else key}"
    return f"{key} {cell}" if cell and not _is_collection(value) else ""


def _add_rows(
    tables: dict[str, list[tuple[object, ...]]], title: str, facts: Mapping[str, object]
) -> None:
    """Add ``facts`` to the table ``title``, and those that are mappings to tables after it."""
    rows = tables.setdefault(title, [])
    for key, fact in facts.items():
        value = fact._facts() if isinstance(fact, Shown) else fact
        name = str(key).replace("_", " ")
        if isinstance(value, Mapping):
            inner = [one for one in value.values() if isinstance(one, Mapping)]
            if inner and len(inner) == len(value):
                heads = [head for head in inner[0] if _plain(inner[0][head])]
                table = tables.setdefault(name, [("", *(head.replace("_", " ") for head in heads))])
                table += [(one, *(row.get(head) for head in heads)) for one, row in value.items()]
            else:
                _add_rows(tables, name, value)
        elif _is_collection(value):
            rows.append((name, len(value)))
        elif _plain(value):
            rows.append((name, value))


def _html(title: str, rows: list[tuple[object, ...]]) -> str:
    """A table of ``rows``; numbers are aligned to the right."""
    lines = list(_html_rows(rows[:_MOST_ROWS]))
    if len(rows) > _MOST_ROWS:
        lines.append(f"<tr><td>and {len(rows) - _MOST_ROWS:,} further</td></tr>")
    style = "text-align:left;font-weight:bold"
    return f'<table><caption style="{style}">{escape(title)}</caption>{"".join(lines)}</table>'


def _html_rows(rows: list[tuple[object, ...]]) -> Iterator[str]:
    for name, *values in rows:
        cells = [f'<td style="text-align:left">{escape(printable(str(name)))}</td>']
        for value in values:
            side = "left" if isinstance(value, str | bool) else "right"
            text = escape(printable(_plain(value)))
            cells.append(f'<td style="text-align:{side}">{text}</td>')
        yield f"<tr>{''.join(cells)}</tr>"
