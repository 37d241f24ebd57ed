"""``vip fit``: engines, trimmed to programs, counted against devices."""

import json
import re
from collections import Counter
from types import SimpleNamespace

import pytest

import vip.trimming.devices as module
from hdl.yosys import run_yosys
from soc.generate.presets import PRESETS, preset
from support.extras import MissingExtraError
from synth.physical.devices import DEVICES, find_device
from vip.cli.commands.fit import _show
from vip.trimming.devices import DeviceFit, fit_devices

ONE = {"luts": 4_000.0, "ffs": 2_000.0, "dsps": 4.0, "brams": 16.5}
SMALL = preset("pe-small")


def fit_of(name, *, needed=ONE, engines=1):
    return DeviceFit(
        device=find_device(name), engines_each=engines, needed=needed, placed=None, unplaced="no"
    )


@pytest.mark.parametrize(
    ("name", "engines", "limit"),
    [
        # 40 of 50 block RAMs, 44,380 of 63,400 lookup tables, 108 of 135 block RAMs.
        ("xc7a35t", 2, "brams"),
        ("xc7a100t", 6, "brams"),
        ("xc7vx690t", 71, "brams"),
        ("ecp5-25k", 2, "brams"),
    ],
)
def test_the_scarcest_resource_limits_the_engines(name, engines, limit):
    found = fit_of(name)
    assert (found.engines, found.limit) == (engines, limit)
    usable = found.device.most(limit)
    assert engines * ONE[limit] <= usable < (engines + 1) * ONE[limit]


@pytest.mark.parametrize(("name", "hint"), [("xc7a35t", True), ("ecp5-25k", False)])
def test_the_limit_of_block_ram_is_explained(capsys, name, hint):
    _show("dot.s", (fit_of(name),))
    text = " ".join(capsys.readouterr().out.split())
    assert ("memories above 64 words take block RAM" in text) == hint
    assert "per engine, mapped as one netlist; vip trim adds up units" in text


def test_what_does_not_fit_is_none_and_says_why():
    found = fit_of("ecp5-25k", needed={**ONE, "luts": 17_002})
    assert (found.engines, found.limit) == (0, "luts")
    assert fit_of("ecp5-25k", needed={**ONE, "luts": 17_001}).engines == 1


def test_vaults_count_with_all_of_their_engines():
    found = fit_of("xc7a100t", engines=4)
    assert (found.copies, found.engines) == (6, 24)


def test_a_model_is_counted_on_a_device_too(vip, tmp_path):
    """It gets as far as its folder; vip trim, whose --device builds a chip, refuses it."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "manifest.json").write_text("no JSON")
    code, _, error = vip("fit", "model", "--device", "xc7a35t")
    assert code == 2
    assert "manifest.json: no manifest" in error
    code, _, error = vip("trim", "model", "--device", "xc7a35t", "-o", "out")
    assert code == 2
    assert "--device is for programs, not for a model" in error


def test_a_clock_is_assumed_only_where_nothing_places():
    assert fit_of("xc7a100t").to_json()["mhz_is"] == "assumed"
    assert fit_of("ecp5-25k").to_json()["mhz_is"] == "unknown"
    assert fit_of("ecp5-25k").mhz is None


@pytest.fixture
def trimmed(monkeypatch):
    """A result whose engine is small, and takes :data:`ONE`."""
    monkeypatch.setattr(module, "_area", lambda *_: ONE)
    return SimpleNamespace(vault=None, cut=SimpleNamespace(trimmed=SMALL))


def test_one_engine_is_placed_and_the_design_counts(trimmed, monkeypatch):
    monkeypatch.setattr(module, "need_nextpnr", lambda: None)
    placed = SimpleNamespace(fmax_mhz=61.5, to_json=lambda: {"copies_that_fit": 6, "luts": 1})
    monkeypatch.setattr(module, "place", lambda *_, **__: placed)
    first, second = fit_devices(trimmed, [DEVICES["xc7a35t"], DEVICES["ecp5-25k"]], placements=2)
    assert (first.needed, first.placed) == (ONE, None)
    assert (second.needed, second.mhz, second.unplaced) == (ONE, 61.5, "")
    assert second.to_json()["placement"] == {"luts": 1}, "one number of copies, with room"
    (vaults,) = fit_devices(
        SimpleNamespace(vault=PRESETS["vault-small"], cut=trimmed.cut),
        [DEVICES["ecp5-25k"]],
        placements=1,
    )
    assert (vaults.needed, vaults.engines_each) == (ONE, 2)


def test_what_is_not_placed_says_why(trimmed, monkeypatch):
    def absent():
        raise MissingExtraError("placements need it: pip install '.[pnr]'")

    monkeypatch.setattr(module, "need_nextpnr", absent)
    monkeypatch.setattr(module, "place", None)
    (found,) = fit_devices(trimmed, [DEVICES["ecp5-85k"]], placements=1)
    assert found.unplaced == "placements need it: pip install '.[pnr]'"
    (found,) = fit_devices(trimmed, [DEVICES["ecp5-85k"]])
    assert found.unplaced == "no placement was requested (--placements)"
    monkeypatch.setitem(ONE, "luts", 30_000.0)
    (found,) = fit_devices(trimmed, [DEVICES["ecp5-25k"]], placements=1)
    assert found.unplaced == "the design does not fit ecp5-25k"


def test_the_command_counts_what_yosys_makes_of_the_trimmed_verilog(vip, tmp_path):
    (tmp_path / "k.s").write_text("mov r1, #42\nst.reg [64-bit] r5, r1\nhalt\n")
    small = ("k.s", "--preset", "pe-small", "--no-check")
    code, text, _ = vip("fit", *small, "--device", "xc7a35t", "--json", "fit.json")
    assert code == 0
    assert re.search(r"xc7a35t +\d+ +luts", text)
    report = json.loads((tmp_path / "fit.json").read_text())["devices"]["xc7a35t"]
    assert vip("trim", *small, "--no-area", "-o", "trimmed")[0] == 0
    # With the memories of FPGAs, which have the read address in a register, not the words.
    content = json.loads((tmp_path / "trimmed/vip.json").read_text())
    content["configuration"]["sram"] = "fpga"
    (tmp_path / "fpga.json").write_text(json.dumps(content))
    assert vip("generate", "--config", "fpga.json", "-o", "fpga")[0] == 0
    commands = [
        "read_verilog fpga/rtl/*.v",
        "synth_xilinx -family xc7 -top pe -flatten -noiopad -noclkbuf",
        "tee -o cells.json stat -json",
    ]
    run_yosys(commands, purpose="count", folder=tmp_path)
    said = (tmp_path / "cells.json").read_text()
    cells = Counter(json.loads(said[said.index("{") :])["design"]["num_cells_by_type"])
    luts = sum(number for kind, number in cells.items() if kind.startswith(("LUT", "INV")))
    assert report["needed"]["luts"] == pytest.approx(luts + 4 * cells["RAM32M"], rel=0.05)
    assert report["needed"]["ffs"] == pytest.approx(cells["FDRE"] + cells["FDSE"], abs=1)
    assert report["needed"]["ffs"] > 100
    assert report["engines"] == int(0.7 * 20_800 // report["needed"]["luts"])
