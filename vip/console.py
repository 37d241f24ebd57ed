"""What commands show on the terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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

__all__ = ["console", "counted", "steps", "tally", "units_done"]

#: Results go to standard output, progress to standard error: a pipe gets results alone.
console = Console(highlight=False)
_progress_console = Console(stderr=True, highlight=False)


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
        TextColumn("{task.description}"),
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
        TextColumn("{task.description}"),
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
        TextColumn("{task.description}"),
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
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    ) as progress:
        task = progress.add_task(what, total=None)
        yield lambda name: progress.update(task, description=f"{what}: {name}")
