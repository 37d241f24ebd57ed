"""``python -m bench.harness.figures``: puts recorded figures into README and the guides.

An invisible comment after a figure gives its source:

    An update takes 80.1<!--{bp[cycles_per_update_latency_20]:.1f}--> cycles.

A source is an expression over recorded figures with a Python format. A column's header may have a
template for its cells, in which ``@`` is the row's name; a comment in the row's first cell replaces
that name. A figure that no benchmark measures is marked ``given``, with the reason, in its column's
header, in its row's first cell or, for a whole table, in the first header:

    | engine | cycles <!--{bp[@]:.1f}--> | thesis <!--given: the thesis's figures--> |
    |---|---|---|
    | our own <!--cycles_per_update_latency_20--> | 80.1 | 90 |
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer

from support.command import run_command
from support.files import write_atomically
from vip.cli.console import console

from .experiment import BenchError
from .record import RESULTS, ROOT, values

_RULE = re.compile(r"^\|[-| :]+\|$")
_COMMENT = re.compile(r" ?<!--(.*?)-->")
#: A number with optional sign, decimals, commas and percent, and its source.
_SOURCED = re.compile(r"([-+]?[\d,]*\.?\d+%?)<!--\{([^}]*)\}-->")
_FIELD = re.compile(r"\{([^}]*)\}")
#: A figure of a record; ``*`` in its name matches any text and selects all matching figures.
_RECORDED = re.compile(r"(\w+)\[([^\]]+)\]")
_ARITHMETIC = re.compile(r"^(?:[-+*/(), \d.e\[\]]|mean)*$")
_GIVEN = "given"


class Figures:
    """The recorded figures.

    Parameters:
        folder: that has the records.
    """

    def __init__(self, folder: Path = RESULTS) -> None:
        self._folder = folder

    @cached_property
    def _records(self) -> dict[str, Mapping[str, float]]:
        return {path.stem: values(path.stem, self._folder) for path in self._folder.glob("*.json")}

    def matching(self, record: str, name: str) -> list[str]:
        """Names of the figures that match ``name``.

        Raises:
            KeyError: there is no such record or figure.
        """
        pattern = re.compile(".*".join(map(re.escape, name.split("*"))))
        names = [figure for figure in self._records[record] if pattern.fullmatch(figure)]
        if not names:
            raise KeyError(name)
        return names

    def value(self, source: str) -> str:
        """The text of a source, ``expression`` or ``expression:format``.

        Raises:
            KeyError: a figure is not recorded. BenchError: the source is invalid.
        """
        expression, _, form = source.partition(":")

        def recorded(match: re.Match[str]) -> str:
            record, name = match.groups()
            numbers = [self._records[record][one] for one in self.matching(record, name)]
            return repr(numbers if "*" in name else numbers[0])

        text = _RECORDED.sub(recorded, expression)
        try:
            if not _ARITHMETIC.match(text):
                raise ValueError("not arithmetic")
            return format(eval(text, {"__builtins__": {}, "mean": fmean}), form)
        except (ValueError, SyntaxError, TypeError) as error:
            raise BenchError(f"{{{source}}}: {error}") from None

    def fill(self, template: str) -> str:
        """``template`` with its sources replaced by their texts; raises the errors of
        :meth:`value`."""
        return _FIELD.sub(lambda match: self.value(match[1]), template)


@dataclass(frozen=True, kw_only=True)
class _Cell:
    """A cell of a table, and what the comments of its row and column say about it."""

    line: int
    place: int
    text: str
    column: str
    row: str
    template: str
    unmeasured: bool


@dataclass
class Rendered:
    """A file with its figures filled in.

    Attributes:
        text: of the file. changed: places that differed, with the correct text, one line each.
        missing: places whose figures are not recorded, one line each.
        unknown: errors in the file, one line each.
    """

    text: str
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def _split(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _note(cell: str) -> str:
    """The comment of a cell, unless it is the source of a figure beside it."""
    notes = _COMMENT.findall(_SOURCED.sub(r"\1", cell))
    return notes[0].strip() if notes else ""


def _plain(cell: str) -> str:
    return _COMMENT.sub("", cell).strip()


def _cells(text: str) -> Iterator[_Cell]:
    """The cells of all tables, except those that name rows."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if not (number and _RULE.match(line) and lines[number - 1].startswith("|")):
            continue
        heads = _split(lines[number - 1])
        notes = [_note(head) for head in heads]
        everything = notes[0].startswith(_GIVEN)
        row = ""
        for at in range(number + 1, len(lines)):
            if not lines[at].startswith("|"):
                break
            first, *cells = _split(lines[at])
            row, note = _plain(first) or row, _note(first)
            for place, (cell, head, column) in enumerate(
                zip(cells, heads[1:], notes[1:], strict=False), 1
            ):
                notes_of_cell = (note, column, _note(cell))
                is_given = any(one.startswith(_GIVEN) for one in notes_of_cell)
                sourced = _SOURCED.search(cell) is not None
                yield _Cell(
                    line=at,
                    place=place,
                    text=cell,
                    column=_plain(head),
                    row=row,
                    template="" if is_given or sourced else column.replace("@", note or row),
                    unmeasured=is_given or everything or sourced,
                )


def render(file: str, text: str, figures: Figures) -> Rendered:
    """``text``, the content of ``file``, with its figures filled in."""
    rendered = Rendered(text)
    lines = text.splitlines()
    for cell in _cells(text):
        place = f"{file}:{cell.line + 1}: {cell.row}, {cell.column or 'first column'}"
        if not cell.template or not cell.text:
            if not cell.unmeasured and re.search(r"\d", cell.text):
                rendered.unknown.append(f"{place}: {cell.text!r} has no record")
            continue
        try:
            filled = figures.fill(cell.template)
        except KeyError:
            rendered.missing.append(f"{place}: {cell.template} is not recorded")
            continue
        if filled != cell.text:
            rendered.changed.append(f"{place}: {cell.text!r} should be {filled!r}")
            cells = _split(lines[cell.line])
            cells[cell.place] = filled
            lines[cell.line] = f"| {' | '.join(cells)} |"

    def fill(match: re.Match[str]) -> str:
        old, source = match.groups()
        try:
            filled = figures.value(source)
        except KeyError:
            rendered.missing.append(f"{file}: {{{source}}} is not recorded")
            return match[0]
        if filled != old:
            rendered.changed.append(f"{file}: {{{source}}}: {old} should be {filled}")
        return f"{filled}<!--{{{source}}}-->"

    rendered.text = _SOURCED.sub(fill, "\n".join(lines) + "\n")
    return rendered


def documents(root: Path = ROOT) -> list[str]:
    """The files with figures, except those generated only from sources."""
    made = ("isa", "onnx_operators", "registers", "verification")
    generated = {f"docs/{page}.md" for page in made}
    pages = sorted((root / "docs").rglob("*.md"))
    files = ["README.md", *(path.relative_to(root).as_posix() for path in pages)]
    return [file for file in files if file not in generated]


def main(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with code 1 if a file differs.")
    ] = False,
) -> None:
    """Put the recorded figures into README.md and docs.

    Example: python -m bench.harness.figures --check
    """
    figures = Figures()
    failed = False
    for file in documents():
        path = ROOT / file
        text = path.read_text(encoding="utf-8")
        rendered = render(file, text, figures)
        for line in (*rendered.changed, *rendered.unknown):
            console.print(line, soft_wrap=True)
        if rendered.missing:
            count, first = len(rendered.missing), rendered.missing[0]
            console.print(f"{file}: {count} not recorded, the first: {first}", soft_wrap=True)
        failed |= bool(rendered.unknown) or (check and bool(rendered.changed or rendered.missing))
        if not check and rendered.text != text:
            write_atomically(path, rendered.text.encode())
    if failed:
        raise typer.Exit(1)


if __name__ == "__main__":
    run_command(lambda: typer.run(main))
