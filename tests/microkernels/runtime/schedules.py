"""Schedules for :class:`microkernels.runtime.interleave.Together`: orders in which engines act."""

from collections.abc import Sequence

import numpy as np

from isa.image import DramImage
from microkernels.runtime.interleave import Schedule, Together
from microkernels.runtime.job import KernelJob


def in_bursts(seed: int, longest: int) -> Schedule:
    """Schedule: random engines, each for a random number (1..``longest``) of instructions."""
    rng = np.random.default_rng(seed)
    current = [0, 0]

    def choose(alive: Sequence[int]) -> int:
        if not current[1] or current[0] not in alive:
            current[:] = [int(rng.choice(alive)), int(rng.integers(1, longest, endpoint=True))]
        current[1] -= 1
        return current[0]

    return choose


def one_behind(slow: int, handicap: int) -> Schedule:
    """Schedule: the engines in turns, but ``slow`` executes only one of ``handicap``
    instructions."""
    turn = [0]

    def choose(alive: Sequence[int]) -> int:
        turn[0] += 1
        rest = [member for member in alive if member != slow]
        if slow in alive and (not rest or turn[0] % handicap == 0):
            return slow
        return rest[turn[0] % len(rest)]

    return choose


def loaded(job: KernelJob) -> DramImage:
    """The memory of the vaults of ``job``, prepared for it."""
    memory = DramImage(job.memory_bytes)
    job.prepare(memory)
    return memory


def launch_all(
    job: KernelJob, memory: DramImage, schedule: Schedule, seed: int = 0, **options: frozenset[str]
) -> list[Together]:
    """The engines of each launch of ``job``; asserts that they halt and run into no hazard."""
    launches = []
    for launch in job.launches:
        together = Together(
            launch.program,
            memory,
            members=job.pes,
            ring=job.ring,
            parameters=launch.parameters,
            seed=seed,
            **options,
        )
        assert {outcome.state for outcome in together.run(schedule)} == {"halted"}
        for log in together.hazards:
            assert [str(hazard) for hazard in log.hazards] == []
        launches.append(together)
    return launches


def right(
    job: KernelJob, schedule: Schedule, seed: int = 0, far: bool = False, **options: frozenset[str]
) -> bool:
    """Whether all outputs are right; asserts as :func:`launch_all`, and that engines went no
    further than to a neighbour, unless ``far``."""
    with loaded(job) as memory:
        for together in launch_all(job, memory, schedule, seed, **options):
            assert far or set(together.traffic) <= {0, 1}
        return not job.differing(job.outputs(memory))
