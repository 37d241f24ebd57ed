"""A simulator process that runs one job after the other."""

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from json import loads
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from types import TracebackType
from typing import Any

from cocotb_tools.runner import get_runner

from isa.errors import VipError
from isa.files import copy_atomically

from .bench import ADDRESS_VARIABLE
from .jobs import failure_reason
from .models import HostJob, HostResult

__all__ = ["Session", "SessionError"]

#: Jobs handed over ahead of the one that runs, so that neither side waits for the other.
_AHEAD = 2


class SessionError(VipError):
    """The simulator could not be started or ended by itself; the message says why."""


class Session:
    """A running simulator, to be used in a ``with`` statement.

    Leaving the statement by an exception, or before all results were taken, kills the simulator;
    its files are temporary.

    Parameters:
        folder: of the simulator, from :func:`sim_tb.build.build`.
        top: its top module.
        trace: file to write the waveforms of all jobs to (the simulator was built for its format);
            it appears when the session ends and was not killed.
        bench: module of the cocotb test that serves the session within the simulator.

    Attributes:
        process: id of the simulator's process.
    """

    def __init__(
        self, folder: Path, top: str, *, trace: Path | None = None, bench: str = "sim_tb.bench"
    ) -> None:
        self.folder = folder
        self.top = top
        self.trace = trace
        self.bench = bench
        self.process = 0
        self._failure = ""
        #: Jobs handed over whose results have not been received.
        self._waiting = 0

    def __enter__(self) -> "Session":
        self._files = tempfile.TemporaryDirectory(prefix="vip-", ignore_cleanup_errors=True)
        self._work = Path(self._files.name)
        self._listener = Listener(str(self._work / "session"))
        self._thread = threading.Thread(target=self._simulate, daemon=True)
        self._thread.start()
        self._connection: Connection = self._listener.accept()
        try:
            self.process = int(loads(self._connection.recv_bytes())["process"])
        except (EOFError, KeyError):
            self._close()
            raise SessionError(f"simulator did not start: {self._failure}") from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        unfinished = kind is not None or self._waiting
        if unfinished and self._thread.is_alive():
            os.kill(self.process, signal.SIGKILL)
        self._close(keep_trace=not unfinished)
        if not unfinished and self._failure:
            raise SessionError(f"simulator failed: {self._failure}")

    def run_many(
        self, jobs: Iterable[HostJob], progress: Callable[[int], None] | None = None
    ) -> Iterator[HostResult]:
        """Run ``jobs`` of one engine in order and yield their results as they come.

        A few jobs are taken from ``jobs`` ahead of the results.

        Parameters:
            progress: called now and then with the cycles of the job that runs.

        Raises:
            SessionError: the simulator ended by itself.
        """
        return map(HostResult.from_mapping, self.serve((job.to_json() for job in jobs), progress))

    def serve(
        self, jobs: Iterable[bytes], progress: Callable[[int], None] | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """As :meth:`run_many`, with jobs and results as the bench reads and writes them."""
        while self._waiting:
            # Of an earlier call whose results nobody wanted any more.
            self._receive(None)
        source = iter(jobs)
        while True:
            while self._waiting <= _AHEAD and (job := next(source, None)) is not None:
                with self._connected():
                    self._connection.send_bytes(job)
                self._waiting += 1
            if not self._waiting:
                return
            yield self._receive(progress)

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Say why, when the simulator is gone."""
        try:
            yield
        except (EOFError, OSError):
            self._thread.join()
            raise SessionError(f"simulator failed: {self._failure}") from None

    def _receive(self, progress: Callable[[int], None] | None) -> Mapping[str, Any]:
        while True:
            with self._connected():
                message = loads(self._connection.recv_bytes())
            if "result" in message:
                self._waiting -= 1
                result: Mapping[str, Any] = message["result"]
                return result
            if progress is not None:
                progress(message["cycles"])

    def _simulate(self) -> None:
        log = self._work / "log"
        wave = self._wave
        arguments = ["--trace", "--trace-file", str(wave)] if wave else []
        try:
            get_runner("verilator").test(
                test_module=self.bench,
                hdl_toplevel=self.top,
                hdl_toplevel_lang="verilog",
                build_dir=self.folder,
                test_dir=self._work,
                test_args=arguments,
                results_xml=str(self._work / "results.xml"),
                extra_env={ADDRESS_VARIABLE: str(self._listener.address)},
                log_file=log,
            )
        except (SystemExit, RuntimeError, OSError) as error:
            self._failure = failure_reason(log) or str(error)
        finally:
            # The session may still wait for the simulator to call.
            if not self.process:
                with suppress(OSError):
                    Client(str(self._listener.address)).close()

    @property
    def _wave(self) -> Path | None:
        return self._work / f"wave{self.trace.suffix}" if self.trace else None

    def _close(self, keep_trace: bool = False) -> None:
        self._connection.close()
        self._thread.join()
        self._listener.close()
        wave = self._wave
        if keep_trace and wave and self.trace and wave.is_file():
            copy_atomically(wave, self.trace)
        self._files.cleanup()
