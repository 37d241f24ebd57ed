"""Errors that a user can mend: one line on standard error and exit code 2, no traceback."""

import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from isa.errors import VipError, clipped, printable

__all__ = ["USER_ERROR", "UserError", "run_command"]

#: Exit code for input that can't be used; Typer uses the same for wrong arguments.
USER_ERROR = 2
#: What a shell reports for a program ended by Ctrl-C.
_INTERRUPTED = 130
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


def run_command(command: Callable[[], None]) -> None:
    """Run ``command`` and end the process with the exit code that its outcome deserves."""
    warnings.formatwarning = _one_line_warning
    try:
        command()
    except KeyboardInterrupt:
        _end("vip: interrupted; what was finished is kept", _INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away.
        sys.exit(_INTERRUPTED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _end(f"vip: {where}{error.strerror or error}", USER_ERROR)
    except VipError as error:
        _end(f"vip: {error}", USER_ERROR, error.lines)
    except MemoryError:
        _end("vip: there is not enough memory for this", USER_ERROR)
