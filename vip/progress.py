"""Progress of long work, which verbs of the API report to a callback."""

from collections.abc import Callable
from typing import Protocol


class Progress(Protocol):
    """A callback that shows progress; it is called often and must return quickly."""

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, part: str = ""
    ) -> None:
        """Show the progress of a stage.

        Parameters:
            stage: the current work. done: completed amount of it.
            total: amount at which the stage is complete; None: not known.
            part: the current part of the stage; "" if it has none.
        """


def silent(stage: str, done: float = 0, total: float | None = None, part: str = "") -> None:
    """The progress that shows nothing."""


def counting(progress: Progress, stage: str, total: float | None = None) -> Callable[[float], None]:
    """A callback with the amount done, for ``stage``."""
    progress(stage, 0, total)
    return lambda done: progress(stage, done, total)


def by_part(progress: Progress, stage: str) -> Callable[[str, int, int], None]:
    """A callback with the name of a part, the number of completed parts, and the number of all."""
    progress(stage)
    return lambda part, done, total: progress(stage, done, total, part)


def naming(progress: Progress, stage: str) -> Callable[[str], None]:
    """A callback with the name of the part that begins."""
    progress(stage)
    return lambda part: progress(stage, part=part)
