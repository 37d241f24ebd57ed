"""The solution of a Markov random field."""

from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from microkernels.bp.golden import energy
from microkernels.bp.problem import BpProblem
from microkernels.mrf.disparities import Disparities, encoded, png_factor, stereo_errors
from microkernels.mrf.pair import PairOptions
from sim_tb.cosim.machine import Place
from soc.generate.designs import Configuration
from soc.generate.presets import configuration_json
from support.errors import Shown
from support.extras import need
from support.files import write_atomically
from support.picture import MARKERS, picture

from .options import Method

_PLOT_INCHES = 6.0, 4.0
_TITLES = {
    "bp": "BP-M",
    "hbp": "hierarchical BP-M, on all pixels",
    "trws": "TRW-S",
    "htrws": "hierarchical TRW-S, on all pixels",
}


@dataclass(frozen=True, kw_only=True)
class MrfRun(Shown):
    """A solved Markov random field.

    Attributes:
        problem: the field.
        method, on: as passed to the solver. config: of the hardware; None: golden model alone.
        labels: ``[y, x]``, by equation 2.11; TRW-S chooses them in raster order from the machine's
            messages.
        chosen_on: ``machine``: its engines chose the labels
            (:mod:`microkernels.bp.labels`); ``host``.
        energies: of the labels after each iteration, by the golden model; the first is that of the
            labels before, which the data costs alone choose.
        coarse_energies: the same for the problem at a quarter of the size; empty for ``bp`` and
            ``trws``. Further levels have none.
        bounds: lower bounds on the energy of any labelling, after each iteration like
            :attr:`energies`; empty except for ``trws`` and ``htrws``.
        saturated: number of sums that the golden model limited to the width of an element.
        differing: number of elements of the machine's messages and labels that differ from the
            golden model's.
        cycles: of each launch, by name; empty if unknown.
        engines: number that worked; 0 on the golden model.
        form: how they computed new messages, ``matrix`` or ``shifts``; "" on the golden model.
        fill: fraction of the time in which engines that run TRW-S have no pixel to visit, by the
            schedule (:func:`microkernels.bp.trws.layout.fill_share`); else 0.
        pair: from which the field of a pair of photographs was created; None: of none.
        truth: true disparities at the problem's pixels, in pixels of the files; None: unknown.
        visible: pixels visible in both photographs; None: unknown.
    """

    problem: BpProblem
    method: Method
    on: Place
    config: Configuration | None
    labels: NDArray[np.int64]
    energies: tuple[int, ...]
    coarse_energies: tuple[int, ...]
    bounds: tuple[int, ...]
    saturated: int
    differing: int
    cycles: dict[str, int]
    engines: int
    form: str
    chosen_on: Literal["machine", "host"] = "host"
    fill: float = 0.0
    pair: PairOptions | None = None
    truth: Disparities | None = None
    visible: NDArray[np.bool_] | None = None

    @property
    def disparities(self) -> NDArray[np.float64]:
        """Of a pair: ``[y, x]``, in pixels of the scaled photographs."""
        first = 0 if self.pair is None else self.pair.first
        return self.labels.astype(np.float64) + first

    @property
    def errors(self) -> dict[str, dict[str, float]]:
        """Errors of the disparities against the ground truth, in pixels of the files: ``all`` for
        all pixels with known truth, ``visible`` for those of them visible in both photographs;
        empty without one."""
        if self.pair is None or self.truth is None:
            return {}
        in_files = self.disparities / self.pair.scale
        result = {"all": stereo_errors(in_files, self.truth)}
        if self.visible is not None:
            result["visible"] = stereo_errors(in_files, self.truth, self.visible)
        return result

    @property
    def cycles_per_update(self) -> float | None:
        """Cycles that an engine takes per message on the finest level, the mean over all directions
        and engines; None: no cycles are known, or nothing was updated."""
        cycles = self.cycles.get("fine" if self.method in ("hbp", "htrws") else "")
        updates = self.problem.updates * (len(self.energies) - 1)
        return cycles * self.engines / updates if cycles and updates else None

    @property
    def match(self) -> bool:
        """Whether every message, and hence the energy, equals the golden model's."""
        return self.differing == 0

    @property
    def energy(self) -> int:
        """Total cost of :attr:`labels`."""
        return energy(self.problem, self.labels)

    def save(self, path: Path | str, levels: NDArray[np.integer] | None = None) -> None:
        """Write the labels as a NumPy array (``.npy``) or a greyscale picture (``.png``); of a
        pair, the disparities in the format that the ending of ``path`` chooses
        (:func:`microkernels.mrf.disparities.encoded`).

        Parameters:
            levels: grey level of each label, 0 to 255; None: evenly spaced.

        Raises:
            MissingExtraError: PNG needs Pillow, which is not installed.
            OSError: the file can't be written.
        """
        path = Path(path)
        if self.pair is not None:
            write_atomically(path, encoded(self.disparities, path.suffix.lower()))
            return
        target = BytesIO()
        if path.suffix.lower() == ".npy":
            np.save(target, self.labels.astype(np.uint8))
        else:
            need("PIL", "pictures")
            from PIL import Image

            spaced = np.rint(np.linspace(0, 255, max(2, self.problem.labels)))
            grey = (spaced if levels is None else levels)[self.labels]
            Image.fromarray(grey.astype(np.uint8)).save(target, format="PNG")
        write_atomically(path, target.getvalue())

    def plot(self, path: Path) -> None:
        """Draw the energy after each iteration, and the bound if there is one, as PNG or SVG.

        Raises:
            VipError: ``path`` has another ending, or Matplotlib is not installed.
            OSError: the file can't be written.
        """
        lines = {"energy": self.energies, "lower bound": self.bounds}
        with picture(*_PLOT_INCHES, path) as figure:
            axes = figure.subplots()
            for (name, values), marker in zip(lines.items(), MARKERS, strict=False):
                if values:
                    axes.plot(range(len(values)), values, marker=marker, label=name)
            axes.set(xlabel="iterations", ylabel="energy", title=_TITLES[self.method])
            axes.grid(visible=True)
            axes.legend()

    def energies_json(self) -> dict[str, object]:
        """Energies by iteration as plain JSON data."""
        return {
            "method": self.method,
            "energies": list(self.energies),
            "coarse_energies": list(self.coarse_energies),
            "bounds": list(self.bounds),
        }

    def to_json(self) -> dict[str, object]:
        """The numbers of the run as plain JSON data."""
        problem = self.problem
        stereo = (
            {}
            if self.pair is None
            else {
                "options": asdict(self.pair),
                "errors": self.errors,
                "png_levels_a_pixel": png_factor(self.disparities),
            }
        )
        return {
            "machine": self.on,
            "match": self.match,
            "differing_elements": self.differing,
            "width": problem.width,
            "height": problem.height,
            "labels": problem.labels,
            "bits": problem.bits,
            "energy": self.energy,
            "saturated": self.saturated,
            "cycles": self.cycles,
            "cycles_per_update": self.cycles_per_update,
            "engines": self.engines,
            "messages": self.form,
            "labels_chosen_on": self.chosen_on,
            "fill": self.fill,
            **self.energies_json(),
            "configuration": None if self.config is None else configuration_json(self.config),
            **stereo,
        }
