"""Runs tools as child processes, none of which outlives its parent."""

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

_GUARD = Path(__file__).with_name("guard.py")


class _Running:
    """Process groups of running tools."""

    def __init__(self) -> None:
        self.groups: set[int] = set()
        self.lock = threading.Lock()


_running = _Running()


def end_tools() -> None:
    """Kill every tool that this process runs, in any thread, with its child processes.

    A thread waiting for one sees it end by SIGKILL.
    """
    with _running.lock:
        for group in _running.groups:
            _kill(group)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def end_tool(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process of :func:`tool`, from any thread, with its child processes."""
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
    """A process that runs ``command``; it and its children are killed when the block is left.

    It also ends when this process does, even if that is killed. It has its own process group, so
    Ctrl-C reaches only this process, and its standard input is empty.

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
    """Run ``command`` to completion, as :func:`tool` does.

    Parameters:
        timeout: seconds after which it is killed; None: no limit.

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
def workers(count: int | None = None) -> Iterator[ThreadPoolExecutor]:
    """A thread pool for work that runs tools; an exception that leaves the block kills the tools.

    Parameters:
        count: of threads, at least 1; None: one per processor that this process may use.
    """
    pool = ThreadPoolExecutor(max_workers=count or len(os.sched_getaffinity(0)))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        end_tools()
        raise
    finally:
        pool.shutdown(wait=True)
