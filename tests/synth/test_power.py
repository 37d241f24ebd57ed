"""Activity and power of small netlists against sums made by hand."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out

from hdl.clock_gate import needs_clock
from hdl.component import Component
from hdl.counter_bank import CounterBank
from hdl.emission import emit
from hdl.priority import set_flags
from hdl.sram_macro import SramGeometry, macro_stub
from synth.errors import SynthesisError
from synth.netlist import Gate, Netlist
from synth.physical.mapping import unit_netlist
from synth.physical.targets import find_cells, find_target
from synth.physical.yosys import CellCount, Run, run
from synth.power.gate_sim import GateSimulation
from synth.power.power import FANOUT, clock_tree, measure_power
from synth.sram import PUBLISHED, access_fj
from synth.timing.cell_library import CellLibrary, WireLoad, parse_library
from synth.timing.gate_function import FunctionError, truth_table
from tests.synth.small_library import recorded


def _power(name: str, rise: float, fall: float, related: str = "", when: str = "") -> str:
    related = f'related_pin : "{related}"; ' if related else ""
    when = f'when : "{when}"; ' if when else ""
    tables = f'rise_power (scalar) {{ values ("{rise}"); }} '
    tables += f'fall_power (scalar) {{ values ("{fall}"); }}'
    return f"internal_power () {{ {related}{when}{tables} }} /* {name} */"


def _delay(pin: str, kind: str = "") -> str:
    tables = " ".join(
        f'{name} (scalar) {{ values ("0.1"); }}'
        for name in ("cell_rise", "cell_fall", "rise_transition", "fall_transition")
    )
    return f'timing () {{ related_pin : "{pin}"; {kind} timing_sense : non_unate; {tables} }}'


LIBRARY = f"""library (tiny) {{
  time_unit : "1ns"; capacitive_load_unit (1, ff); nom_voltage : 2.0;
  leakage_power_unit : "1nW"; default_wire_load : "small";
  wire_load ("small") {{ capacitance : 0.5; slope : 4.0;
    fanout_length (1, 2.0); fanout_length (3, 6.0); }}
  cell (NAND2) {{ area : 1.0; cell_leakage_power : 9.0;
    leakage_power () {{ when : "A & B"; value : 5.0; }}
    leakage_power () {{ when : "!(A & B)"; value : 1.0; }}
    pin (A) {{ direction : input; capacitance : 1.0; }}
    pin (B) {{ direction : input; capacitance : 1.0; }}
    pin (Y) {{ direction : output; function : "!(A B)"; {_delay("A")} {_delay("B")}
      {_power("a", 2.0, 4.0, "A")} {_power("b", 10.0, 20.0, "B")} }} }}
  cell (BUF) {{ area : 1.5; cell_leakage_power : 7.0;
    pin (A) {{ direction : input; capacitance : 1.0; }}
    pin (Y) {{ direction : output; function : "A"; max_capacitance : 100.0; {_delay("A")}
      {_power("y", 1.0, 2.0, "A")} }} }}
  cell (DFF) {{ area : 4.0; cell_leakage_power : 3.0;
    ff (IQ, IQN) {{ next_state : "D"; clocked_on : "C"; }}
    pin (C) {{ direction : input; clock : true; capacitance : 1.0;
      {_power("equal", 1.0, 3.0, when="D & Q | !D & !Q")}
      {_power("other", 0.0, 5.0, when="D & !Q | !D & Q")} }}
    pin (D) {{ direction : input; capacitance : 1.0; {_power("low", 100.0, 100.0, when="!C")}
      {_power("high", 0.5, 0.5, when="C")} }}
    pin (Q) {{ direction : output; function : "IQ"; {_delay("C", "timing_type : rising_edge;")}
      {_power("q", 6.0, 8.0, "C")} }} }}
  cell (GATE) {{ area : 3.0; clock_gating_integrated_cell : "latch_posedge";
    pin (CK) {{ direction : input; clock_gate_clock_pin : true; capacitance : 1.0; }}
    pin (E) {{ direction : input; capacitance : 1.0; }}
    pin (G) {{ direction : output; {_power("g", 1.0, 2.0, "CK")} }} }}
  cell (LATCH) {{ area : 3.0; latch (IQ, IQN) {{ enable : "C"; data_in : "D"; }}
    pin (C) {{ direction : input; clock : true; }} pin (D) {{ direction : input; }}
    pin (Q) {{ direction : output; function : "IQ"; }} }}
}}
"""


@pytest.fixture(scope="module")
def library() -> CellLibrary:
    return parse_library(LIBRARY)


@pytest.mark.parametrize(
    ("function", "table"),
    [
        ("!(A & B)", 0b0111),
        ("A B' + !A*B", 0b0110),
        ("(A ^ B) | 0", 0b0110),
        ("(A + B)'", 0b0001),
        ("1", 0b1111),
    ],
)
def test_functions(function: str, table: int) -> None:
    assert truth_table(function, ("A", "B")) == table


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("A &", "not a boolean function"),
        ("A & Z", "Z is not one of A, B"),
        ("A ? B", "not a boolean"),
    ],
)
def test_bad_functions_are_one_line(function: str, message: str) -> None:
    with pytest.raises(FunctionError, match=message) as error:
        truth_table(function, ("A", "B"))
    assert "\n" not in str(error.value)


def test_too_many_inputs_are_refused() -> None:
    with pytest.raises(FunctionError, match="7 inputs, at most 6"):
        truth_table("a", tuple("abcdefg"))


def test_wire_loads_between_and_beyond_the_points(library: CellLibrary) -> None:
    wires = library.wires
    assert [wires.load(pins) for pins in (0, 1, 2, 3, 5)] == [0, 1.0, 2.0, 3.0, 7.0]
    assert WireLoad().load(4) == 0


#: q <= !(a & q) after a flip-flop; q is an output.
_TOGGLER = Netlist(
    inputs={"a": (1,)},
    outputs={"q": (3,)},
    gates=(
        Gate("n", "NAND2", "logic", {"A": (1,), "B": (3,), "Y": (2,)}),
        Gate("f", "DFF", "state", {"C": (0,), "D": (2,), "Q": (3,)}),
    ),
    trees={"clk": (0,)},
)


def _toggler(a: Sequence[int]) -> tuple[list[int], list[int]]:
    """Values of q and of the NAND gate's output in each cycle."""
    q, found, outputs = 0, [], []
    for value in a:
        found.append(q)
        outputs.append(1 - (value & q))
        q = outputs[-1]
    return found, outputs


def test_power_of_two_runs_is_that_of_their_cycles(library: CellLibrary) -> None:
    runs = []
    for a in ([1, 1, 0, 1, 1, 1, 0, 0, 1, 1], [1, 0, 0, 0, 0, 1]):
        q, _ = _toggler(a)
        cycles = len(a)
        runs.append(recorded({"a": a, "rst": [0] * cycles}, {"q": q}, (2, cycles)))
    one, other, both = (
        measure_power(_TOGGLER, library, recordings, what="it").total
        for recordings in (runs[:1], runs[1:], runs)
    )
    for part in ("clock", "cells", "nets"):
        energy = 8 * getattr(one, part) + 4 * getattr(other, part)
        assert getattr(both, part) == pytest.approx(energy / 12)
    assert one.cells != other.cells
    # Leakage is that of the states, in the mean over all cycles.
    assert both.leakage == pytest.approx((8 * one.leakage + 4 * other.leakage) / 12)


def test_activity_is_counted(library: CellLibrary) -> None:
    a = [1, 1, 0, 1, 1, 1, 0, 0, 1, 1]
    q, n = _toggler(a)
    recording = recorded({"a": a, "rst": []} | {"rst": [0] * 10}, {"q": q}, (2, 10))
    activity = GateSimulation(_TOGGLER, library).run(recording, what="it")

    def edges(values: Sequence[int]) -> int:
        return int(np.abs(np.diff(values[1:])).sum())

    assert activity.cycles == 8
    assert [int(activity.toggles[net]) for net in (1, 2, 3)] == [edges(a), edges(n), edges(q)]
    nand, flip_flop = activity.cells
    assert nand is not None
    assert flip_flop is not None
    states = [0] * 4
    for x, y in list(zip(a, q, strict=True))[2:]:
        states[x + 2 * y] += 1
    assert nand.states.tolist() == states
    assert sum(nand.causes["Y"]) == edges(n)
    assert flip_flop.inputs == ("D", "IQ")
    assert flip_flop.causes["Q"].tolist() == [0, edges(q)]


def test_power_is_the_sum_of_its_parts(library: CellLibrary) -> None:
    cycles = 12
    a = [1] * cycles
    q, _ = _toggler(a)
    recording = recorded({"a": a, "rst": [0] * cycles}, {"q": q}, (2, cycles), edge=5)
    report = measure_power(_TOGGLER, library, [recording], what="it")
    rows = {row.unit: row for row in report.rows}
    # Each cycle both nets change; half of the edges rise. All of the gate's come from B: 15 fJ.
    assert rows["logic"].cells == pytest.approx(15.0)
    # D of the flip-flop and 1 fF of wire, at 2 V: 1/2 * 2 * 4.
    assert rows["logic"].nets == pytest.approx(4.0)
    # Input B, the output's flip-flop, and the wire of two pins.
    assert rows["state"].nets == pytest.approx(8.0)
    # Q 7 fJ; D, settled while the clock is high, 0.5 fJ.
    assert rows["state"].cells == pytest.approx(7.5)
    # The clock's pin 4 fJ; D always differs from Q: rise 0 and fall 5 fJ. No tree to one pin.
    assert rows["state"].clock == pytest.approx(9.0)
    # A is always 1 and B half of the time.
    assert rows["logic"].leakage == pytest.approx(3.0)
    assert rows["state"].leakage == pytest.approx(3.0)
    assert report.total.dynamic == pytest.approx(43.5)
    assert report.total.milliwatts(1000) == pytest.approx(43.5e-3 + 6e-6)
    assert report.energy_pj("edge", 1000) == pytest.approx((43.5e-3 + 6e-6) * 10 / 5)
    data = report.to_json()
    assert data["clock_mw"] == pytest.approx(0.009)
    # Its clock is not known.
    assert data["at_fmax"] is None
    assert repr(report).startswith("PowerReport: ")
    assert [row["unit"] for row in data["units"]] == ["state", "logic"]


def test_gated_clocks_hold_flip_flops(library: CellLibrary) -> None:
    netlist = Netlist(
        inputs={"e": (1,), "d": (2,)},
        outputs={"q": (3,)},
        gates=(
            Gate("g", "GATE", "u", {"CK": (0,), "E": (1,), "G": (4,)}),
            Gate("f", "DFF", "u", {"C": (4,), "D": (2,), "Q": (3,)}),
        ),
        trees={"clk": (0,)},
    )
    enable, data = [1, 0, 0, 1, 0, 1, 1, 0], [1, 0, 1, 0, 1, 1, 0, 1]
    q = [0]
    for e, d in zip(enable, data, strict=True):
        q.append(d if e else q[-1])
    recording = recorded({"e": enable, "d": data, "rst": [0] * 8}, {"q": q[:8]}, (0, 8))
    report = measure_power(netlist, library, [recording], what="it")
    # The gate's own clock pin always; its output and the flip-flop's pin in 4 of 8 cycles, with
    # what they take inside.
    equal = sum(d == s for d, s in zip(data, q, strict=False)) / 8
    inside = equal * 4.0 + (1 - equal) * 5.0
    assert report.total.clock == pytest.approx(4.0 + 0.5 * (3.0 + 4.0 + inside))


def test_memories_hold_words_and_count_accesses(library: CellLibrary) -> None:
    macro = SramGeometry(4, 2, 1, 1)
    pins = {
        "clk": (0,), "r0_en": (1,), "r0_addr": (2, 3), "r0_data": (4, 5),
        "w0_en": (6,), "w0_addr": (7, 8), "w0_data": (9, 10),
    }  # fmt: skip
    ports = {name: bits for name, bits in pins.items() if name not in ("clk", "r0_data")}
    netlist = Netlist(
        inputs=ports,
        outputs={"r0_data": (4, 5)},
        gates=(Gate("m", macro.name, "u", pins),),
        trees={"clk": (0,)},
    )
    given = {
        "w0_en": [1, 1, 0, 1, 0, 0],
        "w0_addr": [2, 3, 2, 2, 0, 0],
        "w0_data": [1, 2, 3, 3, 0, 0],
        "r0_en": [0, 1, 1, 1, 1, 0],
        "r0_addr": [0, 2, 3, 2, 2, 0],
        "rst": [0] * 6,
    }
    # A word that is written in the cycle in which it is read comes out old.
    recording = recorded(given, {"r0_data": [0, 0, 1, 2, 1, 3]}, (0, 6))
    simulation = GateSimulation(netlist, library)
    assert simulation.run(recording, what="it").accesses == {0: (4, 3)}
    report = measure_power(netlist, library, [recording], what="it")
    assert report.total.memories == pytest.approx(7 * access_fj(macro, report.node_nm, 2.0) / 6)


def test_shared_ports_read_or_write(library: CellLibrary) -> None:
    macro = SramGeometry(4, 2, 0, 0, 2)
    pins, nets = {"clk": (0,)}, 1
    for name, bits, *_ in macro.pins:
        pins[name] = tuple(range(nets, nets + bits))
        nets += bits
    outputs = {name: pins[name] for name, *_, output in macro.pins if output}
    inputs = {name: pins[name] for name, *_, output in macro.pins if not output}
    netlist = Netlist(inputs, outputs, (Gate("m", macro.name, "u", pins),), {"clk": (0,)})
    stimulus = {
        "rw0_en": [1, 1, 0, 1, 1, 0, 0],
        "rw0_write": [1, 0, 1, 1, 1, 0, 0],
        "rw0_addr": [2, 3, 2, 2, 2, 0, 0],
        "rw0_word": [1, 2, 3, 3, 2, 0, 0],
        "rw1_en": [0, 1, 1, 0, 1, 1, 0],
        "rw1_write": [0, 1, 0, 0, 0, 0, 0],
        "rw1_addr": [0, 1, 2, 0, 2, 2, 0],
        "rw1_word": [0, 3, 0, 0, 0, 0, 0],
        "rst": [0] * 7,
    }
    # The word of the last read stays over writes; one that is written meanwhile comes out old.
    outcome = {"rw0_data": [0] * 7, "rw1_data": [0, 0, 0, 1, 1, 3, 2]}
    recording = recorded(stimulus, outcome, (0, 7))
    assert GateSimulation(netlist, library).run(recording, what="it").accesses == {0: (4, 4)}


def test_what_does_not_do_as_its_verilog_is_refused(library: CellLibrary) -> None:
    simulation = GateSimulation(_TOGGLER, library)
    a = [1, 1, 1, 1]
    q, _ = _toggler(a)
    wrong = recorded({"a": a, "rst": [0] * 4}, {"q": [*q[:3], 1 - q[3]]}, (1, 4))
    with pytest.raises(SynthesisError, match="in cycle 3, output bit 0 differs"):
        simulation.run(wrong, what="it")
    with pytest.raises(SynthesisError, match="port a was not recorded"):
        simulation.run(recorded({}, {"q": q}, (1, 4)), what="it")
    with pytest.raises(SynthesisError, match="can't count cycles 1 to 9 of 4"):
        simulation.run(recorded({"a": a}, {"q": q}, (1, 9)), what="it")


def test_cells_that_can_not_be_simulated_are_named(library: CellLibrary) -> None:
    latch = Gate("l", "LATCH", "u", {"C": (0,), "D": (1,), "Q": (2,)})
    netlist = Netlist({"d": (1,)}, {"q": (2,)}, (latch,), {"clk": (0,)})
    with pytest.raises(SynthesisError, match="cell l: a LATCH can't be simulated"):
        GateSimulation(netlist, library)


def test_library_without_energies_is_refused() -> None:
    plain = parse_library("library (plain) { cell (A) { area : 1; } }")
    recording = recorded({}, {}, (0, 1))
    with pytest.raises(SynthesisError, match=r"library plain has no energies \(internal_power\)"):
        measure_power(_TOGGLER, plain, [recording], what="it")


def test_clock_tree_has_a_buffer_for_so_many_pins(library: CellLibrary) -> None:
    assert clock_tree(library, 1, 1.0)[0] == 0
    buffers, energy, _ = clock_tree(library, FANOUT, 1.0)
    wire = library.wires.load(FANOUT)
    assert buffers == 1
    assert energy == pytest.approx((wire + 1.0) * 4.0 + 3.0)
    assert clock_tree(library, FANOUT + 1, 1.0)[0] == 3
    with pytest.raises(SynthesisError, match="no buffer that drives"):
        clock_tree(library, FANOUT, 100.0)


def test_energy_of_memories_is_near_published_figures() -> None:
    for geometry, pj in PUBLISHED.values():
        assert access_fj(geometry) / 1000 == pytest.approx(pj, rel=0.15)
    bank = SramGeometry(512, 8, 3, 2)
    base = access_fj(bank, 28.0, 0.9)
    assert access_fj(bank, 56.0, 0.9) == pytest.approx(2 * base)
    assert access_fj(bank, 28.0, 1.8) == pytest.approx(4 * base)


_REGISTER = """module held(clk, rst, enable, data, value);
  input clk, rst, enable;
  input [7:0] data;
  output [7:0] value;
  reg [7:0] value;
  always @(posedge clk)
    if (rst) value <= 8'h5a;
    else if (enable) value <= data;
endmodule
"""


def test_registers_with_reset_and_enable_are_gated_and_do_the_same(no_results: Path) -> None:
    target, library = find_cells("nangate45")
    random = np.random.default_rng(7)
    cycles = 200
    given = {
        "rst": [1, *(random.random(cycles - 1) < 0.05).astype(int).tolist()],
        "enable": (random.random(cycles) < 0.2).astype(int).tolist(),
        "data": random.integers(0, 256, cycles).tolist(),
    }
    value, values = 0, []
    for rst, enable, data in zip(*given.values(), strict=True):
        values.append(value)
        value = 0x5A if rst else data if enable else value
    recording = recorded(given, {"value": values}, (1, cycles))
    clocks = {}
    for gated in (False, True):
        kept = [one for one in target.recipes[0] if gated or "clockgate" not in one]
        work = Run(
            top="held",
            sources={"held": _REGISTER},
            commands=tuple(kept),
            files=target.files,
            liberty=target.liberty,
            netlist="json",
        )
        mapped = run(work, what="held")
        assert mapped.cells.get("CLKGATE_X1", 0) == gated
        netlist = unit_netlist("held", mapped)
        report = measure_power(netlist, library, [recording], what="held")
        clocks[gated] = report.total.clock
        assert report.total.nets > 0
    # Three quarters of the edges are left out; the gate and its enable take some.
    assert clocks[True] < 0.5 * clocks[False]


class _Flags(Component):
    """Eight flags and, if they need their clock ``seldom``, eight bits after them."""

    def __init__(self, seldom: bool) -> None:
        self.seldom = seldom
        one = {"when": In(1), "index": In(3)}
        super().__init__({**one, "other": In(1), "flags": Out(8), "later": Out(8)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        changes = ((self.when, self.index, True), (self.other, ~self.index, False))
        set_flags(m, self.flags, changes)
        kind = "macro" if self.seldom else "fpga"
        with m.If(needs_clock(m, platform, self.other, kind)):
            m.d.sync += self.later.eq(self.flags)
        return m


def test_flags_share_a_clock_gate_and_without_gates_an_optional_enable_is_free(
    no_results: Path,
) -> None:
    def mapped(part: Component, name: str) -> CellCount:
        emission = emit(part, "part")
        target = find_target(name)
        left = tuple(one for one in target.recipes[0] if not one.startswith("abc"))
        work = Run(
            top="part",
            sources={
                **emission.modules,
                **{box: macro_stub(SramGeometry.parse(box)) for box in emission.black_boxes},
            },
            commands=left if name == "nangate45" else target.recipes[0],
            files=target.files,
            liberty=target.liberty,
        )
        return run(work, what="flags")

    for seldom in (False, True):
        assert mapped(_Flags(seldom), "nangate45").cells["CLKGATE_X1"] == 1 + seldom
    assert mapped(_Flags(True), "generic").area == mapped(_Flags(False), "generic").area
    bank = CounterBank(max_steps=(1,) * 16, kind="macro")
    assert mapped(bank, "nangate45").cells["CLKGATE_X1"] == 16
