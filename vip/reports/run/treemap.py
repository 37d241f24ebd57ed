"""Treemaps: areas as rectangles within a rectangle."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from .marks import COLOURS, number

__all__ = ["Rectangle", "squarified", "treemap"]


class Rectangle(NamedTuple):
    """A rectangle in percent of the map's width and height."""

    left: float
    top: float
    width: float
    height: float


def squarified(sizes: Sequence[float], ratio: float = 2.0) -> list[Rectangle]:
    """Rectangles with areas in proportion to ``sizes``, close to squares, that fill the map.

    Parameters:
        sizes: positive, the largest first. ratio: width of the map by its height.

    Rows are filled as long as the worst of their sides' ratios falls (Bruls, Huizing and van Wijk,
    Squarified Treemaps, 2000).
    """
    left, top, width, height = 0.0, 0.0, ratio, 1.0
    rest = list(sizes)
    rectangles: list[Rectangle] = []
    while rest:
        # Of what is left, so that rounding does not add up.
        scale = width * height / sum(rest)
        areas = [size * scale for size in rest]
        side = min(width, height)
        row = [areas[0]]
        for area in areas[1:]:
            if _worst([*row, area], side) > _worst(row, side):
                break
            row.append(area)
        rest = rest[len(row) :]
        depth = sum(row) / side
        at = 0.0
        for area in row:
            length = area / depth
            if width >= height:
                rectangles.append(Rectangle(left, top + at, depth, length))
            else:
                rectangles.append(Rectangle(left + at, top, length, depth))
            at += length
        if width >= height:
            left, width = left + depth, width - depth
        else:
            top, height = top + depth, height - depth
    return [
        Rectangle(
            100 * rectangle.left / ratio,
            100 * rectangle.top,
            100 * rectangle.width / ratio,
            100 * rectangle.height,
        )
        for rectangle in rectangles
    ]


def _worst(row: Sequence[float], side: float) -> float:
    """The largest ratio of sides in a row along ``side``."""
    depth = sum(row) / side
    return max(max(depth * depth / area, area / (depth * depth)) for area in row)


def treemap(sizes: dict[str, float], unit: str, whole: float | None = None) -> str:
    """A map of ``sizes`` by name.

    Parameters:
        unit: of the sizes. whole: the size that the full width stands for; None: their sum.
    """
    chosen = sorted(
        ((name, size) for name, size in sizes.items() if size > 0), key=lambda entry: -entry[1]
    )
    total = sum(size for _, size in chosen)
    colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(sorted(sizes))}
    cells = []
    for (name, size), place in zip(chosen, squarified([size for _, size in chosen]), strict=True):
        tip = f"{name}: {number(round(size, 1))} {unit}, {size / total:.1%}"
        cells.append(
            f'<b tabindex="0" data-tip="{escape(tip)}" style="left:{place.left:.3f}%;'
            f"top:{place.top:.3f}%;width:{place.width:.3f}%;height:{place.height:.3f}%;"
            f'background:{colours[name]}"><span>{escape(name)}</span></b>'
        )
    # Areas of two maps compare: both sides shrink alike.
    share = 100.0 if whole is None else 100 * (total / whole) ** 0.5
    return f'<div class="treemap" style="width:{share:.2f}%">{"".join(cells)}</div>'
