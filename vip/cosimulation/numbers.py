"""The numbers of a run of an engine, a vault or a chip as plain JSON data, and the bandwidth of a
vault's DRAM over it, also as a picture."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hdl.ports import COLUMN_BYTES
from isa.run import RunResult
from memory.controller.counters import LATENCY_LIMITS
from memory.timing import BURST_CLOCKS
from sim_tb.cosim.vault import WINDOW_CYCLES
from soc.generate.designs import Configuration
from soc.generate.generate import configuration_json
from support.picture import COLOURS, picture

#: Most intervals that a picture can resolve.
_MOST_INTERVALS = 400

_INCHES = (9.0, 3.4)


def run_json(result: RunResult, config: Configuration) -> dict[str, object]:
    """The numbers common to all runs of ``config``."""
    numbers: dict[str, object] = {
        "faults": [
            {
                "pe": end.pe,
                "vault": end.vault,
                "cause": end.cause.name,
                "pc": end.pc,
                "fault": end.fault,
                "memory_error": end.memory_error,
            }
            for end in result.faults
        ],
        "cycles": result.cycles,
        "counters": list(result.counters),
        "simulation_seconds": round(result.seconds, 3),
        "simulated_cycles_per_second": round(result.cycles_per_second),
        "configuration": configuration_json(config),
    }
    if result.vaults:
        numbers["bandwidth_gbs"] = round(result.gbs, 3)
    if result.network:
        numbers |= {
            "remote_request_share": round(result.remote_share, 6),
            "flits": result.flits,
            "vault_counters": list(result.vaults),
            "network_counters": list(result.network),
        }
    if result.windows:
        numbers |= _vault_json(result)
    return numbers


def _vault_json(result: RunResult) -> dict[str, object]:
    length, (read, written) = bandwidth_windows(result)
    return {
        "row_hit_rate": round(result.row_hits, 4),
        "bytes": result.bytes_moved,
        "vault_counters": result.vaults[0],
        "latencies": {
            **{f"<{limit}": n for limit, n in zip(LATENCY_LIMITS, result.latencies, strict=False)},
            "more": result.latencies[-1],
        },
        # GB/s in each interval from launch to the end of the last engine.
        "bandwidth": {
            "interval_us": round(length, 4),
            "read_gbs": [round(float(value), 3) for value in read],
            "written_gbs": [round(float(value), 3) for value in written],
        },
    }


def bandwidth_windows(result: RunResult) -> tuple[float, NDArray[np.float64]]:
    """Bandwidth from the launch to the end of the last engine.

    Returns:
        The length of an interval in us, and GB/s read and written as ``[2, intervals]``. Intervals
        are :data:`sim_tb.cosim.vault.WINDOW_CYCLES` or a multiple of it; the last may reach beyond
        the end of the run.
    """
    count = max(1, -(-result.elapsed_cycles // WINDOW_CYCLES))
    merged = -(-count // _MOST_INTERVALS)
    intervals = -(-count // merged)
    columns = np.zeros((intervals * merged, 2))
    recorded = np.array(result.windows[:count]).reshape(-1, 2)
    columns[: len(recorded)] = recorded
    nanoseconds = merged * WINDOW_CYCLES * result.tck_ns
    moved = columns.reshape(intervals, merged, 2).sum(axis=1).T * COLUMN_BYTES
    return nanoseconds / 1000, moved / nanoseconds


def draw_bandwidth(result: RunResult, path: Path, *, caption: str) -> None:
    """Write a picture: bandwidth of reads and writes over time, stacked, below its limit.

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
