"""Runs a command, and kills its processes when the process that asked for it ends.

A standalone program, ``python guard.py PARENT COMMAND...``, in its own process group. It exits as
the command does. When process ``PARENT`` ends, however that happens, the whole group is killed.
"""

import os
import signal
import sys
from collections.abc import Callable

#: prctl's number for "signal me when the parent ends" (Linux).
_SIGNAL_AT_PARENTS_END = 1
#: Seconds between checks for the parent where the system does not report its end.
_LOOK_SECONDS = 0.5
_NOT_STARTED = 127


def main(parent: int, command: list[str]) -> int:
    """Run ``command`` for the process ``parent``; returns its exit code."""
    ask = _asker()
    guard = os.getpid()

    def end(*_: object) -> None:
        os.killpg(0, signal.SIGKILL)

    def look(*_: object) -> None:
        if os.getppid() != parent:
            end()

    signal.signal(signal.SIGTERM, end)
    # Ctrl-C at a terminal reaches the parent, which decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if ask is not None:
        ask(signal.SIGTERM)
    else:
        signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, _LOOK_SECONDS, _LOOK_SECONDS)
    # It may have ended before the request.
    look()
    child = os.fork()
    if not child:
        try:
            if ask is not None:
                ask(signal.SIGKILL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if os.getppid() == guard:
                os.execvp(command[0], command)
        except OSError as error:
            print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        finally:
            os._exit(_NOT_STARTED)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        _without_core()
        os.kill(guard, number)
    return os.waitstatus_to_exitcode(status)


def _asker() -> Callable[[int], object] | None:
    """A function that requests a signal at the parent's end; None where the system can't."""
    if sys.platform != "linux":
        return None
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    return lambda number: prctl(_SIGNAL_AT_PARENTS_END, int(number))


def _without_core() -> None:
    """The command itself has already dumped core, if enabled."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
