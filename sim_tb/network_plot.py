"""Latency of the network over the rate of traffic, as a picture."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from isa.files import write_atomically

from .network_bench import Curve

__all__ = ["draw_curves"]

_INCHES_EACH = (5.2, 6.4)
_DPI = 120
#: Latencies above are not shown: the network is full.
_MOST_CYCLES = 120


def draw_curves(curves: Sequence[Curve], path: Path) -> None:
    """Write a PNG: for each network, latency and delivered flits over offered flits.

    Broken lines show the rate at which a link or port is full, and that of the links between two
    halves of the network under uniform traffic.

    Parameters:
        curves: at least one.
        path: file to write; replaced only when the picture is complete.

    Raises:
        OSError: the file can't be written.
    """
    sizes = list(dict.fromkeys((curve.columns, curve.rows) for curve in curves))
    width, height = _INCHES_EACH
    figure = Figure(figsize=(width * len(sizes), height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, len(sizes), sharex=True, sharey="row", squeeze=False)
    for column, size in enumerate(sizes):
        mine = [curve for curve in curves if (curve.columns, curve.rows) == size]
        _draw_network(axes[0][column], axes[1][column], mine)
    axes[0][0].set_ylabel("mean latency in cycles")
    axes[1][0].set_ylabel("delivered, flits a cycle and vault")
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=_DPI, metadata={"Software": None})
    write_atomically(path, picture.getvalue())


def _draw_network(latency: Axes, delivered: Axes, curves: Sequence[Curve]) -> None:
    """Both diagrams of one network."""
    for number, curve in enumerate(curves):
        offered = [point.offered for point in curve.points]
        label = curve.destinations.replace("_", " ")
        colour = f"C{number}"
        latency.plot(
            offered, [point.mean for point in curve.points], ".-", color=colour, label=label
        )
        delivered.plot(
            offered, [point.delivered for point in curve.points], ".-", color=colour, label=label
        )
        for axis in (latency, delivered):
            axis.axvline(curve.limit, color=colour, linewidth=0.8, linestyle=":")
    first = curves[0]
    bisection = min(first.bisection, 1.0)
    for axis in (latency, delivered):
        axis.axvline(bisection, color="black", linewidth=0.8, linestyle="--")
        axis.grid(alpha=0.3)
    latency.set(
        title=f"{first.columns} x {first.rows} vaults; dotted: first link or port full\n"
        f"dashed: bisection, at most 1 flit a cycle",
        ylim=(0, _MOST_CYCLES),
        xlim=(0, 1.05),
    )
    latency.title.set_fontsize(9)
    delivered.set(xlabel="offered, flits a cycle and sending vault", ylim=(0, 1.05))
    latency.legend(fontsize=8, loc="upper left")
