"""Savings and gains of trimming, as a picture in the style of Figures 6 and 7 of SCRATCH."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from support.picture import COLOURS, picture

from .filling import DEVICE
from .rows import CELLS, TrimRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Means over SCRATCH's applications, and its largest gain of throughput.
_SCRATCH = {"flip-flops": 41.0, "LUTs": 36.0}
_SCRATCH_GAIN = 3.5
#: Height of a row's bars together.
_BARS = 0.8
#: Inches: width, height beside the rows, height of a row.
_WIDTH, _AROUND, _ROW = 10.0, 1.5, 0.33


def draw_trims(rows: Sequence[TrimRow], gains: Mapping[str, float], path: Path) -> None:
    """Write a picture. Left: the flip-flops, LUTs and power that trimming saves in each row, in
    percent of the full engine's; dashed lines are the means of SCRATCH's applications. Right: the
    estimated throughput of a device filled with trimmed engines, relative to one filled with full
    engines; the dashed line is SCRATCH's largest gain.

    Parameters:
        gains: of each row (:func:`vip.trimming.filling.estimate_gains`).
        path: PNG or SVG file.

    Raises:
        OSError: the file can't be written.
    """
    names = [row.name for row in rows]
    with picture(_WIDTH, _AROUND + _ROW * len(rows), path) as figure:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        power = {row.name: row.power_saved for row in rows}
        saved = {
            "flip-flops": {row.name: 100 * row.saved("ffs") for row in rows},
            "LUTs": {row.name: 100 * row.saved("luts") for row in rows},
            "power": {name: 100 * one for name, one in power.items() if one is not None},
        }
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
        right.plot(
            [gains[name] for name in names],
            range(len(names)),
            "D",
            color=COLOURS[0],
            fillstyle="none",
            markersize=4,
            label="throughput, estimated",
        )
        right.axvline(
            _SCRATCH_GAIN,
            color=COLOURS[0],
            linewidth=1.2,
            linestyle="--",
            label="SCRATCH: largest throughput",
        )
        right.set(xlim=(0, None), xlabel=f"throughput of a full {DEVICE}, times")
        for axes in (left, right):
            axes.grid(axis="x")
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)


def _bars(axes: "Axes", names: Sequence[str], series: Mapping[str, Mapping[str, float]]) -> None:
    """Bars of each of ``series``: label -> row -> value."""
    for number, (label, values) in enumerate(series.items()):
        if not values:
            continue
        thick = _BARS / len(series)
        places = np.array([names.index(name) for name in values])
        shift = (number - (len(series) - 1) / 2) * thick
        axes.barh(
            places + shift,
            list(values.values()),
            thick,
            color=COLOURS[number],
            label=label,
        )
