"""Runs of traffic in simulation: against a vault's memory, and through a network."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from isa.image import DramImage
from memory.config import VaultConfig
from memory.controller.counters import LAG_CYCLES, VaultCounter
from memory.model.device_model import device_setup
from memory.timing import DramTiming
from noc.config import NetworkConfig
from sim_tb.dut.memory import ports_of, vault_design
from sim_tb.dut.network import network_design
from sim_tb.runner.build import Design, build
from sim_tb.runner.session import Session
from soc.tile.config import ClockConfig
from support.errors import VipError
from support.scratch import scratch_folder

from .models import SETTLE_CYCLES, SLOW_SETTLE_CYCLES
from .network import FlitJob, NetworkError, NetworkResult
from .traffic import TrafficJob, TrafficOutcome, TrafficResult

#: Function that performs runs one after another, each from reset.
Perform = Callable[[Sequence[TrafficJob]], Iterable[TrafficResult]]

#: Counters that the host reads.
_COUNTERS = max(VaultCounter) + 8


class TrafficError(VipError):
    """A memory that misbehaved, or a run that is impossible; the message says why."""


def run_traffic(
    config: VaultConfig,
    requesters: int,
    jobs: Sequence[TrafficJob],
    *,
    dram: DramTiming | None = None,
    clocks: ClockConfig | None = None,
    line_buffer: int = 0,
    arguments: Sequence[str] = (),
) -> list[TrafficResult]:
    """Run ``jobs`` one after another, each from reset, against one vault's memory.

    The DRAM model checks every command and the requesters every response; at the end of each run
    the memory's contents must be what the writes imply. The first run of a configuration builds its
    simulator (half a minute).

    Parameters:
        config: of the vault.
        requesters: number at the crossbar, 1..16; 0: one directly at the controller.
        jobs: each with one pattern per requester.
        dram: the DRAM's timing; by default the controller's, from ``config``.
        clocks: of the vault, by default one. With two, all cycles are those of the requesters'
            clock.
        line_buffer: lines between crossbar and controller.
        arguments: of the simulator: the periods of two clocks
            (:func:`sim_tb.harness.models.clock_arguments`).

    Raises:
        TrafficError: a rule of port or DRAM broken, a request lost or late, a run longer than its
            ``max_cycles``, or a job that does not fit the vault.
        sim_tb.runner.build.BuildError: the simulator can't be built, or there are two clocks
            without a crossbar.
        sim_tb.runner.session.SessionError: the simulator ended by itself.
    """
    two = clocks is not None and clocks.two

    def perform(runs: Sequence[TrafficJob]) -> Iterable[TrafficResult]:
        return simulated(vault_design(config, requesters, clocks, line_buffer), runs, arguments)

    settle = SLOW_SETTLE_CYCLES if two else SETTLE_CYCLES
    return traffic_through(perform, config, requesters, jobs, dram=dram, settle=settle)


def traffic_through(
    perform: Perform,
    config: VaultConfig,
    requesters: int,
    jobs: Sequence[TrafficJob],
    *,
    dram: DramTiming | None = None,
    settle: int = SETTLE_CYCLES,
) -> list[TrafficResult]:
    """:func:`run_traffic` by ``perform``, with the same checks.

    Parameters:
        settle: cycles after which an acknowledged write is in the DRAM and in the counters.

    Raises:
        TrafficError: as for :func:`run_traffic`.
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
    results = run_jobs(
        perform,
        jobs,
        size=config.size_bytes,
        limit=1 << config.request_address_bits,
        counters=_COUNTERS,
        settle=max(settle, LAG_CYCLES),
        device=device_setup(replace(config, timing=dram or config.timing)),
    )
    for number, (job, result) in enumerate(zip(jobs, results, strict=True)):
        if result.longest > job.patience:
            raise TrafficError(
                f"run {number}: an access took {result.longest} cycles, at most "
                f"{job.patience} are allowed"
            )
    return results


def simulated(
    design: Design, runs: Sequence[TrafficJob], arguments: Sequence[str] = ()
) -> list[TrafficResult]:
    """Results of ``runs`` in a simulation of ``design``."""
    with Session(build(design), design.top, arguments=arguments) as session:
        return list(session.run_many(runs))


def run_jobs(perform: Perform, jobs: Sequence[TrafficJob], **settings: Any) -> list[TrafficResult]:
    """Results of ``jobs``, each with a memory of its own, by ``perform``.

    Parameters:
        settings: what a run adds to each :class:`~sim_tb.harness.traffic.TrafficJob`.

    Raises:
        TrafficError: a rule of port or DRAM broken, a request lost or late, or a run longer than
            its ``max_cycles``.
    """
    beyond = settings["limit"] > settings["size"]
    with scratch_folder("traffic") as work, DramImage(settings["size"], work / "image"):
        runs = [
            replace(
                job,
                patterns=tuple(
                    pattern if beyond else replace(pattern, outside=0.0) for pattern in job.patterns
                ),
                image=str(work / "image"),
                **settings,
            )
            for job in jobs
        ]
        results = list(perform(runs))
    for number, result in enumerate(results):
        if result.outcome is not TrafficOutcome.DONE:
            reason = result.violation or f"not done after {result.total_cycles} cycles"
            raise TrafficError(f"run {number}: {reason}")
    return results


def run_network(config: NetworkConfig, jobs: Sequence[FlitJob]) -> list[NetworkResult]:
    """Run ``jobs`` one after another, each from reset, on a network alone.

    Every flit that arrives is compared with the one sent; packets of one source, destination and
    class must arrive in order, and none may be left at the end. The first run of a configuration
    builds its simulator (a few seconds to half a minute).

    Parameters:
        config: of the network, of at least two vaults.
        jobs: with packets of at most ``config.packet_flits``.

    Raises:
        NetworkError: a flit is lost, doubled, wrong, out of order, late or without room in its
            buffer, a run exceeds its ``max_cycles``, or a job does not fit the network.
        sim_tb.runner.build.BuildError: the simulator can't be built.
        sim_tb.runner.session.SessionError: the simulator ended by itself.
        hdl.config.ConfigurationError: a single vault.
    """
    for job in jobs:
        if job.longest > config.packet_flits:
            raise NetworkError(
                f"packets of {job.longest} flits in a network for at most {config.packet_flits}"
            )
    design = network_design(config)
    size = {name: getattr(config, name) for name in ("columns", "rows", "buffer_flits")}
    runs = [replace(job, **size) for job in jobs]
    with Session(build(design), design.top) as session:
        results = list(session.run_many(runs))
    for number, result in enumerate(results):
        if result.outcome is not TrafficOutcome.DONE:
            reason = result.violation or f"not done after {result.cycles} cycles"
            raise NetworkError(f"run {number}: {reason}")
    return results
