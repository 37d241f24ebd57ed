"""The picture of where a network's time goes, layer by layer."""

from pathlib import Path

from sim_tb.measure.networks import NetworkRun
from support.picture import COLOURS, picture

__all__ = ["draw_network"]

_WIDTH = 9.0
#: Inches of a layer's bar, and of all that is above and below the bars.
_BAR, _AROUND = 0.24, 1.1


def draw_network(run: NetworkRun, path: Path) -> None:
    """Write a picture of the milliseconds of each layer's computation and of the moves before it.

    Parameters:
        run: of a network.
        path: PNG or SVG; replaced only when the picture is complete.

    Raises:
        support.picture.PictureError: the file's name has another ending.
        OSError: the file can't be written.
    """
    layers = list(run.layers)
    columns = (
        ("computation", [work for work, _ in run.layers.values()], COLOURS[0]),
        ("moves before it", [moves for _, moves in run.layers.values()], COLOURS[1]),
    )
    with picture(_WIDTH, _AROUND + _BAR * len(layers), path) as figure:
        axes = figure.subplots(1, len(columns), sharey=True)
        for axis, (title, values, colour) in zip(axes.flat, columns, strict=True):
            bars = axis.barh(layers, values, color=colour)
            axis.bar_label(bars, [f"{value:.3f}" if value else "" for value in values], padding=2)
            axis.set_xlim(right=1.15 * max(*values, 1e-3))
            axis.set_title(f"{title}: {sum(values):.2f} ms", fontsize=10)
            axis.set_xlabel("ms at the chip's clock, with the host's launches")
            axis.grid(axis="x", alpha=0.3)
        axes[0].invert_yaxis()
        figure.suptitle(f"{run.name}, batch {run.batch}, {run.vaults} vaults: {run.ms:.2f} ms")
