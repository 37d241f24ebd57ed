"""Scheduling policies of a vault under unlike requesters: bandwidth, weighted speed-up, and the
longest wait."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from hdl.ports import COLUMN_BYTES
from memory.agent.config import AgentConfig
from memory.config import SchedulerPolicy, VaultConfig
from memory.controller.starvation import starvation_bound
from sim_tb.harness.traffic import Pattern, TrafficJob, TrafficResult, Walk
from sim_tb.harness.traffic_runs import run_traffic

from .traces import TRACED_MIXES, traced_patterns

__all__ = [
    "ACCESSES",
    "ALL_MIXES",
    "BASELINE",
    "MIXES",
    "POLICIES",
    "REQUESTERS",
    "MixFigures",
    "RunTraffic",
    "measure_alone",
    "measure_policy",
    "mix_job",
    "mix_patterns",
    "policy_vault",
]

POLICIES: tuple[SchedulerPolicy, ...] = get_args(SchedulerPolicy)
#: Policy with which a requester that is alone gives the weighted speed-up its unit.
BASELINE: SchedulerPolicy = "first-ready"

#: 32-byte accesses of each requester.
ACCESSES = 20_000
#: Requesters of every mix.
REQUESTERS = 4
#: A requester with one request in flight makes so many times fewer accesses.
_SLOW = 16
#: Bytes that the accesses go to.
_SPAN = 8 << 20

_SEQUENTIAL = Pattern(walk=Walk.SEQUENTIAL)
_RANDOM = Pattern()
_MIXED = Pattern(writes=0.25)
#: A few columns of one row get most accesses.
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


@dataclass(frozen=True, kw_only=True)
class MixFigures:
    """A mix under a policy.

    Attributes:
        gbs: GB/s moved, from the first request to the last response.
        speedup: weighted speed-up: of each requester the cycles until its last response when it is
            alone with :data:`BASELINE`, over those in the mix; the sum of all.
        slowest: the largest of these quotients' inverses.
        longest: latency of an access, in cycles.
    """

    gbs: float
    speedup: float
    slowest: float
    longest: int


def policy_vault(policy: SchedulerPolicy) -> VaultConfig:
    """The thesis's vault with ``policy``, which knows the requesters if it ranks them; an agent
    that chooses among policies does so in epochs of 16 cycles."""
    ranks = (REQUESTERS - 1).bit_length() if policy == "par-bs" else 0
    agent = AgentConfig(epoch=16) if policy == "meta" else AgentConfig()
    return VaultConfig(scheduler=policy, requester_bits=ranks, agent=agent)


def mix_job(
    config: VaultConfig, patterns: Sequence[Pattern], accesses: Sequence[int], *, seed: int = 1
) -> TrafficJob:
    """A run of ``patterns``, those of a mix, with ``accesses`` of each requester.

    Parameters:
        seed: of the first requester; the others follow.
    """
    return TrafficJob(
        patterns=tuple(
            replace(pattern, accesses=_accesses(pattern, count), seed=seed + number)
            for number, (pattern, count) in enumerate(zip(patterns, accesses, strict=True))
        ),
        begin=config.size_bytes - _SPAN,
        span=_SPAN // (REQUESTERS * COLUMN_BYTES) * REQUESTERS * COLUMN_BYTES,
        patience=(REQUESTERS + 1) * starvation_bound(config),
        max_cycles=1000 * sum(accesses),
    )


def mix_patterns(mix: str) -> tuple[Pattern, ...]:
    """The requesters of ``mix``, one of :data:`MIXES` or
    :data:`sim_tb.measure.traces.TRACED_MIXES`."""
    return MIXES[mix] if mix in MIXES else traced_patterns(mix)


def measure_alone(
    mixes: Sequence[str] = ALL_MIXES,
    *,
    accesses: int = ACCESSES,
    seed: int = 1,
    run: RunTraffic = run_traffic,
) -> dict[str, tuple[int, ...]]:
    """By mix, the cycles of each requester until its last response when it is alone, with
    :data:`BASELINE`; parameters and errors as of :func:`measure_policy`."""
    vault = policy_vault(BASELINE)
    jobs = [
        mix_job(
            vault,
            mix_patterns(mix),
            [accesses if number == one else 1 for number in range(REQUESTERS)],
            seed=seed,
        )
        for mix in mixes
        for one in range(REQUESTERS)
    ]
    ends = [result.ends for result in run(vault, REQUESTERS, jobs)]
    return {
        mix: tuple(ends[REQUESTERS * number + one][one] for one in range(REQUESTERS))
        for number, mix in enumerate(mixes)
    }


def measure_policy(
    config: VaultConfig,
    alone: Mapping[str, Sequence[int]],
    *,
    accesses: int = ACCESSES,
    seed: int = 1,
    run: RunTraffic = run_traffic,
) -> dict[str, MixFigures]:
    """Figures by mix of a vault's memory with four requesters.

    Parameters:
        config: of the vault. alone: what :func:`measure_alone` has found with the same parameters,
            for the mixes that are run.
        accesses: 32-byte accesses of each requester, 100 or more; a sixteenth of a requester that
            has one request in flight. Of a trace, the share of it that this is of
            :data:`ACCESSES`, at most all.
        seed: of the first requester; the others follow.
        run: makes the runs, on the Verilog or on the timing model.

    Raises:
        TrafficError: the memory did something wrong, or left a request waiting for longer than
            :func:`memory.controller.starvation.starvation_bound` promises.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    jobs = [mix_job(config, mix_patterns(mix), REQUESTERS * [accesses], seed=seed) for mix in alone]
    results = run(config, REQUESTERS, jobs)
    return {
        mix: _figures(config, result, alone[mix])
        for mix, result in zip(alone, results, strict=True)
    }


def _accesses(pattern: Pattern, count: int) -> int:
    if pattern.trace:
        return max(1, pattern.accesses * min(count, ACCESSES) // ACCESSES)
    return max(1, count // _SLOW) if pattern.window == 1 else count


def _figures(config: VaultConfig, result: TrafficResult, alone: Sequence[int]) -> MixFigures:
    slowdowns = [result.ends[number] / cycles for number, cycles in enumerate(alone)]
    return MixFigures(
        gbs=round(result.bytes / result.cycles / config.timing.tck_ns, 4),
        speedup=round(sum(1 / slowdown for slowdown in slowdowns), 4),
        slowest=round(max(slowdowns), 3),
        longest=result.longest,
    )
