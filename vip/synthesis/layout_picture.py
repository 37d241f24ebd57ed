"""Pictures of layouts: cells by unit, memories, and wires, of engines beside each other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.picture import COLOURS, picture, tint
from synth.layout.placement import PlacedCells
from synth.layout.routing import Routes

#: Shares of colours that tell more units apart than there are colours.
_TINTS = (1.0, 0.6, 0.3)
#: The grey of memories.
_MEMORY = (0.82, 0.84, 0.87)
#: Of wires: share of a colour over what is below, and most pixels on a side of the picture.
_WIRE_SHARE = 0.6
_PIXELS = 4000
#: Inches of a picture's longer side, and of the names of units beside it; points of names.
_INCHES, _NAMES = 11.0, 1.8
_POINTS, _POINTS_PER_INCH = 7.0, 72
#: um of the scale's bar, and of the space between engines.
_BAR, _SPACE = 100.0, 40.0
#: um of a memory's side, and share of an engine's cells, that have room for a name.
_SIDE, _SHARE = 35.0, 0.04

#: um of the squares of which the one with most cells of a unit has its name.
_SQUARE = 60.0

Image = NDArray[Any]


def draw(path: Path, engines: Mapping[str, tuple[PlacedCells, Routes | None]]) -> None:
    """Draw engines to the same scale, each with its name above it, to a PNG or SVG.

    Raises:
        support.picture.PictureError, MissingExtraError: as of :func:`support.picture.picture`.
        OSError: the file can't be written.
    """
    areas: dict[str, int] = {}
    for placed, _ in engines.values():
        for unit, area in _areas(placed).items():
            areas[unit] = areas.get(unit, 0) + area
    colours = {
        unit: tint(COLOURS[number % len(COLOURS)], _TINTS[number // len(COLOURS) % len(_TINTS)])
        for number, unit in enumerate(sorted(areas, key=lambda unit: -areas[unit]))
    }
    sizes = [_um(placed) for placed, _ in engines.values()]
    wide = sum(x for x, _ in sizes) + _SPACE * (len(sizes) - 1)
    high = max(y for _, y in sizes)
    inches = _INCHES / max(wide, high)
    with picture(wide * inches + _NAMES, high * inches + 0.5, path) as figure:
        axis = figure.add_subplot(xlim=(0, wide), ylim=(-0.05 * high, high), aspect="equal")
        axis.axis("off")
        left = 0.0
        for (name, (placed, routes)), (x, y) in zip(engines.items(), sizes, strict=True):
            image = _image(placed, routes, colours)
            extent = (left, left + x, 0, y)
            axis.imshow(image, origin="lower", extent=extent, interpolation="antialiased")
            title = f"{name}: {x * y / 1e6:.2f} mm2, {len(placed.places):,} cells"
            axis.text(left + x / 2, y + 0.01 * high, title, ha="center", va="bottom", fontsize=10)
            _label(axis, placed, left, inches)
            left += x + _SPACE
        axis.set_xlim(0, wide)
        axis.set_ylim(-0.05 * high, high)
        axis.plot([0, _BAR], [-0.02 * high] * 2, color="black", linewidth=2)
        axis.text(_BAR + 5, -0.02 * high, f"{_BAR:.0f} um", va="center")
        for unit, colour in colours.items():
            axis.plot([], [], "s", color=colour, label=unit)
        axis.plot([], [], "s", color=_MEMORY, label="memories")
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _um(placed: PlacedCells) -> tuple[float, float]:
    """Width and height of the die."""
    die, (site, step) = placed.floorplan.die, placed.floorplan.lef.um
    return die.width * site, die.height * step


def _areas(placed: PlacedCells) -> dict[str, int]:
    """Unit -> width of its cells."""
    areas: dict[str, int] = {}
    for gate in placed.netlist.gates:
        if gate.name not in placed.floorplan.blocks:
            areas[gate.unit] = areas.get(gate.unit, 0) + placed.box(gate).width
    return areas


def _label(axis: Any, placed: PlacedCells, left: float, inches: float) -> None:
    """The names of memories, and of units where most of their cells are, as far as they fit.

    Parameters:
        left: um of the die's left edge in the picture. inches: of a um.
    """
    site, step = placed.floorplan.lef.um
    cells: dict[str, list[tuple[float, float]]] = {}
    for gate in placed.netlist.gates:
        box = placed.box(gate)
        at = left + (box.x + box.width / 2) * site, (box.y + box.height / 2) * step
        if gate.name not in placed.floorplan.blocks:
            cells.setdefault(gate.unit, []).append(at)
        elif box.width * site > _SIDE:
            axis.text(*at, gate.unit, ha="center", va="center", fontsize=_POINTS)
    back = {"boxstyle": "round,pad=0.2", "facecolor": "white", "alpha": 0.8, "linewidth": 0}
    names: list[tuple[float, float, float]] = []
    line = 2 * _POINTS / _POINTS_PER_INCH / inches
    for unit, places in sorted(cells.items(), key=lambda item: -len(item[1])):
        squares = np.array(places) // _SQUARE
        square, number = np.unique(squares, axis=0, return_counts=True)
        most = (squares == square[np.argmax(number)]).all(1)
        x, y = np.array(places)[most].mean(0)
        half = len(unit) * line / 6
        free = all(
            abs(x - other) > half + wide or abs(y - beside) > line for other, beside, wide in names
        )
        if free and len(places) > _SHARE * len(placed.places):
            axis.text(x, y, unit, ha="center", va="center", fontsize=_POINTS, bbox=back)
            names.append((x, y, half))


def _image(
    placed: PlacedCells, routes: Routes | None, colours: Mapping[str, tuple[float, float, float]]
) -> Image:
    """Cells and memories, with a pixel for a site and step, or with wires over them."""
    die = placed.floorplan.die
    image = np.ones((die.height, die.width, 3))
    for gate in placed.netlist.gates:
        box = placed.box(gate)
        memory = gate.name in placed.floorplan.blocks
        area = slice(box.y, box.y + box.height), slice(box.x, box.x + box.width)
        image[area] = _MEMORY if memory else colours[gate.unit]
    return image if routes is None else _over(image, routes)


def _over(image: Image, routes: Routes) -> Image:
    """The picture of cells, paler, with the wires of each layer over it."""
    lattice = routes.lattice
    longest = max(routes.width, routes.height)
    scale = max(1, min(4, _PIXELS // longest))
    rows, columns = (
        np.arange(scale * size) * of // (scale * size)
        for size, of in zip((routes.height, routes.width), image.shape, strict=False)
    )
    drawn: Image = 0.5 + image[rows][:, columns] / 2
    tracks = routes.tracks().tolist()
    for layer in range(len(lattice.layers)):
        mask = np.zeros(drawn.shape[:2], bool)
        for _, of, x, y, to_x, to_y in tracks:
            if of == layer:
                mask[
                    tuple(
                        slice(scale * start, scale * end + (scale + 1) // 2)
                        for start, end in ((y, to_y), (x, to_x))
                    )
                ] = True
        colour = tint(COLOURS[layer % len(COLOURS)], 1.0)
        drawn[mask] = (1 - _WIRE_SHARE) * drawn[mask] + _WIRE_SHARE * np.array(colour)
    return drawn
