"""What trimming saves and gains, as a picture after Figures 6 and 7 of SCRATCH."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isa.picture import COLOURS, picture

from .trim_gain import DEVICE, Gains
from .trim_rows import CELLS, TrimRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_trims"]

#: Means over SCRATCH's applications, and its largest gain of throughput.
_SCRATCH = {"flip-flops": 41.0, "LUTs": 36.0}
_SCRATCH_GAIN = 3.5
#: Height of all bars of a row.
_BARS = 0.8
#: Inches: width, height beside the rows, height of a row.
_WIDTH, _AROUND, _ROW = 10.0, 1.5, 0.33


def draw_trims(
    rows: Sequence[TrimRow],
    gains: Gains,
    simulated: Mapping[str, Mapping[str, Any]],
    path: Path,
) -> None:
    """Write a picture. Left: for each row the flip-flops, LUTs and power that trimming saves, in
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
    powered = [row for row in rows if row.power_saved is not None]
    saved = {
        "flip-flops": {row.name: 100 * row.saved("ffs") for row in rows},
        "LUTs": {row.name: 100 * row.saved("luts") for row in rows},
        "power": {row.name: 100 * (row.power_saved or 0) for row in powered},
    }
    gained = {
        "throughput": {name: gain.throughput_gain for name, gain in gains.items()},
        "work for energy": {row.name: 1 / (1 - (row.power_saved or 0)) for row in powered},
    }
    names = [row.name for row in rows]
    with picture(_WIDTH, _AROUND + _ROW * len(rows), path) as figure:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        _bars(left, names, saved)
        for number, (label, mean) in enumerate(_SCRATCH.items()):
            left.axvline(
                mean,
                color=COLOURS[number],
                linewidth=1.2,
                linestyle="--",
                label=f"SCRATCH: mean of {label}",
            )
        left.set(xlim=(0, 100), xlabel=f"saved, % (Xilinx 7-series; power: {CELLS})")
        left.set_yticks(range(len(names)), names)
        left.invert_yaxis()
        _bars(right, names, gained)
        if simulated:
            places = [names.index(name) for name in simulated]
            measured = [one["throughput_gain"] for one in simulated.values()]
            right.plot(measured, places, "kD", markersize=5, label="throughput, simulated")
        right.axvline(
            _SCRATCH_GAIN,
            color=COLOURS[0],
            linewidth=1.2,
            linestyle="--",
            label="SCRATCH: largest throughput",
        )
        right.set(xlim=(0, None), xlabel=f"gained, times (throughput: {DEVICE}, filled)")
        for axes in (left, right):
            axes.grid(axis="x")
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)


def _bars(axes: "Axes", names: Sequence[str], shown: Mapping[str, Mapping[str, float]]) -> None:
    """Bars of each of ``shown``: label -> row -> value."""
    shown = {label: values for label, values in shown.items() if values}
    thick = _BARS / len(shown)
    for number, (label, values) in enumerate(shown.items()):
        places = np.array([names.index(name) for name in values])
        shift = (number - (len(shown) - 1) / 2) * thick
        axes.barh(places + shift, list(values.values()), thick, color=COLOURS[number], label=label)
