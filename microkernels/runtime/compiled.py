"""Complete jobs on compiled simulators: the results of all engines of all vaults, without timing.

The engines take turns on one memory, executing the same number of instructions each. A kernel with
correct synchronisation leaves the same values in any order; :mod:`microkernels.runtime.interleave`
tries hostile orders and checks hazards.
"""

from isa.compiled.machine import TURN, SimulatedMachine
from isa.image import DramImage
from isa.run import RunError, RunResult
from microkernels.common.errors import CHECK, KernelError

from .job import STANDARD, KernelJob, KernelOutcome


def execute(
    job: KernelJob,
    *,
    instructions: frozenset[str] = STANDARD,
    turn: int = TURN,
) -> KernelOutcome:
    """Run ``job`` with all its engines and vaults.

    Parameters:
        instructions: keys of the instructions that the engines have.
        turn: instructions an engine executes per turn, at least 1.

    Raises:
        KernelError: a program has an instruction that the engines lack, an engine faulted, or the
            engines are in a deadlock.
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    CHECK.at_least("turn", turn, 1)
    job.check_instructions(instructions)
    results: dict[str, RunResult] = {}
    with DramImage(_bytes(job)) as memory:
        settings = {
            "address_bits": max(12, (memory.size - 1).bit_length()),
            "instructions": instructions,
        }
        machine = SimulatedMachine(settings, vaults=job.vaults, slots=job.pes, turn=turn)
        job.prepare(memory)
        for launch in job.launches:
            try:
                results[launch.name] = result = machine.run(launch, memory)
            except RunError as error:
                raise KernelError(f"{job.name}: {error}") from None
            for end in result.faults:
                place = f"{job.name}: engine {end.slot} of vault {end.vault}"
                raise KernelError(f"{place}: {end.fault}")
        return KernelOutcome(job=job, outputs=job.outputs(memory), results=results)


def _bytes(job: KernelJob) -> int:
    return job.end if job.vaults == 1 else job.vaults << job.ring.address_bits
