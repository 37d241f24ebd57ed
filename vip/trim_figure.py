"""What trimming saves, as a picture after Figure 6 of SCRATCH."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from isa.files import write_atomically

from .trim_bench import TrimRow

__all__ = ["draw_trims"]

_SHOWN = {"ffs": "flip-flops", "luts": "LUTs"}
#: Means over SCRATCH's applications.
_SCRATCH = {"ffs": 0.41, "luts": 0.36}
_BAR = 0.38
#: Inches: width, height beside the rows, height of a row.
_WIDTH, _AROUND, _ROW = 7.2, 1.4, 0.29
_DPI = 120


def draw_trims(rows: Sequence[TrimRow], path: Path) -> None:
    """Write a PNG: for each row the flip-flops and LUTs that trimming saves, in percent of the full
    engine's. Dashed lines are the means of SCRATCH's applications.

    Parameters:
        rows: at least one.
        path: file to write; replaced only when the picture is complete.

    Raises:
        OSError: the file can't be written.
    """
    figure = Figure(figsize=(_WIDTH, _AROUND + _ROW * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    places = np.arange(len(rows))
    for number, (measure, label) in enumerate(_SHOWN.items()):
        saved = [100 * row.saved(measure) for row in rows]
        colour = f"C{number}"
        axes.barh(places + (number - 0.5) * _BAR, saved, _BAR, color=colour, label=label)
        axes.axvline(
            100 * _SCRATCH[measure],
            color=colour,
            linewidth=1.2,
            linestyle="--",
            label=f"SCRATCH's mean, {label}",
        )
    axes.set_yticks(places, [row.name for row in rows])
    axes.invert_yaxis()
    axes.set(xlim=(0, 100), xlabel="saved, % of the full engine (Xilinx 7-series)")
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=len(_SHOWN) * 2, fontsize=8)
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=_DPI, metadata={"Software": None})
    write_atomically(path, picture.getvalue())
