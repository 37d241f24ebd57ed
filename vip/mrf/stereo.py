"""The verb ``mrf_stereo``: disparities of any pair of photographs."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from microkernels.data.stereo import StereoError
from microkernels.mrf.disparities import Disparities, encoded, png_factor, stereo_errors
from microkernels.mrf.pair import PairOptions, stereo_field
from microkernels.mrf.smoothness import coarse_costs
from support.errors import Shown
from support.files import write_atomically
from vip.progress import Progress, silent

from .options import MrfOptions
from .result import MrfRun
from .run import solve_mrf


@dataclass(frozen=True, kw_only=True)
class MrfStereo(Shown):
    """Disparities of a pair.

    Attributes:
        run: the solution of its Markov random field.
        options: from which that was created.
        truth: true disparities at the problem's pixels, in pixels of the files; None: unknown.
        visible: pixels visible in both pictures; None: unknown.
    """

    run: MrfRun
    options: PairOptions
    truth: Disparities | None
    visible: NDArray[np.bool_] | None

    @property
    def disparities(self) -> NDArray[np.float64]:
        """``[y, x]``, in pixels of the scaled pair."""
        return self.run.labels.astype(np.float64) + self.options.first

    @property
    def errors(self) -> dict[str, dict[str, float]]:
        """Errors against the ground truth, in pixels of the files: ``all`` for all pixels with
        known truth, ``visible`` for those of them visible in both pictures; empty without one."""
        if self.truth is None:
            return {}
        in_files = self.disparities / self.options.scale
        result = {"all": stereo_errors(in_files, self.truth)}
        if self.visible is not None:
            result["visible"] = stereo_errors(in_files, self.truth, self.visible)
        return result

    def save(self, path: Path | str) -> None:
        """Write the disparities; the ending of ``path`` chooses the format
        (:func:`microkernels.mrf.disparities.encoded`).

        Raises:
            OSError: the file can't be written.
        """
        path = Path(path)
        write_atomically(path, encoded(self.disparities, path.suffix.lower()))

    def to_json(self) -> dict[str, object]:
        """The numbers of the run as plain JSON data."""
        return {
            **self.run.to_json(),
            "options": asdict(self.options),
            "errors": self.errors,
            "png_levels_a_pixel": png_factor(self.disparities),
        }


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
) -> MrfStereo:
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
    return MrfStereo(run=run, options=pair, truth=true_disparities, visible=visible)
