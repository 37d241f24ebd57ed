"""The numbers of a run of an engine, a vault or a chip as plain JSON data."""

from isa.run import RunResult
from memory.controller.counters import LATENCY_LIMITS
from soc.generate.designs import Configuration
from soc.generate.generate import configuration_json
from vip.cosimulation.bandwidth import bandwidth_windows

__all__ = ["run_json"]


def run_json(result: RunResult, config: Configuration) -> dict[str, object]:
    """All that is known of any run of ``config``."""
    numbers: dict[str, object] = {
        "faults": [
            {
                "pe": end.pe,
                "vault": end.vault,
                "cause": end.cause.name,
                "pc": end.pc,
                "memory_error": end.memory_error,
            }
            for end in result.faults
        ],
        "cycles": result.program_cycles,
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
