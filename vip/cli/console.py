"""The terminal of the commands: results, progress, lines on standard error."""

from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
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

__all__ = ["console", "show_values", "shown", "table", "warn"]


class _Plain(Console):
    """A terminal that shows strings as they are: names may hold brackets, colons, and control
    characters, which appear as escapes."""

    def render_str(self, text: str, **settings: Any) -> Text:
        return super().render_str("\n".join(map(printable, text.split("\n"))), **settings)


#: Results go to standard output, progress to standard error: a pipe gets results alone.
console = _Plain(highlight=False, markup=False, emoji=False)
_progress_console = _Plain(stderr=True, highlight=False, markup=False, emoji=False)


def warn(line: str) -> None:
    """Show one line on standard error, above a progress display if there is one."""
    _progress_console.out(printable(f"vip: {line}"), highlight=False)


class _Amount(TaskProgressColumn):
    """Percent of a stage whose size is known, else the amount done."""

    def render(self, task: Task) -> Text:
        if task.total is not None:
            return super().render(task)
        return Text(f"{task.completed:,.0f}" if task.completed else "")


class _Remaining(TimeRemainingColumn):
    """The remaining time of a stage whose size is known."""

    def render(self, task: Task) -> Text:
        return super().render(task) if task.total is not None else Text()


def table(
    *heads: str,
    left: Container[str] = ("",),
    unbroken: Container[str] = (),
    title: str = "",
    **style: Any,
) -> Table:
    """A table of numbers.

    Parameters:
        heads: of its columns. left: those of them that have text. unbroken: those whose cells stay
            on one line.
        style: further parameters of rich's ``Table``.
    """
    columns = [
        Column(head, justify="left" if head in left else "right", no_wrap=head in unbroken)
        for head in heads
    ]
    return Table(*columns, title=title or None, **style)


def show_values(title: str, values: Mapping[str, str]) -> None:
    """Print a table of names and what they are."""
    rows = Table(Column(), Column(justify="right"), title=title, show_header=False)
    for name, value in values.items():
        rows.add_row(name, value)
    console.print(rows)


@contextmanager
def shown() -> Iterator[Progress]:
    """A display of the current stage. It is removed at the end of the ``with`` statement; there is
    none if standard error is no terminal. Call the result with the progress."""
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
