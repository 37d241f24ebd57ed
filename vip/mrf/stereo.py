"""The verb ``mrf_stereo``: disparities of any pair of photographs."""

from dataclasses import replace
from pathlib import Path

from microkernels.bp.smoothness import coarse_costs
from microkernels.data.stereo import StereoError
from microkernels.mrf.pair import PairOptions, stereo_field
from vip.progress import Progress, silent

from .options import MrfOptions
from .result import MrfRun
from .run import solve_mrf


def mrf_stereo(
    left: Path | str,
    right: Path | str,
    options: PairOptions | None = None,
    solve: MrfOptions | None = None,
    *,
    truth: Path | str | None = None,
    truth_factor: float | None = None,
    mask: Path | str | None = None,
    progress: Progress = silent,
) -> MrfRun:
    """Disparities of two rectified photographs: ``mrf_stereo(left, right).save("d.png")``.

    Parameters:
        left, right: image files of equal size.
        options: labels, costs, scale, width; None: the defaults.
        solve, progress: as for :func:`vip.mrf.run.solve_mrf`; smoothness costs of coarse levels
            follow from ``options``.
        truth, truth_factor, mask: as for :func:`microkernels.mrf.pair.stereo_field`.

    Raises:
        VipError: as for these two.
    """
    for one in (left, right):
        if not isinstance(one, Path | str):
            raise StereoError(f"a photograph is a file, not of type {type(one).__name__}")
    pair, solve = options or PairOptions(), solve or MrfOptions()
    problem, true_disparities, visible = stereo_field(
        Path(left),
        Path(right),
        pair,
        truth=None if truth is None else Path(truth),
        truth_factor=truth_factor,
        mask=None if mask is None else Path(mask),
    )
    coarse = coarse_costs(pair.labels, pair.smooth, pair.weight, solve.levels)
    run = solve_mrf(problem, replace(solve, coarse_smoothness=coarse), progress=progress)
    return replace(run, pair=pair, truth=true_disparities, visible=visible)
