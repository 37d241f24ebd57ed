"""Kernels on the Verilog of an engine, a vault or a chip, compared with their golden models."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from isa.image import DramImage
from isa.run import Machine, RunResult
from microkernels.bp.jobs import bp_job, bp_levels_job
from microkernels.bp.problem import BpProblem
from microkernels.runtime.job import KernelJob, KernelOutcome
from microkernels.runtime.ring import ONE_ENGINE, ChipEngines
from sim_tb.runner.cache import fingerprint
from soc.generate.designs import Configuration
from support.errors import counted

from .checkpoint import Checkpoint
from .engine import CosimError
from .machine import MachineOptions, On, open_machine


def launches_key(job: KernelJob) -> str:
    """A key of a job, from its launches and the initial memory contents of all vaults."""
    launches = [
        repr((launch.name, launch.parameters, launch.program.words)) for launch in job.launches
    ]
    contents = [part for address, data in job.segments() for part in (str(address), data)]
    return fingerprint(repr((job.name, job.pes)), *launches, *contents)


def _check(job: KernelJob, design: Configuration, room: int) -> None:
    """Refuse a job that does not fit ``design``, whose vaults have ``room`` bytes."""
    if job.updates == 0:
        raise CosimError("nothing to update: give at least two pixels and one iteration")
    if job.vaults != design.vaults:
        raise CosimError(f"a job of {counted(job.vaults, 'vault')} can't run on {design.vaults}")
    if not 1 <= job.pes <= design.slots:
        raise CosimError(f"{counted(job.pes, 'engine')} can't work in a vault of {design.slots}")
    if job.end > room:
        raise CosimError(f"{job.name} needs {job.end} bytes, the vault has {room}")


def run_work(
    job: KernelJob,
    machine: Machine,
    *,
    memory_bytes: int | None = None,
    checkpoint: Checkpoint | None = None,
    begins: Callable[[str], None] | None = None,
    progress: Callable[[int], None] | None = None,
    **surroundings: Any,
) -> KernelOutcome:
    """Run a job on an open machine and compare its outputs with the golden model's.

    Parameters:
        machine: the job uses the first engines of each vault; the others stay idle.
        memory_bytes: size of the memory; None: the design's. A trimmed engine may need more, for
            data of the job that the program does not touch.
        checkpoint: written after launches, at most every 20 seconds; launches that it has are not
            repeated. The machine, but not its memory, is then reset before every launch, so that an
            interrupted run takes as many cycles as an uninterrupted one. Needs ``preload``. The
            caller removes it.
        begins: called with the name of each launch before it runs.
        progress: called periodically with the cycles of the launch so far.
        surroundings: further parameters of the machine's ``run``, such as an engine's ``memory``.

    Raises:
        CosimError: an engine faulted or did not end, the job is for another design or has nothing
            to update, the memory is too small, or there is a checkpoint without ``preload``.
        KernelError: a program has an instruction that the engines lack.
    """
    design: Configuration = machine.config
    _check(job, design, memory_bytes or design.vault_bytes)
    if not machine.lenient:
        job.check_instructions(design.pe.instructions)
    results: dict[str, RunResult] = {}
    with DramImage(memory_bytes or design.memory_bytes) as image:
        memory = machine.memory(image)
        if checkpoint is not None:
            if memory is not image:
                raise CosimError("a run with checkpoints must be preloaded")
            results = checkpoint.load(image)
        if not results:
            job.prepare(memory)
        ended = set(results)
        for launch in job.launches:
            if launch.name in ended:
                continue
            if begins is not None:
                begins(launch.name)
            if checkpoint is not None:
                machine.restart()
            results[launch.name] = result = machine.run(
                launch, image, engines=job.pes, progress=progress, **surroundings
            )
            if result.faults:
                raise CosimError(f"{job.name}: {'; '.join(map(str, result.faults))}")
            if checkpoint is not None:
                checkpoint.save(image, results)
        outputs = job.outputs(memory)
    return KernelOutcome(job=job, outputs=outputs, results=results)


def run_on(
    job: KernelJob,
    design: Configuration,
    *,
    on: On = "rtl",
    checkpoint: Checkpoint | None = None,
    begins: Callable[[str], None] | None = None,
    progress: Callable[[int], None] | None = None,
    **options: Unpack[MachineOptions],
) -> KernelOutcome:
    """:func:`run_work` on a machine of its own.

    Parameters:
        on, options: see :func:`sim_tb.cosim.machine.open_machine`.

    Raises:
        VipError: as for these two functions.
    """
    with open_machine(design, on, **options) as machine:
        return run_work(job, machine, checkpoint=checkpoint, begins=begins, progress=progress)


def bp_job_on(
    problem: BpProblem,
    iterations: int,
    design: Configuration,
    *,
    coarse_iterations: int | None = None,
    pes: int | None = None,
    **options: Any,
) -> KernelJob:
    """Belief propagation on the engines of a design.

    Parameters:
        coarse_iterations: of hierarchical BP-M; None: it has one level.
        pes: engines of each vault that work; None: all.
        problem, iterations, options, and errors: as of :func:`microkernels.bp.jobs.bp_job` and
            :func:`microkernels.bp.jobs.bp_levels_job`.
    """
    if coarse_iterations is None:
        make = bp_job
    else:
        make = partial(bp_levels_job, coarse_iterations=coarse_iterations)
    engines = ChipEngines.of(design)
    if design.kind != "chip":
        # The memory of a run may be larger than the design's.
        engines = replace(engines, address_bits=ONE_ENGINE.address_bits)
    engines = replace(engines, pes=design.slots if pes is None else pes)
    return make(problem, iterations=iterations, engines=engines, **options)
