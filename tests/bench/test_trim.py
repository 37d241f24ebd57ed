"""``vip bench trim``: its means, its picture, and what it refuses."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from bench.trim import draw_trims
from microkernels.suite import Application, choose, suite
from pe.config import PeConfig
from soc.generate.presets import preset
from synth.analysis.contents import Subject
from synth.errors import TrimError
from tests.vip.here import here
from vip.trimming.rows import TrimRow, means
from vip.trimming.suite import UNIONS, TrimSuiteError, compare, measure_trims

AREA_FULL = {"luts": 1000, "ffs": 400, "dsps": 0, "brams": 10}
ROW = TrimRow(
    name="one",
    applications=("one",),
    full=PeConfig(counters=False),
    trimmed=PeConfig(registers=16, counters=False),
    area_full=AREA_FULL,
    area_trimmed={"luts": 400, "ffs": 300, "dsps": 0, "brams": 10},
    power_full={"mw": 40.0, "leakage_mw": 1.0},
    power_trimmed={"mw": 10.0, "leakage_mw": 0.5},
    cycles_full=700,
    cycles_trimmed=700,
    demand=2.5,
    different=(),
    unfaulted=(),
    exact=True,
)


def test_means_are_those_of_applications_alone() -> None:
    area = {**ROW.area_trimmed, "luts": 500, "ffs": 0}
    other = replace(ROW, name="two", area_trimmed=area, power_trimmed={"mw": 20.0})
    both = replace(ROW, name="both", applications=("one", "two"))
    rows = [ROW, other, replace(both, area_trimmed=AREA_FULL)]
    found = means(rows)
    assert found["mean_lut_saved"] == pytest.approx(0.55)
    assert found["mean_ff_saved"] == pytest.approx(0.625)
    assert found["mean_power_saved"] == pytest.approx(0.625)
    assert found["mean_dsp_saved"] == found["mean_bram_saved"] == 0
    assert [row.saved("luts") for row in rows] == [0.6, 0.5, 0.0]
    assert [row.power_saved for row in rows] == [0.75, 0.5, 0.75]
    unpowered = [replace(row, power_trimmed={}, power_full={}) for row in rows]
    assert unpowered[0].power_saved is None
    assert "mean_power_saved" not in means(unpowered)
    # A mean of some is none.
    assert "mean_power_saved" not in means([ROW, unpowered[1]])


@pytest.mark.parametrize(
    "change",
    [
        {"full": PeConfig()},
        {"trimmed": PeConfig()},
    ],
)
def test_counters_are_in_no_engine(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="one: an engine has performance counters"):
        replace(ROW, **change)


def test_nothing_that_is_measured_has_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    (application,) = choose(["bp-copy"])
    counted = preset(application.preset)
    assert counted.counters
    ((launch, memory),) = application.workloads
    counters = {"BYTES_LOADED": 20, "BYTES_STORED": 5, "CYCLES": 100}
    run: Any = SimpleNamespace(
        launch=launch,
        contents=memory,
        result=SimpleNamespace(cycles=700, counters=counters),
        in_flight=(3, 8),
    )
    measured: list[PeConfig] = []

    def area(config: PeConfig, target: str, **_: object) -> SimpleNamespace:
        measured.append(config)
        return SimpleNamespace(total=SimpleNamespace(values=AREA_FULL))

    def power(runs: object, config: PeConfig, full: PeConfig) -> dict[str, float]:
        measured.extend((config, full))
        return {"mw": 1.0}

    def simulated(
        launch: object,
        memory: bytes,
        config: PeConfig,
        *,
        watched: bool = True,
        slower: float = 0.0,
    ) -> Any:
        assert (config == counted, slower) == (watched, 0.01 if watched else 0.0)
        if not watched:
            measured.append(config)
        return run

    def compared(
        before: object,
        full: PeConfig,
        trimmed: PeConfig,
        *,
        slower: float,
        **_: object,
    ) -> SimpleNamespace:
        assert before is run
        assert slower == 0.01
        measured.extend((full, trimmed))
        return SimpleNamespace(cycles_trimmed=705, different=(), unfaulted=())

    for name, function in (
        ("synthesise", area),
        ("_power_of", power),
        ("measure", simulated),
        ("check_trimmed", compared),
        ("_exact", lambda *_, **__: True),
    ):
        monkeypatch.setattr(f"vip.trimming.suite.{name}", function)
    row = compare("one", [application], power=True)
    assert row.match
    assert len(measured) > 8
    assert not any(config.counters for config in measured)
    assert row.full == replace(counted, counters=False)
    # BP's pointers are in its parameter block, which the job declares as constant.
    sizes = row.trimmed
    assert (sizes.register_width, sizes.arc_entries, sizes.load_store_queue) == (20, 3, 8)
    assert row.slower == pytest.approx(5 / 700)
    # No size is that of a run.
    monkeypatch.setattr("vip.trimming.suite.known_launches", _unknown)
    with pytest.raises(TrimError, match="is not proved for every input"):
        compare("one", [application], power=True)


def _unknown(members: Sequence[Application], full: PeConfig) -> list[Subject]:
    return [Subject(name="one", program=launch.program) for launch, _ in members[0].workloads]


def test_rows_are_kept_as_json() -> None:
    assert TrimRow.from_json(json.loads(json.dumps(ROW.to_json()))) == ROW


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the rows that are measured, in this process; nothing is cached before."""
    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path))
    monkeypatch.setattr("vip.executor.executor.local", here)
    found: list[str] = []

    def compared(name: str, members: Sequence[Application], *, power: bool) -> TrimRow:
        found.append(name)
        return replace(ROW, name=name, applications=tuple(item.name for item in members))

    monkeypatch.setattr("vip.trimming.suite.compare", compared)
    return found


def test_finished_rows_of_a_broken_run_are_kept(
    begun: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("matrix-addition", "bp-copy")

    def interrupted(
        stage: str, done: float = 0, total: float | None = None, part: str = ""
    ) -> None:
        assert (stage, total) == ("trimming", 2)
        if part:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_trims(names, power=False, progress=interrupted)
    # The order of rows is that of the suite, whichever ends first.
    rows = measure_trims(names, power=False)
    assert [row.name for row in rows] == list(names)
    assert begun == ["bp-copy", "matrix-addition"]
    # With power it is another row, and so it is with other sources.
    monkeypatch.setattr("vip.trimming.suite.check_power_target", lambda target: None)
    measure_trims(names[:1])
    monkeypatch.setattr("vip.trimming.suite.made_from", lambda: "other")
    measure_trims(names[:1], power=False)
    assert begun[2:] == ["matrix-addition"] * 2


def test_all_rows_are_applications_then_unions(begun: list[str]) -> None:
    rows = measure_trims(power=False)
    assert [row.name for row in rows] == [*suite(), *UNIONS]
    assert rows[-1].applications == UNIONS["all matrices"]
    assert len(begun) == len(set(begun)) == len(rows)


def test_a_row_that_fails_is_named(begun: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(*_: object, **__: object) -> TrimRow:
        raise TrimError("address_bits is not proved for every input\nand more")

    monkeypatch.setattr("vip.trimming.suite.compare", compared)
    with pytest.raises(TrimSuiteError, match=r"^bp: address_bits is not proved for every input$"):
        measure_trims(["bp"], power=False)
    assert not begun


@pytest.mark.parametrize(
    "change",
    [
        {"cycles_trimmed": 708},
        {"cycles_trimmed": 699},
        {"different": ("memory",)},
        {"unfaulted": ("add",)},
    ],
)
def test_a_row_matches_only_if_nothing_differs(change: dict[str, Any]) -> None:
    assert ROW.match
    assert replace(ROW, cycles_trimmed=707).match
    assert not replace(ROW, **change).match


def test_picture(tmp_path: Path) -> None:
    path = tmp_path / "saved.png"
    rows = [ROW, replace(ROW, name="two", power_trimmed={}, power_full={})]
    draw_trims(rows, {"one": 1.5, "two": 1.4}, path)
    with Image.open(path) as image:
        assert image.size[0] > 400
        assert len(image.convert("RGB").getcolors(1 << 20) or []) > 50


def test_names_are_those_of_applications() -> None:
    known = {item.name: item.preset for item in suite().values()}
    for members in UNIONS.values():
        assert len({known[name] for name in members}) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "sort"], "unknown application 'sort'; there are: matrix-addition, "),
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
