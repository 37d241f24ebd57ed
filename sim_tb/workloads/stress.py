"""Random traffic on vaults with random timing, geometry, policies, requesters and clocks."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import get_args

from hdl.config import ConfigurationError
from hdl.ports import COLUMN_BYTES
from memory.config import AddressMap, PagePolicy, SchedulerPolicy, VaultConfig
from memory.controller.counters import VaultCounter
from memory.controller.starvation import starvation_bound
from memory.timing import DramTiming
from sim_tb.cosim.chip import Periods
from sim_tb.dut.memory import ports_of
from sim_tb.harness.models import clock_arguments
from sim_tb.harness.traffic import Pattern, TrafficJob, TrafficResult, Walk
from sim_tb.harness.traffic_runs import TrafficError, run_traffic
from soc.tile.config import ClockConfig

from .traffic import Variant

#: Largest range of a random vault that is accessed: few columns, so that accesses collide.
_SPAN = 1 << 20

#: Runs per vault, each with its own patterns.
_RUNS = 4

#: Clock period in ns; times are drawn in clocks.
_TCK_NS = 0.8


#: The vault and the result of each run without errors.
StressRuns = list[tuple[Variant, TrafficResult]]


def stress_totals(runs: StressRuns) -> dict[str, int]:
    """Sums over runs: reads and writes answered, both together as accesses, and cycles of the
    requesters' clock; the longest latency of an access, in these cycles, and the latency bound of
    the vault that has it."""
    results = [result for _, result in runs]
    slowest, result = max(runs, key=lambda run: run[1].longest)
    reads, writes = (sum(getattr(one, name) for one in results) for name in ("reads", "writes"))
    return {
        "accesses": reads + writes,
        "reads": reads,
        "writes": writes,
        "cycles": sum(one.total_cycles for one in results),
        "longest": result.longest,
        "bound": starvation_bound(slowest.config),
    }


def _random_timing(rng: random.Random) -> DramTiming:
    """Valid DRAM timing, close to the thesis's or far from it."""
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
        except ConfigurationError:
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


def random_case(seed: int, accesses: int) -> Variant:
    """The vault of ``seed``, with ``accesses`` or slightly more in all its runs together."""
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
        # Leave room for accesses beyond the memory.
        config = replace(config, port_address_bits=config.address_bits + 1)
    columns = min(config.size_bytes, _SPAN) // COLUMN_BYTES
    share = -(-accesses // (_RUNS * ports))
    # Each requester's oldest request may wait that long before it is accepted, and then once more;
    # requesters that rarely accept responses prolong this.
    bound = 4 * (ports + 1) * starvation_bound(config)
    jobs = tuple(
        TrafficJob(
            patterns=tuple(_random_pattern(rng, config, share) for _ in range(ports)),
            begin=0,
            span=columns // ports * ports * COLUMN_BYTES,
            patience=bound,
            max_cycles=2000 * share * ports + 4 * bound,
        )
        for _ in range(_RUNS)
    )
    text = (
        f"{requesters or 'no'} requesters at the crossbar, "
        f"{config.banks} banks of {config.rows} x {config.row_bytes} B, {config.address_map}, "
        f"{config.page_policy} page, {config.scheduler}, "
        f"queues {config.transaction_queue}/{config.command_queue}"
    )
    return Variant(name=f"vault {seed}", text=text, config=config, requesters=requesters, jobs=jobs)


#: 21 clock ratios from 1:8 to 8:1, including SCRATCH's 50:200 and 97:200 MHz, some of them with
#: random jitter.
RATIOS = (
    Periods(1600, 200),
    Periods(1400, 200),
    Periods(1200, 200, 20),
    Periods(1000, 200),
    Periods(800, 200),
    Periods(1200, 400),
    Periods(1000, 400),
    Periods(2000, 970),
    Periods(1200, 800, 80),
    Periods(1000, 900),
    Periods(800, 800, 40),
    Periods(900, 1000, 100),
    Periods(800, 1200),
    Periods(970, 2000),
    Periods(400, 1000),
    Periods(400, 1200, 120),
    Periods(200, 800),
    Periods(200, 1000),
    Periods(200, 1200),
    Periods(200, 1400),
    Periods(200, 1600),
)

#: Depths of the crossing's buffers.
_DEPTHS = (4, 8, 16, 64)

#: Maximum cycles that a crossing adds to a wait, both ways, besides the ratio of the clocks.
_CROSSING_CYCLES = 1000


def clocks_of(seed: int) -> ClockConfig:
    """Two clocks with random buffer depths."""
    rng = random.Random(seed)
    return ClockConfig(
        domains="two", request_depth=rng.choice(_DEPTHS), response_depth=rng.choice(_DEPTHS)
    )


def _slowed(job: TrafficJob, periods: Periods) -> TrafficJob:
    """``job`` with its limits, in cycles of the memory, converted to cycles of its requesters."""
    ratio = max(1, -(-periods.memory_ps // periods.engine_ps))
    return replace(
        job,
        patience=2 * ratio * job.patience + _CROSSING_CYCLES,
        max_cycles=2 * ratio * job.max_cycles,
    )


def _run_at(case: Variant, clocks: ClockConfig, number: int, periods: Periods) -> TrafficResult:
    """Run a case at one clock ratio. Every access and all of the memory are checked, and the
    memory's counters, which the host reads from copies, are compared with the DRAM's commands."""
    (result,) = run_traffic(
        case.config,
        ports_of(case.requesters),
        [_slowed(case.jobs[number % _RUNS], periods)],
        clocks=clocks,
        arguments=clock_arguments(**vars(periods)),
    )
    for counter, command in ((VaultCounter.READS, "read"), (VaultCounter.WRITES, "write")):
        counted, seen = result.counters[counter], result.commands[command]
        if case.config.counters and counted != seen:
            raise TrafficError(f"counter {counter.name} is {counted} after {seen} commands")
    return result


def run_stress(
    *,
    accesses: int,
    vaults: int,
    seed: int,
    clocks: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> StressRuns:
    """Run ``vaults`` random cases, with seeds from ``seed`` on, and at least ``accesses`` in all.

    Parameters:
        clocks: run each vault at each of :data:`RATIOS`, one of its runs at each. Requesters offer
            and accept at random, so both sides of the crossing wait for each other.
        progress: called with each case's description before it runs.

    Raises:
        TrafficError: a rule of a port or the DRAM was broken, an access lost, duplicated, reordered
            or starved, or a counter wrong; the message names the case's seed, and the clocks.
        sim_tb.runner.build.BuildError: a simulator can't be built.
    """
    runs: StressRuns = []
    share = -(-accesses // (vaults * len(RATIOS))) * _RUNS if clocks else -(-accesses // vaults)
    for number in range(seed, seed + vaults):
        case = random_case(number, share)
        progress(f"{case.name}: {case.text}" + f", {len(RATIOS)} ratios of clocks" * clocks)
        where = f"vault of seed {number}"
        try:
            if not clocks:
                results = run_traffic(case.config, case.requesters, case.jobs)
                runs += ((case, result) for result in results)
                continue
            buffers = clocks_of(number)
            for place, periods in enumerate(RATIOS):
                where = (
                    f"vault of seed {number}, clocks of {periods.engine_ps} and "
                    f"{periods.memory_ps} ps, jitter {periods.jitter_ps} ps"
                )
                runs.append((case, _run_at(case, buffers, place, periods)))
        except TrafficError as error:
            raise TrafficError(f"{where}: {error}") from error
    return runs
