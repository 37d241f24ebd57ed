"""What trimming saves and gains, as a picture after Figures 6 and 7 of SCRATCH."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from isa.files import write_atomically

from .trim_gain import DEVICE, Gains
from .trim_rows import CELLS, TrimRow

__all__ = ["draw_trims"]

#: Means over SCRATCH's applications, and its largest gain of throughput.
_SCRATCH = {"flip-flops": 41.0, "LUTs": 36.0}
_SCRATCH_GAIN = 3.5
#: Height of all bars of a row.
_BARS = 0.8
#: Inches: width, height beside the rows, height of a row.
_WIDTH, _AROUND, _ROW = 10.0, 1.5, 0.33
_DPI = 120


def draw_trims(
    rows: Sequence[TrimRow],
    gains: Gains,
    simulated: Mapping[str, Mapping[str, Any]],
    path: Path,
) -> None:
    """Write a PNG. Left: for each row the flip-flops, LUTs and power that trimming saves, in
    percent of the full engine's; dashed lines are the means of SCRATCH's applications. Right:
    throughput of a device full of trimmed engines by estimate, where it was simulated as a diamond,
    and the work that an engine does with its energy, both against full engines; the dashed line is
    SCRATCH's largest gain of throughput.

    Parameters:
        rows, gains, simulated: as for :func:`vip.trim_gain.results`.
        path: file to write; replaced only when the picture is complete.

    Raises:
        OSError: the file can't be written.
    """
    figure = Figure(figsize=(_WIDTH, _AROUND + _ROW * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    powered = [row for row in rows if row.power_saved is not None]
    saved = {
        "flip-flops": {row.name: 100 * row.saved("ffs") for row in rows},
        "LUTs": {row.name: 100 * row.saved("luts") for row in rows},
        "power": {row.name: 100 * (row.power_saved or 0) for row in powered},
    }
    names = [row.name for row in rows]
    _bars(left, names, saved)
    for number, mean in enumerate(_SCRATCH.values()):
        left.axvline(mean, color=f"C{number}", linewidth=1.2, linestyle="--")
    left.set(xlim=(0, 100), xlabel=f"saved, % (Xilinx 7-series; power: {CELLS})")
    left.set_yticks(range(len(names)), names)
    left.invert_yaxis()
    gained = {
        "throughput": {name: gain.throughput_gain for name, gain in gains.items()},
        "work for energy": {row.name: 1 / (1 - (row.power_saved or 0)) for row in powered},
    }
    _bars(right, names, gained)
    if simulated:
        places = [names.index(name) for name in simulated]
        measured = [one["throughput_gain"] for one in simulated.values()]
        right.plot(measured, places, "kD", markersize=5, label="throughput, simulated")
    right.axvline(_SCRATCH_GAIN, color="C0", linewidth=1.2, linestyle="--")
    right.set(xlim=(0, None), xlabel=f"gained, times (throughput: {DEVICE}, filled)")
    for axes in (left, right):
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=8)
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=_DPI, metadata={"Software": None})
    write_atomically(path, picture.getvalue())


def _bars(axes: Axes, names: Sequence[str], shown: Mapping[str, Mapping[str, float]]) -> None:
    """Bars of each of ``shown``: label -> row -> value."""
    shown = {label: values for label, values in shown.items() if values}
    thick = _BARS / len(shown)
    for number, (label, values) in enumerate(shown.items()):
        places = np.array([names.index(name) for name in values])
        shift = (number - (len(shown) - 1) / 2) * thick
        axes.barh(places + shift, list(values.values()), thick, color=f"C{number}", label=label)
