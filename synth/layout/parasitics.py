"""Capacitance and resistance of routed wires: the tree of each net, and delays to its pins."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from synth.netlist import Netlist
from synth.timing.cell_library import CellLibrary, Parasitics, Wires
from synth.timing.registers import port_register

from .placement import PlacedCells, What
from .routing import Routes

#: A point of wires: a pin, or a node of the lattice by its layer, x and y.
Point = tuple[Any, Any, Any]


@dataclass(frozen=True)
class NetTree:
    """The wires of a net: its pins, the driver first, fF to ground at points, and resistors: two
    points, and ohm between them."""

    terminals: Sequence[What]
    ff: Mapping[Point, float]
    resistors: Sequence[tuple[Point, Point, float]]

    def ways(self, pins: Mapping[What, float]) -> Mapping[What, float]:
        """Of each pin but the driver, ohm which the net's load, but half of the wire's, would pass
        with Elmore's delay.

        Parameters:
            pins: fF of each.
        """
        beside: defaultdict[Point, list[tuple[Point, float]]] = defaultdict(list)
        for one, other, ohm in self.resistors:
            beside[one].append((other, ohm))
            beside[other].append((one, ohm))
        root = self.terminals[0]
        order: list[tuple[Point, Point, float]] = [(root, root, 0.0)]
        reached = {root}
        for point, _, _ in order:
            for other, ohm in beside[point]:
                if other not in reached:
                    reached.add(other)
                    order.append((other, point, ohm))
        behind = defaultdict(float, self.ff)
        for pin in self.terminals[1:]:
            behind[pin] += pins[pin]
        for point, before, _ in reversed(order[1:]):
            behind[before] += behind[point]
        delay: defaultdict[Point, float] = defaultdict(float)
        for point, before, ohm in order[1:]:
            delay[point] = delay[before] + ohm * behind[point]
        load = behind[root] - sum(self.ff.values()) / 2
        return {pin: delay[pin] / load for pin in self.terminals[1:]} if load else {}


def net_trees(routes: Routes, wire_ff: float | None = None) -> Iterator[tuple[int, NetTree]]:
    """Each net with its wires, of the resistance of their layers and cuts.

    Parameters:
        wire_ff: fF of a um on each layer; None: of the layer.
    """
    lattice, lef = routes.lattice, routes.lattice.lef
    wires = [lef.layers[name] for name in lattice.layers]
    cuts = [lef.rules[cut].get("RESISTANCE", 0) / 1000 for cut in lattice.cuts]
    pieces, on_pins = _pieces(routes), set(map(tuple, routes.pin_vias().tolist()))
    for net, terminals in routes.nets.items():
        farads: defaultdict[Point, float] = defaultdict(float)
        resistors: list[tuple[Point, Point, float]] = []
        for one, other, place, um in pieces[net]:
            load = um * (wires[place].ff if wire_ff is None else wire_ff)
            if load:
                for end in (one, other):
                    farads[end] += load / 2
            resistors.append((one, other, um * wires[place].ohm if um else cuts[place + 1]))
        for terminal in terminals:
            for node in routes.places[terminal]:
                on_pin = (net, *node[1:]) in on_pins
                if on_pin or len(routes.places[terminal]) == 1:
                    resistors.append((terminal, node, cuts[0] if on_pin else 0.0))
        yield net, NetTree(terminals, farads, resistors)


def spanning(places: Sequence[tuple[float, float]]) -> list[tuple[int, int, float]]:
    """A tree of short wires between places: numbers of both ends, that nearer to the first place
    before the other, and the length."""
    left = {number: (float("inf"), 0) for number in range(1, len(places))}
    last, wires = 0, []
    while left:
        x, y = places[last]
        for number, (least, _) in left.items():
            away = abs(places[number][0] - x) + abs(places[number][1] - y)
            if away < least:
                left[number] = away, last
        last = min(left, key=left.__getitem__)
        um, before = left.pop(last)
        wires.append((before, last, um))
    return wires


def estimated(placed: PlacedCells, library: CellLibrary, wire: Wires) -> Parasitics:
    """What wires that span the pins of each net, of so much a um, would add to the netlist."""
    pins: defaultdict[int, list[tuple[tuple[float, float], What]]] = defaultdict(list)
    for net, at, pin, drives in placed.pins():
        pins[net].insert(0 if drives else len(pins[net]), (at, pin))

    def trees() -> Iterator[tuple[int, NetTree]]:
        for net, of in pins.items():
            ff: defaultdict[Point, float] = defaultdict(float)
            resistors = []
            for one, other, um in spanning([at for at, _ in of]):
                ends = of[one][1], of[other][1]
                for end in ends:
                    ff[end] += wire.ff * um / 2
                resistors.append((*ends, wire.ohm * um))
            yield net, NetTree([pin for _, pin in of], ff, resistors)

    return _parasitics(placed.netlist, library, trees())


def routed(routes: Routes, library: CellLibrary, wire_ff: float | None = None) -> Parasitics:
    """What routed wires add to the netlist.

    Parameters:
        library: of the cells, for the loads of pins. wire_ff: as of :func:`net_trees`.
    """
    return _parasitics(routes.placed.netlist, library, net_trees(routes, wire_ff))


def _parasitics(
    netlist: Netlist, library: CellLibrary, trees: Iterable[tuple[int, NetTree]]
) -> Parasitics:
    register = port_register(library)
    end_ff = register.cell.pins[register.data].capacitance
    gates = netlist.gates
    ff, ohm, ways = dict[int, float](), dict[int, float](), dict[What, float]()
    for net, tree in trees:
        pins = {}
        for pin in tree.terminals[1:]:
            cell = library.cells.get(gates[pin[0]].kind) if pin[0] >= 0 else None
            pins[pin] = end_ff if cell is None else cell.pins[pin[1]].capacitance
        of_pins = tree.ways(pins)
        ff[net], ohm[net] = sum(tree.ff.values()), max(of_pins.values(), default=0.0)
        ways |= of_pins
    return Parasitics(ff, ohm, ways)


def _pieces(routes: Routes) -> Mapping[int, list[tuple[Point, Point, int, float]]]:
    """Of each net, its wires from one node to the next, and its vias: both nodes, the layer (of a
    via the lower one), and its length in um."""
    lattice = routes.lattice
    pieces: defaultdict[int, list[tuple[Point, Point, int, float]]] = defaultdict(list)
    points: defaultdict[tuple[int, int, int], set[int]] = defaultdict(set)

    def point(net: int, place: int, x: int, y: int) -> None:
        points[net, place, y if place % 2 else x].add(x if place % 2 else y)

    for net, place, x, y in routes.ends.tolist():
        point(net, place, x, y)
    for net, place, x, y in routes.vias().tolist():
        point(net, place, x, y)
        point(net, place + 1, x, y)
        pieces[net].append(((place, x, y), (place + 1, x, y), place, 0.0))
    for net, place, *nodes in routes.jogs().tolist():
        one, other = nodes[:2], nodes[2:]
        for end in (one, other):
            point(net, place, *end)
        pieces[net].append(((place, *one), (place, *other), place, 0.0))
    for net, place, x, y, to_x, to_y in routes.tracks().tolist():
        track, start, end = (y, x, to_x) if place % 2 else (x, y, to_y)
        inner = sorted({start, end, *(v for v in points[net, place, track] if start <= v <= end)})
        pitch = lattice.pitch(place, along=True) / 1000
        for a, b in pairwise(inner):
            ends = [(place, at, track) if place % 2 else (place, track, at) for at in (a, b)]
            pieces[net].append((ends[0], ends[1], place, (b - a) * pitch))
    return pieces
