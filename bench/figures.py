"""``python -m bench.figures``: the figures of README and the guides, rendered from the records.

``docs/figures.toml`` says for each table with figures, cell by cell or column by column, which
record they come from, as a template in the syntax of ``str.format``:

    "{bp[cycles_per_update_latency_20]:.1f} cycles"

A name is that of a record or of a group in :mod:`bench.derived`. In the templates of a column ``@``
stands for the row's name. Figures in running text have a template of their own sentence. Figures
that no benchmark measures (limits, figures of the thesis) are listed as given, with the reason.
"""

import re
import string
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer

from support.command import run_command
from support.files import write_atomically
from vip.cli.console import console

from .derived import DERIVED
from .experiment import BenchError
from .record import RESULTS, ROOT, values

__all__ = ["Figures", "Rendered", "Spec", "Table", "documents", "read_spec", "render", "tables"]

_SPEC = "docs/figures.toml"
_RULE = re.compile(r"^\|[-| :]+\|$")
_NUMBER = re.compile(r"\d")
#: Pattern of a template's field in a text: a number with sign, decimals, commas, percent.
_FIGURE = r"([-+]?[\d,]*\.?\d+)"


@dataclass(frozen=True)
class Table:
    """A table of a Markdown file.

    Attributes:
        heading: its header cells. rows: line number in the file, from 0 -> cells.
    """

    heading: tuple[str, ...]
    rows: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True)
class Spec:
    """The sources of the figures of one table or sentence.

    Attributes:
        file: in the checkout.
        heading: header cells of the table; empty for a sentence.
        text: template of a sentence; "" for a table.
        columns: header cell -> template. cells: name of a row -> header cell -> template.
        names: name of a row, its first cell -> value of ``@``, where it is not the same.
        given: header cells of columns, and names of rows, whose figures no benchmark measures;
            ``*`` means all. because: the reason.
        rows: number of the column, from 0, that names a row.
    """

    file: str
    heading: tuple[str, ...] = ()
    text: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    cells: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    given: tuple[str, ...] = ()
    because: str = ""

    def template(self, row: str, column: str) -> str | None:
        """The template of a cell; None: it has none."""
        if column in (cells := self.cells.get(row, {})):
            return cells[column]
        return self.columns.get(column) if row not in self.given else None

    def is_given(self, row: str, column: str) -> bool:
        """Whether no benchmark measures the figure in the cell."""
        return bool({"*", row, column} & set(self.given))


class Figures:
    """The recorded figures, by record, and the figures derived from them.

    Parameters:
        folder: of the records.
    """

    def __init__(self, folder: Path = RESULTS) -> None:
        self._folder = folder

    @cached_property
    def _groups(self) -> dict[str, Mapping[str, float]]:
        return {path.stem: values(path.stem, self._folder) for path in self._folder.glob("*.json")}

    def group(self, name: str) -> Mapping[str, float]:
        """Figures of a record, or of a group of :data:`bench.derived.DERIVED`.

        Raises:
            KeyError: there is no such record or group, or a record that it uses lacks a figure.
        """
        if name in DERIVED:
            return DERIVED[name](self._groups)
        return self._groups[name]

    def fill(self, template: str) -> str | None:
        """``template`` with its figures; None if one of them is not recorded.

        Raises:
            BenchError: no such template.
        """
        try:
            names = {re.split(r"[.\[]", name)[0] for _, name, _, _ in _fields(template)}
            return template.format_map({name: self.group(name) for name in names})
        except KeyError:
            return None
        except (ValueError, IndexError, AttributeError) as error:
            raise BenchError(f"{_SPEC}: {template!r}: {error}") from None


@dataclass(frozen=True)
class Rendered:
    """A file with its figures put in.

    Attributes:
        text: of the file. changed: places that differed, with the right text, a line each.
        missing: places whose figures are not recorded, a line each.
        unknown: errors in file or specification, a line each.
    """

    text: str
    changed: tuple[str, ...]
    missing: tuple[str, ...]
    unknown: tuple[str, ...]


def _fields(template: str) -> list[tuple[str, str, str | None, str | None]]:
    return [
        (literal, name, spec, conversion)
        for literal, name, spec, conversion in string.Formatter().parse(template)
        if name is not None
    ]


def _spec(raw: dict[str, Any]) -> Spec:
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()}
    return Spec(**fields)


def read_spec(root: Path = ROOT) -> list[Spec]:
    """Contents of ``docs/figures.toml``.

    Raises:
        BenchError: it is missing, or not as :class:`Spec` has it.
    """
    path = root / _SPEC
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        return [_spec(one) for one in (*content.get("table", ()), *content.get("text", ()))]
    except (OSError, ValueError, TypeError) as error:
        raise BenchError(f"{path}: {error}") from None


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))


def tables(text: str) -> Iterator[Table]:
    """The tables of a Markdown file."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if number and _RULE.match(line) and lines[number - 1].startswith("|"):
            rows = {}
            for row in range(number + 1, len(lines)):
                if not lines[row].startswith("|"):
                    break
                rows[row] = _cells(lines[row])
            yield Table(_cells(lines[number - 1]), rows)


def _row_names(table: Table) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Line, name and cells of each row. A row without a first cell belongs to the row above; of
    rows with the same name all but the first have a number appended to it."""
    name, seen = "", Counter[str]()
    for line, cells in table.rows.items():
        name = cells[0] or name
        seen[name] += 1
        yield line, name if seen[name] == 1 else f"{name} ({seen[name]})", cells


def render(file: str, text: str, specs: list[Spec], figures: Figures) -> Rendered:
    """``text``, the content of ``file``, with the figures that ``specs`` specify."""
    lines = text.splitlines()
    changed: list[str] = []
    missing: list[str] = []
    unknown: list[str] = []
    mine = [spec for spec in specs if spec.file == file]
    found = {table.heading: table for table in tables(text)}
    unknown += [
        f"{file}: no table with the heading {' | '.join(spec.heading)}"
        for spec in mine
        if spec.heading and spec.heading not in found
    ]
    for heading, table in found.items():
        spec = next((spec for spec in mine if spec.heading == heading), None)
        seen = set()
        for line, row, cells in _row_names(table):
            seen.add(row)
            new = list(cells)
            for place, (column, cell) in enumerate(zip(heading, cells, strict=False)):
                where = f"{file}:{line + 1}: {row}, {column or 'first column'}"
                template = spec.template(row, column) if spec and cell and place else None
                if template is None:
                    wanted = place and _NUMBER.search(cell)
                    if wanted and not (spec and spec.is_given(row, column)):
                        unknown.append(f"{where}: {cell!r} has no record")
                    continue
                filled = figures.fill(
                    template.replace("@", spec.names.get(row, row) if spec else row)
                )
                if filled is None:
                    missing.append(f"{where}: {template} is not recorded")
                elif filled != cell:
                    changed.append(f"{where}: {cell!r} should be {filled!r}")
                    new[place] = filled
            if new != list(cells):
                lines[line] = f"| {' | '.join(new)} |"
        for row in spec.cells if spec else ():
            if row not in seen:
                unknown.append(f"{file}: the table {' | '.join(heading)} has no row {row!r}")
    result = "\n".join(lines) + "\n"
    for spec in mine:
        if spec.text:
            result = _sentence(file, result, spec.text, figures, changed, missing, unknown)
    return Rendered(result, tuple(changed), tuple(missing), tuple(unknown))


def _sentence(
    file: str,
    text: str,
    template: str,
    figures: Figures,
    changed: list[str],
    missing: list[str],
    unknown: list[str],
) -> str:
    """``text`` with the figures of one sentence, whose words may stand on several lines."""
    pattern, fields = "", []
    for literal, name, spec, _ in string.Formatter().parse(template):
        pattern += r"\s+".join(map(re.escape, re.split(r"\s+", literal)))
        if name is not None:
            pattern += _FIGURE
            fields.append(f"{{{name}:{spec}}}" if spec else f"{{{name}}}")
    found = list(re.finditer(pattern, text))
    if len(found) != 1:
        unknown.append(f"{file}: {len(found)} sentences like {template!r}, not one")
        return text
    for number, one in reversed(list(enumerate(fields, 1))):
        filled = figures.fill(one)
        if filled is None:
            missing.append(f"{file}: {template!r}: {one} is not recorded")
        elif filled != found[0][number]:
            changed.append(f"{file}: {template!r}: {found[0][number]} should be {filled}")
            text = text[: found[0].start(number)] + filled + text[found[0].end(number) :]
    return text


def documents(root: Path = ROOT) -> list[str]:
    """The files with figures; not those that are generated from sources alone."""
    generated = {"docs/isa.md", "docs/onnx_operators.md", "docs/registers.md"}
    pages = sorted((root / "docs").rglob("*.md"))
    found = ["README.md", *(path.relative_to(root).as_posix() for path in pages)]
    return [file for file in found if file not in generated]


def main(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 if a file differs.")
    ] = False,
) -> None:
    """Put the recorded figures into README.md and docs.

    Example: python -m bench.figures --check
    """
    specs, figures = read_spec(), Figures()
    failed = False
    for file in documents():
        path = ROOT / file
        text = path.read_text(encoding="utf-8")
        rendered = render(file, text, specs, figures)
        for line in (*rendered.changed, *rendered.unknown):
            console.print(line, soft_wrap=True)
        if rendered.missing:
            count, first = len(rendered.missing), rendered.missing[0]
            console.print(f"{file}: {count} not recorded, first {first}", soft_wrap=True)
        failed |= bool(rendered.unknown) or (check and bool(rendered.changed or rendered.missing))
        if not check and rendered.text != text:
            write_atomically(path, rendered.text.encode())
    if failed:
        raise typer.Exit(1)


if __name__ == "__main__":
    run_command(lambda: typer.run(main))
