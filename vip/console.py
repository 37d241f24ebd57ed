"""What commands show on the terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["console", "counted", "steps"]

#: Results go to standard output, progress to standard error: a pipe gets results alone.
console = Console(highlight=False)
_progress_console = Console(stderr=True, highlight=False)


@contextmanager
def counted(what: str, total: float) -> Iterator[Callable[[float], None]]:
    """A bar for work of known size; call the result with how much is done so far."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=_progress_console,
        transient=True,
    ) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=min(done, total))
        progress.update(task, completed=total)


@contextmanager
def steps(what: str, total: int | None = None) -> Iterator[Callable[[str], None]]:
    """A spinner with the name of the step at hand; call the result with each new one."""
    columns = [SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
    if total is not None:
        columns.insert(2, MofNCompleteColumn())
    with Progress(*columns, console=_progress_console, transient=True) as progress:
        task = progress.add_task(what, total=total)
        begun = 0

        def step(name: str) -> None:
            nonlocal begun
            progress.update(task, description=f"{what}: {name}", completed=begun)
            begun += 1

        yield step
