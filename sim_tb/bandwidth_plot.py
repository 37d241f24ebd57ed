"""The bandwidth of a vault's DRAM over a run, as a picture."""

from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hdl.ports import COLUMN_BYTES
from isa.files import write_atomically
from memory.timing import BURST_CLOCKS

from .vault_cosim import WINDOW_CYCLES, VaultResult

__all__ = ["bandwidth_windows", "draw_bandwidth"]

#: Intervals that a picture can show apart.
_MOST_INTERVALS = 400
_INCHES = (9.0, 3.4)
_DPI = 120


def bandwidth_windows(result: VaultResult) -> tuple[float, NDArray[np.float64]]:
    """Bandwidth from the launch to the end of the last engine.

    Returns:
        The length of an interval in us, and GB/s read and written as ``[2, intervals]``. Intervals
        are :data:`sim_tb.vault_cosim.WINDOW_CYCLES` or a multiple of it; the last may reach beyond
        the end of the run.
    """
    count = max(1, -(-result.cycles // WINDOW_CYCLES))
    merged = -(-count // _MOST_INTERVALS)
    intervals = -(-count // merged)
    columns = np.zeros((intervals * merged, 2))
    known = np.array(result.windows[:count]).reshape(-1, 2)
    columns[: len(known)] = known
    nanoseconds = merged * WINDOW_CYCLES * result.tck_ns
    moved = columns.reshape(intervals, merged, 2).sum(axis=1).T * COLUMN_BYTES
    return nanoseconds / 1000, moved / nanoseconds


def draw_bandwidth(result: VaultResult, path: Path, *, caption: str) -> None:
    """Write a PNG: bandwidth read and written, one on the other, over time, below its limit.

    Parameters:
        result: of a run.
        path: file to write; replaced only when the picture is complete.
        caption: title, to which bandwidth and row hits are added.

    Raises:
        OSError: the file can't be written.
    """
    length, gbs = bandwidth_windows(result)
    edges = np.arange(gbs.shape[1] + 1) * length
    limit = COLUMN_BYTES / (BURST_CLOCKS * result.tck_ns)
    figure = Figure(figsize=_INCHES, layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    total = gbs.sum(axis=0)
    axis.stairs(gbs[0], edges, fill=True, color="tab:blue", label="read")
    axis.stairs(total, edges, baseline=gbs[0], fill=True, color="tab:orange", label="written")
    axis.axhline(limit, color="black", linewidth=0.8, linestyle="--", label="limit of the bus")
    axis.set(
        xlim=(0, edges[-1]),
        ylim=(0, 1.15 * limit),
        xlabel=f"time in us (intervals of {length:.2f} us)",
        ylabel="GB/s",
        title=f"{caption}: mean {result.gbs:.2f} GB/s, {result.row_hits:.0%} row hits",
    )
    axis.title.set_fontsize(9)
    axis.legend(loc="upper right", ncols=3, fontsize=8)
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=_DPI, metadata={"Software": None})
    write_atomically(path, picture.getvalue())
