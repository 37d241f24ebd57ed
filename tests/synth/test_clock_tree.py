"""Clock trees: whom a clock reaches, through what, and when; also according to OpenSTA."""

from collections import Counter
from dataclasses import replace

import pytest

from synth.layout.clock_tree import clock_times, of_clock, with_clock, with_clock_tree
from synth.layout.extraction import faults
from synth.layout.floorplan import Floorplan
from synth.layout.lef import Lef
from synth.layout.parasitics import estimated, routed
from synth.layout.placement import PlacedCells, place
from synth.layout.repair import adjusted
from synth.layout.routing import Routes
from synth.netlist import Gate, Netlist
from synth.physical.asic import nangate_lef
from synth.physical.targets import find_cells
from synth.sram import SramTimes
from synth.timing.cell_library import CellLibrary, Parasitics, Wires
from synth.timing.sta import longest_path
from tests.synth.open_sta import find_open_sta, routed_path, worst
from tests.synth.test_layout import MEMORY, random_netlist

#: The first of the clock's nets, the others are gated.
CLK = 10_000
GATED = 3
WIRE = Wires(0.105, 3.57)


def clocked_netlist(gates: int, memories: int) -> Netlist:
    """A random netlist of whose registers some have gated clocks."""
    netlist = random_netlist(5, gates=gates, memories=memories)
    enables = netlist.inputs["in"][:GATED]
    cells, number = list[Gate](), 0
    for gate in netlist.gates:
        if "CK" in gate.pins:
            net = CLK + max(0, number % (3 * GATED) - 2 * GATED + 1)
            gate, number = replace(gate, pins={**gate.pins, "CK": (net,)}), number + 1
        elif gate.kind == MEMORY:
            gate = replace(gate, pins={**gate.pins, "clk": (CLK,)})
        cells.append(gate)
    for place_of, enable in enumerate(enables, 1):
        pins = {"CK": (CLK,), "E": (enable,), "GCK": (CLK + place_of,)}
        cells.append(Gate(f"gate{place_of}", "CLKGATE_X1", "unit0", pins))
    trees = {"clk": tuple(range(CLK, CLK + GATED + 1))}
    return replace(
        netlist, gates=tuple(cells), inputs={**netlist.inputs, "clk": (CLK,)}, trees=trees
    )


@pytest.fixture(scope="module")
def library() -> CellLibrary:
    return find_cells("nangate45")[1]


def with_tree(gates: int, memories: int, library: CellLibrary) -> tuple[Netlist, PlacedCells]:
    """A netlist, and its legal placement with a clock tree."""
    pytest.importorskip("coloquinte")
    netlist = clocked_netlist(gates, memories)
    plan = Floorplan(netlist, Lef(*nangate_lef()), node_nm=45, density=0.5)
    grown = with_clock_tree(place(netlist, plan, density=0.8), library, WIRE)
    return netlist, place(grown.netlist, plan, density=0.7, start=grown.places)


@pytest.fixture(scope="module")
def tree(library: CellLibrary) -> tuple[Netlist, PlacedCells]:
    return with_tree(400, 2, library)


def test_clocks_reach_their_registers_through_as_many_drivers(
    tree: tuple[Netlist, PlacedCells],
) -> None:
    before, placed = tree
    drivers = {}
    for gate in placed.netlist.gates:
        if gate.kind.startswith(("CLKGATE", "BUF", "CLKBUF")):
            end, entry = ("GCK", "CK") if "GCK" in gate.pins else ("Z", "A")
            drivers[gate.pins[end][0]] = gate, gate.pins[entry][0]
    enable = {gate.pins["GCK"][0]: gate.pins["E"] for gate in before.gates if "GCK" in gate.pins}
    levels = Counter[int]()
    assert not placed.netlist.trees
    for old, gate in zip(before.gates, placed.netlist.gates, strict=False):
        assert old.name == gate.name
        pin = next((name for name in ("CK", "clk") if name in gate.pins), None)
        if pin is None or "GCK" in gate.pins:
            continue
        net, level, enables = gate.pins[pin][0], 0, []
        while net != CLK:
            driver, net = drivers[net]
            level += 1
            enables += [driver.pins["E"]] if "E" in driver.pins else []
        levels[level] += 1
        gated = old.pins[pin][0]
        assert enables == ([enable[gated]] if gated in enable else [])
    assert len(levels) == 1
    assert min(levels) >= 2


def test_the_clock_comes_everywhere_at_nearly_the_same_time(
    tree: tuple[Netlist, PlacedCells], library: CellLibrary
) -> None:
    _, placed = tree
    wires = estimated(placed, library, WIRE)
    times = clock_times(placed.netlist, library, wires)
    registers = times.of_registers()
    kinds = Counter(placed.netlist.gates[number].kind for number in registers)
    assert kinds["DFF_X1"] == sum("CK" in gate.pins for gate in tree[0].gates) - GATED
    assert kinds[MEMORY] == 2
    assert times.skew == max(registers.values()) - min(registers.values())
    assert times.skew < 0.03
    assert min(registers.values()) > 0.05
    # A tree of the weakest drivers is slower, and less even.
    weak = {"BUF": "BUF_X1", "CLKBUF": "CLKBUF_X1", "CLKGATE": "CLKGATE_X1"}
    gates = tuple(
        replace(gate, kind=weak[gate.kind.split("_")[0]]) if of_clock(gate, library) else gate
        for gate in placed.netlist.gates
    )
    slow = clock_times(replace(placed.netlist, gates=gates), library, wires)
    assert slow.skew > 1.5 * times.skew
    assert slow.means()[-1] > times.means()[-1]


def test_sizes_follow_where_cells_are(
    tree: tuple[Netlist, PlacedCells], library: CellLibrary
) -> None:
    _, placed = tree
    aim = 0.8 * longest_path(placed.netlist, library, SramTimes(45), None).ns
    netlist, places = adjusted(placed, library, WIRE, aim)
    assert places == placed.places

    def ns_and_skew(of: Netlist) -> tuple[float, float]:
        wires = estimated(replace(placed, netlist=of), library, WIRE)
        path = longest_path(of, library, SramTimes(45), with_clock(of, library, wires))
        return path.ns, clock_times(of, library, wires).skew

    before, after = ns_and_skew(placed.netlist), ns_and_skew(netlist)
    assert after[0] < 0.97 * before[0]
    assert after[1] <= before[1]
    for old, new in zip(placed.netlist.gates, netlist.gates, strict=True):
        assert (old.name, old.pins) == (new.name, new.pins)


def test_a_late_clock_shortens_paths_from_its_register_and_lengthens_those_to_it(
    library: CellLibrary,
) -> None:
    gates = (
        Gate("a", "DFF_X1", "unit", {"D": (0,), "CK": (9,), "Q": (1,)}),
        Gate("b", "DFF_X1", "unit", {"D": (1,), "CK": (9,), "Q": (2,)}),
    )
    netlist = Netlist({"in": (0,)}, {}, gates, {"clk": (9,)})

    def ns(
        clocks: dict[int, float], ways: dict[tuple[int, str, int], float] | None = None
    ) -> float:
        wires = Parasitics({1: 20.0}, {1: 500.0}, ways or {}, clocks)
        return longest_path(netlist, library, SramTimes(45), wires).ns

    longest = ns({})
    assert ns({0: 0.5}) == pytest.approx(longest + 0.5, abs=1e-3)
    # Then the longest path is from the port to the first register.
    assert ns({0: 0.5, 1: 0.4}) == pytest.approx(longest + 0.1, abs=1e-3)
    assert ns({0: 0.5, 1: 0.5, -1: 0.5}) == pytest.approx(longest, abs=1e-3)
    d_ff = library.cells["DFF_X1"].pins["D"].capacitance
    shorter = 0.69e-6 * 400 * (20.0 / 2 + d_ff)
    assert ns({}, {(1, "D", 0): 100.0}) == pytest.approx(longest - shorter, abs=2e-4)


@pytest.mark.skipif(find_open_sta() is None, reason="OpenSTA is not installed")
def test_open_sta_agrees_with_routed_clocks(library: CellLibrary) -> None:
    _, placed = with_tree(150, 0, library)
    routes = Routes(placed)
    assert not list(faults(routes))
    cells, _ = find_cells("nangate45")
    times = SramTimes(45)
    wires = routed(routes, library, 0.105)
    ours = longest_path(placed.netlist, library, times, with_clock(placed.netlist, library, wires))
    ideal = longest_path(placed.netlist, library, times, wires)
    theirs = routed_path(placed.netlist, library, cells, routes, 0.105)
    assert theirs.ns == pytest.approx(ours.ns, rel=0.015)
    assert ours.ns != ideal.ns


def test_the_worst_path_of_open_sta_is_that_of_either_clock() -> None:
    """With a tree it reports two groups of paths, in any order."""
    report = "Startpoint: {}\n  1.0000   1.0000  data arrival time\n  {:.4f}   slack (MET)\n"
    ports, tree = report.format("port", 99.4613), report.format("register", 99.1024)
    for output in (ports + tree + "\n", tree + ports + "\n", tree):
        slack, text = worst(output)
        assert slack == 99.1024
        assert "register" in text
        assert "port" not in text
