"""Tests in a copy of this process, ended at the first failure."""

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from support.errors import VipError
from support.scratch import scratch_folder

from .netlist import HUNG
from .order import TOO_LONG

#: Longest cycles of a random program with a mutant; the slowest without one takes a tenth.
_RANDOM_CYCLES = 500_000
#: Seconds between two looks whether a copy has ended.
_POLL = 0.02


class TrialError(VipError):
    """Tests that can't be run, or fail without a mutant."""


@dataclass(frozen=True)
class Outcome:
    """How tests ended.

    Attributes:
        fate: ``survived``, ``killed`` by an assertion or an error, or ``hung``.
        test: that failed, or was running; "" if none.
        reason: the end of its message.
        seconds: that it took.
    """

    fate: str
    test: str
    reason: str
    seconds: float


class _First:
    """A plugin that notes the running test and the first failure."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def _note(self, **content: str) -> None:
        self._place.write_text(json.dumps(content))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._note(test=nodeid, reason="")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = str(crash.message if crash else report.longrepr)
            self._note(test=report.nodeid, reason=message[:300], failed="yes")


def run_tests(tests: Sequence[str], scratch: Path, plugins: Sequence[object] = ()) -> int:
    """Run ``tests`` in this process, up to the first failure; returns pytest's exit code."""
    # Imported late: rooms may be changed ones.
    from sim_tb.random import comparison, programs

    comparison.ENOUGH = 1
    programs.MAX_CYCLES = _RANDOM_CYCLES
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow"]
    options += [f"--basetemp={scratch / 'tmp'}", "--tb=short"]
    return int(pytest.main([*options, *tests], plugins=[_First(scratch / "first"), *plugins]))


def trial(
    tests: Sequence[str],
    *,
    seconds: float,
    processor: int = 0,
    prepare: Callable[[], None] = lambda: None,
    plugins: Sequence[object] = (),
) -> Outcome:
    """Run ``tests`` in a copy of this process, up to the first failure.

    Parameters:
        seconds: that it may take; simulated cycles are limited by the simulators.
        processor: seconds of processor time that it may take; 0: without limit.
        prepare: called in the copy before.
        plugins: of pytest.

    Raises:
        TrialError: there are no such tests, or pytest itself failed.
    """
    with scratch_folder("trial") as scratch:
        started = time.monotonic()
        process = os.fork()
        if not process:
            try:
                _perform(tests, scratch, processor, prepare, plugins)
            finally:
                os._exit(3)
        code = _end_of(process, seconds)
        used = round(time.monotonic() - started, 1)
        noted = {"test": "", "reason": ""}
        with suppress(FileNotFoundError):
            noted |= json.loads((scratch / "first").read_text())
        log = (scratch / "log").read_text(errors="replace")
    if code in (-signal.SIGKILL, -signal.SIGXCPU, -TOO_LONG):
        return Outcome("hung", noted["test"], "", used)
    if code not in (0, 1):
        last = log.strip().splitlines()[-1:] or ["no output"]
        raise TrialError(f"pytest ended with exit code {code}: {last[0]}")
    fate = "killed" if code else "survived"
    if HUNG in noted["reason"]:
        fate = "hung"
    return Outcome(fate, noted["test"] if code else "", noted["reason"], used)


def _end_of(process: int, seconds: float) -> int:
    """The exit code of a copy, which is killed after ``seconds`` or if this process is
    interrupted."""
    deadline = time.monotonic() + seconds
    try:
        while True:
            found, status = os.waitpid(process, os.WNOHANG)
            if found:
                process = 0
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                os.killpg(process, signal.SIGKILL)
            time.sleep(_POLL)
    finally:
        if process:
            with suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)


def _perform(
    tests: Sequence[str],
    scratch: Path,
    processor: int,
    prepare: Callable[[], None],
    plugins: Sequence[object],
) -> NoReturn:
    code = 3
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        if processor:
            used = resource.getrusage(resource.RUSAGE_SELF)
            limit = int(used.ru_utime + used.ru_stime) + processor
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        with (scratch / "log").open("w") as log, open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), 0)
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        prepare()
        code = run_tests(tests, scratch, plugins)
        sys.stdout.flush()
    finally:
        os._exit(code)
