"""Rows of the kernels' report: what they are made of, keeping them, and drawing them."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image

from bench.kernels import KernelRow, VaultWork, draw_roofline, roof, row_of
from isa.faults import FaultCause
from pe.interface import PeState
from sim_tb.cosim.vault import PeResult, VaultResult
from sim_tb.measure.plots import roofline
from sim_tb.runner.cache import Kept, fingerprint
from soc.generate.presets import tile_preset

VAULT = tile_preset("vault")


def result(cycles: int, *, busy: int, columns: int) -> VaultResult:
    pes = tuple(
        PeResult(
            slot=slot,
            state=PeState.HALTED,
            cause=FaultCause.NONE,
            pc=0,
            cycles=cycles,
            counters={"CYCLES": cycles - slot, "VECTOR_BUSY": busy},
        )
        for slot in range(2)
    )
    return VaultResult(
        pes=pes,
        counters={"READS": columns, "WRITES": 0},
        latencies=(),
        commands={},
        windows=(),
        tck_ns=0.8,
        wall_seconds=1.0,
    )


def test_a_row_is_the_sum_of_its_parts() -> None:
    works = [
        VaultWork(result=result(1000, busy=500, columns=10), operations=4000, match=True, times=3),
        VaultWork(result=result(500, busy=100, columns=20), operations=2000, match=True),
    ]
    row = row_of("both", works, limit_ms=0.001, scaled="updates", units=50, whole=100)
    assert row.match
    assert row.cycles == 1500
    assert row.ours_ms == pytest.approx(2 * (3 * 1000 + 500) * 0.8e-6)
    assert row.share == pytest.approx(1500 / 3500)
    assert row.gops == pytest.approx(6000 / 1200)
    assert row.gbs == pytest.approx(30 * 32 / 1200)
    assert row.intensity == pytest.approx(6000 / 960)
    assert row.busy == pytest.approx((2 * 500 + 2 * 100) / (2 * 1000 + 2 * 500))
    assert (row.scaled, row.engines) == ("updates", 2)
    assert row.cycles_per_unit == pytest.approx(1500 * 2 / 50)
    assert KernelRow.from_dict(row.to_dict()) == row
    wrong = VaultWork(result=works[0].result, operations=1, match=False)
    assert not row_of("wrong", [works[0], wrong], limit_ms=1).match


def test_results_are_kept_until_what_they_rest_on_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path / "build"))
    made: list[int] = []

    def make() -> Any:
        made.append(1)
        return {"cycles": len(made)}

    key = fingerprint("program", b"data")
    assert Kept("rows").get(key, make) == {"cycles": 1}
    assert Kept("rows").get(key, make) == {"cycles": 1}
    assert Kept("rows").get(fingerprint("program", b"datum"), make) == {"cycles": 2}
    assert fingerprint("ab", "c") != fingerprint("a", "bc")
    (tmp_path / "build" / "rows.json").write_text("{broken")
    assert Kept("rows").get(key, make) == {"cycles": 3}


def test_the_roof_is_the_vaults_and_a_picture_is_drawn(tmp_path: Path) -> None:
    assert roof(VAULT) == pytest.approx((10.0, 40.0))
    rows = [
        row_of(
            name,
            [VaultWork(result=result(1000, busy=1, columns=100), operations=many, match=True)],
            limit_ms=1,
        )
        for name, many in (("bp_m", 20_000), ("bp_copy", 0), ("pool1", 1_000), ("lstm", 30_000))
    ]
    path = tmp_path / "roofline.png"
    draw_roofline(rows, VAULT, path)
    with Image.open(path) as picture:
        assert picture.width > 1000
        assert len(np.unique(np.asarray(picture.convert("RGB")).reshape(-1, 3), axis=0)) > 50


def test_names_do_not_cover_each_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept = []
    real = roofline.picture

    @contextmanager
    def keep(*arguments: object) -> Iterator[Any]:
        with real(*arguments) as figure:
            yield figure
            figure.draw_without_rendering()
            kept.extend(
                [Text.get_window_extent(text) for text in axis.texts] for axis in figure.axes
            )

    monkeypatch.setattr(roofline, "picture", keep)
    rows = [
        row_of(
            f"conv{number}",
            [
                VaultWork(
                    result=result(1000, busy=1, columns=100 + 7 * number),
                    operations=28_000 + 170 * (number % 4),
                    match=True,
                )
            ],
            limit_ms=1,
        )
        for number in range(10)
    ]
    draw_roofline(rows, VAULT, tmp_path / "roofline.svg")
    boxes = [box for axis in kept for box in axis]
    assert boxes
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
