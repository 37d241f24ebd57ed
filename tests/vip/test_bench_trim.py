"""``vip bench trim``: its means, its picture, and what it refuses."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from hdl.config import PeConfig
from sim_tb.applications import Application, applications
from vip.trim_bench import QUICK, UNIONS, measure_trims
from vip.trim_figure import draw_trims
from vip.trim_gain import Gain, results
from vip.trim_rows import TrimRow

ROW = TrimRow(
    name="one",
    applications=("one",),
    full=PeConfig(),
    trimmed=PeConfig(registers=16),
    area_full={"luts": 1000, "ffs": 400, "dsps": 0, "brams": 10},
    area_trimmed={"luts": 400, "ffs": 300, "dsps": 0, "brams": 10},
    power_full={"mw": 40.0, "leakage_mw": 1.0},
    power_trimmed={"mw": 10.0, "leakage_mw": 0.5},
    cycles_full=700,
    cycles_trimmed=700,
    demand=2.5,
    different=(),
    unfaulted=(),
    exact=True,
    profiled=("address_bits",),
    uncovered="",
)
GAIN = Gain(
    engines_full=4, vaults_full=4, engines_trimmed=9, vaults_trimmed=9, throughput_gain=2.25
)


def test_means_are_those_of_applications_alone() -> None:
    other = replace(ROW, name="two", area_trimmed={**ROW.area_trimmed, "luts": 500, "ffs": 0})
    union = replace(ROW, name="both", applications=("one", "two"), area_trimmed=ROW.area_full)
    rows = [ROW, replace(other, power_trimmed={"mw": 20.0}), union]
    gains = {"one": GAIN, "two": replace(GAIN, throughput_gain=3.0), "both": GAIN}
    found = results(rows, gains, {})
    assert found["mean_lut_saved"] == pytest.approx(0.55)
    assert found["mean_ff_saved"] == pytest.approx(0.625)
    assert found["mean_power_saved"] == pytest.approx(0.625)
    assert found["mean_dsp_saved"] == found["mean_bram_saved"] == 0
    assert [row["lut_saved"] for row in found["rows"]] == [0.6, 0.5, 0.0]
    assert [row["power_saved"] for row in found["rows"]] == [0.75, 0.5, 0.75]
    assert found["rows"][0]["configuration"]["registers"] == 16
    assert (found["max_throughput_gain"], found["max_throughput_gain_simulated"]) == (3.0, False)
    simulated = results(rows, gains, {"one": {"throughput_gain": 2.1}})
    assert simulated["max_throughput_gain"] == 2.1
    assert simulated["max_throughput_gain_simulated"] is True
    unpowered = [replace(row, power_full={}, power_trimmed={}) for row in rows]
    assert unpowered[0].power_saved is None
    assert "mean_power_saved" not in results(unpowered, gains, {})


def test_rows_are_kept_as_json() -> None:
    assert TrimRow.from_json(json.loads(json.dumps(ROW.to_json()))) == ROW


def test_finished_rows_of_a_broken_run_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path))
    begun: list[str] = []
    broken = True

    def made(bench: object, name: str, members: Sequence[Application]) -> dict[str, object]:
        begun.append(name)
        if broken and name == "bp-copy":
            raise KeyboardInterrupt
        return replace(ROW, name=name).to_json()

    monkeypatch.setattr("vip.trim_bench._Bench._made", made)
    names = ("matrix-addition", "bp-copy")
    with pytest.raises(KeyboardInterrupt):
        measure_trims(names, power=False)
    broken = False
    rows = measure_trims(names, power=False)
    assert [row.name for row in rows] == list(names)
    assert begun == ["matrix-addition", "bp-copy", "bp-copy"]
    # With power it is another row, and so it is with other sources.
    monkeypatch.setattr("vip.trim_bench.check_power_target", lambda target: None)
    measure_trims(names[:1])
    monkeypatch.setattr("vip.trim_bench.made_from", lambda: "other")
    measure_trims(names[:1], power=False)
    assert begun[3:] == ["matrix-addition"] * 2


@pytest.mark.parametrize(
    "change", [{"cycles_trimmed": 701}, {"different": ("memory",)}, {"unfaulted": ("add",)}]
)
def test_a_row_matches_only_if_nothing_differs(change: dict[str, object]) -> None:
    assert ROW.match
    assert not replace(ROW, **change).match  # type: ignore[arg-type]


def test_picture(tmp_path: Path) -> None:
    path = tmp_path / "saved.png"
    rows = [ROW, replace(ROW, name="two", power_full={}, power_trimmed={})]
    draw_trims(rows, {"one": GAIN, "two": GAIN}, {"two": {"throughput_gain": 2.1}}, path)
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
