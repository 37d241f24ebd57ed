"""Where the blocks of a diagram are drawn."""

from collections.abc import Mapping
from math import atan2, cos, pi, sin

from .links import TILE, Links

__all__ = ["Place", "placed"]

#: Centre of a block: across and down, in blocks.
Place = tuple[float, float]

#: Module with a layout of its own -> its blocks: the pipeline runs from left to right.
_LAYOUTS: Mapping[str, Mapping[str, Place]] = {
    "pe": {
        "control": (-0.2, -0.1),
        "identity": (2.4, 0.6),
        "sequencer": (1, 0.8),
        "fetch": (-0.2, 2),
        "operands": (1.2, 2),
        "issue": (2.3, 2),
        "dispatch": (3.45, 2),
        "arc": (3.45, 2.95),
        "counters": (1.6, -0.1),
        "decode": (1.2, 3.9),
        "registers": (0, 3.1),
        "scalar": (2.4, 2.95),
        "vector": (4.7, 1.2),
        "load_store": (4.7, 3.5),
        "scratchpad": (5.8, 2.2),
        "memory": (5.9, 3.9),
    }
}
#: Blocks between the centres of neighbours on a circle.
_APART = 1.5
#: Between rows of tiles.
_ROW = 1.2


def placed(graph: Links, columns: int = 0) -> dict[str, Place]:
    """Places of the blocks.

    An engine's are those of a table; tiles of a chip make a grid, with what is beside them at its
    left, without the ports that belong to a tile each; other units make a circle, with the ports
    around it.

    Parameters:
        columns: of the torus of a chip.
    """
    layout = _LAYOUTS.get(graph.module, {})
    if layout and graph.blocks.keys() <= layout.keys():
        return {name: layout[name] for name in graph.blocks}
    tiles = {name: int(match[1]) for name in graph.blocks if (match := TILE.fullmatch(name))}
    if tiles and columns:
        return _grid(graph, tiles, columns)
    return _circle(graph)


def _grid(graph: Links, tiles: Mapping[str, int], columns: int) -> dict[str, Place]:
    places = {
        name: (2.7 + _APART * (n % columns), _ROW * (n // columns)) for name, n in tiles.items()
    }
    units = [name for name, block in graph.blocks.items() if block.module and name not in tiles]
    ports = [
        name
        for name, block in graph.blocks.items()
        if not block.module and not graph.neighbours(name) <= tiles.keys()
    ]
    for across, names in ((1.1, units), (-0.3, ports)):
        places |= {name: (across, _ROW * down) for down, name in enumerate(names)}
    return places


def _circle(graph: Links) -> dict[str, Place]:
    units = _in_order(graph)
    radius = 0.0 if len(units) == 1 else max(1.1, _APART * len(units) / (2 * pi))
    places: dict[str, Place] = {
        name: (1.5 * radius * cos(turn), radius * sin(turn))
        for name, turn in ((one, pi + 2 * pi * n / len(units)) for n, one in enumerate(units))
    }
    ports = [block.name for block in graph.blocks.values() if not block.module]
    angles = {name: _towards(name, graph, places) for name in ports}
    # Ports around the units, in the order of the units that they belong to.
    order = sorted(ports, key=lambda name: (angles[name], name))
    for number, name in enumerate(order):
        turn = angles[order[0]] + 2 * pi * number / len(order)
        outer = max(radius + 1.2, 0.75 * len(order) / (2 * pi))
        places[name] = (1.5 * outer * cos(turn), outer * sin(turn))
    return places


def _in_order(graph: Links) -> list[str]:
    """Units, each beside the one with which it has most bits in common."""
    weights: dict[tuple[str, str], int] = {}
    for link in graph.links:
        for pair in ((link.source, link.target), (link.target, link.source)):
            weights[pair] = weights.get(pair, 0) + link.bits
    left = [block.name for block in graph.blocks.values() if block.module]
    order = [left.pop(0)]
    while left:
        last = order[-1]
        order.append(max(left, key=lambda name: weights.get((last, name), 0)))
        left.remove(order[-1])
    return order


def _towards(port: str, graph: Links, places: Mapping[str, Place]) -> float:
    """Angle of the middle of the units that a port is linked to."""
    ends = [places[other] for other in sorted(graph.neighbours(port)) if other in places]
    across, down = (sum(end[axis] for end in ends) for axis in (0, 1))
    return atan2(down, across)
