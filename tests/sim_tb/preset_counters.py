"""A run of a simulator whose counters start from other values than 0."""

import random
from dataclasses import dataclass
from typing import Any

from cocotb.triggers import FallingEdge, First, RisingEdge, Timer

from hdl.counter_bank import COUNTER_BITS
from sim_tb.harness.models import PERIOD_PS, Library, arrays

_FULL = (1 << COUNTER_BITS) - 1


def presets(seed: int, scope: str, count: int) -> list[int]:
    """Values for the counters of one memory: all bits random, or near the end of their range."""
    rng = random.Random(f"{seed} {scope}")
    return [
        rng.choice((rng.getrandbits(COUNTER_BITS), _FULL - rng.getrandbits(8)))
        for _ in range(count)
    ]


@dataclass(frozen=True)
class PresetRun:
    """``job`` with the values of ``seed`` added to all counters ``cycles`` after its begin.

    Its result is that of ``job``, and what was added: scope -> values.
    """

    job: Any
    cycles: int
    seed: int
    outer: bool = True

    def start(self, library: Library) -> None:
        """Start the job."""
        self.job.start(library)

    async def drive(self, dut: Any, library: Library) -> tuple[Any, dict[str, list[int]]]:
        """Run it."""
        await FallingEdge(dut.idle)
        await Timer(self.cycles * PERIOD_PS, "ps")
        added = {}
        for (scope, _), words in arrays(library.library).items():
            if "counters" in scope:
                added[scope] = presets(self.seed, scope, len(words))
                for number, value in enumerate(added[scope]):
                    words[number] = (words[number] + value) & _FULL
        while not dut.idle.value:
            await First(RisingEdge(dut.idle), Timer(1000 * PERIOD_PS, "ps"))
        return self.job.result(library, 0.0), added
