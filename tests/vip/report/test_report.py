"""The report page, from figures that are made up."""

from base64 import b64decode
from pathlib import Path
from re import findall

import pytest

from pe.config import PeConfig
from synth.physical.area import TABLE_7_4, AreaReport, AreaRow, by_component
from synth.physical.corners import CornerTiming
from synth.physical.devices import PLACED
from synth.power.power import PowerReport, PowerRow
from synth.timing.sta import Path as TimingPath
from vip.reports.page import FIGURES, Report, page
from vip.synthesis.clocks import TimedNetlist
from vip.synthesis.power import KERNELS


def _row(unit: str, logic: float, memories: float, mhz: float) -> AreaRow:
    values = {"logic_ge": 2 * logic, "sram_um2": memories, "area_um2": logic + memories}
    return AreaRow(unit, {**values, "fmax_mhz": mhz}, {}, ((unit, 1000 / mhz),))


def _path(mhz: float) -> TimingPath:
    return TimingPath(1000 / mhz, ())


@pytest.fixture
def report() -> Report:
    rows = (
        _row("fetch", 200, 16000, 1500),
        _row("issue", 2000, 0, 900),
        _row("dispatch", 1000, 0, 1200),
        _row("counters", 900, 5000, 1300),
    )
    area = AreaReport("generic", rows, _row("total", 4100, 21000, 800))
    power = PowerReport(
        "cells", 45.0, 1.1, 100, 5, (PowerRow("fetch", 1e4, 2e3),), PowerRow("total", 1e4, 2e3),
        {"step": 10.0},
    )  # fmt: skip
    points = ((1, 100.0, 200.0), (2, 150.0, 300.0))
    return Report(
        page=Path("index.html"),
        name="<pe>",
        config=PeConfig(),
        area=area,
        cells=area,
        netlist=TimedNetlist(
            config=PeConfig(),
            target="nangate45",
            library="cells",
            logic_ge=82_600,
            corners=(CornerTiming("nangate45", _path(1090), _path(990), _path(20_000)),),
        ),
        fits=dict.fromkeys(PLACED, 3),
        power=dict.fromkeys(KERNELS, power),
        scaling=dict.fromkeys(("a", "b", "c", "d"), (2, points)),
        placed=(),
    )


def test_units_are_sums_of_the_components(report: Report) -> None:
    beside = {row.unit: row.values for row in by_component(report.area)}
    assert list(beside) == list(TABLE_7_4)
    assert sum(TABLE_7_4.values()) == pytest.approx(140592, abs=1)
    assert beside["Issue"]["area_um2"] == 3000
    assert beside["Other"] == {"area_um2": 5900, "sram_um2": 5000}
    assert sum(row["area_um2"] for row in beside.values()) == sum(
        row.values["area_um2"] for row in report.area.rows
    )


def drawn(report: Report, folder: Path, suffix: str) -> dict[str, bytes]:
    for name, draw in FIGURES.items():
        draw(report, folder / f"{name}{suffix}")
    return {name: (folder / f"{name}{suffix}").read_bytes() for name in FIGURES}


def test_page_holds_everything(report: Report, tmp_path: Path) -> None:
    figures = drawn(report, tmp_path, ".png")
    assert figures == drawn(report, tmp_path, ".png")
    vectors = drawn(report, tmp_path, ".svg")
    assert vectors == drawn(report, tmp_path, ".svg")
    assert all(b"<svg" in vector for vector in vectors.values())
    text = page(report, figures)
    pictures = [b64decode(found) for found in findall(r"base64,([^\"]+)", text)]
    assert sorted(pictures) == sorted(figures.values())
    assert all(png.startswith(b"\x89PNG") for png in pictures)
    assert "&lt;pe&gt;" in text
    for words in ("Table 7.4", "LFE5U-85F", "not placed", "issue 1.11 ns", "pJ a step"):
        assert words in text
    assert "2, as chosen" in text
    rows = [findall("<t[dh]>([^<]*)", row) for row in text.split("<tr>")]
    assert ["generic", "8.2", "none", "none"] in rows
    assert ["nangate45", "82.6", "1,090", "990"] in rows
    assert "http" not in text.replace("http-equiv", "")
