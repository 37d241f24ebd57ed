"""Benchmarks of compiled simulators: whole chips, values without time, and the applications."""

import time
from collections.abc import Iterator

import numpy as np

import isa.compiled.checking
import isa.compiled.library
import isa.compiled.rows
import isa.compiled.simulator
import microkernels.runtime.compiled
import sim_tb.timed.library
from isa.compiled.simulator import CompiledSimulator
from isa.image import DramImage
from microkernels.bp.jobs import bp_job
from microkernels.bp.problem import BpProblem
from microkernels.common.errors import KernelError
from microkernels.runtime.compiled import execute
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import VaultRing
from microkernels.suite import Application, suite
from soc.generate.presets import chip_preset, preset

from . import fingerprints
from .measurement import Measurement, cpu_seconds

__all__ = ["compiled_parts", "functional", "made_of_functional", "model_parts"]

_CHIP = "thesis"
#: Pixels of full HD, labels, and the step and bound of the smoothness costs.
_WIDTH, _HEIGHT, _LABELS, _STEP, _BOUND = 1920, 1080, 16, 5, 15
#: Bound of the random data costs.
_COST = 3000
#: Seconds of a processor in which an application is launched repeatedly, and launches on one
#: memory; the first launch does not count, as the host allocates the pages that it touches.
_SECONDS, _LAUNCHES = 0.2, 50


def _job() -> KernelJob:
    """An iteration of BP-M on all engines of the chip, with random data costs."""
    chip = chip_preset(_CHIP)
    costs = np.random.default_rng(1).integers(-_COST, _COST, (_HEIGHT, _WIDTH, _LABELS))
    labels = np.arange(_LABELS)
    distances = np.abs(np.subtract.outer(labels, labels))
    smoothness = np.minimum(distances * _STEP, _BOUND)
    ring = VaultRing(
        columns=chip.network.columns,
        rows=chip.network.rows,
        address_bits=chip.network.address_bits,
    )
    return bp_job(BpProblem(costs, smoothness), 1, ring=ring, pes=chip.tile.pes)


def functional() -> Iterator[Measurement]:
    """An iteration of BP-M in full HD with 16 labels on all 128 engines of the thesis's chip, by
    compiled simulators: instructions of all engines, with those spent waiting, and seconds of a
    processor with filling and reading the memory. Every message equals the golden model's. And of
    each application of the suite, instructions a second of a processor, over many launches."""
    job = _job()
    before = cpu_seconds()
    run = execute(job)
    yield Measurement("full_hd_instructions", run.instructions, "instructions", 0.01)
    yield Measurement("full_hd_cpu_seconds", cpu_seconds() - before, "s", None)
    if not run.match:
        raise KernelError(f"{job.name}: messages differ from the golden model's")
    for application in suite():
        name = application.name.replace("-", "_")
        rate = _rate(application) / 1000
        yield Measurement(f"{name}_kinstructions_per_second", rate, "k/s", None, True)


def _rate(application: Application) -> float:
    """Instructions a second of a processor, without setting simulators up."""
    done, seconds = 0, 0.0
    while seconds < _SECONDS:
        for job in application.jobs:
            instructions, spent = _repeated(job, application.preset)
            done, seconds = done + instructions, seconds + spent
    return done / seconds


def _repeated(job: KernelJob, name: str) -> tuple[int, float]:
    """Instructions and seconds of all launches but the first."""
    config, done, seconds = preset(name), 0, 0.0
    with DramImage(1 << config.address_bits) as memory:
        for launch in range(_LAUNCHES):
            job.prepare(memory)
            simulator = CompiledSimulator(
                job.program, memory, parameters=job.parameters, **config.limits
            )
            before = time.process_time()
            end = simulator.run()
            if launch:
                done, seconds = done + end.instructions, seconds + time.process_time() - before
        if job.differing(job.outputs(memory)):
            raise KernelError(f"{job.name}: outputs differ from the golden model's")
    return done, seconds


def compiled_parts() -> dict[str, str]:
    """Fingerprints of the parts of the compiled simulator."""
    return {
        "compiled simulator": fingerprints.data(
            fingerprints.code(isa.compiled.simulator, isa.compiled.checking, isa.compiled.rows),
            *(file.read_bytes() for file in isa.compiled.library.SOURCES),
        )
    }


def model_parts() -> dict[str, str]:
    """Fingerprints of the parts of the timing model."""
    return {"timing model": fingerprints.texts(*sim_tb.timed.library.sources())}


def made_of_functional() -> dict[str, str]:
    """The simulator, the programs, and the order in which engines take turns."""
    return {
        **compiled_parts(),
        "turns of engines": fingerprints.code(microkernels.runtime.compiled),
        "program": fingerprints.programs([_job().program]),
        "applications": fingerprints.programs(
            program for application in suite() for program in application.programs
        ),
    }
