"""``vip bench random``: parts of random programs, and their sums."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.harness.experiment import BenchError
from bench.random import check_random
from pe.config import PeConfig
from sim_tb.cosim.engine import CosimError
from sim_tb.random.comparison import Difference, RandomReport
from tests.vip.here import here


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """First seed and number of the programs that each part compares; seed 300 differs."""
    found: list[tuple[int, int]] = []

    def check(config: PeConfig, *, programs: int, seed: int, disturbed: float) -> RandomReport:
        assert config == PeConfig()
        found.append((seed, programs))
        bad = Difference(300, ("r9: 1, not 2", "r10: 0, not 3"), "; seed 300\nhalt\n")
        return RandomReport(
            programs=programs,
            faulting=1,
            disturbed=round(disturbed * programs),
            early=0,
            memory_errors=0,
            full=0,
            cycles=10 * programs,
            words=5,
            different=(bad,) if seed <= 300 < seed + programs else (),
        )

    monkeypatch.setattr("vip.executor.executor.local", here)
    monkeypatch.setattr("bench.random.check_programs", check)
    return found


def test_parts_cover_all_programs(asked: list[tuple[int, int]], vip: Any, tmp_path: Path) -> None:
    report, listing = tmp_path / "r.json", tmp_path / "differing.s"
    options = ["--programs", "600", "--seed", "7", "--disturbed", "0.5", "--json", str(report)]
    options += ["--listing", str(listing)]
    code, _, err = vip("bench", "random", *options)
    assert (code, err.splitlines()[-1]) == (2, "vip: seed 300: r9: 1, not 2")
    assert sorted(asked) == [(7, 250), (257, 250), (507, 100)]
    assert listing.read_text() == "; seed 300\nhalt\n"
    assert not report.exists()
    code, _, err = vip("bench", "random", "--programs", "200", "--json", str(report))
    assert code == 0, err
    results = json.loads(report.read_text())["experiments"]["random"]["results"]
    assert (results["programs"]["value"], results["faulting"]["value"]) == (200, 1)


def test_what_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> RandomReport:
        raise CosimError("no compiler\nanywhere")

    monkeypatch.setattr("vip.executor.executor.local", here)
    monkeypatch.setattr("bench.random.check_programs", fail)
    with pytest.raises(BenchError, match=r"^programs from seed 251 on: no compiler$"):
        check_random(PeConfig(), programs=300)


@pytest.mark.slow
def test_the_verilog_equals_the_simulator() -> None:
    found = check_random(PeConfig(), programs=600, disturbed=0.3, jobs=2)
    assert found.sums["programs"] == 600
    assert 100 < found.sums["disturbed"] < 260
    assert found.different == ()
