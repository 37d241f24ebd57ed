"""``vip bench coverage``: when a test's lines are counted again."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench import verification
from bench.harness.record import ROOT
from sim_tb.runner.cache import source_digest

TEST = "tests/sim_tb/test_vault.py"


def test_lines_are_used_again_while_no_source_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[Any] = []

    def run(words: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        runs.append(words)
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(verification.subprocess, "run", run)
    lines = verification._run(TEST, tmp_path)
    assert verification._run(TEST, tmp_path) == lines
    assert len(runs) == 1
    rooms: list[str] = []

    def changed(names: Sequence[str]) -> str:
        rooms.extend(names)
        return source_digest(names)[::-1]

    monkeypatch.setattr(verification, "source_digest", changed)
    verification._run(TEST, tmp_path)
    assert len(runs) == 2
    assert {*verification.ROOMS, "isa", "sim_tb", "tests/sim_tb", "tests/pe"} <= {*rooms}
    assert all(any((ROOT / name).rglob("*.py")) for name in rooms)
    assert all(any(test.startswith(f"{name}/") for name in rooms) for test in verification._TESTS)
