"""The elements of a page's figures: bars, areas over time, treemaps, a roofline, tables.

All are HTML and SVG without a library. The page shows a mark's text when the pointer or the
keyboard's focus is on it. Sizes are percent, so that figures fit a phone and paper.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from math import isfinite, log10
from typing import NamedTuple

from isa.timing import WORD_BYTES

#: Colours of series, in order; distinct in print, too.
COLOURS = (
    "#2563eb", "#0f766e", "#7c3aed", "#0891b2", "#d97706", "#dc2626", "#be185d", "#65a30d",
    "#a16207", "#64748b", "#1e293b", "#94a3b8",
)  # fmt: skip

#: Numbers from here on have one decimal.
_ROUNDED = 1000


class Bar(NamedTuple):
    """A bar.

    Attributes:
        name: of what it shows. parts: series -> its part, and that in words.
        title: beside the bar; "": the name. mark: a place that is marked, and what it is.
    """

    name: str
    parts: Mapping[str, tuple[float, str]]
    title: str = ""
    mark: tuple[float, str] | None = None


def number(value: float) -> str:
    """A number as a person reads it."""
    if not isfinite(value):
        return str(value)
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= _ROUNDED else f"{value:.4g}"


def figure(title: str, body: str, note: str = "") -> str:
    """A section with a heading."""
    below = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2>{body}{below}</section>"


def legend(colours: Mapping[str, str]) -> str:
    """Buttons that hide and show the series of the figure after them."""
    buttons = "".join(
        f'<button type="button" aria-pressed="true" data-series="{escape(name)}">'
        f'<i style="background:{colour}"></i>{escape(name)}</button>'
        for name, colour in colours.items()
    )
    return f'<div class="legend" role="group" aria-label="series">{buttons}</div>'


def bars(rows: Sequence[Bar], colours: Mapping[str, str], largest: float) -> str:
    """Stacked bars, one per row; ``largest`` takes the full width."""
    thin = " thin" if len(rows) > 24 else ""
    lines = []
    for row in rows:
        parts = "".join(
            f'<b tabindex="0" data-series="{escape(name)}" '
            f'data-tip="{escape(f"{row.name}, {name}: {text}")}" '
            f'style="width:{100 * value / largest:.4f}%;background:{colours[name]}"></b>'
            for name, (value, text) in row.parts.items()
            if value > 0
        )
        if row.mark is not None:
            place, text = row.mark
            parts += (
                f'<u tabindex="0" data-tip="{escape(f"{row.name}: {text}")}" '
                f'style="left:{100 * place / largest:.4f}%"></u>'
            )
        lines.append(f"<span>{escape(row.title or row.name)}</span><div>{parts}</div>")
    return f'<div class="bars{thin}">{"".join(lines)}</div>'


def stacked(
    title: str, rows: Sequence[Bar], colours: Mapping[str, str], note: str = "", largest: float = 0
) -> str:
    """A section with stacked bars below the legend of the series that they have; "": no bar has a
    part.

    Parameters:
        largest: takes the full width; 0: the longest bar does.
    """
    used = {
        name: colour
        for name, colour in colours.items()
        if any(row.parts[name][0] > 0 for row in rows)
    }
    longest = max((sum(value for value, _ in row.parts.values()) for row in rows), default=0)
    body = legend(used) + bars(rows, colours, largest or longest)
    return figure(title, body, note) if used else ""


def polyline(
    series: Mapping[str, tuple[Sequence[float], str]],
    across: Sequence[float],
    high: float,
    labels: tuple[str, str],
) -> str:
    """Areas stacked over each other, over ``across``.

    Parameters:
        series: name -> values, colour. high: value at the upper end.
        labels: of the lower and of the upper axis.
    """
    width, height = 1000.0, 300.0
    first, last = across[0], across[-1]
    x = [width * (place - first) / ((last - first) or 1) for place in across]
    below = [0.0] * len(x)
    areas = []
    for name, (values, colour) in series.items():
        above = [low + value for low, value in zip(below, values, strict=True)]
        upper = zip(x, above, strict=True)
        lower = zip(reversed(x), reversed(below), strict=True)
        points = (f"{at:.1f},{height * (1 - value / high):.1f}" for at, value in (*upper, *lower))
        mean = sum(values) / len(values)
        tip = f"{name}: mean {number(round(mean, 3))}, most {number(round(max(values), 3))}"
        areas.append(
            f'<polygon tabindex="0" data-series="{escape(name)}" data-tip="{escape(tip)}" '
            f'fill="{colour}" points="{" ".join(points)}"/>'
        )
        below = above
    return (
        f'<div class="plot"><span>{escape(labels[1])}</span>'
        f'<svg viewBox="0 0 {width:g} {height:g}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(labels[1])}">{"".join(areas)}</svg>'
        f"<span>{escape(labels[0])}</span></div>"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, whose first column is text, the others numbers."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    head_row = f"<thead><tr>{cells}</tr></thead>" if any(head) else ""
    return f'<div class="wide"><table>{head_row}<tbody>{body}</tbody></table></div>'


class Rectangle(NamedTuple):
    """A rectangle in percent of the map's width and height."""

    left: float
    top: float
    width: float
    height: float


#: Width of a map by its height.
_RATIO = 2.0


def squarified(sizes: Sequence[float]) -> list[Rectangle]:
    """Rectangles with areas in proportion to ``sizes``, close to squares, that fill the map.

    Parameters:
        sizes: positive, the largest first.

    Rows are filled as long as the worst of their sides' ratios falls (Bruls, Huizing and van Wijk,
    Squarified Treemaps, 2000).
    """
    left, top, width, height = 0.0, 0.0, _RATIO, 1.0
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
            100 * rectangle.left / _RATIO,
            100 * rectangle.top,
            100 * rectangle.width / _RATIO,
            100 * rectangle.height,
        )
        for rectangle in rectangles
    ]


def _worst(row: Sequence[float], side: float) -> float:
    """The largest ratio of sides in a row along ``side``."""
    depth = sum(row) / side
    return max(max(depth * depth / area, area / (depth * depth)) for area in row)


def treemap(sizes: Mapping[str, float], unit: str, whole: float) -> str:
    """A map of ``sizes`` by name.

    Parameters:
        unit: of the sizes. whole: the size that the full width stands for.
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
    share = 100 * (total / whole) ** 0.5
    return f'<div class="treemap" style="width:{share:.2f}%">{"".join(cells)}</div>'


#: Operations per beat on elements of 16 bits: four lanes, a vertical and a horizontal one each.
PEAK = 2 * WORD_BYTES // 2
#: Bytes per cycle of a memory port, which a vault's DRAM has as well.
_PORT = 8
_WIDTH, _HEIGHT = 640, 340
_LEFT, _RIGHT, _BOTTOM = 60, 30, 70
#: Values that may have a grid line.
_POWERS = [10.0**power for power in range(-6, 7)]


def _grid(columns: Mapping[float, float], rows: Mapping[float, float]) -> Iterator[str]:
    """Lines with their values: ``columns`` at x, ``rows`` at y."""
    for value, x in columns.items():
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="10" y2="{_HEIGHT - _BOTTOM}"/>'
        yield f'<text x="{x:.1f}" y="{_HEIGHT - 48}" text-anchor="middle">{value:g}</text>'
    for value, y in rows.items():
        yield f'<line y1="{y:.1f}" y2="{y:.1f}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y:.1f}" text-anchor="end">{value:g}</text>'


def roofline(engines: Sequence[Mapping[str, int]], sharing: int = 1) -> str:
    """The figure of engines with these counters.

    Parameters:
        sharing: engines that share the memory of a vault.

    An operation is a lane's part of a beat of the vector unit in either stage, on 16 bits.
    """
    points = []
    for slot, engine in enumerate(engines):
        moved = engine.get("BYTES_LOADED", 0) + engine.get("BYTES_STORED", 0)
        done = PEAK * engine.get("VECTOR_BUSY", 0)
        if moved and done:
            points.append((slot, done / moved, done / engine["CYCLES"]))
    if not points:
        return ""
    low = min(0.1, min(intensity for _, intensity, _ in points) / 2)
    high = max(100.0, 2 * max(intensity for _, intensity, _ in points))
    bottom = min(0.1, min(rate for _, _, rate in points) / 2)

    def x(intensity: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * log10(intensity / low) / log10(high / low)

    def y(rate: float) -> float:
        top = 2 * PEAK
        return 10 + (_HEIGHT - _BOTTOM - 10) * (1 - log10(rate / bottom) / log10(top / bottom))

    def roof(rate: float, kind: str) -> str:
        """The roof of a memory of ``rate`` bytes per cycle."""
        first = max(low, bottom / rate)
        corner = min(max(PEAK / rate, first), high)
        places = [(first, rate * first), (corner, min(PEAK, rate * corner)), (high, PEAK)]
        drawn = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in places)
        return f'<polyline class="{kind}" points="{drawn}"/>'

    marks = [roof(_PORT, "roof")]
    if sharing > 1:
        marks.append(roof(_PORT / sharing, "roof share"))
    marks += _grid(
        {value: x(value) for value in _POWERS if low <= value <= high},
        {value: y(value) for value in _POWERS if bottom <= value <= 2 * PEAK},
    )
    for slot, intensity, rate in points:
        tip = (
            f"engine {slot}: {number(round(rate, 3))} operations per cycle of {PEAK}, "
            f"{number(round(intensity, 3))} per byte"
        )
        marks.append(
            f'<circle tabindex="0" data-tip="{escape(tip)}" cx="{x(intensity):.1f}" '
            f'cy="{y(rate):.1f}" r="7" fill="{COLOURS[5]}"/>'
        )
    svg = (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="operations per cycle against operations per byte">{"".join(marks)}'
        f'<text x="{_WIDTH / 2:g}" y="{_HEIGHT - 16}" text-anchor="middle">operations per byte'
        f'</text><text transform="translate(14 {(_HEIGHT - _BOTTOM) / 2:g}) rotate(-90)" '
        'text-anchor="middle">operations per cycle</text></svg>'
    )
    return figure("Roofline", svg, _roof_note(sharing))


def _roof_note(sharing: int) -> str:
    note = (
        f"The roof is {PEAK} operations (four lanes of 16 bits, two stages) and {_PORT} bytes per "
        "cycle. Operations are counted by beats."
    )
    if sharing > 1:
        note += f" Dashed: the part of a vault's memory that each of {sharing} engines has."
    return note
