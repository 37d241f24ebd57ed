"""Liberty files, good and bad, and static timing against sums made by hand."""

from pathlib import Path

import pytest

from hdl.sram_macro import SramGeometry
from soc.generate.presets import preset
from synth.errors import SynthesisError
from synth.netlist import Gate, Netlist, join
from synth.physical import asic
from synth.physical.area import synthesise
from synth.sram import SramTimes
from synth.timing.cell_library import (
    CellLibrary,
    LibertyError,
    TimingTable,
    parse_library,
    read_library,
)
from synth.timing.sta import longest_path, longest_paths, net_states, shortest_path
from synth.timing.timer import CLOCK_SLEW_NS
from tests.synth.small_library import LIBRARY
from vip.synthesis.clocks import timing


@pytest.fixture
def library() -> CellLibrary:
    return parse_library(LIBRARY)


def test_library_is_read(library: CellLibrary) -> None:
    assert library.timed
    assert library.gate_um2 == 0.8
    assert library.flip_flops() == {"DFF"}
    assert library.cells["INV"].pins["A"].capacitance == 1.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no library"),
        ("library (a) { }", "library a has no cells"),
        ("library (a) {\n cell (b) {\n area : 1;\n", "line 4: .*expected, not the end of the file"),
        ("library (a) {\n cell b { } }", r"line 2: '\(' expected, not 'b'"),
        ("module a(); endmodule", "expected"),
        ("library (a) { cell (b) { area : large; } }", "area of cell b: 'large' is not a number"),
        ('library (a) { time_unit : "1h"; cell (b) { area : 1; } }', "time_unit '1h'"),
    ],
)
def test_bad_liberty_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(LibertyError, match=message):
        parse_library(text)
    path = tmp_path / "bad.lib"
    path.write_text(text)
    with pytest.raises(SynthesisError, match=r"bad\.lib: ") as error:
        synthesise(preset("pe-small"), f"liberty:{path}", ["fetch"])
    assert "\n" not in str(error.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LibertyError, match=r"can't read .*none\.lib: No such file"):
        read_library(tmp_path / "none.lib")


TABLES = """library (a) { time_unit : "1ps"; capacitive_load_unit (1, pf);
  lu_table_template (usual) { variable_1 : input_net_transition;
    variable_2 : total_output_net_capacitance; index_1 ("1, 2"); index_2 ("3, 4, 5"); }
  lu_table_template (other) { variable_1 : total_output_net_capacitance;
    variable_2 : input_net_transition; index_1 ("3, 4, 5"); index_2 ("1, 2"); }
  lu_table_template (load) { variable_1 : total_output_net_capacitance; index_1 ("3, 4"); }
  lu_table_template (check) { variable_1 : related_pin_transition;
    variable_2 : constrained_pin_transition; index_1 ("6, 7"); index_2 ("1, 2"); }
  lu_table_template (odd) { variable_1 : output_net_length; index_1 ("3, 4"); }
  cell (b) { area : 1; pin (Y) { direction : output; timing () { related_pin : "A";
    KIND (NAME) { values (VALUES); } } } } }
"""


def _table(kind: str, name: str, values: str) -> TimingTable:
    words = {"KIND": kind, "NAME": name, "VALUES": values}
    text = TABLES
    for word, now in words.items():
        text = text.replace(word, now)
    return parse_library(text).cells["b"].pins["Y"].arcs[0].tables[kind]


def test_tables_are_over_what_their_template_says() -> None:
    # Times in ns and loads in fF.
    usual = _table("cell_rise", "usual", '"10, 20, 30", "40, 50, 60"')
    assert usual.rows == (0.001, 0.002)
    assert usual.columns == (3000, 4000, 5000)
    assert usual == _table("cell_rise", "other", '"10, 40", "20, 50", "30, 60"')
    load = _table("cell_rise", "load", '"10, 20"')
    assert (load.rows, load.columns, load.values) == ((0.0,), (3000, 4000), (0.010, 0.020))
    check = _table("rise_constraint", "check", '"10, 20", "30, 40"')
    # By the time of the data's edge first.
    assert (check.rows, check.columns) == ((0.001, 0.002), (0.006, 0.007))
    assert check.at(0.002, 0.006) == pytest.approx(0.020)
    with pytest.raises(
        LibertyError, match="cell b, pin Y: table cell_rise is over output_net_length"
    ):
        _table("cell_rise", "odd", '"10, 20"')


def test_table_between_and_beyond_its_points() -> None:
    table = TimingTable((0.0, 1.0), (0.0, 10.0), (1.0, 2.0, 3.0, 6.0))
    assert table.at(0.5, 5.0) == pytest.approx(3.0)
    assert table.at(0.0, 20.0) == pytest.approx(3.0)
    assert TimingTable((0.0,), (0.0,), (0.4,)).at(9, 9) == 0.4


def test_longest_path_is_the_sum_of_its_cells(library: CellLibrary) -> None:
    gates = (
        Gate("first", "DFF", "one", {"C": (0,), "D": (9,), "Q": (1,)}),
        Gate("turn", "INV", "one", {"A": (1,), "Y": (2,)}),
        Gate("join", "NAND2", "two", {"A": (1,), "B": (2,), "Y": (3,)}),
        Gate("last", "DFF", "two", {"C": (0,), "D": (3,), "Q": (4,)}),
    )
    paths = longest_paths(Netlist({"d": (9,)}, {"q": (4,)}, gates), library, SramTimes(45.0))
    # Q rises 0.08, Y falls 0.20, NAND rises 0.40, setup 0.05; the other edge is shorter.
    assert paths["two"].ns == pytest.approx(0.73)
    assert [gate.name for gate, _ in paths["two"].steps] == ["first", "turn", "join", "last"]
    assert paths["two"].by_unit() == (("one", 0.28), ("two", 0.45))
    assert paths["two"].fmax_mhz == pytest.approx(1369.9)
    # The input comes from a flip-flop, falling latest: 0.09 and 0.07.
    assert paths["one"].ns == pytest.approx(0.16)
    assert paths["output"].ns == pytest.approx(0.16)


def test_shortest_path_leaves_the_least_after_its_hold_time(library: CellLibrary) -> None:
    gates = (
        Gate("first", "DFF", "one", {"C": (0,), "D": (9,), "Q": (1,)}),
        Gate("turn", "INV", "two", {"A": (1,), "Y": (2,)}),
        Gate("last", "DFF", "two", {"C": (0,), "D": (2,), "Q": (4,)}),
    )
    # The input rises 0.08, hold 0.02; an inverter has no part in it.
    path = shortest_path(Netlist({"d": (9,)}, {}, gates), library, SramTimes(45.0))
    assert path.ns == pytest.approx(0.06)
    assert [(gate.name, ns) for gate, ns in path.steps] == [("d", 0.08), ("first", 0.06)]
    # Without it: Q falls 0.09, Y rises 0.10, hold 0.02.
    path = shortest_path(Netlist({}, {}, gates), library, SramTimes(45.0))
    assert path.ns == pytest.approx(0.17)
    assert path.by_unit() == (("one", 0.09), ("two", 0.08))
    assert shortest_path(Netlist({}, {}, gates[1:2]), library, SramTimes(45.0)).ns == 0


def test_a_pin_loads_each_edge_by_its_own() -> None:
    loads = "capacitance : 1.5; rise_capacitance : 1.0; fall_capacitance : 3.0;"
    slow = LIBRARY.replace("capacitance : 1.5;", loads)
    # The flip-flop's delays grow with the load: 1 fF takes 0.01 ns.
    table = '(by_load) { index_1 ("0, 100"); values ("0, 1"); }'
    for edge, ns in (("rise", "0.08"), ("fall", "0.09")):
        slow = slow.replace(f'cell_{edge} (scalar) {{ values ("{ns}"); }}', f"cell_{edge} {table}")
    template = "lu_table_template (by_load) { variable_1 : total_output_net_capacitance; }"
    library = parse_library(slow.replace("cell (INV)", f"{template} cell (INV)"))
    gates = (
        Gate("first", "DFF", "one", {"C": (0,), "D": (9,), "Q": (1,)}),
        Gate("turn", "INV", "one", {"A": (1,), "Y": (2,)}),
        Gate("last", "DFF", "one", {"C": (0,), "D": (2,), "Q": (4,)}),
    )
    netlist = Netlist({"d": (9,)}, {}, gates)
    # Q falls after 0.03, Y rises 0.10 later, setup 0.05; or 0.01, 0.20 and 0.07.
    assert longest_path(netlist, library).ns == pytest.approx(0.01 + 0.20 + 0.07)
    states = net_states(netlist, library, SramTimes(45.0), library.wires)
    assert states[1].load == pytest.approx(2.0)


def test_steep_edges_stay_steep(library: CellLibrary) -> None:
    gates = (
        Gate("first", "DFF", "one", {"C": (0,), "D": (9,), "Q": (1,)}),
        Gate("turn", "INV", "one", {"A": (1,), "Y": (2,)}),
    )
    netlist = Netlist({"d": (9,)}, {"q": (2,)}, gates)
    states = net_states(netlist, library, SramTimes(45.0), library.wires)
    # By the tables; not the clock's slew, which is larger.
    assert states[1].slew == pytest.approx(0.01)
    assert states[2].slew == pytest.approx(0.01)
    assert CLOCK_SLEW_NS > 0.01


def test_loops_and_unknown_cells_are_refused(library: CellLibrary) -> None:
    loop = (
        Gate("a", "INV", "u", {"A": (1,), "Y": (2,)}),
        Gate("b", "INV", "u", {"A": (2,), "Y": (1,)}),
    )
    with pytest.raises(SynthesisError, match="gates form a combinational loop: "):
        longest_paths(Netlist({}, {}, loop), library, SramTimes(45.0))
    with pytest.raises(SynthesisError, match="cell x of type MUX9 is not in the library"):
        longest_paths(Netlist({}, {}, (Gate("x", "MUX9", "u", {}),)), library, SramTimes(45.0))


def test_join_follows_nets_through_modules() -> None:
    inner = {
        "ports": {
            "i": {"direction": "input", "bits": [2]},
            "o": {"direction": "output", "bits": [2]},
        },
        "cells": {},
    }
    outer = {
        "ports": {
            "a": {"direction": "input", "bits": [2]},
            "y": {"direction": "output", "bits": [4]},
        },
        "cells": {
            "through": {"type": "inner", "connections": {"i": [2], "o": [3]}},
            "gate": {"type": "INV", "connections": {"A": [3], "Y": [4]}},
        },
    }
    joined = join("outer", {"inner": inner, "outer": outer}.get, lambda name: name)
    (gate,) = joined.gates
    assert gate.pins["A"] == joined.inputs["a"]
    assert gate.pins["Y"] == joined.outputs["y"] != joined.inputs["a"]


def test_memory_access_time_of_the_thesis() -> None:
    bank = SramGeometry(512, 8, 3, 2)
    assert SramTimes(28.0).access_ns(bank) == pytest.approx(0.19, abs=0.005)
    assert SramTimes(56.0).access_ns(bank) == pytest.approx(2 * SramTimes(28.0).access_ns(bank))
    assert SramTimes(28.0).access_ns(SramGeometry(1024, 8, 3, 2)) > SramTimes(28.0).access_ns(bank)
    assert 0 < SramTimes(28.0).setup_ns(bank) < SramTimes(28.0).access_ns(bank)


def test_unit_in_nangate45(no_results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asic, "_RECIPES", asic._RECIPES[:1])
    report = synthesise(preset("pe-small"), "nangate45", ["fetch"])
    values = report.total.values
    assert values["ffs"] == 19
    (row,) = report.rows
    assert row.values["fmax_mhz"] > 800
    assert "fetch" in [unit for unit, _ in row.path]
    assert values["area_um2"] > values["sram_um2"] > 0


@pytest.mark.slow
def test_whole_engine_reaches_its_clock_in_nangate45() -> None:
    netlist = timing("pe")
    assert netlist.corners[0].wires.fmax_mhz >= 1000
    assert netlist.logic_ge <= 70_000
    report = synthesise(preset("pe"), "nangate45")
    assert report.total.values["logic_ge"] == pytest.approx(netlist.logic_ge, abs=1)
    assert report.total.path
