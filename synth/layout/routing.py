"""Detailed routing of placed cells: where wires reach their pins, and the wires themselves.

Wires are on a lattice of the pitches of the second layer (x) and the third (y), in the directions
of their layers, from the second to :data:`_TOP`; vias to the first layer are on pins. The router
(``router.cpp``) treats rules as nodes: a wire takes its nodes and as many behind its end as keep
the next wire's via away.
"""

import ctypes
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from support.native import compile_library
from synth.errors import SynthesisError

from .floorplan import Box
from .lef import Lef, LefCell, Rectangle, Shape
from .placement import PlacedCells, What

_SOURCE = Path(__file__).with_name("router.cpp")
#: The highest layer that wires use; those above are left to supplies.
_TOP = 6
#: Layers that memories cover, from the lowest.
_COVERED = 4
#: Rounds of negotiation, after which shared nodes stay.
_ROUNDS = 800
#: Vias to choose from on a pin, up to which wires of the lowest layer lead to more.
_PLACES = 4
#: How many nodes a port or a pin of a memory may be away from its place.
_NEAR = 100
#: Least overlap in nm of shapes that are one, a wire's width.
_JOINT = 70
#: Cost of a via, in steps of the shorter pitch.
_VIA = 2.5
#: Costs are whole parts of a step.
_PARTS = 3

Array = npt.NDArray[Any]


class Lattice:
    """The lattice of a LEF, and what its rules take of it.

    Attributes:
        metal: name of the lowest layer. space: between shapes on it.
        x_nm, y_nm: its pitches; the first node is half of them from the corner.
        layers: names of the layers of wires. cuts: of the cut layer above each layer of LEF.
        vias: names of the vias above each layer of the LEF, those first that fit its wires best.
        rows: per layer of wires, as ``router.cpp`` reads them: whether wires are horizontal, steps
            between tracks and between nodes of a track, nodes that a wire takes behind it, and
            nodes between cuts below it. gaps: of the cuts above each, nodes between them along the
            vertical one of the two layers.

    Raises:
        SynthesisError: the LEF lacks a rule or a via, or its cells do not fit the lattice.
    """

    def __init__(self, lef: Lef) -> None:
        names = list(lef.layers)[:_TOP]
        if len(names) < _TOP:
            raise SynthesisError(f"LEF has {len(names)} routing layers; routing needs {_TOP}")
        self.lef, self.metal, self.layers = lef, names[0], names[1:]
        self.space = self._rule(self.metal, "SPACING")
        self.x_nm, self.y_nm = (self._rule(name, "PITCH") for name in names[1:3])
        if lef.site_nm % self.x_nm or lef.row_nm % self.y_nm:
            raise SynthesisError(
                f"LEF: sites and rows are not multiples of {self.x_nm} and {self.y_nm} nm pitches"
            )
        for place, name in enumerate(self.layers):
            if lef.rules[name]["DIRECTION"] != place % 2:
                raise SynthesisError(f"LEF: wires of {name} do not cross those of the layer below")
        self.vias = [self._vias(below, above) for below, above in pairwise(names)]
        self.cuts = [
            next(layer for layer, *_ in lef.vias[vias[0]] if layer not in names)
            for vias in self.vias
        ]
        tracks = [self._steps(place, along=False) for place in range(len(self.layers))]
        self.rows, self.gaps = [], list[int]()
        for place in range(len(self.layers)):
            # Nodes are where a wire of a layer beside it can be.
            neighbours = [*tracks[max(0, place - 1) : place], *tracks[place + 1 : place + 2]]
            step = gcd(*neighbours) if place else 1
            gaps = [self._gap(place, cut, step) for cut in self.cuts[place : place + 2]]
            extension = max(self._steps(place, along=True, step=step) - 1, *gaps)
            self.rows.append((place % 2, tracks[place], step, extension, gaps[0]))
            if place % 2 == 0:
                self.gaps += [gap * step for gap in gaps]

    def _rule(self, layer: str, rule: str) -> int:
        try:
            return self.lef.rules[layer][rule]
        except KeyError:
            raise SynthesisError(f"LEF: layer {layer} lacks its {rule.lower()}") from None

    def _across(self, shape: Shape) -> int:
        """Size of a shape across the wires of its layer."""
        layer, left, low, right, top = shape
        return top - low if self.lef.rules[layer]["DIRECTION"] else right - left

    def _vias(self, below: str, above: str) -> Sequence[str]:
        """Vias between two layers that are narrowest above, and of them first those below."""
        vias = []
        for name, shapes in self.lef.vias.items():
            of = {shape[0]: shape for shape in shapes}
            if below in of and above in of and len(of) == 3:
                vias.append((self._across(of[above]), self._across(of[below]), name))
        if not vias:
            raise SynthesisError(f"LEF has no via from {below} to {above}")
        vias.sort()
        return [name for across, _, name in vias if across == vias[0][0]]

    def shape(self, via: str, layer: str) -> Rectangle:
        """Of a via on a layer."""
        return next(shape[1:] for shape in self.lef.vias[via] if shape[0] == layer)

    def _pads(self, place: int) -> Iterator[Shape]:
        """Shapes of vias on a layer of wires."""
        layer = self.layers[place]
        for vias in self.vias[place : place + 2]:
            yield layer, *self.shape(vias[0], layer)

    def pitch(self, place: int, *, along: bool) -> int:
        """Of the lattice along the wires of a layer, or across them."""
        return self.x_nm if along == bool(place % 2) else self.y_nm

    def _steps(self, place: int, *, along: bool, step: int = 1) -> int:
        """Steps from a via or wire to the next one."""
        name = self.layers[place]
        sizes = [self._rule(name, "WIDTH")]
        for pad in self._pads(place):
            across = self._across(pad)
            sizes.append(pad[3] - pad[1] + pad[4] - pad[2] - across if along else across)
        room = max(sizes) + self._rule(name, "SPACING")
        return -(-room // (self.pitch(place, along=along) * step))

    def _gap(self, place: int, cut: str, step: int) -> int:
        """Nodes along a wire between which cuts are too close."""
        room = self._rule(cut, "WIDTH") + self._rule(cut, "SPACING")
        return -(-room // (self.pitch(place, along=True) * step)) - 1

    def nm(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Place of a node, or of several."""
        return (2 * x + 1) * self.x_nm // 2, (2 * y + 1) * self.y_nm // 2

    def half(self, place: int) -> tuple[int, int]:
        """How far a wire reaches along its track from its last node, and across it."""
        along = max(
            pad[3] - pad[1] + pad[4] - pad[2] - self._across(pad) for pad in self._pads(place)
        )
        return along // 2, self._rule(self.layers[place], "WIDTH") // 2

    def access(self, kind: str) -> Mapping[str, Sequence[tuple[int, int, Sequence[Rectangle]]]]:
        """Pin -> nodes in a cell of orientation N where a via can be on it, each with the shapes
        of the lowest layer there: of its pad, and of a wire of a step to the pin if it needs one.

        What they add to the pin keeps its distance to all other shapes of the cell, to the pads of
        other pins' vias, and to cells beside it, which begin half a space from the edge.
        """
        cell = self.lef.cells[kind]
        metal = self.metal
        shapes = {
            name: [shape[1:] for shape in of if shape[0] == metal]
            for name, of in cell.shapes.items()
        }
        signals = [pin for pin in cell.pins if shapes[pin]]
        places = {pin: list(self._places(cell, pin, shapes, steps=False)) for pin in signals}
        for pin in sorted(signals, key=lambda pin: len(places[pin])):
            # Whichever places are used, their shapes must be apart.
            used = {
                name: [*of, *(box for _, _, boxes in places.get(name, ()) for box in boxes)]
                for name, of in shapes.items()
            }
            used[pin] = shapes[pin]
            at = {(column, row) for column, row, _ in places[pin]}
            stubs = self._places(cell, pin, used, steps=True)
            places[pin] += [place for place in stubs if place[:2] not in at][: _PLACES - len(at)]
        return places

    def _places(
        self, cell: LefCell, pin: str, shapes: Mapping[str, Sequence[Rectangle]], *, steps: bool
    ) -> Iterator[tuple[int, int, Sequence[Rectangle]]]:
        of_pin, space = shapes[pin], self.space
        obstacles = [shape for name, of in shapes.items() if name != pin for shape in of]

        def free(added: Rectangle) -> bool:
            return all(
                2 * min(part[0], cell.width - part[2]) >= space
                and not any(near(part, box, space) for box in obstacles)
                and not any(uncovered(gap, [*of_pin, added]) for gap in gaps(part, of_pin, space))
                for part in uncovered(added, of_pin)
            )

        for column in range(cell.width // self.x_nm):
            for row in range(cell.height // self.y_nm):
                x, y = (2 * column + 1) * self.x_nm // 2, (2 * row + 1) * self.y_nm // 2
                ways = ((1, 0), (-1, 0), (0, 1), (0, -1)) if steps else ((0, 0),)
                wires = [self._wire(x, y, *way) for way in ways]
                wires = [
                    wire for wire in wires if not steps or (free(wire) and touches(wire, of_pin))
                ]
                choices = []
                for via in self.vias[0]:
                    pad, cut = (
                        moved(self.shape(via, layer), x, y) for layer in (self.metal, self.cuts[0])
                    )
                    if (steps or not uncovered(cut, of_pin)) and free(pad):
                        choices += [[pad, wire][: 1 + steps] for wire in wires]
                if choices:
                    yield column, row, min(choices, key=lambda boxes: added(boxes, of_pin))

    def _wire(self, x: int, y: int, dx: int, dy: int) -> Rectangle:
        """A wire of the lowest layer from a node to the next one."""
        half = self._rule(self.metal, "WIDTH") // 2
        to_x, to_y = x + dx * self.x_nm, y + dy * self.y_nm
        return min(x, to_x) - half, min(y, to_y) - half, max(x, to_x) + half, max(y, to_y) + half


def gaps(box: Rectangle, obstacles: Sequence[Rectangle], space: int) -> Iterator[Rectangle]:
    """What is between a box and others beside, above or below it that are closer than ``space``."""
    for other in obstacles:
        left, right = max(box[0], other[0]), min(box[2], other[2])
        below, above = max(box[1], other[1]), min(box[3], other[3])
        if left < right and 0 < below - above < space:
            yield left, above, right, below
        if below < above and 0 < left - right < space:
            yield right, below, left, above


def added(boxes: Sequence[Rectangle], to: Sequence[Rectangle]) -> int:
    """Area that ``boxes`` add to others."""
    area, to = 0, list(to)
    for box in boxes:
        area += sum((right - left) * (top - low) for left, low, right, top in uncovered(box, to))
        to.append(box)
    return area


def touches(box: Rectangle, obstacles: Sequence[Rectangle]) -> bool:
    """Whether ``box`` covers enough of another one to be connected: more than a corner."""
    return any(
        min(box[2], other[2]) - max(box[0], other[0]) >= _JOINT
        and min(box[3], other[3]) - max(box[1], other[1]) >= _JOINT
        for other in obstacles
    )


def moved(box: Sequence[int], x: int, y: int) -> Rectangle:
    """``box`` to the right by ``x`` and up by ``y``."""
    left, low, right, top = box
    return left + x, low + y, right + x, top + y


def near(a: Sequence[int], b: Sequence[int], space: int) -> bool:
    """Whether two boxes are closer than ``space``."""
    return (
        a[0] < b[2] + space and b[0] < a[2] + space and a[1] < b[3] + space and b[1] < a[3] + space
    )


def uncovered(box: Rectangle, by: Sequence[Sequence[int]]) -> list[Rectangle]:
    """The parts of ``box`` that no other box covers."""
    left = [box]
    for a, b, c, d in by:
        left = [
            part
            for x, y, u, v in left
            for part in (
                (x, y, u, min(v, b)),
                (x, max(y, d), u, v),
                (x, max(y, b), min(u, a), min(v, d)),
                (max(x, c), max(y, b), u, min(v, d)),
            )
            if part[0] < part[2] and part[1] < part[3]
        ]
    return left


@cache
def _router() -> ctypes.CDLL:
    """The router, compiled unless cached.

    Raises:
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    library = compile_library("router", _SOURCE, ("-std=c++17", "-O2"))
    library.vip_route.restype = ctypes.c_int64
    return library


def _pointer(array: Array) -> Any:
    return array.ctypes.data_as(ctypes.c_void_p)


class Routes:
    """Wires of a placement, as its router found them.

    Parameters:
        rounds: of negotiation, at most.

    Attributes:
        placed: the placement. lattice: of its LEF.
        nets: those with wires: net -> its terminals, its driver first.
        places: of each terminal, its nodes: layer of wires, x and y.
        pads: net, x, y -> shapes on the lowest layer with which a via there is on a pin.
        rounds: nodes that several nets shared after each round, and nets that shared any.
        pieces: net, then layer, x and y of both ends of each straight wire and via.
        ends: net, layer, x and y of the ends of paths.

    Raises:
        SynthesisError: a pin can't be reached or has no place for a via, or nets still share nodes.
        support.native.CompilerError: there is no C++ compiler.
    """

    def __init__(self, placed: PlacedCells, rounds: int = _ROUNDS) -> None:
        self.placed, self.lattice = placed, Lattice(placed.floorplan.lef)
        die, (site, step) = placed.floorplan.die, placed.floorplan.lef.grid_nm
        self.width = die.width * site // self.lattice.x_nm
        self.height = die.height * step // self.lattice.y_nm
        self.pads: defaultdict[tuple[int, ...], list[Rectangle]] = defaultdict(list)
        self.places = dict(self._terminals())
        nets: defaultdict[int, list[What]] = defaultdict(list)
        for net, _, terminal, drives in placed.pins():
            nets[net].insert(0 if drives else len(nets[net]), terminal)
        self.nets = {net: terminals for net, terminals in nets.items() if len(terminals) > 1}
        self._run(rounds)

    def _run(self, rounds: int) -> None:
        lattice = self.lattice
        numbers = list(self.nets)
        pins = [len(numbers)]
        for terminals in self.nets.values():
            pins.append(len(terminals))
            for terminal in terminals:
                pins.append(len(self.places[terminal]))
                for node in self.places[terminal]:
                    pins += node
        parts = [
            _PARTS * pitch / min(lattice.x_nm, lattice.y_nm)
            for pitch in (lattice.x_nm, lattice.y_nm)
        ]
        grid = [
            self.width,
            self.height,
            len(lattice.layers),
            *map(round, parts),
            round(_PARTS * _VIA),
        ]
        covered = list(self._covered())
        work = [
            np.array(values, np.int32)
            for values in (
                [*grid, *(v for row in lattice.rows for v in row)],
                [len(covered), *(v for box in covered for v in box)],
                pins,
            )
        ]
        sizes = np.zeros(3, np.int64)
        left = _router().vip_route(*map(_pointer, work), rounds, _pointer(sizes))
        if left < 0:
            name, (x, y) = self._named(numbers[-1 - left])
            raise SynthesisError(
                f"routing: no way from {name} at {x / 1000:.2f}, {y / 1000:.2f} um to its net"
            )
        result = np.zeros(sizes.sum(), np.int32)
        _router().vip_routes(_pointer(result))
        pieces, shared, counts = np.split(result, np.cumsum(sizes)[:2])
        pieces = pieces.reshape(-1, 7)
        names = np.array(numbers, np.int64)
        pieces = np.column_stack([names[pieces[:, 0]], pieces[:, 1:]])
        self.pieces, self.ends = pieces[pieces[:, 4] >= 0], pieces[pieces[:, 4] < 0][:, :4]
        self.rounds = counts.reshape(-1, 2)
        if len(shared):
            place, column, row, _ = shared.reshape(-1, 4)[0].tolist()
            x, y = lattice.nm(column, row)
            raise SynthesisError(
                f"routing: {self.rounds[-1, 0]} overflows are left, one on {lattice.layers[place]}"
                f" at {x / 1000:.2f}, {y / 1000:.2f} um"
            )

    def _named(self, net: int) -> tuple[str, tuple[int, int]]:
        """A pin of a net, and its place in nm."""
        number, name, bit = self.nets[net][0]
        gate = self.placed.netlist.gates[number].name + "." if number >= 0 else ""
        _, x, y = self.places[self.nets[net][0]][0]
        return f"{gate}{name}[{bit}]", self.lattice.nm(x, y)

    def _covered(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Nodes that memories cover: layer of wires, and corners of a box."""
        plan, lattice = self.placed.floorplan, self.lattice
        site, step = plan.lef.grid_nm
        for box in plan.blocks.values():
            left, right = (v * site // lattice.x_nm for v in (box.x, box.x + box.width))
            low, top = (v * step // lattice.y_nm for v in (box.y, box.y + box.height))
            for place in range(_COVERED - 1):
                yield place, left - 1, low - 1, right, top

    def _terminals(self) -> Iterator[tuple[What, Sequence[tuple[int, int, int]]]]:
        """The nodes of each pin of a wire."""
        netlist, plan, lattice = self.placed.netlist, self.placed.floorplan, self.lattice
        site, step = plan.lef.grid_nm
        access = cache(lattice.access)
        used: set[tuple[int, int]] = set()
        for net, (x_um, y_um), terminal, _ in self.placed.pins():
            number, pin, _ = terminal
            gate = netlist.gates[number] if number >= 0 else None
            if gate is None or gate.name in plan.blocks:
                box = plan.die if gate is None else plan.blocks[gate.name]
                yield terminal, [self._edge(x_um, y_um, box, gate is not None, used)]
                continue
            turn, (x, y) = self.placed.turns[gate.name], self.placed.places[gate.name]
            cell = plan.lef.cells[gate.kind]
            wide, high = cell.width // lattice.x_nm - 1, cell.height // lattice.y_nm - 1
            nodes = []
            for column, row, pads in access(gate.kind)[pin]:
                node = (
                    x * site // lattice.x_nm + (wide - column if turn in ("FN", "S") else column),
                    y * step // lattice.y_nm + (high - row if turn in ("FS", "S") else row),
                )
                nodes.append((0, *node))
                self.pads[net, *node] += [self.placed.drawn(gate, pad) for pad in pads]
            if not nodes:
                raise SynthesisError(
                    f"LEF: no via fits on pin {pin} of cell {gate.kind}, e.g. {gate.name}"
                )
            yield terminal, nodes

    def _edge(
        self, x_um: float, y_um: float, box: Box, outside: bool, used: set[tuple[int, int]]
    ) -> tuple[int, int, int]:
        """A free node near a place at the edge of the die, or outside of the edge of a memory."""
        plan, lattice = self.placed.floorplan, self.lattice
        site, step = plan.lef.um
        sides = (
            (x_um - box.x * site, (-1, 0)),
            ((box.x + box.width) * site - x_um, (1, 0)),
            (y_um - box.y * step, (0, -1)),
            ((box.y + box.height) * step - y_um, (0, 1)),
        )
        _, (dx, dy) = min((abs(away), way) for away, way in sides)
        # Ports are above memories, which may be at the edge, too.
        layers = ((3,), (4,)) if plan.blocks and not outside else ((1,), (2, 0))
        # Wires take nodes behind their ends, which memories must not cover, nor the one before.
        far = 2 + max(row[3] for row in lattice.rows) if outside else 0
        x = min(max(0, int(x_um * 1000 // lattice.x_nm) + far * dx), self.width - 1)
        y = min(max(0, int(y_um * 1000 // lattice.y_nm) + far * dy), self.height - 1)
        for away in range(_NEAR):
            for at in ((x, y + away), (x, y - away)) if dx else ((x + away, y), (x - away, y)):
                inside = 0 <= at[0] < self.width and 0 <= at[1] < self.height
                for place in layers[0 if dx else 1] if inside else ():
                    _, track, step, *_ = lattice.rows[place]
                    # At the far edges the last node of the layer.
                    node = (at[0] - at[0] % step, at[1]) if dx else (at[0], at[1] - at[1] % step)
                    if node not in used and node[1 if dx else 0] % track == 0:
                        used.add(node)
                        return place, *node
        raise SynthesisError("routing: more pins than places at an edge")

    def shapes(self) -> Array:
        """Net, layer (twice its place among routing layers, odd: the cut above it), left, lower,
        right and upper edge in nm of each shape of the wires."""
        return np.concatenate([self._pin_shapes(), self._cut_shapes(), self._wire_shapes()])

    def pin_vias(self) -> Array:
        """Net, x and y of each via on a pin."""
        ends = self.ends[self.ends[:, 1] == 0][:, [0, 2, 3]]
        on_pin = [tuple(end) in self.pads for end in ends.tolist()]
        return np.unique(ends[np.array(on_pin, bool)], axis=0)

    def vias(self) -> Array:
        """Net, lower layer of wires, x and y of each other via."""
        return self._vias_and_jogs()[0]

    def jogs(self) -> Array:
        """Net, horizontal layer, x and y of both ends where a wire joins two of its tracks: instead
        of a via whose cut would be too close to another one of the net on the same vertical
        wire."""
        return self._vias_and_jogs()[1]

    def _vias_and_jogs(self) -> tuple[Array, Array]:
        vias = self.pieces[self.pieces[:, 1] != self.pieces[:, 4]]
        lower = np.minimum(vias[:, 1], vias[:, 4])
        rows = np.unique(np.column_stack([vias[:, 0], lower, vias[:, 2:4]]), axis=0).tolist()
        cuts, jogs = rows[:1], []
        for row in rows[1:]:
            net, place, x, y = row
            gap = self.lattice.gaps[place + 1]
            if cuts[-1][:3] == row[:3] and y - cuts[-1][3] <= gap:
                jogs.append((net, place + 1 - place % 2, x, cuts[-1][3], x, y))
            else:
                cuts.append(row)
        return np.array(cuts).reshape(-1, 4), np.array(jogs, np.int64).reshape(-1, 6)

    def _pin_shapes(self) -> Array:
        """Cuts on pins, and what they and wires to them add to the lowest layer."""
        cut = self.lattice.shape(self.lattice.vias[0][0], self.lattice.cuts[0])
        shapes = []
        for net, x, y in self.pin_vias().tolist():
            shapes += [(net, 0, *pad) for pad in self.pads[net, x, y]]
            shapes.append((net, 1, *moved(cut, *self.lattice.nm(x, y))))
        return np.array(shapes, np.int64).reshape(-1, 6)

    def _cut_shapes(self) -> Array:
        """Cuts between layers of wires."""
        vias = self.vias()
        sizes = np.array(
            [
                self.lattice.shape(of[0], cut)
                for of, cut in zip(self.lattice.vias[1:], self.lattice.cuts[1:], strict=True)
            ]
        )
        x, y = self.lattice.nm(vias[:, 2], vias[:, 3])
        at = np.column_stack([x, y, x, y]) + sizes[vias[:, 1]]
        return np.column_stack([vias[:, 0], 2 * vias[:, 1] + 3, at])

    def tracks(self) -> Array:
        """Net, layer of wires, x and y of both ends of each wire in the direction of its layer,
        joined where wires of a net leave too little space."""
        straight = self.pieces[self.pieces[:, 1] == self.pieces[:, 4]]
        via = self.pieces[self.pieces[:, 1] != self.pieces[:, 4]]
        points = np.concatenate([self.ends, via[:, :4], via[:, [0, 4, 5, 6]]])
        pieces = np.concatenate([straight, points[:, [0, 1, 2, 3, 1, 2, 3]]])
        across = pieces[:, 1] % 2 == 1
        track = np.where(across, pieces[:, 3], pieces[:, 2])
        ends = np.where(across[:, None], pieces[:, [2, 5]], pieces[:, [3, 6]])
        rows = np.column_stack([pieces[:, :2], track, ends.min(1), ends.max(1)])
        rows = rows[np.lexsort(rows.T[3::-1])]
        group = np.cumsum(np.any(np.diff(rows[:, :3], axis=0, prepend=-1), axis=1))
        # Groups are far apart, so that the last node so far is one of the same group.
        far = group * (2 * (self.width + self.height))
        reach = np.maximum.accumulate(rows[:, 4] + far)
        room = np.array([step * extension for _, _, step, extension, _ in self.lattice.rows])
        begins = np.ones(len(rows), bool)
        begins[1:] = (rows[:, 3] + far)[1:] > reach[:-1] + room[rows[1:, 1]]
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(rows)) - 1
        layer, track, start, end = *rows[first, 1:4].T, reach[last] - far[last]
        ends = np.where(layer % 2, (start, track, end, track), (track, start, track, end))
        return np.column_stack([rows[first, :2], ends.T])

    def lengths(self) -> dict[int, float]:
        """Net -> um of its wires."""
        lengths = dict.fromkeys(self.nets, 0.0)
        for net, place, x, y, to_x, to_y in self.tracks().tolist():
            steps = to_x - x + to_y - y
            lengths[net] += steps * self.lattice.pitch(place, along=True) / 1000
        return lengths

    def _wire_shapes(self) -> Array:
        tracks, jogs = self.tracks(), self.jogs()
        net, place, x, y, to_x, to_y = np.concatenate([jogs, tracks]).T
        halves = [self.lattice.half(layer) for layer in range(len(self.lattice.layers))]
        along, across = np.array(halves)[place].T
        # No via's pad is along a jog.
        along[: len(jogs)] = across[: len(jogs)]
        wide, high = np.where(place % 2, (along, across), (across, along))
        (left, low), (right, top) = self.lattice.nm(x, y), self.lattice.nm(to_x, to_y)
        sides = left - wide, low - high, right + wide, top + high
        return np.column_stack([net, 2 * place + 2, *sides])
