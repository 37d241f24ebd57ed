"""How long belief propagation on full HD takes, from one vault's tile in RTL with DRAM timing.

Full HD, 1,920 x 1,080 pixels with 16 labels of 16 bits, is cut into 32 x 32 tiles of at most 60 x
34 pixels, 32 of them a vault's, one after the other. Each kernel is a launch of hierarchical BP-M
(:func:`microkernels.bp.jobs.bp_levels_job`). An iteration is measured on one tile, or on its 30 x
17 blocks of 2 x 2 pixels; construct and copy on the four tiles of a vault of 2 x 2.

A tile alone has no neighbours, so it has fewer messages to update than one within an image.
Therefore an iteration is scaled by message updates, not by tiles; construct and copy, which do the
same for each pixel, by pixels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from microkernels.bp.jobs import bp_between_job, bp_levels_job
from microkernels.bp.levels import coarse_problem
from microkernels.bp.problem import BpProblem, message_updates
from microkernels.data.stereo import motorcycle
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import VaultRing
from sim_tb.cosim.kernels import run_on
from sim_tb.cosim.machine import Timed
from sim_tb.runner.cache import fingerprint
from soc.tile.config import VaultTileConfig

from .kernel_rows import KernelRow, VaultWork, row_of

__all__ = ["BELIEF", "belief_job", "belief_key", "measure_belief"]

_TILE = (60, 34)
_LABELS = 16
#: Pixels of the whole image, and vaults that share it.
_FULL_HD = (1920, 1080)
_HALVES = (_FULL_HD[0] // 2, _FULL_HD[1] // 2)
_VAULTS = 32
#: Construct and copy: tiles of the vault that is run, one of a ring of so many a side.
_SIDE = 2
#: Iterations of the launch that is run; five on the quarter-size image, as in the thesis (7.2.1).
_ITERATIONS = {"bp_m": 1, "bp_coarse": 5}
_SEED = 1


@dataclass(frozen=True, kw_only=True)
class _Belief:
    """A kernel of belief propagation: its phase of hierarchical BP-M, and ms for full HD."""

    phase: str
    limit_ms: float
    thesis_ms: float


#: Kernels that can be measured.
BELIEF: dict[str, _Belief] = {
    "bp_m": _Belief(phase="fine", limit_ms=4.15, thesis_ms=5.1),
    "bp_construct": _Belief(phase="construct", limit_ms=0.26, thesis_ms=0.35),
    "bp_coarse": _Belief(phase="coarse", limit_ms=1.04, thesis_ms=1.7),
    "bp_copy": _Belief(phase="copy", limit_ms=1.04, thesis_ms=1.25),
}


def belief_job(name: str, config: VaultTileConfig) -> KernelJob:
    """The job of a vault for a kernel of :data:`BELIEF`: tiles of the Motorcycle pair."""
    return bp_levels_job(
        _problem(name),
        _ITERATIONS[name] if name == "bp_coarse" else 0,
        _ITERATIONS[name] if name == "bp_m" else 0,
        **_machine(name, config),
    )


def _problem(name: str) -> BpProblem:
    side = 1 if name in _ITERATIONS else _SIDE**2
    return motorcycle(side * _TILE[0], side * _TILE[1], _LABELS).problem


def _machine(name: str, config: VaultTileConfig) -> dict[str, Any]:
    """The vaults that share the problem, and their engines."""
    side = 1 if name in _ITERATIONS else _SIDE
    return {
        "ring": VaultRing(columns=side, rows=side, address_bits=config.vault.address_bits),
        "pes": config.pes,
        "scratchpad_bytes": config.pe.scratchpad_bytes,
    }


def belief_key(name: str, config: VaultTileConfig) -> str:
    """Identifies a run of :func:`measure_belief`, except for the vault's hardware."""
    job = belief_job(name, config)
    programs = [repr((phase.name, phase.parameters, phase.program.words)) for phase in job.launches]
    data = [part for address, held in job.segments() for part in (str(address), held)]
    # Cached rows hold times of the whole image.
    scale = repr((_FULL_HD, _VAULTS, "by units"))
    return fingerprint(name, scale, *programs, *data, job.expected.tobytes())


def measure_belief(name: str, config: VaultTileConfig, *, on: Timed = "rtl") -> KernelRow:
    """Run a kernel of :data:`BELIEF` on one vault; the row is for full HD.

    Parameters:
        config: of the vault.
        on: the Verilog, or the timing model.

    Raises:
        CosimError: an engine faulted, or the job does not fit the vault.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    kernel, problem = BELIEF[name], _problem(name)
    if name in _ITERATIONS:
        job = belief_job(name, config)
        run = problem if name == "bp_m" else coarse_problem(problem)
        units = _ITERATIONS[name] * run.updates
        whole = message_updates(*_FULL_HD) if name == "bp_m" else message_updates(*_HALVES)
    else:
        coarse = coarse_problem(problem)
        drawn = np.random.default_rng(_SEED).integers(
            -1000, 1000, coarse.no_messages().shape, coarse.data_costs.dtype
        )
        job = bp_between_job(problem, drawn, **_machine(name, config))
        units = problem.width * problem.height // _SIDE**2
        whole = _FULL_HD[0] * _FULL_HD[1]
    outcome = run_on(job, config, on=on)
    work = VaultWork(
        result=outcome.results[kernel.phase],
        operations=_operations(name, problem),
        match=outcome.match,
    )
    return row_of(
        name,
        [work],
        limit_ms=kernel.limit_ms,
        thesis_ms=kernel.thesis_ms,
        scaled="updates" if name in _ITERATIONS else "pixels",
        units=units,
        whole=whole / _VAULTS,
    )


def _operations(name: str, problem: BpProblem) -> int:
    """Additions and comparisons of the run.

    An update has three additions and a subtraction for each label of a message, and an addition and
    a comparison for each pair of labels; construct three additions for each label of a block.
    """
    if name in _ITERATIONS:
        updated = problem if name == "bp_m" else coarse_problem(problem)
        return _ITERATIONS[name] * updated.updates * (4 * problem.labels + 2 * problem.labels**2)
    if name == "bp_copy":
        return 0
    return 3 * coarse_problem(problem).data_costs.size // _SIDE**2
