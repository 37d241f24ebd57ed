"""Experiments that run commands of :mod:`tests`: what their failures say."""

import json
import subprocess
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from bench import verification
from bench.harness.experiment import BenchError
from tests.mutation.__main__ import SOURCES
from tests.mutation.units import UNITS


@pytest.mark.parametrize(
    ("output", "error", "line"),
    [
        ("", "", "bad_inputs: no message"),
        ("", "Traceback:\nKeyError: 7\n", "bad_inputs: KeyError: 7"),
        ("fine\nVIOLATION 3: two lines\n", "", "1 wrong answers: VIOLATION 3: two lines"),
    ],
)
def test_bad_inputs_say_why_they_failed(
    output: str, error: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(words: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(words, 1, output, error)

    monkeypatch.setattr(verification.subprocess, "run", run)
    with pytest.raises(BenchError) as caught:
        list(verification.bad_inputs())
    assert str(caught.value) == line


def test_mutants_of_no_unit_are_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(verification, "tool")
    with pytest.raises(BenchError, match=r"^unknown unit of mutants 'nonsense'; .*: engine, "):
        list(verification.mutants("router,nonsense"))


def test_the_units_are_those_of_the_tests() -> None:
    (units,) = (one.default for one in signature(verification.mutants).parameters.values())
    assert units.split(",") == [*UNITS, SOURCES]


def test_mutants_that_are_all_equivalent_have_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    class Done:
        returncode = 0

        def __init__(self, words: Sequence[str], **options: Any) -> None:
            counts = {"router": {"mutants": 2, "killed": 0, "different": 0}}
            Path(words[-1]).write_text(json.dumps(counts))

        def __enter__(self) -> "Done":
            return self

        def __exit__(self, *error: object) -> None:
            """Nothing to end."""

        def communicate(self) -> tuple[bytes, bytes]:
            return b"", b""

    monkeypatch.setattr(verification, "tool", Done)
    names = {one.name for one in verification.mutants("router")}
    assert "different" in names
    assert "killed_percent" not in names
