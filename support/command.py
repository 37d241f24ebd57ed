"""How a command ends: an error that the user can correct is one line on standard error and exit
code 2, without a traceback; a signal leaves no process and no half-written file behind."""

import errno
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from .cache import CacheError, build_folder
from .errors import VipError, clipped, printable
from .files import naming

#: Exit code for input that can't be used; Typer uses the same for wrong arguments.
USER_ERROR = 2
#: Exit code when the reader of the output is gone.
_NO_READER = 130
#: Most characters in a line of a message; a longer line loses its middle.
_CHARACTERS = 2000
_OUTPUT = "standard output"
#: Write errors. Those of files carry a name (support/files.py).
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
#: Narrowest line in which tables and help still fit words, and the longest that is worth its
#: memory.
_NARROW, _WIDE = 40, 1000
#: Signals that end a command: Ctrl-C, a terminal that closes, SIGTERM.
_SIGNALS = tuple(
    number
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if (number := getattr(signal, name, None)) is not None
)


def settle_columns() -> None:
    """Clamp ``COLUMNS``, or else the terminal's width, to 40 to 1,000 characters.

    Terminal libraries trust any width: at 0 or 1 they show nothing.
    A value that is not a positive number is removed.
    """
    text = os.environ.pop("COLUMNS", "")
    columns = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if columns:
        os.environ["COLUMNS"] = str(min(max(columns, _NARROW), _WIDE))
        return
    for handle in range(3):
        with suppress(OSError):
            if 0 < os.get_terminal_size(handle).columns < _NARROW:
                os.environ["COLUMNS"] = str(_NARROW)
            return


def _end(message: str, code: int, lines: int = 1) -> NoReturn:
    """End with ``message`` of at most ``lines`` lines."""
    clipped_lines = [
        clipped(printable(line), _CHARACTERS) for line in message.split("\n", lines - 1)
    ]
    with suppress(BrokenPipeError):
        print("\n".join(clipped_lines), file=sys.stderr)
    sys.exit(code)


def _one_line_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    return clipped(printable(f"vip: warning: {message}"), _CHARACTERS) + "\n"


def _cache() -> str:
    try:
        return str(build_folder())
    except CacheError:
        return "the cache"


def _complete(command: Callable[[], None]) -> None:
    """Run ``command`` until all its output is written.

    Raises:
        BrokenPipeError: nobody reads the output.
        OSError: it can't be written; the exception names it.
    """
    try:
        command()
    except SystemExit as end:
        # Terminal libraries exit with a code of their own, which means nothing.
        if isinstance(end.__context__, OSError) and end.__context__.errno == errno.EPIPE:
            raise end.__context__ from None
        _flush()
        raise
    _flush()


def _flush() -> None:
    if sys.stdout is not None:
        with naming(_OUTPUT):
            sys.stdout.flush()


def _drop_output() -> None:
    """Discard output that can't be written: Python would try again at exit, and report it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError), open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())


def _where(error: OSError) -> str:
    """The file that ``error`` is about, followed by a colon; "" if unknown."""
    if error.filename:
        return f"{error.filename}: "
    if error.errno in _FULL:
        return f"{_OUTPUT}: "
    with suppress(FileNotFoundError):
        os.getcwd()
        return ""
    return "the current folder: "


class _Interrupted(BaseException):
    """A signal asks this process to end; raised wherever it is running.

    Not a KeyboardInterrupt, which libraries handle in their own ways.

    Attributes:
        number: the signal's.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def code(self) -> int:
        """Exit code, as a shell reports for a program killed by the signal."""
        return 128 + self.number


@contextmanager
def _interruptible() -> Iterator[None]:
    """While open, the first of SIGINT, SIGTERM and SIGHUP raises :class:`_Interrupted` in the main
    thread, and the next one ends the process at once. Ignored signals stay ignored, e.g. under
    ``nohup``."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread can handle signals.
        yield
        return
    ended = False

    def end(number: int, _: object) -> None:
        nonlocal ended
        if ended:
            os._exit(128 + number)
        ended = True
        raise _Interrupted(number)

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


def run_command(command: Callable[[], None]) -> None:
    """Run ``command`` and end the process with the exit code of its outcome.

    Raises:
        SystemExit: the command failed with an error that its user can correct, or was interrupted.
    """
    warnings.formatwarning = _one_line_warning
    settle_columns()
    try:
        with _interruptible():
            _complete(command)
    except _Interrupted as interruption:
        _end(
            f"vip: interrupted by {interruption}; no partial output was written; finished work "
            f"is cached in {_cache()}",
            interruption.code,
        )
    except BrokenPipeError:
        _drop_output()
        sys.exit(_NO_READER)
    except OSError as error:
        where = _where(error)
        _drop_output()
        _end(f"vip: {where}{error.strerror or error}", USER_ERROR)
    except VipError as error:
        _end(f"vip: {error}", USER_ERROR, error.lines)
    except MemoryError:
        _end("vip: not enough memory", USER_ERROR)
