"""Runs of traffic through a network in simulation."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from isa.support.scratch import scratch_folder
from noc.config import NetworkConfig
from sim_tb.dut.network import TOP, build_network
from sim_tb.runner.jobs import perform_jobs

from .network_models import NetworkError, NetworkJob, NetworkOutcome, NetworkResult

__all__ = ["run_network"]


def run_network(config: NetworkConfig, jobs: Sequence[NetworkJob]) -> list[NetworkResult]:
    """Run ``jobs`` one after the other, each from reset, on a network alone.

    Every flit that arrives is compared with what was sent; packets of one source, destination and
    class must arrive in order, and none may be left in the end. The first run of a configuration
    builds its simulator (a few seconds to half a minute).

    Parameters:
        config: of the network, of at least two vaults.
        jobs: their packets at most as long as ``config.packet_flits``.

    Raises:
        NetworkError: a flit lost, doubled, wrong, out of order or late, a flit for which there was
            no room, a run longer than its ``max_cycles``, or a job that does not fit the network.
        sim_tb.runner.build.BuildError: the simulator can't be built.
        hdl.config.ConfigurationError: a single vault.
    """
    for job in jobs:
        if job.longest > config.packet_flits:
            raise NetworkError(
                f"packets of {job.longest} flits in a network for at most {config.packet_flits}"
            )
    folder = build_network(config)
    with scratch_folder("network") as work:
        raw = {"config": asdict(config), "jobs": [job.to_dict() for job in jobs]}
        (work / "jobs").write_text(json.dumps(raw))
        perform_jobs(
            folder, TOP, serving="sim_tb.harness.network_serve", work=work, error=NetworkError
        )
        results = [
            NetworkResult.from_json(line) for line in (work / "results").read_text().splitlines()
        ]
    for number, result in enumerate(results):
        if result.outcome is not NetworkOutcome.DONE:
            reason = result.violation or f"not done after {result.cycles} cycles"
            raise NetworkError(f"run {number}: {reason}")
    return results
