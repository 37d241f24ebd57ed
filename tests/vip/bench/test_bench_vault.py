"""``vip bench vault``: its report and what it refuses."""

import json
from pathlib import Path

import pytest

from sim_tb.workloads.traffic import TRAFFICS, VARIANTS
from vip.cli.app import main


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["vip", "bench", "vault", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_report_has_the_thesis_vault_on_top_and_a_row_a_variant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "vault.json"
    options = ["--accesses", "1000", "--variant", "open-page", "--json", str(target)]
    assert run(monkeypatch, *options) == 0
    report = json.loads(target.read_text())
    (row,) = report["variants"]
    assert row["name"] == "open-page"
    assert set(TRAFFICS) <= set(row)
    for key in ("sequential_read", "random_read", "mixed"):
        assert report[f"{key}_gbs"] == row[key]["gbs"]
        assert 5 < row[key]["gbs"] <= 10
        assert row[key]["counters"]["READS"] + row[key]["counters"]["WRITES"] == 1000
        assert sum(count for _, count in row[key]["histogram"]) == 1000
    assert report["provenance"]["tools"]["verilator"]
    assert "open-page" in capsys.readouterr().out


def test_on_the_timing_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "vault.json"
    options = ["--on", "model", "--accesses", "2000", "--variant", "crossbar"]
    assert run(monkeypatch, *options, "--json", str(target)) == 0
    (row,) = json.loads(target.read_text())["variants"]
    assert row["name"] == "crossbar"
    assert 9 < row["sequential_read"]["gbs"] <= 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--variant", "none"], "--variant none: there are open-page, closed-page, "),
        (["--accesses", "10"], "greater than or equal to 1000"),
        (["--seed", "-1"], "greater than or equal to 0"),
        (["--bp", "--on", "model"], "--bp runs on the Verilog alone"),
        (["--json", "nowhere/report.json"], "nowhere/report.json: can't be written: there is no"),
    ],
)
def test_bad_arguments_are_one_clear_line(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, *arguments) == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_help_has_an_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--help") == 0
    assert "vip bench vault --variant open-page" in capsys.readouterr().out
    assert VARIANTS[0].name == "open-page"
