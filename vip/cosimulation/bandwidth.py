"""The bandwidth of a vault's DRAM over a run, as a picture."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hdl.ports import COLUMN_BYTES
from isa.run import RunResult
from memory.timing import BURST_CLOCKS
from sim_tb.cosim.vault import WINDOW_CYCLES
from support.picture import COLOURS, picture

__all__ = ["bandwidth_windows", "draw_bandwidth"]

#: Intervals that a picture can show apart.
_MOST_INTERVALS = 400

_INCHES = (9.0, 3.4)


def bandwidth_windows(result: RunResult) -> tuple[float, NDArray[np.float64]]:
    """Bandwidth from the launch to the end of the last engine.

    Returns:
        The length of an interval in us, and GB/s read and written as ``[2, intervals]``. Intervals
        are :data:`sim_tb.cosim.vault.WINDOW_CYCLES` or a multiple of it; the last may reach beyond
        the end of the run.
    """
    count = max(1, -(-result.cycles // WINDOW_CYCLES))
    merged = -(-count // _MOST_INTERVALS)
    intervals = -(-count // merged)
    columns = np.zeros((intervals * merged, 2))
    recorded = np.array(result.windows[:count]).reshape(-1, 2)
    columns[: len(recorded)] = recorded
    nanoseconds = merged * WINDOW_CYCLES * result.tck_ns
    moved = columns.reshape(intervals, merged, 2).sum(axis=1).T * COLUMN_BYTES
    return nanoseconds / 1000, moved / nanoseconds


def draw_bandwidth(result: RunResult, path: Path, *, caption: str) -> None:
    """Write a picture: bandwidth read and written, one on the other, over time, below its limit.

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
    total = gbs.sum(axis=0)
    with picture(*_INCHES, path) as figure:
        axis = figure.subplots()
        axis.stairs(gbs[0], edges, fill=True, color=COLOURS[0], label="read")
        axis.stairs(total, edges, baseline=gbs[0], fill=True, color=COLOURS[1], label="written")
        axis.axhline(limit, color="black", linewidth=0.8, linestyle="--", label="limit of the bus")
        axis.set(
            xlim=(0, edges[-1]),
            ylim=(0, 1.2 * limit),
            xlabel=f"time in us (intervals of {length:.2f} us)",
            ylabel="GB/s",
            title=f"{caption}: mean {result.gbs:.2f} GB/s, {result.row_hits:.0%} row hits",
        )
        axis.legend(loc="upper right", ncols=3)
