"""Random traffic against vaults whose memory has a clock of its own, at ratios from 1:8 to 8:1.

``python -m sim_tb.measure.two_clocks.stress --accesses 2000000 --json report.json``
"""

import json
import random
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from memory.controller.counters import VaultCounter
from sim_tb.cosim.chip_session import Periods
from sim_tb.dut.memory import ports_of
from sim_tb.harness.models import clock_arguments
from sim_tb.harness.traffic import TrafficJob, TrafficResult
from sim_tb.harness.traffic_runs import TrafficError, run_traffic
from sim_tb.measure.vault_stress import StressCase, random_case
from sim_tb.runner.build import BuildError
from soc.tile.clocks import ClockConfig
from support.command import run_command
from support.files import write_atomically

__all__ = ["RATIOS", "ClockStressReport", "app", "clocks_of", "run_clock_stress"]

app = typer.Typer(add_completion=False)


def _periods(engine_ps: int, memory_ps: int, jitter_ps: int = 0) -> Periods:
    return Periods(engine_ps=engine_ps, memory_ps=memory_ps, jitter_ps=jitter_ps)


#: Clocks of 21 ratios from 1:8 to 8:1, among them SCRATCH's 50:200 MHz and 97:200; edges of some
#: come early or late at random.
RATIOS = (
    _periods(1600, 200),
    _periods(1400, 200),
    _periods(1200, 200, 20),
    _periods(1000, 200),
    _periods(800, 200),
    _periods(1200, 400),
    _periods(1000, 400),
    _periods(2000, 970),
    _periods(1200, 800, 80),
    _periods(1000, 900),
    _periods(800, 800, 40),
    _periods(900, 1000, 100),
    _periods(800, 1200),
    _periods(970, 2000),
    _periods(400, 1000),
    _periods(400, 1200, 120),
    _periods(200, 800),
    _periods(200, 1000),
    _periods(200, 1200),
    _periods(200, 1400),
    _periods(200, 1600),
)

#: Depths of the crossing's buffers.
_DEPTHS = (4, 8, 16, 64)
#: Cycles that a crossing adds to a wait at most, both ways, beside the ratio of the clocks.
_CROSSING_CYCLES = 1000
#: What :func:`sim_tb.measure.vault_stress.random_case` divides the accesses into.
_JOBS = 4


@dataclass(frozen=True, kw_only=True)
class ClockStressReport:
    """Summary of runs in which no fault was found.

    Attributes:
        vaults: configurations. ratios: of clocks, each of which every vault had.
        accesses: answered, and of these reads and writes. cycles: of the requesters' clock.
        longest: latency of any access in cycles of the requesters' clock.
        seconds: of simulation.
    """

    vaults: int
    ratios: int
    accesses: int
    reads: int
    writes: int
    cycles: int
    longest: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return asdict(self)


def clocks_of(seed: int) -> ClockConfig:
    """Two clocks with depths that are drawn by ``seed``."""
    rng = random.Random(seed)
    return ClockConfig(
        domains="two", request_depth=rng.choice(_DEPTHS), response_depth=rng.choice(_DEPTHS)
    )


def _slowed(job: TrafficJob, periods: Periods) -> TrafficJob:
    """``job``, whose limits are in cycles of the memory, in those of its requesters."""
    ratio = max(1, -(-periods.memory_ps // periods.engine_ps))
    return replace(
        job,
        patience=2 * ratio * job.patience + _CROSSING_CYCLES,
        max_cycles=2 * ratio * job.max_cycles,
    )


def _run(case: StressCase, number: int, periods: Periods) -> TrafficResult:
    """One ratio of a case's clocks: every access and all of the memory checked, and the counters
    of the memory, which the host reads from copies, held against the DRAM's commands."""
    (result,) = run_traffic(
        case.config,
        ports_of(case.requesters),
        [_slowed(case.jobs[number % _JOBS], periods)],
        clocks=clocks_of(case.seed),
        arguments=clock_arguments(**vars(periods)),
    )
    for counter, command in ((VaultCounter.READS, "read"), (VaultCounter.WRITES, "write")):
        counted, seen = result.counters[counter], result.commands[command]
        if case.config.counters and counted != seen:
            raise TrafficError(f"counter {counter.name} is {counted} after {seen} commands")
    return result


def run_clock_stress(
    *,
    accesses: int,
    vaults: int,
    seed: int,
    progress: Callable[[str], None] | None = None,
) -> ClockStressReport:
    """Run the vaults of ``vaults`` seeds from ``seed`` on at each of :data:`RATIOS`, with at least
    ``accesses`` in all. Requesters offer and take at random, so both sides of the crossing wait
    for each other.

    Parameters:
        progress: called before each vault, with its description.

    Raises:
        TrafficError: a rule of a port or the DRAM broken, an access lost, duplicated, reordered or
            starved, or a counter wrong; the message names seed and clocks.
        sim_tb.runner.build.BuildError: a simulator can't be built.
    """
    results = []
    for number in range(vaults):
        case = random_case(seed + number, -(-accesses // (vaults * len(RATIOS))) * _JOBS)
        if progress is not None:
            progress(_describe(case))
        for place, periods in enumerate(RATIOS):
            try:
                results.append(_run(case, place, periods))
            except TrafficError as error:
                raise TrafficError(
                    f"vault of seed {case.seed}, clocks of {periods.engine_ps} and "
                    f"{periods.memory_ps} ps, jitter {periods.jitter_ps} ps: {error}"
                ) from error
    reads, writes = (sum(getattr(each, name) for each in results) for name in ("reads", "writes"))
    return ClockStressReport(
        vaults=vaults,
        ratios=len(RATIOS),
        accesses=reads + writes,
        reads=reads,
        writes=writes,
        cycles=sum(result.total_cycles for result in results),
        longest=max(result.longest for result in results),
        seconds=round(sum(result.wall_seconds for result in results), 1),
    )


def _describe(case: StressCase) -> str:
    config, clocks = case.config, clocks_of(case.seed)
    return (
        f"vault {case.seed}: {ports_of(case.requesters)} requesters, {config.banks} banks, "
        f"{config.scheduler}, crossing {clocks.request_depth}/{clocks.response_depth} deep, "
        f"{len(RATIOS)} ratios of clocks"
    )


@app.command()
def _main(
    accesses: Annotated[int, typer.Option(help="In all runs together.", min=1)] = 2_000_000,
    vaults: Annotated[int, typer.Option(help="Random vaults; each is built.", min=1)] = 4,
    seed: Annotated[int, typer.Option(help="Of the first vault.", min=0)] = 1,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="File for the totals.", dir_okay=False)
    ] = None,
) -> None:
    """Look for accesses that a crossing of clocks loses, repeats, reorders or starves."""
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    try:
        report = run_clock_stress(
            accesses=accesses,
            vaults=vaults,
            seed=seed,
            progress=lambda text: console.print(text, soft_wrap=True),
        )
        Console().print_json(data=report.to_dict())
        if json_file is not None:
            write_atomically(json_file, json.dumps(report.to_dict(), indent=1).encode() + b"\n")
    except (TrafficError, BuildError, OSError) as error:
        console.print(f"error: {error}", soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    run_command(app)
