"""The verb ``solve_mrf``: belief propagation on any grid, on the machine that is named."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from isa.support.extras import need
from isa.support.files import write_atomically
from isa.support.picture import MARKERS, picture
from microkernels.bp.cut import fastest_cut
from microkernels.bp.golden import energy, iterate
from microkernels.bp.golden import labels as best_labels
from microkernels.bp.jobs import bp_job, bp_levels_job
from microkernels.bp.levels import BLOCK, coarse_problem, copied
from microkernels.bp.problem import BpProblem, Messages
from microkernels.bp.shifts.choice import Form, shifts_of
from microkernels.bp.trws.golden import TrwsField
from microkernels.bp.trws.jobs import trws_job, trws_transform
from microkernels.bp.trws.layout import fill_share
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.saturation import count_saturation
from microkernels.runtime.job import Golden, KernelJob
from sim_tb.cosim.kernels import chip_ring
from soc.chip.config import ChipConfig
from soc.generate.designs import Configuration
from soc.generate.generate import configuration_json
from soc.tile.config import VaultTileConfig
from vip.configurations import Design, design
from vip.progress import Progress, silent

from .machine import Place, engine_of, run_job

__all__ = ["Method", "MrfRun", "solve_mrf"]

#: ``bp``: BP-M. ``hbp``: BP-M on a quarter of the size first. ``trws``: TRW-S.
Method = Literal["bp", "hbp", "trws"]

_PLOT_INCHES = 6.0, 4.0
_TITLES = {"bp": "BP-M", "hbp": "hierarchical BP-M, on all pixels", "trws": "TRW-S"}
_GOLDEN = "golden model (iterations)"


@dataclass(frozen=True, kw_only=True)
class MrfRun:
    """A Markov random field that was solved.

    Attributes:
        problem: that was solved.
        method, on: as given. config: of the hardware; None: golden model alone.
        labels: ``[y, x]``, as the machine's messages give them (equation 2.11).
        energies: of the labels after each iteration, by the golden model; the first number is that
            of the labels before, which the data costs alone choose.
        coarse_energies: the same on a quarter of the size, of its own problem; empty for ``bp``.
        bounds: numbers that no labelling's energy is below, after each iteration like
            :attr:`energies`; empty but for ``trws``.
        saturated: sums that the golden model limited to the width of an element.
        differing: elements of the machine's messages that are not the golden model's.
        cycles: of each launch, by its name; empty where no cycles are known.
        engines: that worked; 0 on the golden model.
        form: how they computed new messages, ``matrix`` or ``shifts``; "" on the golden model.
        fill: share of the time in which engines of TRW-S have no pixel to visit, by the schedule
            (:func:`microkernels.bp.trws.layout.fill_share`); else 0.
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
    fill: float = 0.0

    @property
    def cycles_per_update(self) -> float | None:
        """Cycles of an engine for a message on the pixels, the mean of all directions and
        engines; None: no cycles are known, or nothing was updated."""
        cycles = self.cycles.get("fine" if self.method == "hbp" else "")
        updates = self.problem.updates * (len(self.energies) - 1)
        return cycles * self.engines / updates if cycles and updates else None

    @property
    def match(self) -> bool:
        """Whether every message equals the golden model's, hence the energy."""
        return self.differing == 0

    @property
    def energy(self) -> int:
        """Total cost of :attr:`labels`."""
        return energy(self.problem, self.labels)

    def save(self, path: Path, levels: NDArray[np.integer] | None = None) -> None:
        """Write the labels as an array of NumPy (``.npy``) or as a grey picture (``.png``).

        Parameters:
            levels: grey level, 0 to 255, that shows each label; None: evenly spaced.

        Raises:
            MissingExtraError: Pillow is not installed, which PNG needs.
            OSError: the file can't be written.
        """
        target = BytesIO()
        if path.suffix.lower() == ".npy":
            np.save(target, self.labels.astype(np.uint8))
        else:
            need("PIL", "pictures")
            from PIL import Image

            shown = np.rint(np.linspace(0, 255, max(2, self.problem.labels)))
            grey = (shown if levels is None else levels)[self.labels]
            Image.fromarray(grey.astype(np.uint8)).save(target, format="PNG")
        write_atomically(path, target.getvalue())

    def plot(self, path: Path) -> None:
        """Draw the energy after each iteration, and the bound if there is one, as PNG or SVG.

        Raises:
            VipError: another ending, or Matplotlib is not installed.
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
            "fill": self.fill,
            **self.energies_json(),
            "configuration": None if self.config is None else configuration_json(self.config),
        }


def solve_mrf(
    problem: BpProblem,
    config: Design = "pe",
    *,
    method: Method = "bp",
    iterations: int = 5,
    coarse_iterations: int = 5,
    coarse_smoothness: NDArray[np.integer] | None = None,
    on: Place = "golden",
    form: Form = "auto",
    progress: Progress = silent,
) -> MrfRun:
    """Labels of low energy for a Markov random field on a grid of pixels.

    On a machine every message is compared with the golden model's.

    Parameters:
        problem: data costs, smoothness costs, element width.
        config: of an engine, a vault or a chip; all engines work. Not used on ``golden``.
        method: ``bp``; ``hbp`` with ``coarse_iterations`` on a quarter of the size before;
                ``trws``, on an engine or a vault, with a lower bound (:mod:`microkernels.bp.trws`).
        iterations, coarse_iterations: 0 or more; on a machine at least 1.
        coarse_smoothness: smoothness costs on a quarter of the size; None: interpolated
            (:func:`microkernels.bp.levels.coarse_smoothness`).
        on: the place of the computation.
        form: how a machine computes new messages, by a matrix or by shifts; ``auto``: in the way
            that takes fewer cycles. The messages are the same.
        progress: called with the iterations of the golden model, then with the machine's cycles.

    Raises:
        VipError: a value outside its range, a problem that does not fit, a run that faults or does
            not end, or a simulator that can't be built.
    """
    CHECK.at_least("iterations", iterations, 0)
    CHECK.at_least("coarse_iterations", coarse_iterations, 0)
    job, chosen = None, design(config)
    if method == "trws":
        return _trws(problem, chosen, iterations, on, form, progress)
    if on != "golden":
        job = _job(problem, chosen, method, iterations, coarse_iterations, coarse_smoothness, form)
    with count_saturation() as count:
        done = 0
        coarse_energies: list[int] = []
        messages = None
        total = iterations + (coarse_iterations if method == "hbp" else 0)
        if method == "hbp":
            coarse = coarse_problem(problem, coarse_smoothness)
            step = _counted(progress, done, total)
            coarse_messages, coarse_energies = _golden(coarse, coarse_iterations, None, step)
            messages, done = copied(problem, coarse_messages), coarse_iterations
        expected, energies = _golden(problem, iterations, messages, _counted(progress, done, total))
    found = expected
    cycles: dict[str, int] = {}
    if job is not None:
        golden = Golden(lambda: expected)
        found, cycles = run_job(replace(job, golden=golden), chosen, on, progress)
    return MrfRun(
        problem=problem,
        method=method,
        on=on,
        config=None if job is None else chosen,
        labels=best_labels(problem, found),
        energies=tuple(energies),
        coarse_energies=tuple(coarse_energies),
        bounds=(),
        saturated=count.values,
        differing=int(np.count_nonzero(found != expected)),
        cycles=cycles,
        engines=0 if job is None else job.pes * job.vaults,
        form="" if job is None else _form(problem, chosen, form),
    )


def _trws(
    problem: BpProblem,
    config: Configuration,
    iterations: int,
    on: Place,
    form: Form,
    progress: Progress,
) -> MrfRun:
    job = None if on == "golden" else _trws_job(problem, config, iterations, form)
    step = _counted(progress, 0, iterations)
    field = TrwsField(problem)
    steps = [field.step()]
    for number in range(iterations):
        step(number)
        field.iterate()
        steps.append(field.step())
    expected = field.messages
    found, labels = expected, steps[-1].labels
    cycles: dict[str, int] = {}
    by_shifts = False
    if job is not None:
        found, cycles = run_job(replace(job, golden=Golden(lambda: expected)), config, on, progress)
        labels = TrwsField(problem, found).labels()
        engine = engine_of(config)
        by_shifts = None is not trws_transform(
            problem, form, engine.scratchpad_bytes, engine.instruction_words
        )
    return MrfRun(
        problem=problem,
        method="trws",
        on=on,
        config=None if job is None else config,
        labels=labels,
        energies=tuple(state.energy for state in steps),
        coarse_energies=(),
        bounds=tuple(state.bound for state in steps),
        saturated=0,
        differing=int(np.count_nonzero(found != expected)),
        cycles=cycles,
        engines=0 if job is None else job.pes,
        form="" if job is None else "shifts" if by_shifts else "matrix",
        fill=0.0 if job is None else fill_share(problem.width, problem.height, job.pes),
    )


def _trws_job(problem: BpProblem, config: Configuration, iterations: int, form: Form) -> KernelJob:
    if isinstance(config, ChipConfig):
        raise KernelError("TRW-S runs on an engine or on a vault, not on a chip of vaults")
    engine = engine_of(config)
    return trws_job(
        problem,
        iterations,
        pes=config.pes if isinstance(config, VaultTileConfig) else 1,
        scratchpad_bytes=engine.scratchpad_bytes,
        instruction_words=engine.instruction_words,
        form=form,
    )


def _form(problem: BpProblem, config: Configuration, form: Form) -> str:
    engine = engine_of(config)
    found = shifts_of(problem, form, engine.scratchpad_bytes, engine.instruction_words)
    return "matrix" if found is None else "shifts"


def _counted(progress: Progress, done: int, total: int) -> Callable[[int], None]:
    return lambda step: progress(_GOLDEN, done + step, total)


def _golden(
    problem: BpProblem, iterations: int, start: Messages | None, step: Callable[[int], None]
) -> tuple[Messages, list[int]]:
    """Messages after ``iterations``, and the energy before them and after each."""
    messages = iterate(problem, 0, start)
    energies = [energy(problem, best_labels(problem, messages))]
    for number in range(iterations):
        step(number)
        messages = iterate(problem, 1, messages)
        energies.append(energy(problem, best_labels(problem, messages)))
    return messages, energies


def _job(
    problem: BpProblem,
    config: Configuration,
    method: Method,
    iterations: int,
    coarse: int,
    smoothness: NDArray[np.integer] | None,
    form: Form,
) -> KernelJob:
    ring, pes, cut = None, 1, None
    if isinstance(config, ChipConfig):
        ring, pes = chip_ring(config), config.tile.pes
        block = BLOCK if method == "hbp" else 1
        cut = fastest_cut(problem.width, problem.height, vaults=config.vaults, pes=pes, block=block)
    elif isinstance(config, VaultTileConfig):
        pes = config.pes
    engine = engine_of(config)
    if method == "bp":
        return bp_job(
            problem,
            iterations,
            ring=ring,
            pes=pes,
            scratchpad_bytes=engine.scratchpad_bytes,
            instruction_words=engine.instruction_words,
            form=form,
            cut=cut,
        )
    return bp_levels_job(
        problem,
        coarse,
        iterations,
        ring=ring,
        pes=pes,
        smoothness=smoothness,
        scratchpad_bytes=engine.scratchpad_bytes,
        instruction_words=engine.instruction_words,
        form=form,
        cut=cut,
    )
