"""Routed placements: what a check apart from the router finds, and what files have of the wires."""

from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import gdstk
import numpy as np
import pytest

from synth.errors import SynthesisError
from synth.layout import exchange
from synth.layout.extraction import faults
from synth.layout.floorplan import Floorplan
from synth.layout.lef import Lef
from synth.layout.placement import PlacedCells, place
from synth.layout.routing import Routes
from synth.physical.targets import find_cells
from synth.sram import SramTimes
from synth.timing.cell_library import Wires
from synth.timing.sta import longest_path
from tests.synth.open_sta import find_open_sta, open_sta_path
from tests.synth.test_layout import random_netlist
from vip.synthesis.layout import nangate_gds, nangate_lef


@pytest.fixture(scope="module")
def placed() -> PlacedCells:
    pytest.importorskip("coloquinte")
    netlist = random_netlist(3, gates=60, memories=2)
    plan = Floorplan(netlist, Lef(*nangate_lef()), node_nm=45, density=0.6)
    return place(netlist, plan, density=0.7)


@pytest.fixture(scope="module")
def routes(placed: PlacedCells) -> Routes:
    return Routes(placed)


def test_wires_connect_each_net_and_keep_their_distance(routes: Routes) -> None:
    assert not list(faults(routes))
    ends = Counter(net for net, *_ in routes.placed.pins())
    assert {net: len(pins) for net, pins in routes.nets.items()} == {
        net: count for net, count in ends.items() if count > 1
    }
    assert routes.rounds[-1].tolist() == [0, 0]
    estimate = routes.placed.lengths()
    for net, um in routes.lengths().items():
        assert um >= estimate[net] - 3, net


@pytest.mark.parametrize("change", ["open", "near", "short"])
def test_a_planted_fault_is_reported(routes: Routes, change: str) -> None:
    broken = object.__new__(Routes)
    broken.__dict__.update(routes.__dict__)
    pieces, tracks = routes.pieces, routes.tracks()
    metal3 = tracks[tracks[:, 1] == 1]
    track = Counter(metal3[:, 2].tolist()).most_common(1)[0][0]
    net, _, _, _, end = metal3[metal3[:, 2] == track][0]
    if change == "open":
        via = np.flatnonzero(pieces[:, 1] != pieces[:, 4])[0]
        broken.pieces = np.delete(pieces, via, axis=0)
        message = f"net {pieces[via, 0]} is in 2 parts"
    elif change == "short":
        across = [net, 1, 0, track, 1, routes.width - 1, track]
        broken.pieces = np.vstack([pieces, across])
        message = "are connected"
    else:
        # A node behind the end of a wire, where another via's pad is too close.
        broken.ends = np.vstack([routes.ends, [-5, 1, end + 1, track]])
        message = "metal3: two shapes are too close"
    assert any(message in fault for fault in faults(broken))


def test_what_stays_in_conflict_is_one_line_with_its_place(placed: PlacedCells) -> None:
    with pytest.raises(SynthesisError, match=r"overflows are left, one on metal\d at \d.* um$"):
        Routes(placed, rounds=1)


#: A pin that is on no node, between shapes that no wire may touch.
BLOCKED = """
      LAYER metal1 ; RECT 0.15 0.56 0.22 0.63 ; END END A
  OBS LAYER metal1 ; RECT 0.04 0.4 0.55 0.45 ; RECT 0.04 0.7 0.55 0.75 ; END
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", BLOCKED, "no via fits on pin A of cell INV_X2, e.g. g"),
        ("LAYER metal4 ;", "LAYER metal9 ;", "no via from metal3 to metal4"),
        ("PITCH 0.14", "PITCH 0.15", "not multiples of 190 and 150 nm"),
    ],
)
def test_a_lef_that_can_not_be_routed_is_one_line(
    placed: PlacedCells, tmp_path: Path, old: str, new: str, message: str
) -> None:
    technology, cells = (path.read_text() for path in nangate_lef())
    if new == BLOCKED:
        before, name, after = cells.partition("MACRO INV_X2")
        head, port, rest = after.partition("PORT")
        cells = before + name + head + port + new + rest.partition("END A\n")[2]
    assert old in technology
    path = tmp_path / "cells.lef"
    path.write_text(technology.replace(old, new if old else old) + cells)
    plan = Floorplan(placed.netlist, Lef(path), node_nm=45, density=0.6)
    with pytest.raises(SynthesisError, match=message) as error:
        Routes(replace(placed, floorplan=plan))
    assert "\n" not in str(error.value)


def test_spef_has_the_wires_of_each_net(routes: Routes) -> None:
    loads: dict[str, float] = {}
    parts: defaultdict[str, float] = defaultdict(float)
    joined: defaultdict[str, dict[str, str]] = defaultdict(dict)
    net = section = ""

    def end(name: str) -> str:
        while joined[net].setdefault(name, name) != name:
            name = joined[net][name]
        return name

    ends: defaultdict[str, list[str]] = defaultdict(list)
    for line in exchange.to_spef(routes, "top", 0.2):
        for words in (text.split(" ") for text in line.strip().split("\n")):
            if words[0] == "*D_NET":
                net, loads[words[1]] = words[1], float(words[2])
            elif words[0] in ("*I", "*P"):
                ends[net].append(words[1])
            elif words[0].startswith("*"):
                section = words[0]
            elif section == "*CAP":
                parts[net] += float(words[2])
            elif section == "*RES":
                joined[net][end(words[1])] = end(words[2])
    assert loads.keys() == {f"n{net}" for net in routes.nets}
    for number, um in routes.lengths().items():
        net = f"n{number}"
        assert loads[net] == pytest.approx(0.2 * um, rel=1e-3)
        assert parts[net] == pytest.approx(0.2 * um, rel=1e-3)
        assert len(ends[net]) == len(routes.nets[number])
        assert len({end(name) for name in ends[net]}) == 1, net


def test_gds_has_the_cells_and_the_wires(routes: Routes, tmp_path: Path) -> None:
    one, two = tmp_path / "one.gds", tmp_path / "two.gds"
    exchange.write_gds(routes, "top", one, nangate_gds())
    exchange.write_gds(routes, "top", two, nangate_gds())
    assert one.read_bytes() == two.read_bytes()
    cells = {cell.name: cell for cell in gdstk.read_gds(one).cells}
    netlist, placed = routes.placed.netlist, routes.placed
    gates = [gate for gate in netlist.gates if gate.name not in placed.floorplan.blocks]
    assert cells.keys() == {"top", *(gate.kind for gate in gates)}
    wires = Counter(
        (polygon.layer, *np.rint(1000 * np.ravel(polygon.bounding_box())).astype(int))
        for polygon in cells["top"].polygons
    )
    assert wires == Counter((11 + layer, *edges) for _, layer, *edges in routes.shapes().tolist())
    # Wires of the lowest layer begin on a cell, whichever way it is turned.
    references = cells["top"].references
    assert [one.cell_name for one in references] == [gate.kind for gate in gates]
    drawn = [box for one in references for box in one.get_polygons(layer=11, datatype=0)]
    lowest = [polygon for polygon in cells["top"].polygons if polygon.layer == 11]
    assert all(gdstk.boolean(one, drawn, "and") for one in gdstk.boolean(lowest, [], "or"))


def test_def_has_each_cell_pin_and_wire(routes: Routes) -> None:
    text = "\n".join(exchange.to_def(routes, "top"))
    assert text.count("+ PLACED") == len(routes.placed.netlist.gates) + sum(
        terminal[0] < 0 for terminals in routes.nets.values() for terminal in terminals
    )
    vias = len(routes.vias()) + len(routes.pin_vias())
    assert sum(") via" in line for line in text.split("\n")) == vias
    um = sum(
        abs(int(words[-3]) - int(words[-7])) + abs(int(words[-2]) - int(words[-6]))
        for words in (line.split() for line in text.split("\n"))
        if words and words[-1] == ")" and "metal" in words[-9] and "metal1" not in words
    )
    jogs = sum((end - start) * 140 for *_, start, end in routes.jogs().tolist())
    assert um == pytest.approx(1000 * sum(routes.lengths().values()) + jogs)


@pytest.mark.skipif(find_open_sta() is None, reason="OpenSTA is not installed")
def test_open_sta_agrees_with_our_spef(routes: Routes) -> None:
    pytest.importorskip("coloquinte")
    cells, library = find_cells("nangate45")
    assert cells.liberty
    # OpenSTA times no memories without a clock.
    times, netlist = SramTimes(library.node_nm), random_netlist(4, gates=60, memories=0)
    lef = routes.lattice.lef
    plan = Floorplan(netlist, lef, node_nm=45, density=0.6)
    routes = Routes(place(netlist, plan, density=0.7))
    metal = lef.layers["metal3"]
    text = cells.files[cells.liberty]
    ours = longest_path(netlist, library, times, Wires(0.105, metal.ohm, routes.lengths()))
    bare = longest_path(netlist, library, times)
    spef = exchange.to_spef(routes, "vip_timing", 0.105)
    command = find_open_sta()
    assert command
    theirs = open_sta_path(netlist, library, text, times, spef=spef, command=command)
    assert ours.ns > 1.05 * bare.ns
    assert theirs.ns == pytest.approx(ours.ns, rel=0.02)
