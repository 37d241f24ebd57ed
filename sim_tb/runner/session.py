"""A simulator process that runs one job after another."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from support.coverage import coverage_folder
from support.errors import VipError
from support.files import copy_atomically
from support.scratch import scratch_folder

if TYPE_CHECKING:
    from sim_tb.harness import serve

#: Jobs handed over ahead of the current one, so that neither side waits for the other.
_AHEAD = 2
_R = TypeVar("_R")


class SessionError(VipError):
    """The simulator could not be started, or ended by itself; the message says why."""


def _listener(path: Path) -> Listener:
    try:
        return Listener(str(path))
    except OSError as error:
        raise SessionError(f"no socket {path}: {error}; TMPDIR can name a shorter folder") from None


class Session:
    """A running simulator, a context manager.

    Leaving the ``with`` statement by an exception, or before all results are taken, kills the
    simulator; its files are temporary.

    Parameters:
        folder: of the simulator, from :func:`sim_tb.runner.build.build`.
        top: its top module.
        trace: file for the waveforms of all jobs, in the format for which the simulator was built;
            it appears when the session ends without being killed.
        arguments: further arguments of the simulator.

    Attributes:
        process: id of the simulator's process.
    """

    def __init__(
        self,
        folder: Path,
        top: str,
        *,
        trace: Path | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.top = top
        self.trace = trace
        self.arguments = tuple(arguments)
        self.process = 0
        self._failure = ""
        #: Jobs handed over whose results have not been received.
        self._waiting = 0

    def __enter__(self) -> "Session":
        # Imported late: machines without cocotb import this module, too.
        from .process import Runner

        self._runner = Runner()
        with ExitStack() as stack:
            # The path of a socket can have about a hundred characters.
            self._work = stack.enter_context(scratch_folder("s"))
            self._listener = stack.enter_context(_listener(self._work / "s"))
            self._thread = threading.Thread(target=self._simulate, daemon=True)
            self._thread.start()
            stack.callback(self._thread.join)
            # Leaving early ends the simulator before the wait for its thread.
            ending = stack.enter_context(ExitStack())
            ending.callback(self._runner.end)
            self._connection: Connection = stack.enter_context(self._listener.accept())
            try:
                self.process = int(self._connection.recv())
            except EOFError:
                self._thread.join()
                raise SessionError(f"simulator did not start: {self._failure}") from None
            ending.pop_all()
            self._resources = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        unfinished = kind is not None or self._waiting
        with self._resources:
            if unfinished:
                self._runner.end()
            self._connection.close()
            self._thread.join()
            if not unfinished:
                self._keep_trace()
        if not unfinished and self._failure:
            raise SessionError(f"simulator failed: {self._failure}")

    def run_many(
        self, jobs: "Iterable[serve.Job[_R]]", progress: Callable[[int], None] | None = None
    ) -> Iterator[_R]:
        """Run ``jobs`` in order and yield their results.

        Jobs are taken a few ahead of the results.

        Parameters:
            progress: called periodically with the cycles of the current job.

        Raises:
            SessionError: the simulator ended by itself.
        """
        while self._waiting:
            # A result of an earlier call that was not taken.
            self._receive(None)
        source = iter(jobs)
        while True:
            while self._waiting <= _AHEAD and (job := next(source, None)) is not None:
                with self._connected():
                    self._connection.send(job)
                self._waiting += 1
            if not self._waiting:
                return
            yield self._receive(progress)

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Report why the simulator has ended, if it has."""
        try:
            yield
        except (EOFError, OSError):
            self._thread.join()
            raise SessionError(f"simulator failed: {self._failure}") from None

    def _receive(self, progress: Callable[[int], None] | None) -> Any:
        while True:
            with self._connected():
                kind, content = self._connection.recv()
            if kind == "result":
                self._waiting -= 1
                return content
            if progress is not None:
                progress(content)

    def _simulate(self) -> None:
        from sim_tb.harness import serve

        log = self._work / "log"
        wave = self._wave
        arguments = ["--trace", "--trace-file", str(wave)] if wave else []
        if counts := coverage_folder():
            counts.mkdir(parents=True, exist_ok=True)
            file = counts / f"{self.folder.name}-{uuid4().hex}.dat"
            arguments.append(f"+verilator+coverage+file+{file}")
        try:
            self._runner.test(
                test_module=serve.__name__,
                hdl_toplevel=self.top,
                hdl_toplevel_lang="verilog",
                build_dir=self.folder,
                test_dir=self._work,
                test_args=[*arguments, *self.arguments],
                results_xml=str(self._work / "results.xml"),
                extra_env={serve.ADDRESS_VARIABLE: str(self._listener.address)},
                log_file=log,
            )
        except OSError as error:
            self._failure = str(error)
        except (SystemExit, RuntimeError) as error:
            self._failure = _failure_reason(log) or str(error)
        finally:
            # The session may still wait for the simulator's connection.
            if not self.process:
                with suppress(OSError):
                    Client(str(self._listener.address)).close()

    @property
    def _wave(self) -> Path | None:
        return self._work / f"wave{self.trace.suffix}" if self.trace else None

    def _keep_trace(self) -> None:
        wave = self._wave
        if wave and self.trace and wave.is_file():
            copy_atomically(wave, self.trace)


def _failure_reason(log: Path) -> str:
    """The line of a simulator's output that says why it failed; "" without output."""
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    for line in reversed(lines):
        if "Error" in line or "ERROR" in line:
            return line.strip()
    return lines[-1].strip() if lines else ""
