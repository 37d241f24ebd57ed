"""The list of presets: what each is, where its areas come from, and what it fits."""

import json
import re
from html import unescape
from types import SimpleNamespace

import pytest

from soc.generate.presets import PRESETS
from synth.physical.chip_area import design_area
from synth.physical.devices import FILL, find_device
from vip.cli.console import console
from vip.preset_list import MEASURED, PresetList, figure_name, presets


def areas(luts):
    """Areas of something with so many lookup tables, and little else."""
    cells = {"luts": luts, "ffs": 1.0, "dsps": 1.0, "brams": 1.0}
    return {"generic": {"logic_ge": 3 * luts, "sram_bits": 8.0}, "xc7": cells, "ecp5": cells}


def record(luts):
    results = {
        figure_name(preset, target, measure): {"value": areas(luts)[target][measure]}
        for preset in PRESETS
        for target, measures in MEASURED.items()
        for measure in measures
    }
    return {"results": results, "provenance": {"commit": "abc"}}


def test_rows_say_what_the_configurations_are():
    rows = PresetList(areas={}, origin="").to_json()["presets"]
    assert list(rows) == list(PRESETS)
    unknown = {"areas": None, "fits": None}
    assert rows["pe"] == unknown | {
        "kind": "engine",
        "engines": 1,
        "vaults": 0,
        "ports": "memory, control",
        "memory_bytes": 1 << 33,
    }
    assert (rows["vault"]["engines"], rows["vault"]["memory_bytes"]) == (4, 256 << 20)
    fpga, thesis = rows["fpga"], rows["thesis"]
    assert (fpga["engines"], fpga["vaults"]) == (8, 4)
    assert fpga["ports"] == "AXI4-Lite control, AXI4 data, 4 AXI4 (64 bit)"
    assert (thesis["engines"], thesis["vaults"], thesis["memory_bytes"]) == (128, 32, 8 << 30)


def test_a_preset_fits_where_no_resource_is_filled_too_far():
    limit = 0.7 * find_device("ecp5-45k").capacity["luts"]
    assert FILL["luts"] == 0.7
    found = PresetList(areas={"pe": areas(limit)}, origin="")
    amd = ("xc7a100t", "xc7a200t", "xc7z020", "xczu3eg", "xc7k325t", "xc7vx690t")
    assert found.fits("pe") == (*amd, "ecp5-45k", "ecp5-85k")
    assert found.fitting("ecp5-45k") == ["pe"]
    found = PresetList(areas={"pe": areas(limit + 1)}, origin="")
    assert found.fits("pe") == (*amd, "ecp5-85k")
    assert not found.fitting("ecp5-45k")
    many = areas(1.0)
    many["ecp5"] = {**many["ecp5"], "dsps": 1000.0}
    assert PresetList(areas={"pe": many}, origin="").fits("pe") == ("xc7a35t", *amd)


def test_records_are_read_and_incomplete_ones_leave_presets_out(tmp_path):
    path = tmp_path / "presets.json"
    assert presets(path).origin.startswith("no record")
    assert not presets(path).areas
    content = record(100.0)
    path.write_text(json.dumps(content))
    found = presets(path)
    assert found.origin == "recorded at commit abc"
    assert found.areas["vault-axi"] == areas(100.0)
    del content["results"][figure_name("tiny", "ecp5", "brams")]
    path.write_text(json.dumps(content))
    assert set(PRESETS) - set(presets(path).areas) == {"tiny"}
    path.write_text("[]")
    assert presets(path).origin.startswith("no record")


def test_the_record_of_the_checkout_has_all_presets():
    assert set(presets().areas) == set(PRESETS)


@pytest.mark.parametrize("there", [False, True])
def test_the_command_says_where_areas_come_from(vip, tmp_path, monkeypatch, there):
    path = tmp_path / "presets.json"
    if there:
        path.write_text(json.dumps(record(90_000.0)))
    monkeypatch.setattr("vip.presets", lambda: presets(path))
    # The console took its width when it was made.
    monkeypatch.setattr(console, "width", 200)
    code, text, _ = vip("presets", "--json", "out.json")
    assert code == 0
    assert all(f"\n{name} " in text for name in PRESETS)
    report = json.loads((tmp_path / "out.json").read_text())
    assert set(report["presets"]) == set(PRESETS)
    if there:
        assert "recorded at commit abc" in text
        assert "90,000" in text
        assert report["presets"]["fpga"]["fits"] == ["xc7a200t", "xc7k325t", "xc7vx690t"]
    else:
        assert "vip bench presets" in text
        assert report["presets"]["fpga"]["areas"] is None
        assert "recorded" not in text


def test_area_of_a_vault_is_that_of_its_engines_and_its_memory(monkeypatch):
    from synth.physical import chip_area
    from synth.physical.area import AreaRow

    one = AreaRow("total", {"luts": 10.0}, {})
    rest = AreaRow("memory", {"luts": 7.0}, {})
    monkeypatch.setattr(chip_area, "synthesise", lambda *_, **__: SimpleNamespace(total=one))
    monkeypatch.setattr(chip_area, "parts_area", lambda *_: (rest,))
    assert design_area(PRESETS["pe"], "xc7").values == {"luts": 10.0}
    assert design_area(PRESETS["vault"], "xc7").values == {"luts": 47.0}
    assert design_area(PRESETS["vault-small"], "xc7").values == {"luts": 27.0}


def test_the_table_of_a_notebook_has_the_cells_of_the_command(vip):
    html = unescape(presets()._repr_html_())
    (rows,) = re.findall("<table><caption[^>]*>presets</caption>(.*?)</table>", html)
    table = [re.findall("<td[^>]*>(.*?)</td>", row) for row in rows.split("<tr>")[1:]]
    assert table[0] == ["", "machine", "memory", "kGE", "LUTs xc7", "LUTs ecp5", "ports", "fits"]
    assert [row[0] for row in table[1:]] == list(PRESETS)
    shown = vip("presets")[1]
    for name, *_, xc7, ecp5, _, _ in table[1:]:
        assert re.search(rf"^{name} .* {re.escape(xc7)} +{re.escape(ecp5)}$", shown, re.MULTILINE)
