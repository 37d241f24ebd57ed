"""``pytest --fast``: the tests that need nothing but this process, and little of it.

The selection happens while the tests run, so that there is no list to maintain. A test is skipped
when it starts another process (Verilator, Yosys, a C++ compiler, a child of its own), when it
begins to write Verilog, which ends in Yosys, or when it has taken :data:`SECONDS` of processor
time. When the first :data:`CASES` cases of a parametrised test were skipped, so are the others,
which would take as long to find out. Cached simulators and syntheses of earlier runs are hidden, so
that no test is fast on one machine because of its cache.
"""

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

import pytest

from hdl.emission import _Emitter

#: Programs that tests may start: results name the commit that they come from.
ALLOWED = ("git",)
#: Processor time that a test may take, and as much for the fixtures that it is the first to use.
SECONDS = 0.12
#: Cases of a test, none of which is fast, after which its others are not tried.
CASES = 4


class FastRun:
    """Plugin of pytest that skips each test that is not fast."""

    def __init__(self) -> None:
        self._running = False
        #: Why the current test is not fast; "" if it is.
        self._why = ""
        #: Test -> its cases that were tried; tests with a case that is fast.
        self._tried: dict[str, int] = {}
        self._fast: set[str] = set()

    def pytest_configure(self, config: pytest.Config) -> None:
        """Begin to watch this process."""
        # Of tests that were cut off in a destructor.
        config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")
        self._folder = tempfile.TemporaryDirectory(prefix="vip-fast-")
        os.environ["VIP_BUILD_DIR"] = self._folder.name
        sys.addaudithook(self._watch)
        signal.signal(signal.SIGVTALRM, self._interrupt)
        # It ends in Yosys, but would elaborate the whole design before.
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(_Emitter, "add", lambda *_: self._end("writes Verilog"))

    def pytest_unconfigure(self) -> None:
        """Remove the results that the tests cached."""
        self._patch.undo()
        self._folder.cleanup()

    def _watch(self, event: str, arguments: tuple[object, ...]) -> None:
        """Called by Python at every event that it audits."""
        if event != "subprocess.Popen" or not self._running:
            return
        program = Path(os.fsdecode(arguments[0])).name  # type: ignore[arg-type]
        if program not in ALLOWED:
            self._end(f"starts {program}")

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """The test has taken its time, or one of its threads was ended."""
        # A module whose import is cut off stays half made for the tests after.
        if self._running and not _imports(frame):
            self._end(f"takes over {SECONDS:g} s of processor time")

    def _end(self, why: str) -> NoReturn:
        self._why = self._why or f"not fast: {why}"
        main = threading.main_thread()
        if threading.current_thread() is not main and main.ident is not None:
            # Which may wait for what this thread was to do.
            signal.pthread_kill(main.ident, signal.SIGVTALRM)
        pytest.skip(self._why)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Watch while fixtures are made."""
        self._why = ""
        test = _test(item)
        if test not in self._fast and self._tried.get(test, 0) >= CASES:
            pytest.skip(f"not fast: nor are {CASES} other cases")
        with self._watching():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """Watch while the test runs."""
        with self._watching():
            return (yield)

    @contextmanager
    def _watching(self) -> Iterator[None]:
        self._running = True
        # Again and again: Python drops an exception that is raised in a destructor.
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS, SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            self._running = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Skip also a test that was to end in a thread, or that caught its end."""
        report = yield
        if report.when == "call" or (report.when == "setup" and self._why):
            test = _test(item)
            self._tried[test] = self._tried.get(test, 0) + 1
            if not self._why:
                self._fast.add(test)
        if self._why and (report.failed or report.when == "call"):
            report.outcome = "skipped"
            report.longrepr = (str(item.path), 0, f"Skipped: {self._why}")
        return report


def _test(item: pytest.Item) -> str:
    """Name of a test without its case."""
    return item.nodeid.partition("[")[0]


def _imports(frame: FrameType | None) -> bool:
    """Whether a module is being imported."""
    while frame:
        if frame.f_code.co_filename.startswith("<frozen importlib._"):
            return True
        frame = frame.f_back
    return False
