"""``vip bench trim``: its means, its picture, and what it refuses."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from pe.config import PeConfig
from sim_tb.cosim.applications import Application, applications, choose
from soc.generate.presets import preset
from vip.trimming.figure import draw_trims
from vip.trimming.gain import Gain, results
from vip.trimming.rows import TrimmedEngine, TrimRow
from vip.trimming.runs import Basis, observe
from vip.trimming.suite import QUICK, UNIONS, _Bench, measure_trims

AREA_FULL = {"luts": 1000, "ffs": 400, "dsps": 0, "brams": 10}
PROFILED = TrimmedEngine(
    config=PeConfig(registers=16, counters=False),
    area={"luts": 400, "ffs": 300, "dsps": 0, "brams": 10},
    power={"mw": 10.0, "leakage_mw": 0.5},
    cycles=700,
    different=(),
    unfaulted=(),
    exact=True,
    profiled=("address_bits",),
)
PROVED = replace(
    PROFILED,
    config=PeConfig(registers=32, counters=False),
    area={"luts": 700, "ffs": 350, "dsps": 0, "brams": 10},
    power={},
    profiled=(),
)
ROW = TrimRow(
    name="one",
    applications=("one",),
    full=PeConfig(counters=False),
    area_full=AREA_FULL,
    power_full={"mw": 40.0, "leakage_mw": 1.0},
    cycles_full=700,
    demand=2.5,
    uncovered="",
    engines={"proved": PROVED, "profiled": PROFILED},
)
GAIN: dict[Basis, Gain] = {
    basis: Gain(
        engines_full=4,
        vaults_full=4,
        engines_trimmed=engines,
        vaults_trimmed=engines,
        throughput_gain=engines / 4,
    )
    for basis, engines in (("proved", 6), ("profiled", 9))
}
SIMULATED: dict[Basis, dict[str, Any]] = {
    "proved": {"throughput_gain": 1.4},
    "profiled": {"throughput_gain": 2.1},
}


def with_profiled(row: TrimRow, **changes: Any) -> TrimRow:
    """``row`` with another profiled engine."""
    engine = replace(row.engines["profiled"], **changes)
    return replace(row, engines={**row.engines, "profiled": engine})


def test_means_are_those_of_applications_alone() -> None:
    area = {**PROFILED.area, "luts": 500, "ffs": 0}
    other = with_profiled(replace(ROW, name="two"), area=area, power={"mw": 20.0})
    both = replace(ROW, name="both", applications=("one", "two"))
    rows = [ROW, other, with_profiled(both, area=AREA_FULL)]
    more = {**GAIN, "profiled": replace(GAIN["profiled"], throughput_gain=3.0)}
    gains = {"one": GAIN, "two": more, "both": GAIN}
    found = results(rows, gains, {})
    runs = found["profiled"]
    assert runs["mean_lut_saved"] == pytest.approx(0.55)
    assert runs["mean_ff_saved"] == pytest.approx(0.625)
    assert runs["mean_power_saved"] == pytest.approx(0.625)
    assert runs["mean_dsp_saved"] == runs["mean_bram_saved"] == 0
    assert found["mean_lut_saved"] == pytest.approx(0.3)
    assert found["mean_ff_saved"] == pytest.approx(0.125)
    assert "mean_power_saved" not in found
    assert [row["profiled"]["lut_saved"] for row in found["rows"]] == [0.6, 0.5, 0.0]
    assert [row["profiled"]["power_saved"] for row in found["rows"]] == [0.75, 0.5, 0.75]
    assert [row["proved"]["power_saved"] for row in found["rows"]] == [None] * 3
    assert found["rows"][0]["profiled"]["configuration"]["registers"] == 16
    assert (found["max_throughput_gain"], found["max_throughput_gain_simulated"]) == (1.5, False)
    assert runs["max_throughput_gain"] == 3.0
    simulated = results(rows, gains, {"one": SIMULATED})
    assert simulated["max_throughput_gain"] == 1.4
    assert simulated["profiled"]["max_throughput_gain"] == 2.1
    assert simulated["max_throughput_gain_simulated"] is True
    unpowered = [replace(with_profiled(row, power={}), power_full={}) for row in rows]
    assert unpowered[0].power_saved("profiled") is None
    assert "mean_power_saved" not in results(unpowered, gains, {})["profiled"]
    # A mean of some is none.
    assert "mean_power_saved" not in results([ROW, unpowered[1]], gains, {})["profiled"]


@pytest.mark.parametrize(
    "change",
    [
        {"full": PeConfig()},
        {"engines": {"proved": replace(PROVED, config=PeConfig()), "profiled": PROFILED}},
    ],
)
def test_counters_are_in_no_engine(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="one: an engine has performance counters"):
        replace(ROW, **change)


def test_nothing_that_is_measured_has_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    (application,) = choose(["bp-copy"])
    counted = preset(application.preset)
    assert counted.counters
    (work,) = application.workloads
    seen = observe(work, counted, hardware=False)
    counters = {"BYTES_LOADED": 20, "BYTES_STORED": 5, "CYCLES": 100}
    run = SimpleNamespace(own_cycles=700, result=SimpleNamespace(counters=counters))
    measured: list[PeConfig] = []

    def area(config: PeConfig, target: str, **_: object) -> SimpleNamespace:
        measured.append(config)
        return SimpleNamespace(total=SimpleNamespace(values=AREA_FULL))

    def power(runs: object, config: PeConfig, full: PeConfig) -> dict[str, float]:
        measured.extend((config, full))
        return {"mw": 1.0}

    def simulated(work: object, config: PeConfig, **_: object) -> SimpleNamespace:
        measured.append(config)
        return run

    def compared(
        work: object, full: PeConfig, trimmed: PeConfig, *, before: object, **_: object
    ) -> SimpleNamespace:
        assert before is run
        measured.extend((full, trimmed))
        return SimpleNamespace(cycles_trimmed=700, different=(), unfaulted=())

    monkeypatch.setattr(
        "vip.trimming.suite.observe", lambda work, full: replace(seen, measured=run)
    )
    for name, function in (
        ("synthesise", area),
        ("_power_of", power),
        ("measure", simulated),
        ("check_trimmed", compared),
        ("_exact", lambda *_, **__: True),
    ):
        monkeypatch.setattr(f"vip.trimming.suite.{name}", function)
    row = TrimRow.from_json(_Bench(power=True)._made("one", [application]))
    assert row.match
    assert len(measured) > 8
    assert not any(config.counters for config in measured)
    assert row.full == replace(counted, counters=False)
    # BP's pointers are in its parameter block, which the job declares as constant.
    assert row.engines["proved"].config.register_width == 20
    assert row.engines["proved"].profiled == ()
    assert row.engines["profiled"].config.register_width < 64
    assert "register_width" in row.engines["profiled"].profiled
    assert "the profile does not cover the program" in row.uncovered


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

    monkeypatch.setattr("vip.trimming.suite._Bench._made", made)
    names = ("matrix-addition", "bp-copy")
    with pytest.raises(KeyboardInterrupt):
        measure_trims(names, power=False)
    broken = False
    rows = measure_trims(names, power=False)
    assert [row.name for row in rows] == list(names)
    assert begun == ["matrix-addition", "bp-copy", "bp-copy"]
    # With power it is another row, and so it is with other sources.
    monkeypatch.setattr("vip.trimming.suite.check_power_target", lambda target: None)
    measure_trims(names[:1])
    monkeypatch.setattr("vip.trimming.suite.made_from", lambda: "other")
    measure_trims(names[:1], power=False)
    assert begun[3:] == ["matrix-addition"] * 2


@pytest.mark.parametrize(
    "change", [{"cycles": 701}, {"different": ("memory",)}, {"unfaulted": ("add",)}]
)
def test_a_row_matches_only_if_nothing_differs(change: dict[str, object]) -> None:
    assert ROW.match
    assert ROW.exact
    assert not with_profiled(ROW, **change).match
    proved = replace(PROVED, **change)  # type: ignore[arg-type]
    assert not replace(ROW, engines={**ROW.engines, "proved": proved}).match
    assert not with_profiled(ROW, exact=False).exact


def test_picture(tmp_path: Path) -> None:
    path = tmp_path / "saved.png"
    rows = [ROW, replace(with_profiled(ROW, power={}), name="two", power_full={})]
    draw_trims(rows, {"one": GAIN, "two": GAIN}, {"two": SIMULATED}, path)
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
