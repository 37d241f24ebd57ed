"""Records of measurements: what they keep, when they may be made, and when they are stale."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.harness.command import verdict as judge
from bench.harness.experiment import BenchError, Measurement, find
from bench.harness.record import (
    FORMAT,
    RESULTS,
    ROOT,
    Record,
    clean_commit,
    read_record,
    tool_versions,
    values,
    write_record,
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def write(folder: Path, value: float, measured: str = "aa") -> None:
    write_record(
        "it",
        [Measurement("a", value, "ns")],
        commit=COMMIT,
        measured={"Verilog of pe": measured},
        tools={"pyosys": "0.70"},
        configurations={"pe": {"registers": 64}},
        cpu_seconds=12.3,
        folder=folder,
    )


def git(folder: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    command = ["git", "-C", str(folder), *settings, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "source.py").write_text("a = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_a_record_says_what_was_measured_and_keeps_the_value_before(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    assert read_record("it", folder) == Record()
    for value in (5.0, 4.0, 4.0):
        write(folder, value)
    known = read_record("it", folder)
    assert known.results == {"a": {"value": 4.0, "unit": "ns", "before": 5.0}}
    assert values("it", folder) == {"a": 4.0}
    assert (known.format, known.commit) == (FORMAT, COMMIT)
    assert known.command == "vip bench it --record"
    content = json.loads((folder / "it.json").read_text())
    assert content["configurations"] == {"pe": {"registers": 64}}
    assert content["provenance"]["cpu_seconds"] == 12


def test_stale_is_what_was_measured_otherwise_or_with_other_tools(tmp_path: Path) -> None:
    write(tmp_path, 1.0)
    known = read_record("it", tmp_path)
    now, tools = {"Verilog of pe": "aa"}, {"pyosys": "0.70"}
    assert list(known.stale(now, tools)) == []
    assert list(known.stale({"Verilog of pe": "bb"}, {"pyosys": "0.71"})) == [
        "Verilog of pe changed since 0123456789ab",
        "pyosys is 0.71, was 0.70",
    ]
    assert list(known.stale({**now, "program": "cc"}, tools)) == [
        "program is not in the record of 0123456789ab"
    ]
    assert list(known.stale({"program": "cc"}, tools)) == [
        "0123456789ab has fingerprints of another kind"
    ]
    assert not known.unusable


def test_older_formats_and_missing_records_are_stale(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"results": {"a": {"value": 3}}, "made_with": {}}')
    assert read_record("old", tmp_path).unusable == "recorded in an older format"
    assert values("old", tmp_path) == {"a": 3}
    assert read_record("none", tmp_path).unusable == "no record"
    (tmp_path / "bad.json").write_text("[")
    with pytest.raises(BenchError, match="not a record of measurements"):
        read_record("bad", tmp_path)


def test_a_clean_checkout_has_a_commit(checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    assert clean_commit(checkout) == head
    for written in ("bench/results/it.json", "docs/guide.md", "README.md"):
        (checkout / written).parent.mkdir(parents=True, exist_ok=True)
        (checkout / written).write_text("measured\n")
    assert clean_commit(checkout) == head


@pytest.mark.parametrize("name", ["source.py", "new.py"])
def test_a_dirty_checkout_is_refused(checkout: Path, name: str) -> None:
    (checkout / name).write_text("a = 2\n")
    with pytest.raises(BenchError, match=f"clean checkout; {name} differ") as error:
        clean_commit(checkout)
    assert "\n" not in str(error.value)


def test_no_checkout_is_refused(tmp_path: Path, checkout: Path) -> None:
    (checkout / "part").mkdir()
    with pytest.raises(BenchError, match="needs a checkout of VIP"):
        clean_commit(checkout / "part")


def test_recording_refuses_before_it_measures(tmp_path: Path) -> None:
    """In a checkout with a file that git does not know; nothing is measured or written."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    stray = ROOT / "bench" / f"stray_{tmp_path.name}.txt"
    before = {path: path.stat().st_mtime_ns for path in RESULTS.iterdir()}
    stray.write_text("")
    try:
        command = [sys.executable, "-m", "vip", "bench", "generate", "--record"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    finally:
        stray.unlink()
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "recording needs a clean checkout" in done.stderr
    assert before == {path: path.stat().st_mtime_ns for path in RESULTS.iterdir()}


@pytest.mark.parametrize(
    ("value", "old", "more_is_better", "verdict"),
    [
        (1.0, None, False, "new"),
        (1.01, 1.0, False, "as recorded"),
        (1.03, 1.0, False, "WORSE"),
        (1.03, 1.0, True, "better: record it"),
        (0.9, 1.0, True, "WORSE"),
        (0.9, 1.0, False, "better: record it"),
    ],
)
def test_verdicts(value: float, old: float | None, more_is_better: bool, verdict: str) -> None:
    new = Measurement("a", value, "ns", 0.02, more_is_better)
    assert judge(new, old) == verdict


def test_stale_records_are_named(
    monkeypatch: pytest.MonkeyPatch, vip: Callable[..., tuple[int, str, str]]
) -> None:
    benchmark = find("generate")
    known = Record(
        format=FORMAT,
        commit=COMMIT,
        measured={"pe": "0"},
        tools=tool_versions(benchmark.tools),
    )
    monkeypatch.setattr("bench.harness.command.read_record", lambda name: known)
    monkeypatch.setattr(
        "bench.harness.command.fingerprints", lambda module: {"pe": "1", "isa": "1"}
    )
    code, text, _ = vip("bench", "generate", "--stale")
    assert code == 0
    assert text == (
        "stale: generate: pe changed since 0123456789ab\n"
        "stale: generate: isa is not in the record of 0123456789ab\n"
    )
    code, _, err = vip("bench", "generate", "nobench", "--stale")
    assert code == 2
    assert err.startswith("vip: unknown experiment 'nobench'; there are: area,")
