"""What drawn wires connect, and how close they are: a check that knows nothing of the router.

It sees only where the cells of the LEF are placed, and shapes. Shapes that touch are connected, and
cuts connect the layers below and above. What is connected must be the nets of the netlist, and all
other shapes must be as far away as the rule of their layer asks for.
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from .routing import Array, Routes, moved

#: Side in nm of the squares in which shapes are compared with each other.
_SQUARE = 1000
#: More than there are squares on a side of a die.
_FAR = 1 << 20
#: Instead of its net, what a pin has that no wire may touch.
_NO_WIRE = -1


def faults(routes: Routes) -> Iterator[str]:
    """A line for each net in several parts, for each part that touches something else, for each cut
    that a layer does not cover, and for each two shapes that are too close."""
    wires, lattice = routes.shapes(), routes.lattice
    cells, nets = _pins(routes)
    shapes = np.concatenate([wires, cells])
    layer = shapes[:, 1]
    names = list(lattice.lef.layers)
    layers = [name for pair in zip(names, lattice.cuts, strict=False) for name in pair]
    layers.append(lattice.layers[-1])
    space = np.array([lattice.lef.rules[name]["SPACING"] for name in layers])
    first, second = _near(shapes[:, 2:], layer, space[layer], len(wires))
    wide, high = (
        np.minimum(shapes[first, side + 2], shapes[second, side + 2])
        - np.maximum(shapes[first, side], shapes[second, side])
        for side in (2, 3)
    )
    touch = (np.minimum(wide, high) >= 0) & (np.maximum(wide, high) > 0)
    pins = np.flatnonzero(cells[1:, 0] == cells[:-1, 0]) + len(wires)
    ends_from, ends_to = [first[touch], pins], [second[touch], pins + 1]
    for cut in range(1, len(layers), 2):
        for metal in (cut - 1, cut + 1):
            a, b = _covered(shapes, np.flatnonzero(layer == cut), np.flatnonzero(layer == metal))
            ends_from.append(a)
            ends_to.append(b)
            for alone in np.setdiff1d(np.flatnonzero(layer == cut), a)[:1].tolist():
                yield f"{layers[metal]}: no shape covers a cut {_at(shapes[alone])}"
    group = _groups(len(shapes), np.concatenate(ends_from), np.concatenate(ends_to))
    of_net: defaultdict[int, set[int]] = defaultdict(set)
    of_group: defaultdict[int, set[int]] = defaultdict(set)
    used = set(group[: len(wires)].tolist())
    for pin, number in zip(cells[:, 0].tolist(), group[len(wires) :].tolist(), strict=True):
        of_net[nets[pin]].add(number)
        if number in used:
            of_group[number].add(nets[pin])
    for net, groups in of_net.items():
        if net != _NO_WIRE and len(groups) > 1:
            yield f"net {net} is in {len(groups)} parts"
    for number, connected in of_group.items():
        if len(connected) > 1:
            at = _at(shapes[np.flatnonzero(group == number)[0]])
            yield f"nets {sorted(connected)[:3]} are connected {at} (-1: no wire may be there)"
    close = np.where(layer[first] % 2 == 1, ~touch, group[first] != group[second])
    for a in first[close].tolist():
        yield f"{layers[layer[a]]}: two shapes are too close {_at(shapes[a])}"


def _groups(count: int, ends_from: Array, ends_to: Array) -> Array:
    """The group of each of ``count`` items, of which ``ends_from`` are connected to ``ends_to``."""
    group = np.arange(count)
    while True:
        low = np.minimum(group[ends_from], group[ends_to])
        after = group.copy()
        np.minimum.at(after, group[ends_from], low)
        np.minimum.at(after, group[ends_to], low)
        while np.any(after != after[after]):
            after = after[after]
        if np.array_equal(group, after):
            return group
        group = after


def _at(shape: Array) -> str:
    return f"at {shape[2] / 1000:.3f}, {shape[3] / 1000:.3f} um"


def _pins(routes: Routes) -> tuple[Array, dict[int, int]]:
    """The shapes of pins, each with a pin's number instead of a net, and the net of each."""
    placed, lattice = routes.placed, routes.lattice
    lef = placed.floorplan.lef
    nets: dict[int, int] = {}
    shapes = []
    wired = {terminal: net for net, terminals in routes.nets.items() for terminal in terminals}
    gates = placed.netlist.gates
    for number, gate in enumerate(gates):
        if gate.name in placed.floorplan.blocks:
            continue
        for pin, of_pin in lef.cells[gate.kind].shapes.items():
            for shape in of_pin:
                if shape[0] == lattice.metal:
                    shapes.append((len(nets), 0, *placed.drawn(gate, shape[1:])))
            nets[len(nets)] = wired.get((number, pin, 0), _NO_WIRE)
    for terminal, net in wired.items():
        if terminal[0] < 0 or gates[terminal[0]].name in placed.floorplan.blocks:
            ((place, x, y),) = routes.places[terminal]
            at = moved((-1, -1, 1, 1), *lattice.nm(x, y))
            shapes.append((len(nets), 2 * place + 2, *at))
            nets[len(nets)] = net
    return np.array(shapes, np.int64), nets


def _near(boxes: Array, key: Array, space: Array, some: int) -> tuple[Array, Array]:
    """Pairs of boxes of the same key that are closer than ``space``, or overlap; one of each is
    among the first ``some``."""
    space = space[:, None]
    low, high = (boxes[:, :2] - space) // _SQUARE, (boxes[:, 2:] + space) // _SQUARE
    wide, tall = (high - low + 1).T
    of = np.repeat(np.arange(len(boxes)), wide * tall)
    nth = np.arange(len(of)) - np.repeat(np.cumsum(wide * tall) - wide * tall, wide * tall)
    x, y = low[of, 0] + nth % wide[of], low[of, 1] + nth // wide[of]
    square = (key[of] * _FAR + x) * _FAR + y
    order = np.argsort(square, kind="stable")
    of, square = of[order], square[order]
    ends_from = np.flatnonzero(of < some)
    pairs = [np.zeros(0, np.int64)]
    for away in range(1, len(of)):
        ends_from = ends_from[ends_from + away < len(of)]
        ends_from = ends_from[square[ends_from] == square[ends_from + away]]
        if not len(ends_from):
            break
        a, b = of[ends_from], of[ends_from + away]
        gap = np.maximum(boxes[a, :2], boxes[b, :2]) - np.minimum(boxes[a, 2:], boxes[b, 2:])
        # Corners are as far apart as their distance.
        close = (np.maximum(gap, 0) ** 2).sum(1) < np.maximum(space[a, 0], 1) ** 2
        pairs.append(a[close] * len(boxes) + b[close])
    unique = np.unique(np.concatenate(pairs))
    return unique // len(boxes), unique % len(boxes)


def _covered(shapes: Array, cuts: Array, metal: Array) -> tuple[Array, Array]:
    """Pairs of a cut and a shape that covers it."""
    boxes = shapes[np.concatenate([cuts, metal]), 2:]
    none = np.zeros(len(boxes), np.int64)
    first, second = _near(boxes, none, none, len(cuts))
    inner, outer = boxes[first], boxes[second]
    covers = (second >= len(cuts)) & (outer[:, :2] <= inner[:, :2]).all(1)
    covers &= (inner[:, 2:] <= outer[:, 2:]).all(1)
    return cuts[first[covers]], metal[second[covers] - len(cuts)]
