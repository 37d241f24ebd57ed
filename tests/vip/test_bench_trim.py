"""``vip bench trim``: its means, its picture, and what it refuses."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from hdl.config import PeConfig
from sim_tb.applications import applications
from vip.trim_bench import QUICK, UNIONS, TrimRow, results
from vip.trim_figure import draw_trims

ROW = TrimRow(
    name="one",
    applications=("one",),
    full=PeConfig(),
    trimmed=PeConfig(registers=16),
    area_full={"luts": 1000, "ffs": 400, "dsps": 0, "brams": 10},
    area_trimmed={"luts": 400, "ffs": 300, "dsps": 0, "brams": 10},
    cycles_full=700,
    cycles_trimmed=700,
    different=(),
    unfaulted=(),
    exact=True,
    profiled=("address_bits",),
    uncovered="",
)


def test_means_are_those_of_applications_alone() -> None:
    other = replace(ROW, name="two", area_trimmed={**ROW.area_trimmed, "luts": 500, "ffs": 0})
    union = replace(ROW, name="both", applications=("one", "two"), area_trimmed=ROW.area_full)
    found = results([ROW, other, union])
    assert found["mean_lut_saved"] == pytest.approx(0.55)
    assert found["mean_ff_saved"] == pytest.approx(0.625)
    assert found["mean_dsp_saved"] == found["mean_bram_saved"] == 0
    rows = found["rows"]
    assert isinstance(rows, list)
    assert [row["lut_saved"] for row in rows] == [0.6, 0.5, 0.0]
    assert rows[0]["configuration"]["registers"] == 16


@pytest.mark.parametrize(
    "change", [{"cycles_trimmed": 701}, {"different": ("memory",)}, {"unfaulted": ("add",)}]
)
def test_a_row_matches_only_if_nothing_differs(change: dict[str, object]) -> None:
    assert ROW.match
    assert not replace(ROW, **change).match  # type: ignore[arg-type]


def test_picture(tmp_path: Path) -> None:
    path = tmp_path / "saved.png"
    draw_trims([ROW, replace(ROW, name="two")], path)
    with Image.open(path) as image:
        assert image.size[0] > 400
        assert len(image.convert("RGB").getcolors(1 << 20) or []) > 50


def test_names_are_those_of_applications() -> None:
    known = {item.name: item.preset for item in applications()}
    assert set(QUICK) <= set(known)
    for members in UNIONS.values():
        assert len({known[name] for name in members}) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "sort"], "unknown application 'sort'; there are: matrix-addition, "),
        (["--only", "bp", "--quick"], "--quick and --only exclude each other"),
        (["--json", "nowhere/x.json"], "there is no folder nowhere"),
    ],
)
def test_refusals(
    vip: Callable[..., tuple[int, str, str]], options: list[str], message: str
) -> None:
    code, _, err = vip("bench", "trim", *options)
    assert code == 2
    assert err.startswith("vip: ")
    assert message in err
