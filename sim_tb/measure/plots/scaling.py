"""The picture of how BP-M scales."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sim_tb.measure.scaling import Point
from support.picture import COLOURS, MARKERS, picture

__all__ = ["draw_scaling"]

_INCHES = (10.0, 9.0)
_COLUMNS = 2
#: Cycles of the vector unit for a message of 16 labels (microkernels/bp/schedule.py).
_VECTOR_CYCLES = 80
#: What is varied, its value, and what stays.
_Series = tuple[str, Callable[[Point], float], Callable[[Point], str]]
_OVER_VAULTS: _Series = (
    "vaults",
    lambda point: point.vaults,
    lambda point: f"{point.width} x {point.height} pixels, {point.engines} engines a vault",
)
_SERIES: Mapping[str, _Series] = {
    "vaults": _OVER_VAULTS,
    "small": _OVER_VAULTS,
    "engines": (
        "engines a vault",
        lambda point: point.engines,
        lambda point: f"{point.width} x {point.height} pixels, {point.vaults} vaults",
    ),
    "image": (
        "messages, thousands",
        lambda point: point.updates / 1000,
        lambda point: f"{point.vaults} vaults, {point.engines} engines a vault",
    ),
}


def draw_scaling(points: Sequence[tuple[str, Point]], path: Path) -> None:
    """Write a picture of time over vaults, engines a vault and messages.

    Parameters:
        points: of :func:`sim_tb.measure.scaling.measure_scaling`, of all series.
        path: PNG or SVG; replaced only when the picture is complete.

    Raises:
        OSError: the file can't be written.
    """
    with picture(*_INCHES, path) as figure:
        axes = figure.subplots(len(_SERIES) // _COLUMNS, _COLUMNS)
        for axis, (name, (label, place, title)) in zip(axes.flat, _SERIES.items(), strict=True):
            found = [point for series, point in points if series == name]
            across = [place(point) for point in found]
            limit = [
                point.updates * _VECTOR_CYCLES * point.tck_ns / (point.vaults * point.engines) / 1e6
                for point in found
            ]
            marker = f"{MARKERS[0]}-"
            times = [point.ms for point in found]
            axis.loglog(across, times, marker, color=COLOURS[0], label="measured")
            if name == "image":
                cut = [point.ms for series, point in points if series == "cut"]
                marker = f"{MARKERS[1]}-"
                axis.loglog(across, cut, marker, color=COLOURS[2], label="in the fastest tiles")
            axis.loglog(across, limit, "--", color=COLOURS[1], label="vector units always busy")
            axis.set_xticks(across, [f"{value:,.0f}" for value in across])
            axis.minorticks_off()
            axis.set_title(title(found[0]), fontsize=10)
            axis.set_xlabel(label)
            axis.set_ylabel("ms an iteration of BP-M at 1.25 GHz")
            axis.legend(fontsize=8)
            axis.grid(alpha=0.3)
