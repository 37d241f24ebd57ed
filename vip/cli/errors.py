"""Errors that a user can mend: one line on standard error and exit code 2, no traceback."""

import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from isa.support.errors import VipError, clipped, printable

from .notices import show_notices
from .signals import Interrupted, interruptible

__all__ = ["USER_ERROR", "UserError", "run_command"]

#: Exit code for input that can't be used; Typer uses the same for wrong arguments.
USER_ERROR = 2
#: When the reader of our output went away.
_NO_READER = 130
#: Of a line of a message; names and values that are longer lose their middle.
_CHARACTERS = 2000


class UserError(VipError):
    """Arguments that the command line itself can't use; one line."""


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


def _kept() -> str:
    from isa.support.cache import CacheError, build_folder

    try:
        return str(build_folder())
    except CacheError:
        return "the cache"


def run_command(command: Callable[[], None]) -> None:
    """Run ``command`` and end the process with the exit code that its outcome deserves."""
    warnings.formatwarning = _one_line_warning
    show_notices()
    try:
        with interruptible():
            command()
    except Interrupted as signal:
        _end(
            f"vip: interrupted by {signal}; outputs are whole or as before, and what was finished "
            f"is kept in {_kept()}",
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
