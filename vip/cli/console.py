"""What commands show on the terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from isa.support.errors import printable

__all__ = ["console", "counted", "steps", "tally", "units_done", "warn"]


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


def _progress(*columns: ProgressColumn) -> Progress:
    """A display that goes away when its work is done; none where nobody sees it move."""
    return Progress(
        *columns,
        console=_progress_console,
        transient=True,
        disable=not _progress_console.is_terminal,
    )


@contextmanager
def counted(what: str, total: float) -> Iterator[Callable[[float], None]]:
    """A bar for work of known size; call the result with how much is done so far."""
    with _progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    ) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=min(done, total))
        progress.update(task, completed=total)


@contextmanager
def tally(what: str) -> Iterator[Callable[[int], None]]:
    """A running count for work of unknown size; call the result with how much is done so far."""
    with _progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.completed:,.0f}"),
        TimeElapsedColumn(),
    ) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done: progress.update(task, completed=done)


@contextmanager
def units_done(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for work in named units; call the result with a unit's name, how many are done, of
    how many."""
    with _progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    ) as progress:
        task = progress.add_task(what, total=None)

        def done(unit: str, count: int, total: int) -> None:
            progress.update(task, description=f"{what}: {unit}", completed=count, total=total)

        yield done


@contextmanager
def steps(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner with the name of the step at hand; call the result with each new one."""
    with _progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
    ) as progress:
        task = progress.add_task(what, total=None)
        yield lambda name: progress.update(task, description=f"{what}: {name}")
