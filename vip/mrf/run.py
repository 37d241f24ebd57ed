"""The verb ``solve_mrf``: belief propagation on any grid, on any machine."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.bp.choice import shifts_of
from microkernels.bp.golden import BLOCK, energy, iterate
from microkernels.bp.golden import labels as best_labels
from microkernels.bp.labels import labels_kernel, machine_labels, split_outputs
from microkernels.bp.problem import BpProblem, Messages, UpdateVariant
from microkernels.bp.tiles import fastest_cut
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.kernels import bp_job_on
from vip.progress import Progress, silent

from .options import MrfOptions
from .result import MrfRun
from .solver import Solver, State
from .trws import TrwsSolver


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


class BpSolver(Solver):
    """BP-M."""

    def __init__(self, problem: BpProblem, options: MrfOptions) -> None:
        super().__init__(problem, options)
        if options.on != "golden" and self._labels_fit():
            self.chosen_on = "machine"

    def _labels_fit(self) -> bool:
        problem = self.problem
        tail = UpdateVariant(problem.weights is not None).tail
        room = self.options.machine.pe.scratchpad_bytes
        try:
            labels_kernel(problem.labels, problem.bits, room, tail=tail)
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
            cut=fastest_cut(
                problem.width,
                problem.height,
                vaults=machine.vaults,
                pes=machine.slots,
                block=BLOCK if on_two else 1,
            ),
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
        shifts = shifts_of(
            self.problem, options.form, engines, blocks=blocks, damping=options.damping
        )
        return shifts is not None
