"""Whole jobs on compiled simulators: the results of all engines of all vaults, without timing.

The engines take turns on one memory, each with the same number of instructions. A kernel whose
engines wait for each other correctly leaves the same values in every order;
:mod:`microkernels.runtime.interleave` tries hostile ones, and checks hazards.
"""

from collections.abc import Callable
from dataclasses import dataclass

from isa.compiled.simulator import CompiledSimulator
from isa.image import DramImage
from isa.iss.simulator import Outcome
from isa.run import Launch
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import Elements

from .job import STANDARD, KernelJob

__all__ = ["CompiledRun", "execute"]

#: Instructions of a turn: few, as a waiting engine spends its whole turns in the wait loop.
_TURN = 4096


@dataclass(frozen=True, kw_only=True)
class CompiledRun:
    """A job that has run.

    Attributes:
        job: that ran.
        outputs: of the job. instructions: of all engines, with those spent waiting.
    """

    job: KernelJob
    outputs: Elements
    instructions: int

    @property
    def match(self) -> bool:
        """Every output equals the golden model's."""
        return self.job.differing(self.outputs) == 0


def execute(
    job: KernelJob,
    *,
    instructions: frozenset[str] = STANDARD,
    turn: int = _TURN,
    progress: Callable[[int], None] | None = None,
) -> CompiledRun:
    """Run ``job`` on its number of engines and vaults.

    Parameters:
        instructions: keys of those that the engines have.
        turn: instructions that an engine executes before the next one's turn, at least 1.
        progress: called after each round of turns with the instructions so far.

    Raises:
        KernelError: a program has an instruction that the engines lack, an engine faulted, or the
            engines wait for each other in a deadlock.
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    CHECK.at_least("turn", turn, 1)
    job.check_instructions(instructions)
    done = 0
    with DramImage(_bytes(job)) as memory:
        job.prepare(memory)
        for launch in job.launches:
            engines = _launch(job, launch, memory, instructions)
            limit = launch.max_cycles
            while waiting := [engine for engine in engines if engine.outcome.state == "limit"]:
                for engine in waiting:
                    engine.take_turn(turn)
                    if engine.outcome.state == "faulted":
                        raise KernelError(
                            f"{job.name}: {engine.name} faulted at word {engine.outcome.pc}: "
                            f"{engine.outcome.cause.name}"
                        )
                if progress is not None:
                    progress(done + sum(engine.outcome.instructions for engine in engines))
                if min(engine.outcome.instructions for engine in waiting) > limit:
                    raise KernelError(
                        f"{job.name}: no end after {limit} instructions of each engine"
                    )
            done += sum(engine.outcome.instructions for engine in engines)
        return CompiledRun(job=job, outputs=job.outputs(memory), instructions=done)


def _bytes(job: KernelJob) -> int:
    """Bytes of the memory of all vaults."""
    if job.ring is None or job.vaults == 1:
        return job.end
    return job.vaults << job.ring.address_bits


class _Engine:
    def __init__(self, name: str, simulator: CompiledSimulator) -> None:
        self.name = name
        self._simulator = simulator
        self.outcome: Outcome = simulator.run(0)

    def take_turn(self, instructions: int) -> None:
        self.outcome = self._simulator.run(instructions)


def _launch(
    job: KernelJob, launch: Launch, memory: DramImage, instructions: frozenset[str]
) -> list[_Engine]:
    count = job.vaults * job.pes
    engines = []
    for index in range(count):
        vault, slot = divmod(index, job.pes)
        simulator = CompiledSimulator(
            launch.program,
            memory,
            pe_index=index,
            vault=vault,
            slot=slot,
            pe_count=count,
            parameters=launch.parameters,
            address_bits=max(12, (memory.size - 1).bit_length()),
            instructions=instructions,
        )
        engines.append(_Engine(f"engine {slot} of vault {vault}", simulator))
    return engines
