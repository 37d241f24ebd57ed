"""What the agent of a vault's scheduler learns, in Verilog: bandwidth by the length of a run."""

from collections.abc import Sequence

from memory.config import VaultConfig
from sim_tb.harness.traffic_runs import run_traffic
from sim_tb.measure.schedulers import MIXES, REQUESTERS, RunTraffic, mix_job

__all__ = ["LENGTHS", "MIXES_LEARNED", "measure_bandwidth"]

#: Accesses of each requester, for the curve.
LENGTHS = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
#: Those of :data:`sim_tb.measure.schedulers.MIXES` for the curve.
MIXES_LEARNED = ("sequential_random_25", "random_mixed", "unlike")


def measure_bandwidth(
    config: VaultConfig,
    lengths: Sequence[int],
    *,
    run: RunTraffic = run_traffic,
) -> dict[str, list[float]]:
    """GB/s of each of :data:`MIXES_LEARNED`, for runs of ``lengths`` accesses of each requester,
    each from reset.

    Parameters:
        run: makes the runs, on the Verilog or on the timing model.

    Raises:
        TrafficError: as :func:`sim_tb.measure.schedulers.measure_policies`.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    jobs = [
        mix_job(config, MIXES[mix], REQUESTERS * [length])
        for mix in MIXES_LEARNED
        for length in lengths
    ]
    found = [
        round(result.bytes / result.cycles / config.timing.tck_ns, 4)
        for result in run(config, REQUESTERS, jobs)
    ]
    count = len(lengths)
    return {
        mix: found[count * number : count * (number + 1)]
        for number, mix in enumerate(MIXES_LEARNED)
    }
