"""Latency of the network over the rate of traffic, as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sim_tb.measure.network import Curve
from support.picture import COLOURS, MARKERS, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_curves"]

_INCHES_EACH = (5.2, 6.4)
#: Latencies above are not shown: the network is full.
_MOST_CYCLES = 120


def draw_curves(curves: Sequence[Curve], path: Path) -> None:
    """Write a picture: for each network, latency and delivered flits over offered flits.

    Dotted lines show the rate at which a link or port is full, dashed lines that of
    the links between two halves of the network under uniform traffic.

    Parameters:
        curves: at least one.
        path: file to write; replaced only when the picture is complete.

    Raises:
        OSError: the file can't be written.
    """
    sizes = list(dict.fromkeys((curve.columns, curve.rows) for curve in curves))
    width, height = _INCHES_EACH
    with picture(width * len(sizes), height, path) as figure:
        axes = figure.subplots(2, len(sizes), sharex=True, sharey="row", squeeze=False)
        for column, size in enumerate(sizes):
            mine = [curve for curve in curves if (curve.columns, curve.rows) == size]
            _draw_network(axes[0][column], axes[1][column], mine)
        axes[0][0].set_ylabel("mean latency in cycles")
        axes[1][0].set_ylabel("delivered, flits a cycle and vault")
        # Every network has the same lines; one legend below names them once.
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)


def _draw_network(latency: "Axes", delivered: "Axes", curves: Sequence[Curve]) -> None:
    """Both diagrams of one network."""
    first = curves[0]
    for axis in (latency, delivered):
        for number, curve in enumerate(curves):
            mean = [point.mean for point in curve.points]
            rate = [point.delivered for point in curve.points]
            axis.plot(
                [point.offered for point in curve.points],
                mean if axis is latency else rate,
                f"{MARKERS[number % len(MARKERS)]}-",
                markersize=3.5,
                color=COLOURS[number % len(COLOURS)],
                label=curve.destinations.replace("_", " "),
            )
        for number, curve in enumerate(curves):
            axis.axvline(
                curve.limit,
                color=COLOURS[number % len(COLOURS)],
                linewidth=1.0,
                linestyle=":",
                label=f"first link or port full: {curve.destinations.replace('_', ' ')}",
            )
        axis.axvline(
            min(first.bisection, 1.0),
            color="black",
            linewidth=1.0,
            linestyle="--",
            label="bisection full, uniform traffic (at most 1)",
        )
        axis.grid()
        axis.set(xlim=(0, 1.05))
    latency.set(title=f"{first.columns} x {first.rows} vaults", ylim=(0, _MOST_CYCLES))
    delivered.set(xlabel="offered, flits a cycle and sending vault", ylim=(0, 1.05))
