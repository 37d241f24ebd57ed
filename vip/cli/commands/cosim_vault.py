"""What ``vip cosim bp`` reports of a vault with its engines."""

from rich.table import Table

from memory.controller.counters import LATENCY_LIMITS
from microkernels.bp.golden import labels as read_labels
from microkernels.data.stereo import StereoScene, percent_wrong
from sim_tb.cosim.kernels import KernelOutcome
from sim_tb.cosim.vault import VaultResult
from sim_tb.measure.bandwidth_plot import bandwidth_windows
from soc.generate.generate import configuration_json
from soc.tile.config import VaultTileConfig
from vip.cli.console import console

__all__ = ["bandwidth_report", "show_vault_bp", "vault_bp_report"]


def bandwidth_report(result: VaultResult) -> dict[str, object]:
    """GB/s read and written in each interval from launch to the end of the last engine."""
    length, (read, written) = bandwidth_windows(result)
    return {
        "interval_us": round(length, 4),
        "read_gbs": [round(float(value), 3) for value in read],
        "written_gbs": [round(float(value), 3) for value in written],
    }


def vault_bp_report(
    outcome: KernelOutcome[VaultResult], scene: StereoScene, config: VaultTileConfig
) -> dict[str, object]:
    """The numbers of a run as plain data."""
    result = outcome.result
    report: dict[str, object] = {
        "match": outcome.match,
        "differing_elements": outcome.differing,
        "scene": scene.name,
        "width": scene.problem.width,
        "height": scene.problem.height,
        "labels": scene.problem.labels,
        "pes": outcome.pes,
        "updates": outcome.updates,
        "cycles": outcome.cycles,
        "cycles_per_update": round(outcome.cycles_per_update, 3),
        "bandwidth_gbs": round(result.gbs, 3),
        "row_hit_rate": round(result.row_hits, 4),
        "bytes": result.bytes_moved,
        "vault_counters": result.counters,
        "latencies": {
            **{f"<{limit}": n for limit, n in zip(LATENCY_LIMITS, result.latencies, strict=False)},
            "more": result.latencies[-1],
        },
        "bandwidth": bandwidth_report(result),
        "counters": [pe.counters for pe in result.pes],
        "simulation_seconds": round(result.wall_seconds, 3),
        "simulated_cycles_per_second": round(result.cycles_per_second),
        "configuration": configuration_json(config),
    }
    if scene.truth is not None:
        chosen = read_labels(scene.problem, outcome.outputs)
        report["percent_wrong"] = round(percent_wrong(chosen, scene.truth), 2)
    return report


def show_vault_bp(outcome: KernelOutcome[VaultResult]) -> None:
    """Print what a run came to."""
    result = outcome.result
    verdict = "every message equals the golden model's"
    if not outcome.match:
        verdict = f"{outcome.differing} message elements DIFFER from the golden model"
    table = Table(title=verdict, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("engines", str(outcome.pes))
    table.add_row("message updates", f"{outcome.updates:,}")
    table.add_row("cycles", f"{outcome.cycles:,}")
    table.add_row("cycles per update and engine", f"{outcome.cycles_per_update:.2f}")
    for pe in result.pes:
        busy = pe.counters["VECTOR_BUSY"] / outcome.cycles
        table.add_row(f"engine {pe.slot}: vector unit busy", f"{busy:.1%}")
    table.add_row("DRAM bandwidth, GB/s", f"{result.gbs:.2f}")
    table.add_row("row hits", f"{result.row_hits:.1%}")
    table.add_row("data bus busy", f"{result.counters['BUS_BUSY'] / outcome.cycles:.1%}")
    table.add_row("simulated cycles a second", f"{result.cycles_per_second:,.0f}")
    console.print(table)
