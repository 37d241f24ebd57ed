"""A netlist at several corners, by our static timing and by OpenSTA."""

import re
from pathlib import Path

import pytest

from hdl.sram_macro import SramGeometry
from synth.errors import SynthesisError
from synth.netlist import Gate, Netlist
from synth.physical.asic import weakest_driver
from synth.physical.corners import check_corners, stage_ns, time_corners
from synth.sram import SramTimes
from synth.timing.cell_library import parse_library
from synth.timing.sta import Path as TimingPath
from synth.timing.sta import longest_path, shortest_path
from tests.synth.open_sta import find_open_sta, open_sta_path
from tests.synth.small_library import LIBRARY

MEMORY = SramGeometry(4, 2, 1, 1)
#: A flip-flop and an inverter to the address of a memory, and its word to a port.
NETLIST = Netlist(
    {"d": (9,)},
    {"q": (5,)},
    (
        Gate("first", "DFF", "one", {"C": (0,), "D": (9,), "Q": (1,)}),
        Gate("turn", "INV", "one", {"A": (1,), "Y": (2,)}),
        Gate(
            "words",
            MEMORY.name,
            "two",
            {
                "clk": (0,),
                "r0_en": (7,),
                "r0_addr": (1, 2),
                "r0_data": (3, 4),
                "w0_en": (8,),
                "w0_addr": (1, 1),
                "w0_data": (2, 2),
            },
        ),
        Gate("join", "NAND2", "two", {"A": (3,), "B": (4,), "Y": (5,)}),
    ),
    trees={"clk": (0,)},
    constants={7: 1, 8: 0},
)


def library_text(slower: float = 1.0) -> str:
    """The library of the tests with all delays so much longer."""

    def times(found: re.Match[str]) -> str:
        return f'values ("{float(found[1]) * slower:.4f}")'

    # OpenSTA reads no comments of this kind.
    text = re.sub(r"//.*", "", LIBRARY)
    return re.sub(r'values \("([\d.]+)"\)', times, text)


TYPICAL = parse_library(library_text())


def test_memories_slow_down_with_the_corner() -> None:
    # The mean of the inverter's 0.1 and 0.2 ns.
    assert weakest_driver(TYPICAL).name == "INV"
    assert stage_ns(TYPICAL) == pytest.approx(0.15)
    corners = [("typical", TYPICAL), ("slow", parse_library(library_text(2.0)))]
    first, second = time_corners(NETLIST, TYPICAL, corners)
    assert first.corner == "typical"
    assert second.pins.ns == pytest.approx(2 * first.pins.ns, rel=0.01)
    assert [gate.kind for gate, _ in first.pins.steps] == [MEMORY.name, "NAND2", "DFF"]
    access = SramTimes(45.0).access_ns(MEMORY)
    assert first.pins.ns > access + 0.4 + 0.05
    assert second.to_json()["pins_mhz"] == second.pins.fmax_mhz


def test_other_cells_are_no_corner() -> None:
    text = LIBRARY.replace("cell (NAND2)", "cell (ND2)")
    with pytest.raises(
        SynthesisError, match=r"corner other: it lacks 1 cell of tiny, e\.g\. NAND2"
    ):
        check_corners(TYPICAL, [("other", parse_library(text))])
    text = "library (flat) { cell (NAND2) { area : 1; } }"
    with pytest.raises(SynthesisError, match="corner flat: its library has no delay tables"):
        check_corners(TYPICAL, [("flat", parse_library(text))])


def command(folder: Path, body: str) -> str:
    """An executable in place of OpenSTA."""
    path = folder / "sta"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


_REPORT = """
Startpoint: g0 (rising edge-triggered flip-flop clocked by clk)
   Delay     Time   Description
   0.000000  0.000000   clock network delay (ideal)
   0.000000  0.000000 ^ g2/clk (vip_sram_4x2_1r1w)
   0.100000  0.100000 ^ g2/r0_data_0 (vip_sram_4x2_1r1w)
   0.400000  0.500000 v g3/Y (NAND2)
   0.000000  0.500000 v p1/D (DFF)
             0.500000   data arrival time
            -0.070000  99.930000   library setup time
  99.430000   slack (MET)
"""


def timed(path: str, *, wires: bool = False, earliest: bool = False) -> TimingPath:
    return open_sta_path(
        NETLIST,
        TYPICAL,
        library_text(),
        SramTimes(45.0),
        wires=wires,
        earliest=earliest,
        command=path,
    )


def test_report_of_open_sta_is_read(tmp_path: Path) -> None:
    needed = "test -s cells.lib && test -s memories.lib && test -s netlist.v && test -s timing.tcl"
    path = timed(command(tmp_path, f"{needed} || exit 1\ncat <<'END'{_REPORT}END"))
    assert path.ns == pytest.approx(0.57)
    assert path.by_unit() == (("two", 0.5), ("output", 0.07))
    assert path.steps[0][0].name == "words"


def test_a_failing_open_sta_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SynthesisError, match=r"OpenSTA found no path: Error: .* unknown cell"):
        timed(command(tmp_path, "echo 'Error: netlist.v line 3, unknown cell'"))
    with pytest.raises(SynthesisError, match=r"OpenSTA \(.*none\) could not be run"):
        timed(str(tmp_path / "none"))


@pytest.mark.skipif(find_open_sta() is None, reason="OpenSTA is not installed")
@pytest.mark.parametrize("wires", [False, True])
def test_both_analyses_agree(wires: bool) -> None:
    expected = timed(find_open_sta() or "", wires=wires)
    load = TYPICAL.wires if wires else None
    path = longest_path(NETLIST, TYPICAL, SramTimes(45.0), load)
    assert path.ns == pytest.approx(expected.ns, abs=1e-3)
    assert path.by_unit() == expected.by_unit()


@pytest.mark.skipif(find_open_sta() is None, reason="OpenSTA is not installed")
@pytest.mark.parametrize("wires", [False, True])
def test_both_analyses_agree_about_hold(wires: bool) -> None:
    expected = timed(find_open_sta() or "", wires=wires, earliest=True)
    path = shortest_path(NETLIST, TYPICAL, SramTimes(45.0), TYPICAL.wires if wires else None)
    assert path.ns == pytest.approx(expected.ns, abs=1e-3)
    assert path.by_unit() == expected.by_unit()


def test_the_hold_times_of_a_corner_are_its_own() -> None:
    # The input's register to `first`: 0.08 ns less 0.02 (rise), 0.09 less 0.01 (fall).
    fast = parse_library(library_text().replace("hold_rising", "removal_rising"))
    first, second = time_corners(NETLIST, TYPICAL, [("typical", TYPICAL), ("fast", fast)])
    assert first.to_json()["hold_slack_ns"] == pytest.approx(0.06)
    assert first.to_json()["hold_path"] == ["input", "one"]
    assert second.hold.ns == pytest.approx(0.08)
