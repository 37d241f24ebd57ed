"""Commands that run in a copy of this process, with what it imported.

A new process spends about a second of its processor on imports.
"""

import os
import runpy
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryFile
from typing import NoReturn

#: Rooms with a terminal, whose width and colours are those of the process that imported them.
_TERMINALS = ("vip.cli", "bench.")


def forked(words: Sequence[str], *, seconds: int, columns: int = 80) -> CompletedProcess[str]:
    """Run ``vip ...``, ``python -m NAME ...`` or ``python FILE ...`` in the current folder, without
    input.

    Parameters:
        words: the command. seconds: after which it is killed. columns: of its terminal.
    """
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err, open(os.devnull) as nothing:
        process = os.fork()
        if not process:
            signal.alarm(seconds)
            for number, stream in enumerate((nothing, out, err)):
                os.dup2(stream.fileno(), number)
            os.environ["COLUMNS"] = str(columns)
            _run(words)
        _, status = os.waitpid(process, 0)
        out.seek(0)
        err.seek(0)
        code = os.waitstatus_to_exitcode(status)
        return CompletedProcess(list(words), code, out.read(), err.read())


def _run(words: Sequence[str]) -> NoReturn:
    """Run a command with new streams, and end this process as it ends."""
    code: object = 1
    try:
        sys.stdin, sys.stdout, sys.stderr = map(os.fdopen, (0, 1, 2), ("r", "w", "w"))
        for name in [name for name in sys.modules if name.startswith(_TERMINALS)]:
            del sys.modules[name]
        _program(words)
        sys.stdout.flush()
        code = 0
    except SystemExit as end:
        code = end.code or 0
        if not isinstance(code, int):
            print(code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _program(words: Sequence[str]) -> None:
    program, *rest = words
    if program == "vip":
        sys.argv = list(words)
        from vip.cli.app import main

        main()
    elif rest[0] == "-m":
        sys.argv = rest[1:]
        runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = rest
        sys.path.insert(0, str(Path(rest[0]).resolve().parent))
        runpy.run_path(rest[0], run_name="__main__")
