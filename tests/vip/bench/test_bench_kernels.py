"""``vip bench kernels``: what it writes and refuses; tests/sim_tb measures."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sim_tb.measure import kernels_beside
from sim_tb.measure.kernel_rows import KernelRow
from vip.cli.app import app
from vip.cli.commands.bench import kernels as bench_kernels
from vip.cli.console import console
from vip.cli.errors import UserError

ROW = KernelRow(
    name="fc8",
    batch=1,
    limit_ms=0.026,
    thesis_ms=0.155,
    ours_ms=0.029,
    match=True,
    cycles=36_000,
    gbs=9.8,
    gops=8.8,
    busy=0.2,
)


def stand_in(monkeypatch: pytest.MonkeyPatch, *rows: KernelRow) -> dict[str, Any]:
    """Measures nothing; returns what it is asked for."""
    asked: dict[str, Any] = {}

    def measure(config: object, **options: Any) -> list[KernelRow]:
        asked.update(options)
        return list(rows)

    monkeypatch.setattr(bench_kernels, "measure_kernels", measure)
    return asked


def test_rows_go_to_json_and_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = stand_in(monkeypatch, ROW)
    report, picture = tmp_path / "kernels.json", tmp_path / "roofline.png"
    outcome = CliRunner().invoke(
        app,
        ["bench", "kernels", "--layer", "fc8", "--json", str(report), "--roofline", str(picture)],
    )
    assert outcome.exit_code == 0, outcome.output
    assert (asked["names"], asked["on"]) == (("fc8",), "rtl")
    assert json.loads(report.read_text())["rows"] == [ROW.to_dict()]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "8.80" in outcome.output


def test_a_row_says_what_it_is_scaled_by(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ROW.to_dict() | {"name": "bp_m", "scaled": "updates", "units": 7972, "engines": 4}
    stand_in(monkeypatch, KernelRow.from_dict(row))
    monkeypatch.setattr(console, "width", 120)
    outcome = CliRunner().invoke(app, ["bench", "kernels", "--layer", "bp_m"])
    assert "updates" in outcome.output


def test_cycles_of_both_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def measure(config: object, *, on: str, **options: Any) -> list[KernelRow]:
        asked.append(on)
        found = replace(ROW, cycles=36_000 if on == "rtl" else cycles)
        return [found, replace(ROW, name="VGG-16", cycles=0)]

    monkeypatch.setattr(kernels_beside, "measure_kernels", measure)
    report = tmp_path / "kernels.json"
    arguments = ["bench", "kernels", "--layer", "fc8", "--on", "both", "--json", str(report)]
    for cycles, code, shown in ((36_000, 0, "36,000"), (36_720, 1, "+2.00 %")):
        outcome = CliRunner().invoke(app, arguments)
        assert outcome.exit_code == code, outcome.output
        assert shown in outcome.output
        row, total = json.loads(report.read_text())["rows"]
        assert (row["cycles"], row["verilog_cycles"]) == (cycles, 36_000)
        assert row["difference_percent"] == (cycles - 36_000) / 360
        assert total["difference_percent"] == 0
    assert asked == 2 * ["model", "rtl"]


def test_a_wrong_output_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, KernelRow.from_dict(ROW.to_dict() | {"match": False}))
    outcome = CliRunner().invoke(app, ["bench", "kernels", "--quick"])
    assert outcome.exit_code == 1
    assert "DIFFER" in outcome.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--layer", "conv9_9"], "--layer conv9_9: there are bp_m, bp_construct"),
        (["--quick", "--whole"], "--quick goes with neither"),
        (["--roofline", "nowhere/x.png"], "there is no folder nowhere"),
    ],
)
def test_bad_options_get_one_line(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch)
    outcome = CliRunner().invoke(app, ["bench", "kernels", *arguments])
    assert isinstance(outcome.exception, UserError)
    assert message in str(outcome.exception)
    assert "\n" not in str(outcome.exception)
