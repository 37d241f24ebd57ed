"""The verb ``diagram``: draw the units of a module and the links between them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING

from pe.config import PeConfig
from soc.generate.designs import Configuration
from soc.generate.generate import verilog
from support.picture import COLOURS, MUTED, check_picture, picture, tint
from vip.configurations import Design, design
from vip.progress import Progress, silent

from .links import Link, Links, find_links
from .placement import Place, placed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import FancyBboxPatch

__all__ = ["Diagram", "diagram"]

#: Half of a block's width and height.
_WIDE, _HIGH = 0.42, 0.23
#: Inches of a block's distance.
_SCALE = 1.6
#: A block's distance down, as a share of that across.
_ASPECT = 0.8
#: How far the middle of an arrow lies beside the straight line, twice, as a share of its length:
#: the first of these that crosses fewest blocks.
_BENDS = (0.14, 0.25, 0.4, -0.2, -0.35)
_SAMPLES = 24
#: Where its number is, as a part of its way: the first of these that is free.
_LABELS = (0.5, 0.42, 0.58, 0.34, 0.66, 0.28, 0.72)
#: Half of a number's width and height.
_LABEL_WIDE, _LABEL_HIGH = 0.08, 0.07
#: Bits from which on a link is drawn dark.
_WIDE_LINK = 32
_SIZES: Mapping[str, Callable[[PeConfig], str]] = {
    "fetch": lambda pe: f"{pe.instruction_words:,} words",
    "registers": lambda pe: f"{pe.registers} of 64 bits",
    "arc": lambda pe: f"{pe.arc_entries} entries",
    "scratchpad": lambda pe: f"{pe.scratchpad_bytes:,} bytes",
    "load_store": lambda pe: f"{pe.load_store_queue} in flight",
}


@dataclass(frozen=True, kw_only=True)
class Diagram:
    """A picture of a module.

    Attributes:
        config: of the design. path: of the picture.
        graph: blocks and all links, those that are not drawn, too.
        least_bits: links of fewer are not drawn.
    """

    config: Configuration
    path: Path
    graph: Links
    least_bits: int

    @property
    def drawn(self) -> list[Link]:
        """The links that are drawn."""
        return [link for link in self.graph.links if link.bits >= self.least_bits]

    def to_json(self) -> dict[str, object]:
        """The module's blocks and all its links as plain JSON data."""
        return {
            "module": self.graph.module,
            "blocks": [asdict(block) for block in self.graph.blocks.values()],
            "links": [asdict(link) for link in self.graph.links],
            "least_bits": self.least_bits,
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
    the picture is that of this configuration. Clocks and resets are left out. Gates between units
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
    check_picture(path)
    chosen = design(config)
    progress("diagram", part="Verilog")
    emission = verilog(chosen)
    progress("diagram", part="links")
    graph = find_links(emission, module)
    drawing = Diagram(config=chosen, path=path, graph=graph, least_bits=least_bits)
    _draw(drawing)
    return drawing


def _draw(drawing: Diagram) -> None:
    graph, config = drawing.graph, drawing.config
    columns = config.grid[0] if config.kind == "chip" else 0
    linked = {name for link in drawing.drawn for name in (link.source, link.target)}
    places = {
        name: place
        for name, place in placed(graph, columns).items()
        if name in linked or graph.blocks[name].module
    }
    across = [place[0] for place in places.values()]
    down = [place[1] for place in places.values()]
    width, height = (max(side) - min(side) + 1.1 for side in (across, down))
    with picture(width * _SCALE, (height + 0.2) * _SCALE * _ASPECT, drawing.path) as figure:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set_xlim(min(across) - 0.55, max(across) + 0.55)
        axes.set_ylim(max(down) + 0.45, min(down) - 0.45)
        axes.set_aspect(_ASPECT)
        boxes = {name: _box(axes, graph, name, place, config) for name, place in places.items()}
        labels: list[Place] = []
        for link in drawing.drawn:
            if link.source in places and link.target in places:
                _arrow(axes, link, places, boxes, labels)
        axes.set_title(f"{graph.module}: links of {drawing.least_bits} bits or more")


def _box(
    axes: "Axes", graph: Links, name: str, place: Place, config: Configuration
) -> "FancyBboxPatch":
    from matplotlib.patches import FancyBboxPatch

    block = graph.blocks[name]
    colour = COLOURS[0] if block.module else MUTED
    for back in (0.05, 0.025, 0.0) if block.number > 1 else (0.0,):
        box = FancyBboxPatch(
            (place[0] - _WIDE + back, place[1] - _HIGH - back),
            2 * _WIDE,
            2 * _HIGH,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=tint(colour, 0.14),
            edgecolor=colour,
            linewidth=1.2,
            linestyle="-" if block.module else "--",
            zorder=3,
        )
        axes.add_patch(box)
    text = f"{name} x {block.number}" if block.number > 1 else name
    size = _SIZES[name](config.pe) if config.kind == "engine" and name in _SIZES else ""
    axes.text(*place, f"{text}\n{size}" if size else text, ha="center", va="center", zorder=4)
    return box


def _curve(source: Place, target: Place, bend: float, part: float) -> Place:
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


def _crossed(source: Place, target: Place, bend: float, obstacles: Sequence[Place]) -> int:
    """Blocks that an arrow crosses."""
    points = [_curve(source, target, bend, n / _SAMPLES) for n in range(1, _SAMPLES)]
    return sum(
        any(
            abs(x - place[0]) < _WIDE + 0.04 and abs(y - place[1]) < _HIGH + 0.04 for x, y in points
        )
        for place in obstacles
    )


def _free(point: Place, blocks: Iterable[Place], labels: Iterable[Place]) -> bool:
    """Whether a number at ``point`` covers no block and no other number."""
    occupied = [(place, _WIDE + _LABEL_WIDE, _HIGH + _LABEL_HIGH) for place in blocks]
    occupied += [(place, 2 * _LABEL_WIDE, 2 * _LABEL_HIGH) for place in labels]
    return not any(
        abs(point[0] - place[0]) < wide and abs(point[1] - place[1]) < high
        for place, wide, high in occupied
    )


def _arrow(
    axes: "Axes",
    link: Link,
    places: Mapping[str, Place],
    boxes: Mapping[str, "FancyBboxPatch"],
    labels: list[Place],
) -> None:
    """An arrow from border to border, bent, so that two directions lie apart. Its number keeps away
    from ``labels``, and is added to them."""
    source, target = places[link.source], places[link.target]
    obstacles = [place for name, place in places.items() if name not in (link.source, link.target)]
    bend = min(_BENDS, key=lambda one: _crossed(source, target, one, obstacles))
    colour = "#333333" if link.bits >= _WIDE_LINK else "#7b8794"
    axes.annotate(
        "",
        xy=target,
        xytext=source,
        arrowprops={
            "arrowstyle": "-|>",
            "connectionstyle": f"arc3,rad={bend}",
            "color": colour,
            "linewidth": 0.4 + 0.22 * log2(link.bits),
            "patchA": boxes[link.source],
            "patchB": boxes[link.target],
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
        str(link.bits),
        fontsize=7,
        color=colour,
        ha="center",
        va="center",
        zorder=2.5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
    )
