"""Signals that end a command: Ctrl-C, a terminal that closes, SIGTERM."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Interrupted", "interruptible"]

_SIGNALS = tuple(
    number
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if (number := getattr(signal, name, None)) is not None
)


class Interrupted(BaseException):
    """A signal asks this process to end; raised wherever it is.

    No KeyboardInterrupt, for which libraries have ways of their own.

    Attributes:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def code(self) -> int:
        """Exit code, as a shell reports a program that the signal ended."""
        return 128 + self.number


@contextmanager
def interruptible() -> Iterator[None]:
    """While open, the first of SIGINT, SIGTERM and SIGHUP raises :class:`Interrupted` in the main
    thread, and the next one ends the process at once. Signals that are ignored, as by ``nohup``,
    stay so."""
    if threading.current_thread() is not threading.main_thread():
        # Signals are not its business.
        yield
        return
    ended = False

    def end(number: int, _: object) -> None:
        nonlocal ended
        if ended:
            os._exit(128 + number)
        ended = True
        raise Interrupted(number)

    before = {
        number: signal.getsignal(number)
        for number in _SIGNALS
        if signal.getsignal(number) != signal.SIG_IGN
    }
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
