"""Work on another processor while the machine runs."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from support.errors import VipError
from vip.progress import Progress

__all__ = ["Stop", "meanwhile", "stopping"]

ResultT = TypeVar("ResultT")


class Stop(threading.Event):
    """Set when nobody needs the result."""


class _StoppedError(VipError):
    """The work ended early, as nobody needs its result."""


def stopping(progress: Progress, stop: Stop) -> Progress:
    """``progress`` for work that ends at its next report once ``stop`` is set."""

    def show(stage: str, done: float = 0, total: float | None = None, part: str = "") -> None:
        if stop.is_set():
            raise _StoppedError
        progress(stage, done, total, part)

    return show


@contextmanager
def meanwhile(work: Callable[[Stop], ResultT]) -> Iterator[Callable[[], ResultT]]:
    """Do ``work`` in another thread; call what the context gives for its result, or its exception.
    When the context is left by an exception, the work is asked to stop."""
    stop = Stop()
    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(work, stop)
        try:
            yield future.result
        finally:
            stop.set()
