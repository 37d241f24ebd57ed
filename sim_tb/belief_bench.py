"""How long belief propagation on full HD takes, from one vault's tile in RTL with DRAM timing.

Full HD, 16 labels of 16 bits, is 32 x 32 tiles of 60 x 34 pixels, 32 of them a vault's, one after
the other. Each kernel is a phase of hierarchical BP-M (:mod:`sim_tb.levels_cosim`). An iteration is
measured on one tile, or on its 30 x 17 blocks of 2 x 2 pixels; construct and copy, which go from
tile to tile without a stop, on four as one tile of 120 x 68 pixels. Limits and the thesis's
figures: design.md, section 4.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kernels.bp_levels import coarse_problem
from kernels.bp_levels_job import BpLevelsJob
from kernels.bp_problem import BpProblem
from kernels.stereo import motorcycle
from kernels.vault_ring import VaultRing
from soc.config import VaultTileConfig

from .kept import fingerprint
from .kernel_rows import KernelRow, VaultWork, row_of
from .levels_cosim import cosim_vault_levels

__all__ = ["BELIEF", "belief_job", "belief_key", "measure_belief"]

_TILE = (60, 34)
_TILES = 32
_LABELS = 16


@dataclass(frozen=True, kw_only=True)
class _Belief:
    """A kernel of belief propagation.

    Attributes:
        phase: of hierarchical BP-M.
        limit_ms, thesis_ms: for full HD.
        operations: additions and comparisons that it asks for.
        coarse_iterations, iterations: of the run.
        together: tiles of full HD, across and down, in the tile that is run.
    """

    phase: str
    limit_ms: float
    thesis_ms: float
    operations: Callable[[BpProblem], int]
    coarse_iterations: int = 0
    iterations: int = 0
    together: int = 1


def _updates(problem: BpProblem) -> int:
    """Of an iteration: three additions and a subtraction for each label of a message, an addition
    and a comparison for each pair of labels."""
    return problem.updates * (4 * problem.labels + 2 * problem.labels**2)


def _coarse_updates(problem: BpProblem) -> int:
    return _updates(coarse_problem(problem))


def _sums(problem: BpProblem) -> int:
    """Of construct: three additions for each label of a block."""
    return 3 * coarse_problem(problem).data_costs.size


def _none(problem: BpProblem) -> int:
    return 0


#: What can be measured.
BELIEF: dict[str, _Belief] = {
    "bp_m": _Belief(phase="fine", limit_ms=4.15, thesis_ms=5.1, operations=_updates, iterations=1),
    "bp_construct": _Belief(
        phase="construct", limit_ms=0.26, thesis_ms=0.35, operations=_sums, together=2
    ),
    "bp_coarse": _Belief(
        phase="coarse",
        limit_ms=1.04,
        thesis_ms=1.7,
        operations=_coarse_updates,
        coarse_iterations=1,
    ),
    "bp_copy": _Belief(phase="copy", limit_ms=1.04, thesis_ms=1.25, operations=_none, together=2),
}


def belief_job(name: str, config: VaultTileConfig) -> BpLevelsJob:
    """What a vault runs for a kernel of :data:`BELIEF`: a tile of the Motorcycle pair."""
    kernel = BELIEF[name]
    return BpLevelsJob(
        problem=motorcycle(*(kernel.together * side for side in _TILE), _LABELS).problem,
        coarse_iterations=kernel.coarse_iterations,
        iterations=kernel.iterations,
        ring=VaultRing(address_bits=config.vault.address_bits),
        pes=config.pes,
        scratchpad_bytes=config.pe.scratchpad_bytes,
    )


def belief_key(name: str, config: VaultTileConfig) -> str:
    """Tells runs of :func:`measure_belief` apart, but for the vault's hardware."""
    job = belief_job(name, config)
    programs = [repr((phase.name, phase.parameters, phase.program.words)) for phase in job.phases]
    data = [part for address, held in job.writes() for part in (str(address), held)]
    return fingerprint(name, *programs, *data, job.expected().tobytes())


def measure_belief(name: str, config: VaultTileConfig) -> KernelRow:
    """Run a kernel of :data:`BELIEF` on one tile; the row is for full HD.

    Parameters:
        config: of the vault.

    Raises:
        CosimError: an engine faulted, or the job does not fit the vault.
        sim_tb.build.BuildError: the simulator can't be built.
    """
    kernel, job = BELIEF[name], belief_job(name, config)
    outcome = cosim_vault_levels(job, config)
    work = VaultWork(
        result=outcome.phases[kernel.phase],
        operations=kernel.operations(job.problem),
        match=outcome.match,
    )
    return row_of(
        name,
        [work],
        limit_ms=kernel.limit_ms,
        thesis_ms=kernel.thesis_ms,
        tiles=_TILES // kernel.together**2,
    )
