"""The terminal of the commands: results, progress, lines on standard error."""

import re
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement, measure_renderables
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Display
from rich.table import Column, Table
from rich.text import Text

from support.errors import printable
from vip.progress import Progress


class _Plain(Console):
    """A terminal that shows strings as they are: names may contain brackets, colons, and control
    characters, which appear as escapes."""

    def render_str(self, text: str, **settings: Any) -> Text:
        return super().render_str("\n".join(map(printable, text.split("\n"))), **settings)

    def on_broken_pipe(self) -> None:
        """Discard the rest, as the results are still to be written to files."""
        self.quiet = True


#: Results go to standard output, progress to standard error: a pipe gets only results.
console = _Plain(highlight=False, markup=False, emoji=False)
_progress_console = _Plain(stderr=True, highlight=False, markup=False, emoji=False)


def warn(line: str) -> None:
    """Show one line on standard error, above a progress display if there is one."""
    _progress_console.out(printable(f"vip: {line}"), highlight=False)


class _Amount(TaskProgressColumn):
    """The percentage of a stage whose size is known, else the amount done."""

    def render(self, task: Task) -> Text:
        if task.total is not None:
            return super().render(task)
        return Text(f"{task.completed:,.0f}" if task.completed else "")


class _Remaining(TimeRemainingColumn):
    """The remaining time of a stage whose size is known."""

    def render(self, task: Task) -> Text:
        return super().render(task) if task.total is not None else Text()


#: A column of text may be wrapped to this many characters before its table becomes a list.
_NARROWEST = 12
_ANY_WIDTH = 1000

#: Verdicts in cells, and their colours on a terminal; a cell begins with one of them.
_COLOURS = {
    "as recorded": "green",
    "better": "green",
    "exact": "green",
    "proved": "green",
    "the same": "green",
    "yes": "green",
    "assumed": "yellow",
    "not known": "yellow",
    "unknown": "yellow",
    "differs": "bold red",
    "fault": "bold red",
    "hazard": "bold red",
    "no": "bold red",
    "worse": "bold red",
}


def _coloured(cell: str) -> Text:
    """A cell in the colour of its leading verdict, if it has one."""
    for verdict, colour in _COLOURS.items():
        if re.match(rf"{verdict}(?=$|[,;:])", cell, re.IGNORECASE):
            return Text(printable(cell), style=colour)
    return console.render_str(cell)


class _Listed(Table):
    """A table that becomes a list, one block per row, where its columns don't fit the terminal."""

    def add_row(self, *cells: RenderableType | None, **settings: Any) -> None:
        super().add_row(*(_coloured(str(cell or "")) for cell in cells), **settings)

    def __rich_console__(self, terminal: Console, options: ConsoleOptions) -> RenderResult:
        whole = Measurement.get(terminal, options.update(width=_ANY_WIDTH), self).maximum
        least, widths = [], []
        for column in self.columns:
            cells = [*([column.header] if self.show_header else []), *column.cells]
            sizes = [measure_renderables(terminal, options, [cell]) for cell in cells]
            widths.append(max(size.maximum for size in sizes))
            least.append(max(min(_NARROWEST, widths[-1]), *(size.minimum for size in sizes), 0))
        excess = max(0, whole - options.max_width)
        if self.title:
            # The table's own would be wrapped at the width of its columns.
            yield Text(str(self.title), style="bold")
            self.title = None
        if excess > sum(widths) - sum(least):
            yield from self._blocks()
        else:
            for _ in range(excess):
                # The column farthest from its least width.
                place = max(range(len(widths)), key=lambda at: widths[at] - least[at])
                widths[place] -= 1
            for column, width in zip(self.columns, widths, strict=True):
                column.width = width
            yield from super().__rich_console__(terminal, options)
        yield ""

    def _blocks(self) -> RenderResult:
        """The rows as blocks: the first cell, then a line for each other cell."""
        heads = [str(column.header) for column in self.columns]
        for name, *values in zip(*(column.cells for column in self.columns), strict=True):
            yield Text(f"{heads[0]} {name}".strip(), style="bold")
            block = Table.grid(padding=(0, 2, 0, 0))
            for head, value in zip(heads[1:], values, strict=True):
                if str(value):
                    block.add_row(head, value)
            yield Padding(block, (0, 0, 0, 2))


def table(*heads: str, left: Container[str] = ("",), title: str = "", **style: Any) -> Table:
    """A table of numbers, alike in all commands; a list if the terminal is too narrow.

    Parameters:
        heads: of its columns.
        left: heads of columns of text, which may be wrapped.
        style: further parameters of rich's ``Table``.
    """
    columns = [
        Column(head, overflow="fold")
        if head in left
        else Column(head, justify="right", no_wrap=True)
        for head in heads
    ]
    look = {
        "box": box.SIMPLE_HEAD,
        "padding": (0, 1, 0, 0),
        "pad_edge": False,
        "show_edge": False,
        **style,
    }
    return _Listed(*columns, title=title or None, **look)


def show_values(title: str, values: Mapping[str, str]) -> None:
    """Print a table of names and values."""
    rows = table("", "value", title=title, show_header=False)
    for name, value in values.items():
        rows.add_row(name, value)
    console.print(rows)


@contextmanager
def shown() -> Iterator[Progress]:
    """A display of the current stage. It is removed at the end of the ``with`` statement; without a
    terminal on standard error there is none. Call the result with the progress."""
    with Display(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        _Amount(),
        TimeElapsedColumn(),
        _Remaining(),
        console=_progress_console,
        transient=True,
        disable=not _progress_console.is_terminal,
    ) as display:
        stages: dict[str, Any] = {}

        def show(stage: str, done: float = 0, total: float | None = None, part: str = "") -> None:
            if stage not in stages:
                for task in stages.values():
                    display.remove_task(task)
                stages.clear()
                stages[stage] = display.add_task(stage, total=total)
            display.update(
                stages[stage],
                description=f"{stage}: {part}" if part else stage,
                completed=done if total is None else min(done, total),
                total=total,
            )

        yield show
