"""Errors that a user can mend: one line on standard error and exit code 2, no traceback."""

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from isa.errors import VipError

__all__ = ["USER_ERROR", "UserError", "run_command"]

#: Exit code for input that can't be used; Typer uses the same for wrong arguments.
USER_ERROR = 2
#: What a shell reports for a program ended by Ctrl-C.
_INTERRUPTED = 130


class UserError(VipError):
    """Arguments that the command line itself can't use; one line."""


def _end(message: str, code: int) -> NoReturn:
    with suppress(BrokenPipeError):
        print(message, file=sys.stderr)
    sys.exit(code)


def run_command(command: Callable[[], None]) -> None:
    """Run ``command`` and end the process with the exit code that its outcome deserves."""
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
        _end(f"vip: {error}", USER_ERROR)
