"""Kernels on a vault: what a run is made of, and drawing the roofline."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image

from bench import kernels as experiments
from bench.harness import runs as harness
from bench.harness.runs import LaunchRun
from bench.kernels import draw_roofline, roof, run_kernel
from isa.run import EngineEnd, RunResult
from pe.interface import PeCounter
from sim_tb.cosim.engine import CosimError
from soc.generate.presets import tile_preset

VAULT = tile_preset("vault")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache of measurements."""
    monkeypatch.setattr("support.cache.build_folder", lambda: tmp_path)


def result(cycles: int, *, busy: int) -> RunResult:
    counters = dict.fromkeys(PeCounter.__members__, 0) | {"CYCLES": cycles, "VECTOR_BUSY": busy}
    end = EngineEnd(state="halted", cycles=cycles, elapsed_cycles=cycles, counters=counters)
    return RunResult(
        engines=(end,) * 4,
        simulated_cycles=cycles,
        seconds=1.0,
        vaults=({"READS": 7, "WRITES": 3},),
        tck_ns=0.8,
    )


def test_a_run_is_the_sum_of_its_jobs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A convolution whose partial sums are completed and pooled in a launch of their own."""
    results = iter([result(1000, busy=500), result(500, busy=100)])
    monkeypatch.setattr(
        harness,
        "run_on",
        lambda *_, **__: SimpleNamespace(match=True, results={"": next(results)}),
    )
    run = run_kernel("conv5_3", 1, VAULT, "rtl")
    assert (run.cycles, run.engines, run.updates) == (1500, 4, 0)
    assert run.gbs == pytest.approx(2 * 320 / 1200)
    assert run.counters["VECTOR_BUSY"] == 4 * 500 + 4 * 100
    assert run.intensity == pytest.approx(run.gops / run.gbs)
    # What was not simulated must not become a measurement of this user.
    assert len(list(tmp_path.glob("*/*.json"))) == 2


def test_belief_propagation_counts_its_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    phases = {"fine": result(1000, busy=1), "coarse": result(2000, busy=1)}
    outcome = SimpleNamespace(match=True, results=phases)
    monkeypatch.setattr(harness, "run_on", lambda *_, **__: outcome)
    fine, coarse = (run_kernel(name, 1, VAULT, "rtl") for name in ("bp_m", "bp_coarse"))
    assert (fine.cycles, coarse.cycles) == (1000, 2000)
    assert fine.updates == 2 * (34 * 59 + 60 * 33)
    assert coarse.updates == 5 * 2 * (17 * 29 + 30 * 16)
    outcome.match = False
    with pytest.raises(CosimError, match="bp_m: outputs differ"):
        run_kernel("bp_m", 1, tile_preset("vault-small"), "rtl")


def test_figures_are_the_recorded_ones() -> None:
    """On the timing model, which takes the cycles of the Verilog."""
    from bench.harness.record import values

    recorded = values("kernels")
    figures = {item.name: item.value for item in experiments.kernels(only=["fc8"], on="model")}
    assert set(figures) == {
        f"fc8_batch_{batch}_{figure}" for batch in (1, 3) for figure in ("cycles", "gbs", "busy")
    }
    assert {name: recorded[name] for name in figures} == pytest.approx(figures)


def kernel(*, gbs: float, gops: float) -> LaunchRun:
    return LaunchRun(
        cycles=1000,
        tck_ns=0.8,
        counters={},
        gbs=gbs,
        simulated=1000,
        seconds=1.0,
        processors=1,
        operations=round(800 * gops),
    )


def test_the_roof_is_the_vaults_and_a_picture_is_drawn(tmp_path: Path) -> None:
    assert roof(VAULT) == pytest.approx((10.0, 40.0))
    runs = {
        name: kernel(gbs=4.0, gops=gops)
        for name, gops in (("bp_m", 25.0), ("bp_copy", 0.0), ("pool1", 1.2), ("lstm", 37.0))
    }
    path = tmp_path / "roofline.png"
    draw_roofline(runs, VAULT, path)
    with Image.open(path) as picture:
        assert picture.width > 1000
        assert len(np.unique(np.asarray(picture.convert("RGB")).reshape(-1, 3), axis=0)) > 50


def test_names_do_not_cover_each_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    boxes = []
    real = experiments.picture

    @contextmanager
    def keep(*arguments: object) -> Iterator[Any]:
        with real(*arguments) as drawing:
            yield drawing
            drawing.draw_without_rendering()
            for axis in drawing.axes:
                boxes.append([Text.get_window_extent(text) for text in axis.texts])

    monkeypatch.setattr(experiments, "picture", keep)
    runs = {
        f"conv{number}": kernel(
            gbs=32 * (100 + 7 * number) / 800, gops=(28_000 + 170 * (number % 4)) / 800
        )
        for number in range(10)
    }
    draw_roofline(runs, VAULT, tmp_path / "roofline.svg")
    assert any(boxes)
    for axis in boxes:
        assert not any(one.overlaps(other) for one, other in combinations(axis, 2))
