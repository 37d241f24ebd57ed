"""End of a command: an error that its user can correct is one line on standard error and exit code
2 without a traceback, and a signal leaves no process and no half-written file."""

import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from .cache import CacheError, build_folder
from .errors import VipError, clipped, printable
from .signals import Interrupted, interruptible

__all__ = ["USER_ERROR", "run_command"]

#: Exit code for input that can't be used; Typer uses the same for wrong arguments.
USER_ERROR = 2
#: Exit code when the reader of the output is gone.
_NO_READER = 130
#: Characters of a line of a message; a longer line loses its middle.
_CHARACTERS = 2000


def _end(message: str, code: int, lines: int = 1) -> NoReturn:
    """End with ``message`` of at most ``lines`` lines."""
    shown = [clipped(printable(line), _CHARACTERS) for line in message.split("\n", lines - 1)]
    with suppress(BrokenPipeError):
        print("\n".join(shown), file=sys.stderr)
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


def run_command(command: Callable[[], None]) -> None:
    """Run ``command`` and end the process with the exit code of its outcome.

    Raises:
        SystemExit: the command failed with an error that its user can correct, or was interrupted.
    """
    warnings.formatwarning = _one_line_warning
    try:
        with interruptible():
            command()
    except Interrupted as signal:
        _end(
            f"vip: interrupted by {signal}; outputs are whole or as before, and what was finished "
            f"is kept in {_cache()}",
            signal.code,
        )
    except BrokenPipeError:
        sys.exit(_NO_READER)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _end(f"vip: {where}{error.strerror or error}", USER_ERROR)
    except VipError as error:
        _end(f"vip: {error}", USER_ERROR, error.lines)
    except MemoryError:
        _end("vip: there is not enough memory for this", USER_ERROR)
