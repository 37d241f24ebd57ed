"""Runs of traffic against a vault's memory in simulation."""

import json
from collections.abc import Sequence
from dataclasses import replace

from isa.image import DramImage
from isa.support.errors import VipError
from isa.support.scratch import scratch_folder
from memory.config import VaultConfig
from memory.controller.counters import LAG_CYCLES, VaultCounter
from memory.model.device_model import DeviceSetup, device_setup
from memory.timing import DramTiming
from sim_tb.dut.memory import TOP, build_vault, ports_of
from sim_tb.runner.jobs import perform_jobs

from .memory_models import Pattern, TrafficJob, TrafficOutcome, TrafficResult, Walk

__all__ = [
    "Pattern",
    "TrafficError",
    "TrafficJob",
    "TrafficResult",
    "Walk",
    "run_traffic",
]

#: Counters that the host reads.
_COUNTERS = max(VaultCounter) + 8
#: Cycles after which a write that was acknowledged is in the DRAM.
_SETTLE = 256


class TrafficError(VipError):
    """A run in which the memory did not do as it must, or that can't be made; says why."""


def run_traffic(
    config: VaultConfig,
    requesters: int,
    jobs: Sequence[TrafficJob],
    *,
    dram: DramTiming | None = None,
) -> list[TrafficResult]:
    """Run ``jobs`` one after the other, each from reset, against one vault's memory.

    The DRAM model checks every command, the requesters every response, and at the end of each run
    the memory's contents are compared with what the writes must have made of them. The first run of
    a configuration builds its simulator (half a minute).

    Parameters:
        config: of the vault.
        requesters: at the star, 1..16; 0: one straight at the controller.
        jobs: each with a pattern for each requester.
        dram: the DRAM's own timing; by default that which ``config`` gives the controller.

    Raises:
        TrafficError: a rule of port or DRAM broken, a request lost or late, a run longer than its
            ``max_cycles``, or a job that does not fit the vault.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    for job in jobs:
        if len(job.patterns) != ports_of(requesters):
            raise TrafficError(
                f"a job for {len(job.patterns)} requesters given to a vault with "
                f"{ports_of(requesters)}"
            )
        if job.begin + job.span > config.size_bytes:
            raise TrafficError(
                f"accesses up to byte {job.begin + job.span} of a vault of {config.size_bytes}"
            )
    folder = build_vault(config, requesters)
    setup = device_setup(replace(config, timing=dram or config.timing))
    with scratch_folder("vault") as work:
        (work / "jobs").write_text("".join(_line(config, setup, job) + "\n" for job in jobs))
        with DramImage(config.size_bytes, work / "image"):
            perform_jobs(
                folder, TOP, serving="sim_tb.harness.memory_serve", work=work, error=TrafficError
            )
        lines = (work / "results").read_text().splitlines()
    results = [TrafficResult.from_json(line) for line in lines]
    for number, result in enumerate(results):
        if result.outcome is not TrafficOutcome.DONE:
            reason = result.violation or f"not done after {result.total_cycles} cycles"
            raise TrafficError(f"run {number}: {reason}")
        if result.longest > jobs[number].patience:
            raise TrafficError(
                f"run {number}: an access took {result.longest} cycles, at most "
                f"{jobs[number].patience} are allowed"
            )
    return results


def _line(config: VaultConfig, setup: DeviceSetup, job: TrafficJob) -> str:
    return json.dumps(
        {
            "setup": {field[0]: getattr(setup, field[0]) for field in DeviceSetup._fields_},
            "job": job.to_dict(),
            "size": config.size_bytes,
            "limit": 1 << config.request_address_bits,
            "counters": _COUNTERS,
            "settle": max(_SETTLE, LAG_CYCLES),
        }
    )
