"""Depth of the Motorcycle pair by hierarchical BP-M, on the golden model and on a vault's Verilog,
with its error against the true disparities."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.bp.golden import energy, labels
from microkernels.bp.jobs import bp_levels_job
from microkernels.data.stereo import StereoScene, percent_wrong
from microkernels.runtime.ring import VaultRing
from sim_tb.cosim.kernels import run_on
from sim_tb.runner.build import need_simulator
from soc.tile.config import VaultTileConfig

__all__ = ["StereoFigures", "measure_stereo"]


@dataclass(frozen=True, kw_only=True)
class StereoFigures:
    """Results of a pair.

    Attributes:
        width, height, labels: of the grid.
        coarse_iterations, iterations: of BP-M on the quarter-size grid and on the grid.
        energy: of the labels.
        percent_wrong: of the pixels whose disparity is known, those more than a label off.
        mean_error: of their disparities, in pixels of the photograph.
        cycles: of each phase on Verilog; empty: the golden model alone.
        match: every message on Verilog equals the golden model's.
    """

    width: int
    height: int
    labels: int
    coarse_iterations: int
    iterations: int
    energy: int
    percent_wrong: float
    mean_error: float
    cycles: dict[str, int]
    match: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def measure_stereo(
    scene: StereoScene,
    config: VaultTileConfig,
    *,
    coarse_iterations: int,
    iterations: int,
    verilog: bool,
    progress: Callable[[int], None] | None = None,
) -> tuple[StereoFigures, NDArray[np.int64]]:
    """Hierarchical BP-M on a pair whose truth is known.

    Parameters:
        config: of the vault that is run, with all its engines.
        coarse_iterations, iterations: 0 or more.
        verilog: run the vault's Verilog; otherwise the golden model alone.
        progress: called now and then with the cycles of the phase so far.

    Returns:
        The figures, and the label of each pixel: the Verilog's, if it was run.

    Raises:
        KernelError: iterations that are not allowed, or a grid that does not fit the vault.
        StereoError: the true disparity of no pixel is known.
        CosimError: an engine faulted, or the grid does not fit the vault.
        sim_tb.runner.build.BuildError: the simulator can't be built.
        MissingExtraError: a tool that runs Verilog is not installed.
    """
    if verilog:
        need_simulator()
    job = bp_levels_job(
        scene.problem,
        coarse_iterations,
        iterations,
        ring=VaultRing(address_bits=config.vault.address_bits),
        pes=config.pes,
        scratchpad_bytes=config.pe.scratchpad_bytes,
    )
    cycles: dict[str, int] = {}
    match = True
    if verilog:
        outcome = run_on(job, config, progress=progress)
        messages, match = outcome.outputs, outcome.match
        cycles = {name: result.cycles for name, result in outcome.results.items()}
    else:
        messages = job.expected
    chosen = labels(scene.problem, messages)
    truth = np.full(chosen.shape, -1) if scene.truth is None else scene.truth
    wrong = percent_wrong(chosen, truth)
    known = truth >= 0
    errors = np.abs(scene.disparities[chosen] - scene.disparities[truth])[known]
    figures = StereoFigures(
        width=scene.problem.width,
        height=scene.problem.height,
        labels=scene.problem.labels,
        coarse_iterations=coarse_iterations,
        iterations=iterations,
        energy=energy(scene.problem, chosen),
        percent_wrong=round(wrong, 2),
        mean_error=round(float(errors.mean()), 2),
        cycles=cycles,
        match=match,
    )
    return figures, chosen
