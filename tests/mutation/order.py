"""The order of tests that finds a failure soon: those first that are likely to fail, and short."""

import json
import math
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from support.files import write_atomically

#: Signal that ends a process whose test hangs.
TOO_LONG = signal.SIGPROF
#: Seconds of a test that has not run yet.
_UNKNOWN = 2.0
#: Seconds until there is a simulator of the mutant's Verilog.
_BUILD = 20
#: A test hangs when it takes so many times the processor time that it took before, at least so
#: many seconds, or so many seconds if it has not run yet.
_LONGER, _LEAST, _NEW = 10, 2, 30


class Likely:
    """A plugin that runs tests by their time over the probability that they fail, and notes how
    long each takes.

    A test that takes much longer than before ends the process by :data:`TOO_LONG`.

    Parameters:
        file: with the times, which may not exist yet.
        chances: beginnings of names of tests, and the probability that one with the first that
            fits fails.
    """

    def __init__(self, file: Path, chances: Mapping[str, float]) -> None:
        self._file = file
        self._chances = chances
        self._seconds: dict[str, float] = {}
        with suppress(FileNotFoundError, ValueError):
            self._seconds = json.loads(file.read_text())
        self._noted: dict[str, float] = {}
        self._running = 0.0

    def _cost(self, test: str) -> float:
        build = _BUILD if test.startswith("tests/sim_tb/") else 0
        return self._seconds.get(test, _UNKNOWN) + build

    def _rank(self, tests: Sequence[str]) -> float:
        """Expected seconds until one of ``tests`` fails."""
        likely = max(
            next(chance for start, chance in self._chances.items() if test.startswith(start))
            for test in tests
        )
        return sum(self._cost(test) for test in tests) / likely

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        # Tests of a file that share a fixture stay together.
        groups: dict[str, list[pytest.Item]] = {}
        for item in items:
            groups.setdefault(_group(item), []).append(item)
        ordered = sorted(groups.values(), key=lambda group: self._rank([o.nodeid for o in group]))
        items[:] = [item for group in ordered for item in group]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        limit = _LONGER * max(_LEAST, self._cost(nodeid)) if nodeid in self._seconds else _NEW
        signal.setitimer(signal.ITIMER_PROF, limit)
        self._running = 0.0

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._running += report.duration
        if report.when == "teardown":
            signal.setitimer(signal.ITIMER_PROF, 0)
            self._noted[report.nodeid] = round(self._running, 2)
        elif report.failed:
            # It says little of how long the test takes to pass.
            self._running = math.nan

    def pytest_sessionfinish(self) -> None:
        passed = {test: each for test, each in self._noted.items() if not math.isnan(each)}
        write_atomically(self._file, json.dumps({**passed, **self._seconds}).encode())


def _group(item: Any) -> str:
    """The file of a test that uses a fixture of it, otherwise the test's name."""
    fixtures = item._fixtureinfo.name2fixturedefs.values()
    shared = any(each[-1].scope in ("module", "class") for each in fixtures)
    return str(item.nodeid.partition("::")[0] if shared else item.nodeid)
