"""Schedules for :class:`microkernels.runtime.interleave.Together`: orders in which engines act."""

from collections.abc import Sequence

import numpy as np

from microkernels.runtime.interleave import Schedule


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
