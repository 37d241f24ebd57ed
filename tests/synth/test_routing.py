"""Routed placements: what a check apart from the router finds, and what files have of the wires."""

import random
import re
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
from synth.layout.parasitics import NetTree, routed, spanning
from synth.layout.placement import PlacedCells, place
from synth.layout.routing import Routes, moved
from synth.physical.asic import nangate_file, nangate_lef
from synth.physical.targets import find_cells
from synth.sram import SramTimes
from synth.timing.sta import longest_path
from tests.synth.klayout_check import check_gds
from tests.synth.open_sta import find_open_sta, open_sta_path
from tests.synth.test_layout import half_perimeters, random_netlist


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
    estimate = half_perimeters(routes.placed)
    for net, um in routes.lengths().items():
        assert um >= estimate[net] - 3, net


def planted(routes: Routes, change: str) -> tuple[Routes, str]:
    """Routes with a fault, and what reports it."""
    broken = object.__new__(Routes)
    broken.__dict__.update(routes.__dict__)
    pieces, tracks = routes.pieces, routes.tracks()
    metal3 = tracks[tracks[:, 1] == 1]
    track = Counter(metal3[:, 3].tolist()).most_common(1)[0][0]
    net, _, _, _, end, _ = metal3[metal3[:, 3] == track][0]
    if change == "open":
        via = np.flatnonzero(pieces[:, 1] != pieces[:, 4])[0]
        broken.pieces = np.delete(pieces, via, axis=0)
        return broken, f"net {pieces[via, 0]} is in 2 parts"
    if change == "short":
        across = [net, 1, 0, track, 1, routes.width - 1, track]
        broken.pieces = np.vstack([pieces, across])
        return broken, "are connected"
    # A node behind the end of a wire, where another via's pad is too close.
    broken.ends = np.vstack([routes.ends, [-5, 1, end + 1, track]])
    return broken, "metal3: two shapes are too close"


@pytest.mark.parametrize("change", ["open", "near", "short"])
def test_a_planted_fault_is_reported(routes: Routes, change: str) -> None:
    broken, message = planted(routes, change)
    assert any(message in fault for fault in faults(broken))


@pytest.mark.parametrize("change", ["", "open", "near", "short"])
def test_klayout_reports_the_planted_fault_alone(
    routes: Routes, tmp_path: Path, change: str
) -> None:
    pytest.importorskip("klayout")
    text = "\n".join(exchange.to_def(routes, "top"))
    drawn, message = planted(routes, change) if change else (routes, "")
    exchange.write_gds(drawn, "top", tmp_path / "top.gds", nangate_file("stdcells.gds"))
    report = check_gds(tmp_path / "top.gds", text, Lef(*nangate_lef()))
    assert not any(report.thin.values())
    assert (set(filter(report.close.get, report.close)) == {"metal3"}) == (change == "near")
    assert bool(report.joined) == (change == "short")
    assert {f"n{net}" for net in re.findall(r"net (\d+) is in", message)} == report.open


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


def test_resistance_before_a_pin_is_that_of_its_own_way() -> None:
    driver, near, far = (0, "Z", 0), (1, "A", 0), (2, "A", 0)
    middle = (0, 4, 5)
    wires = [(driver, middle, 10.0), (middle, near, 1.0), (middle, far, 30.0)]
    tree = NetTree([driver, near, far], {middle: 4.0, far: 2.0}, wires)
    ways = tree.ways({near: 1.0, far: 3.0})
    # All that is behind each resistor, and of the whole net half of its wires.
    load = 1.0 + 3.0 + (4.0 + 2.0) / 2
    assert ways[near] * load == pytest.approx(10.0 * 10.0 + 1.0 * 1.0)
    assert ways[far] * load == pytest.approx(10.0 * 10.0 + 30.0 * 5.0)


def test_a_tree_of_short_wires_spans_places() -> None:
    draw = random.Random(1)
    places = [(draw.random(), draw.random()) for _ in range(30)]
    wires = spanning(places)
    joined = {0}
    for before, number, um in wires:
        assert before in joined
        joined.add(number)
        (x, y), (to_x, to_y) = places[before], places[number]
        assert um == abs(x - to_x) + abs(y - to_y)
    assert len(joined) == len(places) == len(wires) + 1
    # Each place but the first is at least as near to another one as its wire is long.
    for _, number, um in wires:
        x, y = places[number]
        assert um >= min(abs(x - a) + abs(y - b) for a, b in places if (a, b) != (x, y))
    star = sum(abs(x - places[0][0]) + abs(y - places[0][1]) for x, y in places)
    assert sum(um for *_, um in wires) < star / 2
    assert spanning([(0, 0), (3, 1), (1, 0)]) == [(0, 2, 1), (2, 1, 3)]


def test_gds_has_the_cells_and_the_wires(routes: Routes, tmp_path: Path) -> None:
    one, two = tmp_path / "one.gds", tmp_path / "two.gds"
    exchange.write_gds(routes, "top", one, nangate_file("stdcells.gds"))
    exchange.write_gds(routes, "top", two, nangate_file("stdcells.gds"))
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
    jogs = sum((end - start) * 140 for *_, start, _, end in routes.jogs().tolist())
    assert um == pytest.approx(1000 * sum(routes.lengths().values()) + jogs)


class DefRoutes(Routes):
    """A layout as its DEF has it, with nothing of the routes but names of gates and ports."""

    def __init__(self, text: str, of: Routes) -> None:
        self.lattice, self.places, self.nets = of.lattice, of.places, {}
        lef, self.read = of.lattice.lef, list[tuple[int, ...]]()
        layers = [name for pair in zip(lef.layers, of.lattice.cuts, strict=False) for name in pair]
        layers.append(of.lattice.layers[-1])
        terminals = {
            exchange.name_of(of, pin).replace("PIN:", ""): pin
            for pins in of.nets.values()
            for pin in pins
        }
        places, turns, sections = {}, {}, re.split(r"\n(?=COMPONENTS|PINS|NETS|END NETS)", text)
        for name, kind, x, y, turn in re.findall(
            r"- g(\d+) (\S+) \+ PLACED \( (\d+) (\d+) \) (\w+) ;", sections[1]
        ):
            gate = of.placed.netlist.gates[int(name)]
            assert gate.kind == kind
            places[gate.name], turns[gate.name] = (int(x) // 190, int(y) // 200), turn
        self.placed = replace(of.placed, places=places, turns=turns)
        for entry in sections[3].split("\n- ")[1:]:
            head, *lines = entry.split("\n")
            net = int(head.split()[0][1:])
            ends = re.findall(r"\( (\S+) (\S+) \)", head)
            self.nets[net] = [terminals[b if a == "PIN" else f"{a}:{b}"] for a, b in ends]
            for line in lines:
                words = line.replace("+ ROUTED", "").replace("NEW", "").split()
                if words[0] == ";":
                    continue
                x, y, *end = (int(word) for word in words[1:] if word.isdigit())
                if end:
                    half = lef.rules[words[0]]["WIDTH"] // 2
                    box = min(x, end[0]), min(y, end[1]), max(x, end[0]), max(y, end[1])
                    shapes = [(words[0], *np.add(box, (-half, -half, half, half)))]
                else:
                    shapes = [(name, *moved(box, x, y)) for name, *box in lef.vias[words[-1]]]
                self.read += [(net, layers.index(name), *box) for name, *box in shapes]

    def shapes(self) -> np.ndarray:
        return np.array(self.read)


def test_def_read_back_has_the_nets_and_keeps_the_rules(routes: Routes) -> None:
    lines = list(exchange.to_def(routes, "top"))
    text = "\n".join(lines)
    assert not list(faults(DefRoutes(text, routes)))
    assert DefRoutes(text, routes).nets == routes.nets
    via = next(line for line in reversed(text.split("\n")) if " via" in line)
    fewer = DefRoutes(text.replace(via + "\n", "", 1), routes)
    assert any("parts" in fault for fault in faults(fewer))


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
    text = cells.files[cells.liberty]
    ours = longest_path(netlist, library, times, routed(routes, library, 0.105))
    bare = longest_path(netlist, library, times)
    spef = exchange.to_spef(routes, "vip_timing", 0.105)
    command = find_open_sta()
    assert command
    theirs = open_sta_path(netlist, library, text, times, spef=spef, command=command)
    assert ours.ns > 1.05 * bare.ns
    assert theirs.ns == pytest.approx(ours.ns, rel=0.005)
