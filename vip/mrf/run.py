"""The verbs ``solve_mrf`` and ``mrf_stereo``: belief propagation and TRW-S on any machine."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.bp.choice import plan_of
from microkernels.bp.golden import BLOCK, energy, iterate
from microkernels.bp.golden import labels as best_labels
from microkernels.bp.kernel import MatrixPlan
from microkernels.bp.labels import labels_kernel, machine_labels, split_outputs
from microkernels.bp.plan import Shifts
from microkernels.bp.problem import BpProblem, Messages
from microkernels.bp.smoothness import coarse_costs
from microkernels.bp.tiles import fastest_cut
from microkernels.bp.trws.golden import TrwsField
from microkernels.bp.trws.jobs import trws_job, trws_levels_job, trws_transform
from microkernels.bp.trws.layout import fill_share
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements
from microkernels.data.stereo import StereoError
from microkernels.mrf.pair import PairOptions, stereo_field
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.kernels import bp_job_on
from vip.progress import Progress, silent

from .options import MrfOptions
from .result import MrfRun
from .solver import Solver, State


def solve_mrf(
    problem: BpProblem, options: MrfOptions | None = None, *, progress: Progress = silent
) -> MrfRun:
    """Find labels of low energy for a Markov random field on a grid of pixels.

    On a machine, every message is compared with the golden model's. For BP-M, engines choose the
    labels, too, if labels and records fit; for TRW-S the host chooses them.

    Parameters:
        problem: data costs, smoothness costs, element width.
        options: method and machine; None: the defaults.
        progress: called with the golden model's iterations and the machine's cycles; the golden
            model works beside the machine, in a thread of its own.

    Raises:
        VipError: the problem does not fit, a run faults or does not end, or a simulator can't be
            built.
    """
    options = options or MrfOptions()
    _ = options.machine
    return (TrwsSolver if options.by_trws else BpSolver)(problem, options).run(progress)


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
        solve, progress: as for :func:`solve_mrf`; smoothness costs of coarse levels
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


class BpSolver(Solver):
    """BP-M."""

    def __init__(self, problem: BpProblem, options: MrfOptions) -> None:
        super().__init__(problem, options)
        if options.on != "golden" and self._labels_fit():
            self.chosen_on = "machine"

    def _labels_fit(self) -> bool:
        try:
            labels_kernel(MatrixPlan.of(self.problem, ChipEngines.of(self.options.machine)))
        except KernelError:
            return False
        return True

    def iterate(
        self,
        problem: BpProblem,
        iterations: int,
        start: Messages | None,
        step: Callable[[int], None],
    ) -> tuple[Messages, list[State]]:
        messages = iterate(problem, 0, start)
        states: list[State] = [(energy(problem, best_labels(problem, messages)), None)]
        for number in range(iterations):
            step(number)
            messages = iterate(problem, 1, messages, self.options.damping)
            states.append((energy(problem, best_labels(problem, messages)), None))
        return messages, states

    def outputs(self, messages: Messages) -> Elements:
        if self.chosen_on == "host":
            return messages
        labels = machine_labels(self.problem, messages)
        return np.concatenate([messages.ravel(), labels.ravel().astype(messages.dtype)])

    def job(self, level: int, start: Messages | None) -> KernelJob:
        options, machine, problem = self.options, self.options.machine, self.levels[level]
        on_two = not level and options.hierarchical
        arguments: dict[str, Any] = {}
        if on_two:
            costs = options.coarse_smoothness
            arguments["coarse_iterations"] = options.coarse_iterations
            arguments["smoothness"] = None if costs is None else costs[0]
        return bp_job_on(
            problem,
            options.coarse_iterations if level else options.iterations,
            machine,
            form=options.form,
            cut=self._cut(problem),
            choose=not level and self.chosen_on == "machine",
            damping=options.damping,
            messages=start,
            **arguments,
        )

    def labels(self, outputs: Elements) -> NDArray[np.int64]:
        if self.chosen_on == "machine":
            return split_outputs(self.problem, outputs)[1]
        return best_labels(self.problem, outputs)

    def by_shifts(self) -> bool:
        options = self.options
        engines, blocks = ChipEngines.of(options.machine), options.method == "bp"
        plan = plan_of(
            self.problem,
            options.form,
            engines,
            blocks=blocks,
            sums=None if blocks and self.chosen_on != "machine" else False,
            cut=self._cut(self.problem),
            damping=options.damping,
        )
        return isinstance(plan, Shifts)

    def _cut(self, problem: BpProblem) -> tuple[int, int]:
        machine, hierarchical = self.options.machine, self.options.hierarchical
        block = BLOCK if hierarchical and problem is self.levels[0] else 1
        size = problem.width, problem.height
        return fastest_cut(*size, vaults=machine.vaults, pes=machine.slots, block=block)


class TrwsSolver(Solver):
    """TRW-S, on an engine or a vault.

    Raises:
        KernelError: damping, or as for :class:`vip.mrf.solver.Solver`.
    """

    def __init__(self, problem: BpProblem, options: MrfOptions) -> None:
        if options.damping:
            raise KernelError("damping is for BP-M, not for TRW-S")
        super().__init__(problem, options)

    def iterate(
        self,
        problem: BpProblem,
        iterations: int,
        start: Messages | None,
        step: Callable[[int], None],
    ) -> tuple[Messages, list[State]]:
        field = TrwsField(problem, start)
        states: list[State] = [*field.steps(iterations, step)]
        return field.messages, states

    def job(self, level: int, start: Messages | None) -> KernelJob:
        options, machine = self.options, self.options.machine
        if machine.kind == "chip":
            raise KernelError("TRW-S runs on an engine or on a vault, not on a chip of vaults")
        arguments: dict[str, Any] = {
            "engines": ChipEngines.of(machine),
            "messages": start,
            "form": options.form,
        }
        if level:
            return trws_job(self.levels[level], options.coarse_iterations, **arguments)
        if options.hierarchical:
            costs = options.coarse_smoothness
            arguments["smoothness"] = None if costs is None else costs[0]
            iterations = options.coarse_iterations, options.iterations
            return trws_levels_job(self.problem, *iterations, **arguments)
        return trws_job(self.problem, options.iterations, **arguments)

    def labels(self, outputs: Elements) -> NDArray[np.int64]:
        return TrwsField(self.problem, outputs).labels()

    def by_shifts(self) -> bool:
        engines = ChipEngines.of(self.options.machine)
        return trws_transform(self.problem, self.options.form, engines) is not None

    def fill(self) -> float:
        problem = self.problem
        return fill_share(problem.width, problem.height, self.options.machine.slots)
