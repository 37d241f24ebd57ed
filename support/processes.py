"""Tools in processes of their own, none of which outlives the process that started them."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["end_tool", "end_tools", "run_tool", "tool", "workers"]

_GUARD = Path(__file__).with_name("guard.py")


class _Running:
    """Process groups of tools that run now."""

    def __init__(self) -> None:
        self.groups: set[int] = set()
        self.lock = threading.Lock()


_running = _Running()


def end_tools() -> None:
    """Kill every tool that this process runs, in whatever thread, with all that the tool started.

    A thread that waits for one sees it end by SIGKILL.
    """
    with _running.lock:
        for group in _running.groups:
            _kill(group)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def end_tool(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process of :func:`tool`, from whatever thread, with all that it started."""
    with _running.lock:
        if process.pid in _running.groups:
            _kill(process.pid)


@contextmanager
def tool(
    command: Sequence[str],
    *,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    stdout: Any = None,
    stderr: Any = None,
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that runs ``command``, killed with all of its own when the statement is left.

    It also ends when this process does, even when that is killed. It has a process group of its
    own, so that Ctrl-C reaches this process alone, and reads an empty standard input.

    Parameters:
        command: program and arguments. cwd, env, stdout, stderr: as of :class:`subprocess.Popen`.

    Raises:
        FileNotFoundError: there is no such program.
    """
    path = (os.environ if env is None else env).get("PATH")
    if shutil.which(command[0], path=path) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    guarded = [sys.executable, "-I", "-S", str(_GUARD), str(os.getpid()), *command]
    process = subprocess.Popen(
        guarded,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )
    try:
        with _running.lock:
            _running.groups.add(process.pid)
        yield process
    finally:
        with _running.lock:
            _running.groups.discard(process.pid)
            if process.poll() is None:
                _kill(process.pid)
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def run_tool(
    command: Sequence[str],
    *,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    stdout: Any = None,
    stderr: Any = None,
    timeout: float | None = None,
) -> "subprocess.CompletedProcess[bytes]":
    """Run ``command`` as :func:`tool` does, to its end.

    Parameters:
        timeout: seconds after which it is killed; None: never.

    Returns:
        The exit code, negative for a signal, and what the tool wrote to pipes.

    Raises:
        FileNotFoundError: there is no such program.
        subprocess.TimeoutExpired: it took longer than ``timeout``.
    """
    with tool(command, cwd=cwd, env=env, stdout=stdout, stderr=stderr) as process:
        written, complained = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(list(command), process.returncode, written, complained)


@contextmanager
def workers(count: int) -> Iterator[ThreadPoolExecutor]:
    """Threads for work that runs tools; leaving the statement by an exception ends the tools.

    Parameters:
        count: of threads, at least 1.
    """
    pool = ThreadPoolExecutor(max_workers=count)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        end_tools()
        raise
    finally:
        pool.shutdown(wait=True)
