"""``vip bench kernels``: what it writes and refuses; tests/sim_tb measures."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bench.kernels import KernelRow
from sim_tb.cosim.engine import CosimError
from sim_tb.measure import kernels as measured
from sim_tb.runner.cache import Kept
from soc.generate.presets import tile_preset
from tests.vip.here import here
from vip import kernel_times
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

    monkeypatch.setattr(bench_kernels, "kernel_times", measure)
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

    monkeypatch.setattr(bench_kernels, "kernel_times", measure)
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


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are measured, not taken from earlier runs; compiled libraries stay."""
    real = Kept("kernel_rows")
    monkeypatch.setattr(real, "_path", tmp_path / "kept.json")
    monkeypatch.setattr(measured, "Kept", lambda _: real)


@pytest.mark.usefixtures("cached")
def test_kernels_at_a_time_are_those_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.executor.executor.local", here)
    config, names = tile_preset("vault"), ("pool3", "fc8")
    shown: list[tuple[float, float | None]] = []
    found = kernel_times.kernel_times(
        config,
        names=names,
        on="model",
        progress=lambda _, done=0, total=None, part="": shown.append((done, total)),
    )
    assert found == measured.measure_kernels(config, names=names, on="model")
    assert [row.name for row in found] == ["pool3", "pool3", "fc8", "fc8"]
    assert all(row.match and row.cycles > 1000 for row in found)
    assert shown == [(0, 2), (1, 2), (2, 2)]


def test_a_kernel_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> list[KernelRow]:
        raise CosimError("an engine faulted\nsomewhere")

    monkeypatch.setattr("vip.executor.executor.local", here)
    monkeypatch.setattr(kernel_times, "measure_kernels", fail)
    with pytest.raises(kernel_times.KernelError, match=r"^fc8: an engine faulted$"):
        kernel_times.kernel_times(tile_preset("vault"), names=("fc8",))
