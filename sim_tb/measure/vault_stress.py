"""Random traffic against vaults with random timing, geometry, policies and requesters.

``python -m sim_tb.measure.vault_stress --accesses 10000000 --json report.json``
"""

import json
import random
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.console import Console

from hdl.ports import COLUMN_BYTES
from memory.config import AddressMap, PagePolicy, SchedulerPolicy, VaultConfig
from memory.controller.starvation import starvation_bound
from memory.errors import MemoryConfigError
from memory.timing import DramTiming
from sim_tb.dut.memory import ports_of
from sim_tb.harness.traffic import Pattern, TrafficJob, Walk
from sim_tb.harness.traffic_runs import TrafficError, run_traffic
from sim_tb.runner.build import BuildError
from support.command import run_command
from support.files import write_atomically

__all__ = ["StressCase", "StressReport", "app", "random_case", "run_stress"]

app = typer.Typer(add_completion=False)

#: Largest range of a random vault that is accessed; few columns, so that accesses meet.
_SPAN = 1 << 20
#: Runs of one vault, each with patterns of its own.
_RUNS = 4
#: Clock period in ns; times are drawn in clocks.
_TCK_NS = 0.8


@dataclass(frozen=True, kw_only=True)
class StressCase:
    """One vault and the runs against it; a function of ``seed`` and the number of accesses.

    Attributes:
        requesters: 0: one straight at the controller.
    """

    seed: int
    config: VaultConfig
    requesters: int
    jobs: tuple[TrafficJob, ...]


@dataclass(frozen=True, kw_only=True)
class StressReport:
    """Summary of runs in which no fault was found.

    Attributes:
        vaults: configurations. accesses: answered. cycles: simulated.
        longest: latency in cycles of any access. bound: of that vault, in cycles.
        reads, writes: answered. commands: that the DRAM checked, by name.
        seconds: of simulation.
    """

    vaults: int
    accesses: int
    reads: int
    writes: int
    cycles: int
    longest: int
    bound: int
    commands: dict[str, int]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return asdict(self)


def _random_timing(rng: random.Random) -> DramTiming:
    """Timing that a DRAM can have: near the thesis's, or far from it."""
    while True:
        clocks = {
            "tccd": rng.randint(1, 12),
            "tcl": rng.randint(2, 24),
            "tcwl": rng.randint(2, 24),
            "trcd": rng.randint(1, 24),
            "trp": rng.randint(1, 24),
            "tras": rng.randint(2, 60),
            "twr": rng.randint(1, 30),
            "trtp": rng.randint(1, 15),
            "twtr": rng.choice((0, rng.randint(1, 15))),
            "trrd": rng.choice((0, 0, rng.randint(1, 10))),
            "tfaw": rng.choice((0, 0, rng.randint(4, 60))),
            "trfc": rng.randint(1, 200),
            "trefi": rng.randint(200, 3000),
        }
        times = {f"{name}_ns": round(count * _TCK_NS, 1) for name, count in clocks.items()}
        try:
            return DramTiming(tck_ns=_TCK_NS, turnaround_clocks=rng.choice((0, 1, 1, 5)), **times)
        except MemoryConfigError:
            continue


def _random_pattern(rng: random.Random, config: VaultConfig, accesses: int) -> Pattern:
    stride = rng.choice((1, 3, config.columns, config.columns * config.banks))
    return Pattern(
        walk=rng.choice(tuple(Walk)),
        accesses=accesses,
        stride=stride,
        hot=rng.choice((1, 4, config.columns, 64)),
        writes=rng.choice((0.0, 0.25, 0.5, 0.9, 1.0)),
        partial=rng.random() < 0.6,
        offer=rng.choice((1.0, 1.0, 0.7, 0.2)),
        take=rng.choice((1.0, 1.0, 0.7, 0.3)),
        window=rng.choice((1, 4, 65536, 65536)),
        outside=rng.choice((0.0, 0.02)),
        burst=rng.choice((0, 0, 50, 1000)),
        seed=rng.getrandbits(32),
    )


def random_case(seed: int, accesses: int) -> StressCase:
    """The vault of ``seed``, with ``accesses`` or a few more in all its runs."""
    rng = random.Random(seed)
    requesters = rng.randrange(9)
    ports = ports_of(requesters)
    config = VaultConfig(
        banks=rng.choice((2, 4, 4, 8, 16, 16, 32)),
        rows=rng.choice((4, 64, 1024)),
        row_bytes=rng.choice((64, 128, 256, 256, 1024)),
        timing=_random_timing(rng),
        page_policy=rng.choice(get_args(PagePolicy)),
        address_map=rng.choice(get_args(AddressMap)),
        scheduler=rng.choice(get_args(SchedulerPolicy)),
        transaction_queue=rng.choice((4, 8, 16, 32)),
        command_queue=rng.choice((2, 4, 8)),
        tag_bits=(ports - 1).bit_length() + rng.randint(1, 6),
    )
    if rng.random() < 0.5:
        # Room for accesses beyond the memory.
        config = replace(config, port_address_bits=config.address_bits + 1)
    columns = min(config.size_bytes, _SPAN) // COLUMN_BYTES
    each = -(-accesses // (_RUNS * ports))
    # Each requester's oldest request may wait that long before it is taken, and then once more;
    # requesters that rarely take responses make it longer.
    bound = 4 * (ports + 1) * starvation_bound(config)
    jobs = tuple(
        TrafficJob(
            patterns=tuple(_random_pattern(rng, config, each) for _ in range(ports)),
            begin=0,
            span=columns // ports * ports * COLUMN_BYTES,
            patience=bound,
            max_cycles=2000 * each * ports + 4 * bound,
        )
        for _ in range(_RUNS)
    )
    return StressCase(seed=seed, config=config, requesters=requesters, jobs=jobs)


def run_stress(
    *,
    accesses: int,
    vaults: int,
    seed: int,
    progress: Callable[[StressCase], None] | None = None,
) -> StressReport:
    """Run ``vaults`` random cases, of seeds from ``seed`` on, with at least ``accesses`` in all.

    Parameters:
        progress: called before each case.

    Raises:
        TrafficError: a rule of a port or the DRAM broken, or an access lost, duplicated, reordered
            or starved; the message names the case's seed.
        sim_tb.runner.build.BuildError: a simulator can't be built.
    """
    totals = {"reads": 0, "writes": 0, "cycles": 0}
    commands: dict[str, int] = {}
    longest = bound = 0
    seconds = 0.0
    for number in range(vaults):
        case = random_case(seed + number, -(-accesses // vaults))
        if progress is not None:
            progress(case)
        try:
            results = run_traffic(case.config, case.requesters, case.jobs)
        except TrafficError as error:
            raise TrafficError(f"vault of seed {case.seed}: {error}") from error
        for result in results:
            totals["reads"] += result.reads
            totals["writes"] += result.writes
            totals["cycles"] += result.total_cycles
            seconds += result.wall_seconds
            for name, count in result.commands.items():
                commands[name] = commands.get(name, 0) + count
            if result.longest > longest:
                longest, bound = result.longest, starvation_bound(case.config)
    return StressReport(
        vaults=vaults,
        accesses=totals["reads"] + totals["writes"],
        **totals,
        longest=longest,
        bound=bound,
        commands=commands,
        seconds=round(seconds, 1),
    )


def _describe(case: StressCase) -> str:
    config = case.config
    return (
        f"vault {case.seed}: {case.requesters or 'no'} requesters at the crossbar, "
        f"{config.banks} banks of {config.rows} x {config.row_bytes} B, {config.address_map}, "
        f"{config.page_policy} page, {config.scheduler}, "
        f"queues {config.transaction_queue}/{config.command_queue}"
    )


@app.command()
def _main(
    accesses: Annotated[int, typer.Option(help="In all vaults together.", min=1)] = 10_000_000,
    vaults: Annotated[int, typer.Option(help="Random vaults; each is built.", min=1)] = 16,
    seed: Annotated[int, typer.Option(help="Of the first vault.", min=0)] = 1,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="File for the totals.", dir_okay=False)
    ] = None,
) -> None:
    """Look for timing violations and for lost, wrong, reordered or starved accesses."""
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    try:
        report = run_stress(
            accesses=accesses,
            vaults=vaults,
            seed=seed,
            progress=lambda case: console.print(_describe(case), soft_wrap=True),
        )
        Console().print_json(data=report.to_dict())
        if json_file is not None:
            write_atomically(json_file, json.dumps(report.to_dict(), indent=1).encode() + b"\n")
    except (TrafficError, BuildError, OSError) as error:
        console.print(f"error: {error}")
        sys.exit(1)


if __name__ == "__main__":
    run_command(app)
