"""Scheduling policies of a vault under unlike requesters."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import get_args

from hdl.component import Component
from hdl.config import SramKind
from hdl.ports import COLUMN_BYTES
from isa.image import DramImage
from memory.config import SchedulerPolicy, VaultConfig
from memory.controller.policies import make_scheduler
from memory.controller.starvation import starvation_bound
from sim_tb.harness.traffic import WORD_BYTES, Pattern, TrafficJob, TrafficResult, Walk, moved
from sim_tb.harness.traffic_runs import run_traffic
from sim_tb.timed.vault.vault_model import record_trace
from sim_tb.workloads.tiles import kernel_jobs
from soc.generate.presets import tile_preset

from .harness.experiment import SIMULATION, Measurement, experiment, figure
from .harness.parts import part_area

#: Recorded cycles, and most accesses.
_CYCLES, _MOST = 150_000, 60_000

#: Bytes by which data of a requester begin later in its part of the memory than those of the one
#: before: rows of five banks, for parts begin at the same bank, and arrays of engines don't.
_SHIFT = 5 * 256

#: Applications by requester; "hasty" ones make their accesses as fast as the memory takes them.
TRACED_MIXES: Mapping[str, tuple[str, ...]] = {
    "applications": ("bp_m", "conv3_2", "fc7", "lstm"),
    "bp_and_fc7": ("bp_m", "bp_m", "fc7", "fc7"),
    "conv3_2_hasty": 4 * ("hasty conv3_2",),
    "bp_m": 4 * ("bp_m",),
}


@cache
def application_trace(name: str) -> bytes:
    """The accesses of one engine, alone in the thesis's vault, in the first 150,000 cycles of a
    kernel's last launch, with addresses from 0 on
    (:attr:`sim_tb.harness.traffic.Pattern.trace`). Of belief propagation, the launches before
    prepare messages; addresses don't depend on data. Of a convolution it is one round of filters.

    Parameters:
        name: of the kernel.

    Raises:
        KeyError: another name.
        sim_tb.cosim.engine.CosimError: the timing model does not have the vault.
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    tile, jobs = kernel_jobs(name, replace(tile_preset("vault"), pes=1), rounds=1)
    *_, launch = jobs[0].launches
    with DramImage(tile.vault.size_bytes) as image:
        jobs[0].prepare(image)
        return record_trace(replace(launch, max_cycles=_CYCLES), image, config=tile, accesses=_MOST)


POLICIES: tuple[SchedulerPolicy, ...] = get_args(SchedulerPolicy)

#: Policy with which a requester that is alone gives the weighted speed-up its unit.
BASELINE: SchedulerPolicy = "first-ready"

#: 32-byte accesses of each requester.
ACCESSES = 20_000

#: Requesters of every mix.
REQUESTERS = 4

#: A requester with one request in flight makes fewer accesses, by this factor.
_SLOW = 16

#: Bytes of the accessed memory.
_SPAN = 8 << 20

_SEQUENTIAL = Pattern(walk=Walk.SEQUENTIAL)

_RANDOM = Pattern()

_MIXED = Pattern(writes=0.25)

#: Most accesses go to a few columns of one row.
_HOT = Pattern(walk=Walk.HOT, hot=2)

_LONE = Pattern(window=1)

#: Patterns of the requesters, whose numbers of accesses and seeds are set later.
MIXES: Mapping[str, tuple[Pattern, ...]] = {
    "sequential_random_25": (*(3 * (_SEQUENTIAL,)), _MIXED),
    "sequential_random_10": (*(3 * (_SEQUENTIAL,)), replace(_RANDOM, writes=0.1)),
    "random_mixed": 4 * (_MIXED,),
    "unlike": (_SEQUENTIAL, replace(_SEQUENTIAL, writes=1.0), _MIXED, _HOT),
    "lone": (_RANDOM, _RANDOM, _LONE, _LONE),
    "sequential_read": 4 * (_SEQUENTIAL,),
    "random_read": 4 * (_RANDOM,),
    "sequential_write": 4 * (replace(_SEQUENTIAL, writes=1.0),),
    "random_write": 4 * (replace(_RANDOM, writes=1.0),),
}

#: Those, and mixes of applications.
ALL_MIXES = (*MIXES, *TRACED_MIXES)

#: As :func:`sim_tb.harness.traffic_runs.run_traffic`.
RunTraffic = Callable[[VaultConfig, int, Sequence[TrafficJob]], list[TrafficResult]]


def policy_vault(policy: SchedulerPolicy) -> VaultConfig:
    """The thesis's vault with ``policy``."""
    return VaultConfig(scheduler=policy)


def mix_job(
    config: VaultConfig, patterns: Sequence[Pattern], accesses: Sequence[int]
) -> TrafficJob:
    """A run of ``patterns``, those of a mix.

    Parameters:
        accesses: 32-byte accesses of each requester; a sixteenth of one that has one request in
            flight; of a trace, the share of it that they are of :data:`ACCESSES`, at most all.
    """
    return TrafficJob(
        patterns=tuple(
            replace(pattern, accesses=_accesses(pattern, count), seed=number)
            for number, (pattern, count) in enumerate(zip(patterns, accesses, strict=True), 1)
        ),
        begin=config.size_bytes - _SPAN,
        span=_SPAN // (REQUESTERS * COLUMN_BYTES) * REQUESTERS * COLUMN_BYTES,
        patience=(REQUESTERS + 1) * starvation_bound(config),
        max_cycles=1000 * sum(accesses),
    )


@cache
def mix_patterns(mix: str) -> tuple[Pattern, ...]:
    """The requesters of ``mix``, one of :data:`MIXES` or, each with its whole trace,
    :data:`TRACED_MIXES`.

    Raises:
        KeyError: another mix; else as :func:`application_trace`.
    """
    if mix in MIXES:
        return MIXES[mix]
    patterns = []
    for number, member in enumerate(TRACED_MIXES[mix]):
        *hasty, name = member.split()
        trace = moved(application_trace(name), _SHIFT * number, hasty=bool(hasty))
        patterns.append(Pattern(trace=trace, accesses=len(trace) // WORD_BYTES))
    return tuple(patterns)


def measure_alone() -> dict[str, tuple[int, ...]]:
    """By mix of :data:`ALL_MIXES`, the cycles of each requester until its last response when it is
    alone, with :data:`BASELINE`; errors as for :func:`measure_policy`."""
    vault = policy_vault(BASELINE)
    jobs = [
        mix_job(
            vault,
            mix_patterns(mix),
            [ACCESSES if number == one else 1 for number in range(REQUESTERS)],
        )
        for mix in ALL_MIXES
        for one in range(REQUESTERS)
    ]
    ends = [result.ends for result in run_traffic(vault, REQUESTERS, jobs)]
    return {
        mix: tuple(ends[REQUESTERS * number + one][one] for one in range(REQUESTERS))
        for number, mix in enumerate(ALL_MIXES)
    }


def measure_policy(
    config: VaultConfig, alone: Mapping[str, Sequence[int]]
) -> dict[str, list[Measurement]]:
    """By mix, figures of a vault's memory with four requesters: GB/s moved, from the first request
    to the last response; the weighted speed-up, which sums over the requesters the cycles until the
    last response when it is alone with :data:`BASELINE`, over those in the mix; the largest of
    these quotients' inverses; the longest latency of an access.

    Parameters:
        config: of the vault. alone: what :func:`measure_alone` has found, for the mixes that are
            run.

    Raises:
        TrafficError: the memory made an error, or left a request waiting for longer than
            :func:`memory.controller.starvation.starvation_bound` promises.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    jobs = [mix_job(config, mix_patterns(mix), REQUESTERS * [ACCESSES]) for mix in alone]
    results = run_traffic(config, REQUESTERS, jobs)
    return {
        mix: _mix_figures(config, result, alone[mix])
        for mix, result in zip(alone, results, strict=True)
    }


def _accesses(pattern: Pattern, count: int) -> int:
    if pattern.trace:
        return max(1, pattern.accesses * min(count, ACCESSES) // ACCESSES)
    return max(1, count // _SLOW) if pattern.window == 1 else count


def _mix_figures(
    config: VaultConfig, result: TrafficResult, alone: Sequence[int]
) -> list[Measurement]:
    slowdowns = [result.ends[number] / cycles for number, cycles in enumerate(alone)]
    gbs = round(result.bytes / result.cycles / config.timing.tck_ns, 4)
    speedup = round(sum(1 / slowdown for slowdown in slowdowns), 4)
    return [
        Measurement("gbs", gbs, "GB/s", 0.01, True),
        Measurement("speedup", speedup, "", 0.01, True),
        Measurement("slowest", round(max(slowdowns), 3), "", 0.02),
        Measurement("longest", result.longest, "cycles", 0.05),
    ]


#: Accesses of each requester, for the curve.
LENGTHS = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)

#: Those of :data:`MIXES` for the curve.
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
        TrafficError: as :func:`measure_policy`.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    jobs = [
        mix_job(config, MIXES[mix], REQUESTERS * [length])
        for mix in MIXES_LEARNED
        for length in lengths
    ]
    rates = [
        round(result.bytes / result.cycles / config.timing.tck_ns, 4)
        for result in run(config, REQUESTERS, jobs)
    ]
    count = len(lengths)
    return {
        mix: rates[count * number : count * (number + 1)]
        for number, mix in enumerate(MIXES_LEARNED)
    }


#: Policies whose area and longest path are measured.
_SIZED: tuple[SchedulerPolicy, ...] = (
    "first-ready",
    "first-ready-timed",
    "learned",
)


@experiment(tools=(*SIMULATION, "pyosys"), minutes=6)
def schedulers() -> Iterator[Measurement]:
    """Four requesters, alike and unlike, at a vault's memory with each scheduling policy.

    Bandwidth, weighted speed-up, largest slow-down and longest wait; what the learned policy moves
    by the length of a run; areas.
    """
    alone = measure_alone()
    for policy in POLICIES:
        for mix, figures in measure_policy(policy_vault(policy), alone).items():
            for one in figures:
                yield replace(one, name=f"{figure(policy)}_{mix}_{one.name}")
    for mix, values in measure_bandwidth(policy_vault("learned"), LENGTHS).items():
        for length, gbs in zip(LENGTHS, values, strict=True):
            yield Measurement(f"learned_after_{length}_{mix}", gbs, "GB/s", 0.01, True)
    for policy in _SIZED:
        kge = part_area(partial(_scheduler, policy), "generic")["logic_ge"] / 1000
        yield Measurement(f"{figure(policy)}_kge", kge, "kGE", 0.01)


def _scheduler(policy: SchedulerPolicy, sram: SramKind) -> Component:
    """The scheduler with ``policy``; it has no memories."""
    del sram
    scheduler: Component = make_scheduler(policy_vault(policy))
    return scheduler
