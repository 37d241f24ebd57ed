"""Benchmarks of whole chips on compiled simulators: values without time."""

from collections.abc import Iterator

import numpy as np

import isa.compiled.library
import isa.compiled.rows
import isa.compiled.simulator
import microkernels.runtime.compiled
from microkernels.bp.jobs import bp_job
from microkernels.bp.problem import BpProblem
from microkernels.common.errors import KernelError
from microkernels.runtime.compiled import execute
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import VaultRing
from soc.generate.presets import chip_preset

from . import fingerprints
from .measurement import Measurement, cpu_seconds

__all__ = ["compiled_parts", "functional", "made_of_functional"]

_CHIP = "thesis"
#: Pixels of full HD, labels, and the step and bound of the smoothness costs.
_WIDTH, _HEIGHT, _LABELS, _STEP, _BOUND = 1920, 1080, 16, 5, 15
#: Bound of the random data costs.
_COST = 3000


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
    processor with filling and reading the memory. Every message equals the golden model's."""
    job = _job()
    before = cpu_seconds()
    run = execute(job)
    yield Measurement("full_hd_instructions", run.instructions, "instructions", 0.01)
    yield Measurement("full_hd_cpu_seconds", cpu_seconds() - before, "s", None)
    if not run.match:
        raise KernelError(f"{job.name}: messages differ from the golden model's")


def compiled_parts() -> dict[str, str]:
    """What the compiled simulator is made of."""
    return {
        "compiled simulator": fingerprints.data(
            fingerprints.code(isa.compiled.simulator, isa.compiled.rows),
            *(file.read_bytes() for file in isa.compiled.library.SOURCES),
        )
    }


def made_of_functional() -> dict[str, str]:
    """The simulator, the program, and how engines take turns."""
    return {
        **compiled_parts(),
        "turns of engines": fingerprints.code(microkernels.runtime.compiled),
        "program": fingerprints.programs([_job().program]),
    }
