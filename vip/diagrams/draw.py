"""The verb ``diagram``: draw the units of a module and the links between them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import atan2, cos, log2, pi, sin
from pathlib import Path
from typing import TYPE_CHECKING

from hdl.yosys import need_yosys
from pe.config import PeConfig
from soc.generate.designs import Configuration
from soc.generate.generate import verilog
from soc.generate.presets import Design, design
from support.extras import together
from support.picture import COLOURS, MUTED, check_picture, picture, tint
from vip.progress import Progress, silent

from .links import TILE, Diagram, find_links

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import FancyBboxPatch


#: Centre of a block: across and down, in blocks.
DiagramPlace = tuple[float, float]

#: Module with a layout of its own -> its blocks: the pipeline runs from left to right.
_LAYOUTS: Mapping[str, Mapping[str, DiagramPlace]] = {
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


def placed(graph: Diagram, columns: int = 0) -> dict[str, DiagramPlace]:
    """Places of the blocks.

    An engine's are in a table. Tiles of a chip form a grid, without the ports of each tile, and
    with all other blocks at its left. Other units form a circle, with the ports around it.

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


def _grid(graph: Diagram, tiles: Mapping[str, int], columns: int) -> dict[str, DiagramPlace]:
    places = {
        name: (2.7 + _APART * (n % columns), _ROW * (n // columns)) for name, n in tiles.items()
    }
    units = [name for name, module in graph.blocks.items() if module and name not in tiles]
    ports = [
        name
        for name, module in graph.blocks.items()
        if not module and not graph.neighbours(name) <= tiles.keys()
    ]
    for across, names in ((1.1, units), (-0.3, ports)):
        places |= {name: (across, _ROW * down) for down, name in enumerate(names)}
    return places


def _circle(graph: Diagram) -> dict[str, DiagramPlace]:
    units = _in_order(graph)
    radius = 0.0 if len(units) == 1 else max(1.1, _APART * len(units) / (2 * pi))
    places: dict[str, DiagramPlace] = {
        name: (1.5 * radius * cos(turn), radius * sin(turn))
        for name, turn in ((one, pi + 2 * pi * n / len(units)) for n, one in enumerate(units))
    }
    ports = [name for name, module in graph.blocks.items() if not module]
    angles = {name: _towards(name, graph, places) for name in ports}
    # Ports around the units, in the order of the units that they belong to.
    order = sorted(ports, key=lambda name: (angles[name], name))
    for number, name in enumerate(order):
        turn = angles[order[0]] + 2 * pi * number / len(order)
        outer = max(radius + 1.2, 0.75 * len(order) / (2 * pi))
        places[name] = (1.5 * outer * cos(turn), outer * sin(turn))
    return places


def _in_order(graph: Diagram) -> list[str]:
    """Units, each next to the one with which it shares most bits."""
    weights: dict[tuple[str, str], int] = {}
    for (source, target), bits in graph.links.items():
        for pair in ((source, target), (target, source)):
            weights[pair] = weights.get(pair, 0) + bits
    left = [name for name, module in graph.blocks.items() if module]
    order = [left.pop(0)]
    while left:
        last = order[-1]
        order.append(max(left, key=lambda name: weights.get((last, name), 0)))
        left.remove(order[-1])
    return order


def _towards(port: str, graph: Diagram, places: Mapping[str, DiagramPlace]) -> float:
    """Angle of the middle of the units that a port is linked to."""
    ends = [places[other] for other in sorted(graph.neighbours(port)) if other in places]
    across, down = (sum(end[axis] for end in ends) for axis in (0, 1))
    return atan2(down, across)


#: Half of a block's width and height.
_WIDE, _HIGH = 0.42, 0.23
#: Inches between the centres of blocks.
_SCALE = 1.6
#: Vertical distance of blocks, as a fraction of the horizontal one.
_ASPECT = 0.8
#: Twice the distance of an arrow's middle from the straight line, as a fraction of its length: the
#: first of these that crosses fewest blocks.
_BENDS = (0.14, 0.25, 0.4, -0.2, -0.35)
_SAMPLES = 24
#: Where its number is, as a fraction of its length: the first of these that is free.
_LABELS = (0.5, 0.42, 0.58, 0.34, 0.66, 0.28, 0.72)
#: Half of a number's width and height.
_LABEL_WIDE, _LABEL_HIGH = 0.08, 0.07
#: Fewest bits of a link drawn dark.
_WIDE_LINK = 32
_SIZES: Mapping[str, Callable[[PeConfig], str]] = {
    "fetch": lambda pe: f"{pe.instruction_words:,} words",
    "registers": lambda pe: f"{pe.registers} of 64 bits",
    "arc": lambda pe: f"{pe.arc_entries} entries",
    "scratchpad": lambda pe: f"{pe.scratchpad_bytes:,} bytes",
    "load_store": lambda pe: f"{pe.load_store_queue} in flight",
}


def diagram(
    config: Design,
    path: Path | str,
    *,
    module: str | None = None,
    least_bits: int = 8,
    progress: Progress = silent,
) -> Diagram:
    """Draw the units of a module and the bits that go from one to another.

    ``diagram("pe", "engine.svg")`` draws an engine. Units and links are those of the Verilog, so
    the picture matches this configuration. Clocks and resets are left out. Gates between units
    belong to the links through them.

    Parameters:
        config: a configuration, the name of a preset, or a JSON file with a configuration.
        path: of the picture, PNG or SVG by its ending.
        module: Verilog module to draw; None: the top module.
        least_bits: links of fewer bits are not drawn; 1 or more.
        progress: called before the Verilog is made, and before its links are found.

    Raises:
        ConfigurationError: a configuration that can't be used.
        vip.diagrams.links.DiagramError: no such module, or one without units.
        support.picture.PictureError: ``path`` has another ending.
        MissingExtraError: Yosys or matplotlib is not installed.
        OSError: the picture can't be written.
    """
    path = Path(path)
    with together():
        check_picture(path)
        need_yosys()
    chosen = design(config)
    progress("diagram", part="Verilog")
    emission = verilog(chosen)
    progress("diagram", part="links")
    graph = replace(find_links(emission, module), config=chosen, path=path, least_bits=least_bits)
    _draw(graph, chosen, path)
    return graph


def _draw(graph: Diagram, config: Configuration, path: Path) -> None:
    columns = config.grid[0] if config.kind == "chip" else 0
    linked = {name for ends in graph.drawn for name in ends}
    places = {
        name: place
        for name, place in placed(graph, columns).items()
        if name in linked or graph.blocks[name]
    }
    across = [place[0] for place in places.values()]
    down = [place[1] for place in places.values()]
    width, height = (max(side) - min(side) + 1.1 for side in (across, down))
    with picture(width * _SCALE, (height + 0.2) * _SCALE * _ASPECT, path) as figure:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set_xlim(min(across) - 0.55, max(across) + 0.55)
        axes.set_ylim(max(down) + 0.45, min(down) - 0.45)
        axes.set_aspect(_ASPECT)
        boxes = {name: _box(axes, graph, name, place, config) for name, place in places.items()}
        labels: list[DiagramPlace] = []
        for ends, bits in graph.drawn.items():
            if all(end in places for end in ends):
                _arrow(axes, ends, bits, places, boxes, labels)
        axes.set_title(f"{graph.module}: links of {graph.least_bits} bits or more")


def _box(
    axes: "Axes", graph: Diagram, name: str, place: DiagramPlace, config: Configuration
) -> "FancyBboxPatch":
    from matplotlib.patches import FancyBboxPatch

    is_unit, number = bool(graph.blocks[name]), graph.numbers.get(name, 1)
    colour = COLOURS[0] if is_unit else MUTED
    for back in (0.05, 0.025, 0.0) if number > 1 else (0.0,):
        box = FancyBboxPatch(
            (place[0] - _WIDE + back, place[1] - _HIGH - back),
            2 * _WIDE,
            2 * _HIGH,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=tint(colour, 0.14),
            edgecolor=colour,
            linewidth=1.2,
            linestyle="-" if is_unit else "--",
            zorder=3,
        )
        axes.add_patch(box)
    text = f"{name} x {number}" if number > 1 else name
    size = _SIZES[name](config.pe) if config.kind == "engine" and name in _SIZES else ""
    axes.text(*place, f"{text}\n{size}" if size else text, ha="center", va="center", zorder=4)
    return box


def _curve(source: DiagramPlace, target: DiagramPlace, bend: float, part: float) -> DiagramPlace:
    """The point of an arrow after a part of it, 0 to 1: of Matplotlib's ``arc3``."""
    across, down = target[0] - source[0], target[1] - source[1]
    middle = (
        (source[0] + target[0]) / 2 - bend * down * _ASPECT,
        (source[1] + target[1]) / 2 + bend * across / _ASPECT,
    )
    rest = 1 - part
    weights = (rest * rest, 2 * rest * part, part * part)
    x, y = (
        sum(
            weight * point[axis]
            for weight, point in zip(weights, (source, middle, target), strict=True)
        )
        for axis in (0, 1)
    )
    return x, y


def _crossed(
    source: DiagramPlace, target: DiagramPlace, bend: float, obstacles: Sequence[DiagramPlace]
) -> int:
    points = [_curve(source, target, bend, n / _SAMPLES) for n in range(1, _SAMPLES)]
    return sum(
        any(
            abs(x - place[0]) < _WIDE + 0.04 and abs(y - place[1]) < _HIGH + 0.04 for x, y in points
        )
        for place in obstacles
    )


def _free(
    point: DiagramPlace, blocks: Iterable[DiagramPlace], labels: Iterable[DiagramPlace]
) -> bool:
    """Whether a number at ``point`` covers no block and no other number."""
    occupied = [(place, _WIDE + _LABEL_WIDE, _HIGH + _LABEL_HIGH) for place in blocks]
    occupied += [(place, 2 * _LABEL_WIDE, 2 * _LABEL_HIGH) for place in labels]
    return not any(
        abs(point[0] - place[0]) < wide and abs(point[1] - place[1]) < high
        for place, wide, high in occupied
    )


def _arrow(
    axes: "Axes",
    ends: tuple[str, str],
    bits: int,
    places: Mapping[str, DiagramPlace],
    boxes: Mapping[str, "FancyBboxPatch"],
    labels: list[DiagramPlace],
) -> None:
    """An arrow from border to border, bent, so that two directions lie apart. Its number keeps away
    from ``labels``, and is added to them."""
    source, target = (places[end] for end in ends)
    obstacles = [place for name, place in places.items() if name not in ends]
    bend = min(_BENDS, key=lambda one: _crossed(source, target, one, obstacles))
    colour = "#333333" if bits >= _WIDE_LINK else "#7b8794"
    axes.annotate(
        "",
        xy=target,
        xytext=source,
        arrowprops={
            "arrowstyle": "-|>",
            "connectionstyle": f"arc3,rad={bend}",
            "color": colour,
            "linewidth": 0.4 + 0.22 * log2(bits),
            "patchA": boxes[ends[0]],
            "patchB": boxes[ends[1]],
            "shrinkA": 0,
            "shrinkB": 1,
        },
        zorder=2,
    )
    points = [_curve(source, target, bend, part) for part in _LABELS]
    label = next((point for point in points if _free(point, places.values(), labels)), points[0])
    labels.append(label)
    axes.text(
        *label,
        str(bits),
        fontsize=7,
        color=colour,
        ha="center",
        va="center",
        zorder=2.5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
    )
