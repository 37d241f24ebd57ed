"""Pages on results: their figures show what the JSON has."""

import json
import re
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

import vip as api
from pe.interface import PeCounter
from tests.browser import Browser, needs_chromium
from vip.reports.run.charts import squarified
from vip.reports.run.figures import FIGURES
from vip.reports.run.page import run_page

VOID = {"meta", "link", "br", "img"}
ORIGIN = {"provenance": {"version": version("vip-inference"), "commit": "0123456789ab"}}


class Marks(HTMLParser):
    """Headings, and each mark's text with its style; asserts that elements nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.marks: list[tuple[str, str]] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        found = dict(attributes)
        if "data-tip" in found:
            self.marks.append((found["data-tip"] or "", found.get("style") or ""))
            assert found["tabindex"] == "0"

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["h2"]:
            self.headings.append(data)


def counters(scale: int = 1) -> dict[str, int]:
    kinds = [item.name for item in PeCounter if item.name.startswith(("ISSUED", "STALL"))]
    found = {name: scale * (at + 1) for at, name in enumerate(kinds)}
    total = sum(found.values())
    return {
        **found,
        "CYCLES": total,
        "VECTOR_BUSY": total // 2,
        "BYTES_LOADED": 96,
        "BYTES_STORED": 4,
    }


VAULT = {
    "cycles": 200,
    "counters": [counters(), counters(2)],
    "vault_counters": {
        "CYCLES": 200,
        "ROW_HITS": 6,
        "ROW_MISSES": 1,
        "ROW_CONFLICTS": 3,
        "BUS_BUSY": 50,
    },
    "activity": {
        "interval_cycles": 10,
        "engines": {"pe_0": {"issued scalar": [4, 10], "stall drain": [6, 0]}},
    },
    "bandwidth": {"interval_us": 0.2, "read_gbs": [1.0, 4.0], "written_gbs": [0.0, 2.5]},
    "configuration": {"pes": 2},
    **ORIGIN,
}
CHIP = {
    "counters": [counters()] * 32,
    "network_counters": [
        {"CYCLES": 100, "EAST_FLITS": 10, "WEST_FLITS": 0, "NORTH_FLITS": 5, "SOUTH_FLITS": 0}
    ]
    * 6,
    "configuration": {"network": {"columns": 3, "rows": 2}, "tile": {"pes": 4}},
    **ORIGIN,
}
UNITS = [{"unit": "vector", "luts": 300}, {"unit": "fetch", "luts": 100}]
TRIM = {
    "areas": {"xc7": {"full": {"units": UNITS}, "trimmed": {"units": UNITS[:1]}}},
    **ORIGIN,
}
POWER = {
    "mhz": 1000.0,
    "units": [
        {"unit": "vector", "mw": 10, "clock_mw": 1, "cells_mw": 2, "nets_mw": 3, "memories_mw": 3.5,
         "leakage_mw": 0.5}
    ],
    **ORIGIN,
}  # fmt: skip

_TAKEN = {
    "kind": "Conv",
    "causes": {"ISSUED_VECTOR": 30, "STALL_ARC_CONFLICT": 50, "IDLE": 20},
    "costs": {"dram_uj": 500.0, "engines_uj": 1500.0},
}
LAYERS = {
    "layers": [
        {**_TAKEN, "name": "one", "taken": 1000, "bound": 250.0, "computing": 250.0, "use": 0.25},
        {**_TAKEN, "name": "two", "taken": 500, "bound": 500.0, "computing": 100.0, "use": 0.2},
    ],
    **ORIGIN,
}


def width(style: str) -> float:
    return float(re.findall(r"width:([\d.]+)%", style)[0])


def test_layers_are_drawn_beside_their_bounds() -> None:
    found = Marks(run_page("model", LAYERS))
    assert found.headings[:2] == ["Layers beside their bounds", "Energy by layer"]
    marks = dict(found.marks)
    assert width(marks["one, stall arc conflict: 50.0%"]) == 50
    assert width(marks["two, idle: 20.0%"]) == 10
    assert marks["one: at least 250 cycles"] == "left:25.0000%"
    assert marks["two: at least 500 cycles"] == "left:50.0000%"
    assert width(marks["two, engines: 1.5 mJ"]) == 75


def test_bars_have_the_lengths_of_the_counters() -> None:
    found = Marks(run_page("vault", VAULT))
    most = counters(2)["CYCLES"]
    for slot, engine in enumerate(VAULT["counters"]):
        marks = [(tip, style) for tip, style in found.marks if tip.startswith(f"engine {slot}, ")]
        assert len(marks) == 12
        assert sum(width(style) for _, style in marks) == pytest.approx(
            100 * engine["CYCLES"] / most, abs=0.01
        )
        assert f"engine {slot}, stall drain: {engine['STALL_DRAIN']} cycles" in marks[-2][0]
    assert found.headings == [
        "Where the cycles went",
        "Cycles over time",
        "Roofline",
        "DRAM bandwidth over time",
        "Rows of the DRAM",
        "Tables",
        "Numbers",
    ]
    assert "read: mean 2.5, most 4" in dict(found.marks)
    assert "issued scalar: mean 70, most 100" in dict(found.marks)


def test_the_roofline_has_the_place_of_each_engine() -> None:
    found = Marks(run_page("vault", VAULT))
    engine = counters()
    rate = 8 * engine["VECTOR_BUSY"] / engine["CYCLES"]
    intensity = 8 * engine["VECTOR_BUSY"] / 100
    assert any(
        tip.startswith(f"engine 0: {rate:.4g} operations per cycle of 8, {intensity:.4g} per byte")
        for tip, _ in found.marks
    )


def test_links_of_a_torus() -> None:
    found = Marks(run_page("chip", CHIP))
    tips = dict(found.marks)
    assert "rgba(220,38,38,1.000)" in tips["vault 5 to the east: 10 flits, 10.00% of the cycles"]
    assert "rgba(220,38,38,0.060)" in tips["vault 0 to the west: 0 flits, 0.00% of the cycles"]


def test_areas_before_and_after_trimming() -> None:
    text = run_page("trim", TRIM)
    assert Marks(text).headings == ["Area by unit"]
    assert "xc7: full, 400 LUTs" in text
    assert "xc7: trimmed, 300 LUTs" in text
    assert f'style="width:{100 * (300 / 400) ** 0.5:.2f}%"' in text


def test_power_by_unit() -> None:
    found = Marks(run_page("power", POWER))
    assert found.headings == ["Power by unit", "Numbers"]
    assert sum(width(style) for _, style in found.marks) == pytest.approx(100, abs=0.01)


def test_rows_of_any_command_are_tables() -> None:
    layers = [{"layer": "conv1", "ms": 1.25, "match": True}, {"layer": "fc", "extra": None}]
    text = run_page("bench", {"layers": layers, "sum": {"ms": 12345.678}, "odd": [[1], {}]})
    assert "<th>layer</th><th>ms</th><th>match</th><th>extra</th>" in text
    assert "<tr><td>conv1</td><td>1.25</td><td>yes</td><td></td></tr>" in text
    assert "<tr><td>ms</td><td>12,345.7</td></tr>" in text
    many = run_page("bench", {"layers": layers[:1] * 250})
    assert many.count("<td>conv1</td>") == 200
    assert "50 rows more" in many


@given(some.lists(some.floats(0.01, 1e6), min_size=1, max_size=40))
def test_a_treemap_fills_its_rectangle(sizes: list[float]) -> None:
    sizes.sort(reverse=True)
    places = squarified(sizes)
    for size, place in zip(sizes, places, strict=True):
        share = place.width * place.height / 10_000
        assert share == pytest.approx(size / sum(sizes), rel=1e-6, abs=1e-6)
        assert -1e-6 <= place.left <= place.left + place.width <= 100 + 1e-6
        assert -1e-6 <= place.top <= place.top + place.height <= 100 + 1e-6
    for at, one in enumerate(places):
        for other in places[:at]:
            across = min(one.left + one.width, other.left + other.width) - max(one.left, other.left)
            down = min(one.top + one.height, other.top + other.height) - max(one.top, other.top)
            assert across < 1e-6 or down < 1e-6


def spoiled(content: Any, random: Random) -> Any:
    """``content`` with another value at one place."""
    if not content or not isinstance(content, dict | list) or random.random() < 0.15:
        odd: list[Any] = [None, True, 0, -1, 1e308, 10**400, "", "<b>", [], {}, [[]], {"unit": 1}]
        return random.choice(odd)
    if isinstance(content, list):
        at = random.randrange(len(content))
        return [*content[:at], spoiled(content[at], random), *content[at + 1 :]]
    name = random.choice(list(content))
    return {**content, name: spoiled(content[name], random)}


@pytest.mark.parametrize("seed", range(200))
def test_strange_contents_make_a_page(seed: int) -> None:
    random = Random(seed)
    content = spoiled(random.choice((VAULT, CHIP, TRIM, POWER)), random)
    if isinstance(content, dict):
        Marks(run_page("strange", content))


def test_names_are_escaped() -> None:
    text = run_page("<script>x", {"<b>": "</style>", **ORIGIN})
    assert "<script>x" not in text
    assert "</style><" in text
    assert "<b>" not in text


@pytest.fixture
def result(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(VAULT))
    return path


def test_the_command(vip, result: Path) -> None:
    code, out, err = vip("report", result, "--json", "made.json")
    assert (code, err) == (0, "")
    page = result.with_suffix(".html")
    made = json.loads(Path("made.json").read_text())
    assert made["bytes"] == page.stat().st_size < 3 << 20
    assert "Roofline" in made["figures"]
    assert "http" not in page.read_text().replace("http-equiv", "")
    assert "7 figures" in out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not JSON"),
        ("[]", "not a result"),
        ('{"cycles": 3}', "not a result"),
        ('{"provenance": {"version": "0.1.9"}}', "of version 0.1.9, this is"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_result_is_refused(vip, result: Path, content: str, words: str) -> None:
    result.write_text(content)
    code, _, err = vip("report", result)
    assert code == 2
    assert re.fullmatch(rf"vip: [^\n]*run\.json: {re.escape(words)}[^\n]*\n", err)
    assert not result.with_suffix(".html").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--placements", "2"], "--placements can't be used"),
        (["--preset", "pe"], "--preset can't be used"),
        (["-o", "page.txt"], "must end in .html"),
    ],
)
def test_options_of_the_other_page(vip, result: Path, arguments: list[str], words: str) -> None:
    code, _, err = vip("report", result, *arguments)
    assert code == 2
    assert words in err


def test_the_page_shows_the_command_and_its_picture(tmp_path: Path) -> None:
    (tmp_path / "depth.png").write_bytes(b"PNG")
    origin = {"version": "1", "command": "vip cosim bp --json bp.json", "tools": {"numpy": "2"}}
    content = {"picture": "depth.png", "match": True, "provenance": origin}
    text = run_page("bp", content, tmp_path)
    assert "<pre>vip cosim bp --json bp.json</pre>" in text
    assert 'src="data:image/png;base64,UE5H"' in text
    assert "<footer>version 1, numpy 2</footer>" in text
    (tmp_path / "depth.png").unlink()
    assert "<img" not in run_page("bp", content, tmp_path)


def test_every_figure_has_its_result(tmp_path: Path) -> None:
    image = tmp_path / "depth.svg"
    image.write_text("<svg/>")
    results = (VAULT, CHIP, TRIM, POWER, LAYERS, {"picture": str(image)})
    drawn = {draw for content in results for draw in FIGURES if draw(content)}
    assert drawn == set(FIGURES)


@pytest.mark.slow
@pytest.mark.browser
@needs_chromium
@pytest.mark.parametrize("size", [(1200, 900), (390, 844)], ids=["desktop", "phone"])
@pytest.mark.parametrize("kind", ["vault", "chip", "trim", "power"])
def test_in_a_browser(tmp_path: Path, kind: str, size: tuple[int, int]) -> None:
    content = {"vault": VAULT, "chip": CHIP, "trim": TRIM, "power": POWER}[kind]
    source, page = tmp_path / "run.json", tmp_path / "run.html"
    source.write_text(json.dumps(content))
    api.report_run(source, page)
    with Browser() as browser:
        browser.open(page, *size)
        assert browser.value("document.documentElement.scrollWidth") <= size[0]
        # The keyboard reaches each mark, whose text is shown.
        for _ in range(40):
            browser.press("Tab")
            if browser.value("'tip' in document.activeElement.dataset"):
                break
        shown = "document.getElementById('tip').textContent"
        assert browser.value(shown) == browser.value("document.activeElement.dataset.tip")
        browser.press("Escape")
        assert browser.value("document.getElementById('tip').style.visibility") == "hidden"
        if browser.value("document.querySelector('.legend button') !== null"):
            visible = (
                "[...document.querySelectorAll('section [data-tip][data-series]')]"
                ".filter(mark => mark.getBoundingClientRect().width).length"
            )
            before = browser.value(visible)
            browser.value("document.querySelector('.legend button').focus()")
            browser.press("Enter")
            assert browser.value(visible) < before
            browser.press("Enter")
            assert browser.value(visible) == before
        browser.screenshot(tmp_path / "page.png")
        assert (tmp_path / "page.png").stat().st_size > 10_000
        assert browser.printed().startswith(b"%PDF")
        assert browser.errors == []
