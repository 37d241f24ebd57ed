"""Marks that the figures of a page are made of, as HTML that needs no library.

Each mark has a text that the page shows when it is pointed at, or when the keyboard's focus is on
it. Sizes are percent, so that figures fit a phone and paper.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import isfinite
from typing import NamedTuple

__all__ = ["COLOURS", "Bar", "bars", "figure", "legend", "number", "polyline", "table"]

#: Colours of series, in order; distinct in print, too.
COLOURS = (
    "#2563eb", "#0f766e", "#7c3aed", "#0891b2", "#d97706", "#dc2626", "#be185d", "#65a30d",
    "#a16207", "#64748b", "#1e293b", "#94a3b8",
)  # fmt: skip

#: Numbers from here on have one decimal.
_ROUNDED = 1000


class Bar(NamedTuple):
    """A bar: its name, and for each series its part and the text of that part."""

    name: str
    parts: Mapping[str, tuple[float, str]]


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


def bars(rows: Sequence[Bar], colours: Mapping[str, str], most: float) -> str:
    """Stacked bars, one a row, of which ``most`` takes the whole width."""
    thin = " thin" if len(rows) > 24 else ""
    lines = []
    for row in rows:
        parts = "".join(
            f'<b tabindex="0" data-series="{escape(name)}" data-tip="{escape(text)}" '
            f'style="width:{100 * value / most:.4f}%;background:{colours[name]}"></b>'
            for name, (value, text) in row.parts.items()
            if value > 0
        )
        lines.append(f"<span>{escape(row.name)}</span><div>{parts}</div>")
    return f'<div class="bars{thin}">{"".join(lines)}</div>'


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
