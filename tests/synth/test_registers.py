"""Flip-flops of Liberty files: those of open libraries, and others that must be refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sim_tb.random.comparison import check_programs
from soc.generate.generate import verilog
from soc.generate.presets import preset
from synth.physical import asic
from synth.physical.corners import time_corners
from synth.physical.mapping import engine_netlist, mapped_verilog, unit_netlist
from synth.physical.targets import find_cells
from synth.physical.yosys import Run, run
from synth.power.gate_sim import GateSimulation
from synth.timing.cell_library import LibertyError, parse_library
from synth.timing.registers import port_register
from synth.timing.sta import longest_path
from tests.synth.small_library import LIBRARY, edge_arc, recorded, setup_arc
from tests.synth.twenty_cells import twenty_cells

DATA = "D"
#: What has a reset, an enable, and a register without either.
MODULE = """module m(input clk, input rst, input a, input b, output reg q, output reg p);
  always @(posedge clk) begin
    p <= a;
    if (rst) q <= 1'b0;
    else if (b) q <= a ^ q;
  end
endmodule
"""


def flip_flop(
    next_state: str = DATA,
    inputs: str = DATA,
    *,
    more: str = "",
    clocked: str = "C",
    outputs: tuple[tuple[str, str], ...] = (("Q", "IQ"),),
    name: str = "FF",
    area: float = 4.0,
    timed: bool = True,
) -> str:
    """A cell of a Liberty file; it has a pin for each word of ``inputs``."""
    launch = edge_arc("C") if timed else ""
    pins = "".join(
        f"pin ({pin}) {{ direction : input; capacitance : 1.0; {setup_arc('C')} }}\n"
        for pin in inputs.split()
    )
    pins += "".join(
        f'pin ({pin}) {{ direction : output; function : "{function}"; {launch} }}\n'
        for pin, function in outputs
    )
    return f"""cell ({name}) {{ area : {area}; ff (IQ, IQN) {{
      clocked_on : "{clocked}"; next_state : "{next_state}"; {more} }}
      pin (C) {{ direction : input; clock : true; capacitance : 1.0; }}
      {pins} }}
    """


def library(*cells: str) -> str:
    """The gates of the small library, with other flip-flops."""
    start = LIBRARY.index("  cell (DFF)")
    buffer = LIBRARY[LIBRARY.index("  cell (INV)") : LIBRARY.index("  cell (NAND2)")]
    buffer = buffer.replace("INV", "BUF").replace("!A", "A").replace("negative", "positive")
    return f"{LIBRARY[:start]}{buffer}{''.join(cells)}}}\n"


BOTH = (("Q", "IQ"), ("QN", "IQN"))
SCAN = "(SE & SI) | (!SE & D)"
#: Kind -> flip-flop, and the constants of its other inputs.
KINDS: dict[str, tuple[str, dict[str, int]]] = {
    "plain, as in GF180": (flip_flop(), {}),
    "both outputs, as in Nangate 45": (flip_flop(outputs=BOTH), {}),
    "asynchronous reset, as in SG13G2": (
        flip_flop(inputs="D RESET_B", more='clear : "!RESET_B";', outputs=BOTH),
        {"RESET_B": 1},
    ),
    "asynchronous reset, active high": (
        flip_flop(inputs="D R", more='clear : "(R)";'),
        {"R": 0},
    ),
    "asynchronous set": (flip_flop(inputs="D SN", more='preset : "SN\'";'), {"SN": 1}),
    "asynchronous set and reset": (
        flip_flop(inputs="D S R", more='preset : "S"; clear : "R"; clear_preset_var1 : L;'),
        {"S": 0, "R": 0},
    ),
    "opposite output alone": (flip_flop(outputs=(("QN", "IQN"),)), {}),
    "stores the opposite, as in ASAP7": (flip_flop("!D", outputs=(("QN", "IQ"),)), {}),
    "enable": (flip_flop("(E & D) | (!E & IQ)", "D E"), {"E": 1}),
    "scan": (flip_flop(SCAN, "SI D SE"), {"SI": 0, "SE": 0}),
    "scan, enable and asynchronous reset": (
        flip_flop(f"(E & ({SCAN})) | (!E & IQ)", "SI D SE E RN", more='clear : "!RN";'),
        {"SI": 0, "SE": 0, "E": 1, "RN": 1},
    ),
    "scan, opposite output alone": (
        flip_flop(SCAN, "SI D SE", outputs=(("QN", "IQN"),)),
        {"SI": 0, "SE": 0},
    ),
    "synchronous reset": (flip_flop("D & RN", "D RN"), {"RN": 1}),
    "a smaller one of the falling edge, as in GF180": (
        flip_flop(name="DFFN", clocked="!C", area=3.0) + flip_flop(),
        {},
    ),
    "a smaller one that tools may not use": (
        flip_flop(name="OLD", area=3.0).replace("area", "dont_use : true; area") + flip_flop(),
        {},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_registers_are_mapped_timed_and_do_as_their_verilog(
    kind: str, no_results: Path, tmp_path: Path
) -> None:
    cells, tied = KINDS[kind]
    path = tmp_path / "cells.lib"
    path.write_text(library(cells))
    target, found = find_cells(f"liberty:{path}")
    register = port_register(found)
    assert (register.cell.name, register.clock, register.data) == ("FF", "C", DATA)
    assert register.tied == tied
    work = Run(
        top="m",
        sources={"m": MODULE},
        commands=target.recipes[0],
        files=target.files,
        liberty=target.liberty,
        netlist="json",
    )
    mapped = run(work, what=kind)
    assert target.count(mapped, frozenset())["ffs"] == 2
    netlist = unit_netlist("m", mapped)
    for gate in netlist.gates:
        for pin, value in tied.items():
            # Yosys itself uses an enable.
            if gate.kind == "FF" and (pin, len(tied)) != ("E", 1):
                assert netlist.constants[gate.pins[pin][0]] == value
    # From one register through a gate to another.
    assert longest_path(netlist, found).ns > 0.1
    random = np.random.default_rng(1)
    given = {name: random.integers(0, 2, 60).tolist() for name in "ab"}
    given["rst"] = [1] * 4 + (random.integers(0, 8, 56) == 0).astype(int).tolist()
    q, p, state = [], [], (0, 0)
    for a, b, rst in zip(given["a"], given["b"], given["rst"], strict=True):
        q.append(state[0])
        p.append(state[1])
        state = (0 if rst else a ^ state[0] if b else state[0], a)
    recording = recorded(given, {"q": q, "p": p}, (2, 60))
    assert GateSimulation(netlist, found).run(recording, what=kind).cycles == 58


def test_the_test_input_of_a_clock_gate_is_no_enable(no_results: Path, tmp_path: Path) -> None:
    gate = """cell (ICG) { area : 3.0; clock_gating_integrated_cell : latch_posedge_precontrol;
      pin (CK) { direction : input; clock : true; clock_gate_clock_pin : true; }
      pin (SE) { direction : input; clock_gate_test_pin : true; }
      pin (E) { direction : input; clock_gate_enable_pin : true; }
      pin (GCK) { direction : output; clock_gate_out_pin : true; state_function : "CK & E"; } }
    """
    path = tmp_path / "cells.lib"
    path.write_text(library(flip_flop(), gate))
    target, found = find_cells(f"liberty:{path}")
    text = """module m(input clk, input e, input [3:0] a, output reg [3:0] q);
      always @(posedge clk) if (e) q <= a;
    endmodule
    """
    work = Run(
        top="m",
        sources={"m": text},
        commands=target.recipes[0],
        files=target.files,
        liberty=target.liberty,
        netlist="json",
    )
    netlist = unit_netlist("m", run(work, what="it"))
    assert [gate.kind for gate in netlist.gates].count("ICG") == 1
    enable, data = [1, 0, 1, 1, 0, 0], [3, 4, 9, 6, 7, 8]
    q = [0, 3, 3, 9, 6, 6]
    recording = recorded({"e": enable, "a": data, "rst": [0] * 6}, {"q": q}, (0, 6))
    assert GateSimulation(netlist, found).run(recording, what="it").cycles == 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (library(flip_flop(clocked="!C")), "library tiny has no flip-flop that stores an input"),
        (library(), "library tiny has no flip-flop"),
        (library(flip_flop("D ^ IQ")), "library tiny has no flip-flop"),
        (
            library(flip_flop(inputs="D R", more='clear : "R | !R";')),
            "library tiny has no flip-flop",
        ),
        (library(flip_flop(timed=False)), "library tiny: FF has no delay from C to Q"),
        (
            library(flip_flop()).replace("cell_", "no_"),
            r"library tiny has no delays \(cell_rise, cell_fall\)",
        ),
        (
            library(flip_flop()).replace('function : "!(A & B)"', 'function : "A"'),
            "library tiny has no NAND gate with two inputs",
        ),
        (
            library(flip_flop()).replace("cell (INV) { area", "cell (INV) { dont_use : true; area"),
            "library tiny has no inverter",
        ),
        (
            library(flip_flop()).replace("BUF) { area", "BUF) { dont_use : true; area"),
            "library tiny has no buffer",
        ),
    ],
)
def test_a_library_that_lacks_something_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "cells.lib"
    path.write_text(text)
    with pytest.raises(LibertyError, match=rf"cells\.lib: {message}") as error:
        find_cells(f"liberty:{path}")
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_an_engine_in_cells_with_asynchronous_resets_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asic, "_RECIPES", asic._RECIPES[2::7])
    path = tmp_path / "twenty.lib"
    path.write_text(twenty_cells())
    target, cells = find_cells(f"liberty:{path}")
    assert len(target.recipes) == 2
    netlist = engine_netlist(verilog(replace(preset("pe-small"), sram="macro")), target)
    flip_flops = [gate for gate in netlist.gates if gate.kind in cells.flip_flops()]
    assert len(flip_flops) > 1000
    assert all(netlist.constants[gate.pins["RESET_B"][0]] == 1 for gate in flip_flops)
    corners = [
        (name, parse_library(twenty_cells(slower)))
        for name, slower in (("typical", 1.0), ("slow", 1.5), ("fast", 0.7))
    ]
    typical, slow, fast = time_corners(netlist, cells, corners)
    assert 0.5 < typical.pins.ns < 5
    assert slow.pins.ns > 1.3 * typical.pins.ns > 1.3 * fast.pins.ns
    assert slow.hold.ns > typical.hold.ns > fast.hold.ns > 0
    config, text = mapped_verilog(preset("pe-small"), f"liberty:{path}")
    ran = check_programs(config, programs=20, seed=49, netlist=text, disturbed=0.2)
    assert (ran.programs, ran.different) == (20, ())


def test_a_clock_that_only_the_flip_flop_names_is_one() -> None:
    cell = flip_flop().replace("clock : true; ", "")
    pins = parse_library(library(cell)).cells["FF"].pins
    assert [name for name, pin in pins.items() if pin.clock] == ["C"]
