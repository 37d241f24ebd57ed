"""The roofline of engines: operations a cycle over operations a byte of memory."""

from collections.abc import Mapping, Sequence
from html import escape
from math import log10

from isa.timing import WORD_BYTES

from .marks import COLOURS, figure, number

__all__ = ["PEAK", "roofline"]

#: Operations a beat on elements of 16 bits: four lanes, a vertical and a horizontal one each.
PEAK = 2 * WORD_BYTES // 2
#: Bytes a cycle of a memory port, which a vault's DRAM has as well.
_PORT = 8
_WIDTH, _HEIGHT = 640, 340
_LEFT, _RIGHT, _BOTTOM = 60, 30, 70


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
        """The roof of a memory of ``rate`` bytes a cycle."""
        first = max(low, bottom / rate)
        corner = min(max(PEAK / rate, first), high)
        places = [(first, rate * first), (corner, min(PEAK, rate * corner)), (high, PEAK)]
        drawn = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in places)
        return f'<polyline class="{kind}" points="{drawn}"/>'

    marks = [roof(_PORT, "roof")]
    if sharing > 1:
        marks.append(roof(_PORT / sharing, "roof share"))
    for power in range(-6, 7):
        value = 10.0**power
        if low <= value <= high:
            at = f"{x(value):.1f}"
            marks.append(f'<line x1="{at}" x2="{at}" y1="10" y2="{_HEIGHT - _BOTTOM}"/>')
            label = f"{value:g}"
            marks.append(f'<text x="{at}" y="{_HEIGHT - 48}" text-anchor="middle">{label}</text>')
        if bottom <= value <= 2 * PEAK:
            at = f"{y(value):.1f}"
            marks.append(f'<line y1="{at}" y2="{at}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}"/>')
            marks.append(f'<text x="{_LEFT - 6}" y="{at}" text-anchor="end">{value:g}</text>')
    for slot, intensity, rate in points:
        tip = (
            f"engine {slot}: {number(round(rate, 3))} operations a cycle of {PEAK}, "
            f"{number(round(intensity, 3))} a byte"
        )
        marks.append(
            f'<circle tabindex="0" data-tip="{escape(tip)}" cx="{x(intensity):.1f}" '
            f'cy="{y(rate):.1f}" r="7" fill="{COLOURS[5]}"/>'
        )
    svg = (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="operations a cycle over operations a byte">{"".join(marks)}'
        f'<text x="{_WIDTH / 2:g}" y="{_HEIGHT - 16}" text-anchor="middle">operations a byte</text>'
        "</svg>"
    )
    note = (
        f"Operations a cycle over operations a byte; the roof is {PEAK} operations (four lanes of "
        f"16 bits, two stages) and {_PORT} bytes a cycle. Operations are counted by beats."
    )
    if sharing > 1:
        note += f" Dashed: the part of a vault's memory that each of {sharing} engines has."
    return figure("Roofline", svg, note)
