"""An iteration of BP-M by shifts on full HD, whole, on every engine of a chip: the timing model's
cycles, and the energy that 8 bits lose.

The problem of 16 bits is that of the run ``flat`` of :mod:`sim_tb.measure.full_hd`. With 8 bits
all costs are divided by :data:`DIVISOR` and rounded. Every message of both runs is compared with
the golden model's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from microkernels.bp.golden import energy, iterate, labels
from microkernels.bp.jobs import bp_job
from microkernels.bp.problem import BpProblem
from microkernels.data.stereo import motorcycle
from microkernels.runtime.job import KernelJob
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import chip_ring, launches_key, run_on
from sim_tb.runner.cache import Kept, fingerprint
from sim_tb.timed.library import sources
from soc.chip.config import ChipConfig
from soc.generate.generate import configuration_json

from .full_hd import FULL_HD

__all__ = ["DIVISOR", "WIDTHS", "ShiftsRun", "full_hd_shifts_job", "measure_full_hd_shifts"]

#: Element widths, and by what costs are divided for 8 bits: they then fit; 5 % of the sums on full
#: HD saturate.
WIDTHS = (16, 8)
DIVISOR = 4
_LABELS = 16
#: Iterations after which energies are compared.
_ITERATIONS = 5


@dataclass(frozen=True, kw_only=True)
class ShiftsRun:
    """An iteration on all engines of a chip.

    Attributes:
        cycles: of the engine that ran longest. ms: the same as time.
        gbs: bandwidth of all DRAM, in GB/s.
        vector_busy: part of all engines' cycles in which the vector unit works.
        energy: of the labels after five iterations of the golden model, by the costs of 16 bits.
    """

    cycles: int
    ms: float
    gbs: float
    vector_busy: float
    energy: int


def _problem(bits: int, width: int, height: int) -> BpProblem:
    problem = motorcycle(width, height, _LABELS).problem
    costs, smoothness = problem.data_costs, problem.smoothness
    if bits < problem.bits:
        costs, smoothness = ((part + DIVISOR // 2) // DIVISOR for part in (costs, smoothness))
    return BpProblem(costs, smoothness, bits)


def full_hd_shifts_job(
    bits: int, config: ChipConfig, *, width: int = FULL_HD[0], height: int = FULL_HD[1]
) -> KernelJob:
    """The job with elements of ``bits`` bits, one of :data:`WIDTHS`, for a chip; ``width`` and
    ``height`` are the image's pixels.

    Raises:
        KernelError: tiles that don't fit their vault.
    """
    return bp_job(
        _problem(bits, width, height),
        1,
        ring=chip_ring(config),
        pes=config.tile.pes,
        scratchpad_bytes=config.pe.scratchpad_bytes,
        instruction_words=config.pe.instruction_words,
        form="shifts",
    )


def measure_full_hd_shifts(
    bits: int, config: ChipConfig, *, width: int = FULL_HD[0], height: int = FULL_HD[1]
) -> ShiftsRun:
    """Run :func:`full_hd_shifts_job` on the timing model; results are cached on disk.

    Raises:
        CosimError: an engine faulted, or a message differs from the golden model's.
        support.native.CompilerError: the timing model can't be built.
    """
    job = full_hd_shifts_job(bits, config, width=width, height=height)
    texts = [path.read_bytes() for path in sources()]
    machine = repr(sorted(configuration_json(config).items()))
    key = fingerprint(repr((bits, DIVISOR, _ITERATIONS)), machine, launches_key(job), *texts)
    found = Kept("full_hd_shifts").get(key, lambda: _measured(job, config))
    return ShiftsRun(**found, energy=_energy(bits, width, height))


def _measured(job: KernelJob, config: ChipConfig) -> Mapping[str, float]:
    outcome = run_on(job, config, on="model", preload=True)
    if not outcome.match:
        raise CosimError(f"{job.name}: {outcome.differing} message elements differ")
    result = outcome.result
    cycles = sum(pe["CYCLES"] for pe in result.counters)
    return {
        "cycles": result.program_cycles,
        "ms": result.program_cycles * result.tck_ns / 1e6,
        "gbs": result.gbs,
        "vector_busy": sum(pe["VECTOR_BUSY"] for pe in result.counters) / cycles,
    }


@lru_cache(maxsize=4)
def _energy(bits: int, width: int, height: int) -> int:
    solved = _problem(bits, width, height)
    found = labels(solved, iterate(solved, _ITERATIONS))
    return energy(_problem(WIDTHS[0], width, height), found)
