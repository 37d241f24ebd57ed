"""Sweeps whole: on processes of this machine, interrupted, on a cluster, and by the command."""

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import vip.sweeps.sweep as module
from soc.generate.presets import configuration_json, preset, read_configuration
from support.cache import FOLDER_VARIABLE
from support.errors import VipError
from tests.vip.here import here
from vip.cli.app import app
from vip.executor.executor import Executor
from vip.executor.work import Task, do
from vip.sweeps.kernels import SweepError
from vip.sweeps.sweep import FILES, sweep
from vip.sweeps.tasks import WORK, run_task
from vip.synthesis.power import power

SPECIFICATION = """
design = "pe"
target = ""
objectives = ["cycles"]
[vary]
arc_entries = [2, 20]
scratchpad_bytes = [64, 4096]
[[kernels]]
kernel = "bp"
width = 4
height = 3
labels = 8
[[kernels]]
kernel = "dense"
inputs = 32
outputs = 8
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Compiled libraries stay where they are, results are those of the test.
    real = module.ResultCache
    monkeypatch.setattr(
        module, "ResultCache", lambda name: _elsewhere(real(name), tmp_path / "kept")
    )
    path = tmp_path / "sweep.toml"
    path.write_text(SPECIFICATION)
    return path


def _elsewhere(store: Any, folder: Path) -> Any:
    store._folder = folder
    return store


def contents(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in FILES]


def test_a_sweep_finds_the_best_engine(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vip.executor.executor.local", here)
    found = sweep(file, tmp_path / "out")
    assert [row["status"] for row in found.rows] == ["refused"] * 2 + ["ok"] * 2 + [
        "refused",
        "refused",
        "ok",
        "ok",
    ]
    assert "scratchpad" in found.rows[0]["message"]
    cycles = {one.choice["arc_entries"]: one.values.get("cycles") for one in found.configurations}
    assert cycles[20] is not None
    assert cycles[2] is not None
    assert cycles[20] < cycles[2]
    assert found.winner.choice == {"arc_entries": 20, "scratchpad_bytes": 4096}
    best = read_configuration(tmp_path / "out" / "winner.json")
    assert best.arc_entries == 20  # type: ignore[union-attr]
    rows = pyarrow.parquet.read_table(tmp_path / "out" / "points.parquet").to_pylist()
    assert [row["cycles"] for row in rows] == [row.get("cycles") for row in found.rows]
    page = (tmp_path / "out" / "front.html").read_text()
    assert "arc_entries = 20" in page
    assert "src=" not in page.split("<body>")[1].split("Plotly.newPlot")[1]


def test_an_interrupted_sweep_gives_the_same_files(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vip.executor.executor.local", here)
    whole = sweep(file, tmp_path / "whole")
    for result in sorted((tmp_path / "kept").iterdir())[:3]:
        result.unlink()
    (tmp_path / "kept" / "damaged.json").write_text("{")

    @contextmanager
    def stopped(*_: object) -> Iterator[Executor]:
        def execute(tasks: Sequence[Task]) -> Iterator[tuple[int, dict[str, Any]]]:
            yield 0, do(WORK, tasks[0])
            raise KeyboardInterrupt

        yield execute

    monkeypatch.setattr("vip.executor.executor.local", stopped)
    with pytest.raises(KeyboardInterrupt):
        sweep(file, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    monkeypatch.setattr("vip.executor.executor.local", here)
    kept = len(list((tmp_path / "kept").iterdir())) - 1
    again = sweep(file, tmp_path / "again")
    # Refusals are found again.
    assert (again.measured, again.kept) == (whole.measured - kept, kept)
    assert kept >= 1
    assert contents(tmp_path / "again") == contents(tmp_path / "whole")


def test_area_is_measured_where_all_kernels_run(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(SPECIFICATION.replace('target = ""', 'target = "xc7"'))
    areas: list[Task] = []

    @contextmanager
    def answering(*_: object) -> Iterator[Executor]:
        def answer(task: Task) -> dict[str, Any]:
            config: dict[str, Any] = task["configuration"]
            if task["kind"] == "area":
                areas.append(task)
                return {"luts": config["arc_entries"]}
            refused = config["scratchpad_bytes"] == 64 and task["kernel"]["kernel"] == "bp"
            return {"error": "too small"} if refused else {"cycles": 100, "vector_busy": 0.5}

        yield lambda tasks: ((number, answer(task)) for number, task in enumerate(tasks))

    monkeypatch.setattr("vip.executor.executor.local", answering)
    shown: list[tuple[float, float | None]] = []
    found = sweep(
        file,
        tmp_path / "out",
        progress=lambda _, done=0, total=None, part="": shown.append((done, total)),
    )
    assert [task["configuration"]["scratchpad_bytes"] for task in areas] == [4096, 4096]
    assert shown[-1] == (8 + 2, 8 + 2)
    assert [(row["status"], row.get("luts")) for row in found.rows] == [
        *[("refused", None), ("ok", None), ("ok", 2), ("ok", 2)],
        *[("refused", None), ("ok", None), ("ok", 20), ("ok", 20)],
    ]


@contextmanager
def made_up(*_: object) -> Iterator[Executor]:
    """Measures that tell which task gave them."""

    def answer(task: Task) -> dict[str, Any]:
        entries = task["configuration"]["arc_entries"]
        kernel = task["kernel"]["kernel"] if "kernel" in task else ""
        if task["configuration"]["scratchpad_bytes"] == 64 and kernel == "bp":
            return {"error": "too small"}
        if task["kind"] == "area":
            return {"luts": entries + 1000 * (task["target"] == "ecp5")}
        if task["kind"] == "clock":
            return {"fmax_mhz": 500.0, "cells_logic_ge": 7}
        if task["kind"] == "power":
            return {"pj_per_cycle": {"bp": 4.0, "dense": 6.0}[kernel], "leakage_mw": 0.5}
        return {"cycles": {"bp": 100, "dense": 1000}[kernel]}

    yield lambda tasks: ((number, answer(task)) for number, task in enumerate(tasks))


def test_each_row_has_its_own_power_and_all_areas(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vip.executor.executor.local", made_up)
    text = SPECIFICATION.replace('target = ""', 'target = ["xc7", "ecp5"]\npower = true')
    file.write_text(text.replace('["cycles"]', '["energy_nj", "ecp5_luts"]'))
    found = sweep(file, tmp_path / "out")
    # 4 and 6 pJ a cycle at 100 MHz are 0.4 and 0.6 mW beside the leakage; 1 and 10 us.
    small, large = (row for row in found.rows if row["number"] == 3)
    assert (small["kernel"][:2], large["kernel"][:5]) == ("bp", "dense")
    assert (small["power_mw"], large["power_mw"]) == pytest.approx((0.9, 1.1))
    assert (small["energy_nj"], large["energy_nj"]) == pytest.approx((0.9, 11.0))
    assert (large["xc7_luts"], large["ecp5_luts"]) == (20, 1020)
    assert found.winner.choice == {"arc_entries": 2, "scratchpad_bytes": 4096}
    # Where a kernel does not fit, the configuration's others have cycles alone.
    alone = next(row for row in found.rows if row["number"] == 2 and row["status"] == "ok")
    assert not alone.keys() & {"power_mw", "xc7_luts"}


def test_power_is_that_of_the_measured_clock(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vip.executor.executor.local", made_up)
    file.write_text(SPECIFICATION.replace('target = ""', 'target = ""\npower = true\nclock = true'))
    row = sweep(file, tmp_path / "out").rows[-1]
    assert (row["cells_logic_ge"], row["time_us"]) == (7, 2.0)
    assert (row["power_mw"], row["energy_nj"]) == pytest.approx((3.5, 7.0))


@pytest.mark.slow
def test_power_equals_that_of_its_command() -> None:
    """Belief propagation of the same size by ``vip power``, at another clock."""
    config = preset("pe")
    kernel = {"kernel": "bp", "width": 8, "height": 4}
    task = {"kind": "power", "kernel": kernel, "configuration": configuration_json(config)}
    found = run_task(task)
    total = power("bp", config, mhz=250.0).milliwatts
    assert found["pj_per_cycle"] * 0.25 + found["leakage_mw"] == pytest.approx(total, abs=1e-3)


@pytest.mark.slow
def test_a_cluster_gives_the_same_files_and_loses_nothing(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import LocalCluster

    monkeypatch.setenv(FOLDER_VARIABLE, os.environ.get(FOLDER_VARIABLE, ""))
    monkeypatch.delenv(FOLDER_VARIABLE)
    here_too = tmp_path / "local"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vip.executor.executor.local", here)
        sweep(file, here_too)
    for kept in (tmp_path / "kept").iterdir():
        kept.unlink()
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as machines:  # type: ignore[no-untyped-call]
        victim = next(iter(machines.workers.values())).pid

        def kill(*_: object, **__: object) -> None:
            nonlocal victim
            if victim:
                os.kill(victim, signal.SIGKILL)
                victim = 0

        found = sweep(file, tmp_path / "far", scheduler=machines.scheduler_address, progress=kill)
    assert found.measured == 8
    assert contents(tmp_path / "far") == contents(here_too)


def test_objectives_are_checked_before_anything_runs(file: Path, tmp_path: Path) -> None:
    file.write_text(SPECIFICATION.replace('["cycles"]', '["luts"]'))
    with pytest.raises(SweepError, match="unknown objective 'luts'; there are: cycles, time_us"):
        sweep(file, tmp_path / "out")


def test_a_sweep_without_any_result_is_refused(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vip.executor.executor.local", here)
    file.write_text(SPECIFICATION.replace("[64, 4096]", "[64]"))
    with pytest.raises(SweepError, match="no configuration has a result; the first: "):
        sweep(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_shows_the_front(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vip.executor.executor.local", here)
    json_file = tmp_path / "front.json"
    arguments = ["sweep", str(file), "-o", str(tmp_path / "out"), "--json", str(json_file)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "4 configurations, 8 points; 2 configurations without a result" in result.output
    content = json.loads(json_file.read_text())
    assert content["winner"]["fields"]["arc_entries"] == 20
    assert content["provenance"]
    result = CliRunner().invoke(app, ["sweep", str(tmp_path / "nosuch.toml")])
    assert isinstance(result.exception, VipError)
