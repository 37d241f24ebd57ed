"""The verb ``solve_mrf``: belief propagation on any grid, on any machine."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from microkernels.bp.choice import shifts_of
from microkernels.bp.golden import BLOCK, copied, energy, iterate
from microkernels.bp.golden import labels as best_labels
from microkernels.bp.labels import labels_kernel, machine_labels, split_outputs
from microkernels.bp.problem import BpProblem, Messages, UpdateVariant
from microkernels.bp.tiles import fastest_cut
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements, count_saturation
from microkernels.runtime.job import Golden, KernelJob
from sim_tb.cosim.kernels import bp_job_on, chip_engines
from support.errors import VipError
from vip.progress import Progress, silent

from .options import Method, MrfOptions, counted
from .result import MrfRun
from .trws import solve_trws

ResultT = TypeVar("ResultT")


def solve_mrf(
    problem: BpProblem, options: MrfOptions | None = None, *, progress: Progress = silent
) -> MrfRun:
    """Find labels of low energy for a Markov random field on a grid of pixels.

    On a machine, every message is compared with the golden model's. For BP-M, engines choose the
    labels, too, if labels and records fit; for TRW-S the host chooses them.

    Parameters:
        problem: data costs, smoothness costs, element width.
        options: method and machine; None: the defaults.
        progress: called with the golden model's iterations and the machine's cycles; for BP-M the
            golden model works beside the machine, in a thread of its own.

    Raises:
        VipError: the problem does not fit, a run faults or does not end, or a simulator can't be
            built.
    """
    options = options or MrfOptions()
    _ = options.machine
    if options.by_trws:
        return solve_trws(problem, options, progress)
    return _BpSolver(problem, options).run(progress)


class Cancel(threading.Event):
    """Set when the result is no longer needed."""


class _CancelledError(VipError):
    """The work ended early, as its result is no longer needed."""


def cancellable(progress: Progress, cancel: Cancel) -> Progress:
    """``progress`` for work that ends at its next report once ``cancel`` is set."""

    def show(stage: str, done: float = 0, total: float | None = None, part: str = "") -> None:
        if cancel.is_set():
            raise _CancelledError
        progress(stage, done, total, part)

    return show


@contextmanager
def run_in_background(work: Callable[[Cancel], ResultT]) -> Iterator[Callable[[], ResultT]]:
    """Run ``work`` in another thread. The context's value returns the result, or raises the
    exception, when called; leaving the context asks the work to stop."""
    cancel = Cancel()
    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(work, cancel)
        try:
            yield future.result
        finally:
            cancel.set()


#: Results of the golden model of BP-M: the outputs of the jobs, the last of which may have labels,
#: too; energies on each level, both from the coarsest on; and the number of limited sums.
_Expected = tuple[list[Elements], list[list[int]], int]


class _BpSolver:
    """BP-M on one level or more.

    Raises:
        KernelError: smoothness costs of coarse levels that can't be used.
    """

    def __init__(self, problem: BpProblem, options: MrfOptions) -> None:
        self._problem = problem
        self._options = options
        # Engines choose the labels, too.
        self._choose = options.on != "golden" and self._labels_fit()

    def _labels_fit(self) -> bool:
        problem = self._problem
        tail = UpdateVariant(problem.weights is not None).tail
        room = self._options.machine.pe.scratchpad_bytes
        try:
            labels_kernel(problem.labels, problem.bits, room, tail=tail)
        except KernelError:
            return False
        return True

    def run(self, progress: Progress) -> MrfRun:
        """Solve the problem."""
        job = None
        if self._options.on == "golden":
            expected, energies, saturated = self._golden(progress)
            outputs, differing, cycles = expected[-1], 0, dict[str, int]()
        else:
            # Bad options are refused before the golden model runs.
            job = self._job(self._problem, self._options.method, choose=self._choose)
            # The golden model runs on another processor, beside the machine.
            with run_in_background(
                lambda cancel: self._golden(cancellable(progress, cancel))
            ) as golden:
                outputs, differing, cycles = self._measure(job, golden, progress)
                _, energies, saturated = golden()
        if self._choose:
            _, labels = split_outputs(self._problem, outputs)
        else:
            labels = best_labels(self._problem, outputs)
        return MrfRun(
            problem=self._problem,
            method=self._options.method,
            on=self._options.on,
            config=None if job is None else self._options.machine,
            labels=labels,
            energies=tuple(energies[-1]),
            coarse_energies=tuple(energies[-2]) if len(energies) > 1 else (),
            bounds=(),
            saturated=saturated,
            differing=differing,
            cycles=cycles,
            engines=0 if job is None else job.pes * job.vaults,
            form="" if job is None else self._form(),
            chosen_on="machine" if self._choose else "host",
        )

    def _golden(self, progress: Progress) -> _Expected:
        options = self._options
        messages: Messages | None = None
        energies: list[list[int]] = []
        passed: list[Elements] = []
        done = 0
        with count_saturation() as count:
            levels = options.problems(self._problem)
            total = options.iterations + options.coarse_iterations * (len(levels) - 1)
            for level in reversed(range(len(levels))):
                iterations = options.coarse_iterations if level else options.iterations
                step = counted(progress, done, total)
                outputs, steps = _iterate(
                    levels[level], iterations, messages, options.damping, step
                )
                energies.append(steps)
                passed.append(outputs)
                messages = copied(levels[level - 1], outputs) if level else None
                done += iterations
            if self._choose:
                labels = machine_labels(self._problem, outputs)
                passed[-1] = np.concatenate([outputs.ravel(), labels.ravel().astype(outputs.dtype)])
        # The last two levels are one job, unless there is only one.
        return [*passed[:-2], passed[-1]], energies, count()

    def _measure(
        self, job: KernelJob, golden: Callable[[], _Expected], progress: Progress
    ) -> tuple[Elements, int, dict[str, int]]:
        """Run the levels that the host copies from, then ``job``, which runs the rest.

        Returns:
            The outputs of ``job``; the number of elements that differ from the golden model's, on
            all levels; cycles of the launches.
        """

        def job_of(level: int, start: Messages | None) -> KernelJob:
            if level:
                return self._job(levels[level], "bp", start)
            last = job
            if start is not None:
                last = self._job(self._problem, self._options.method, start, choose=self._choose)
            return replace(last, golden=Golden(lambda: golden()[0][-1], lazy=True))

        levels = self._options.problems(self._problem)
        runs, cycles = self._options.run_levels(levels, job_of, progress)
        pairs = zip(runs, golden()[0], strict=True)
        differing = sum(int(np.count_nonzero(result != right)) for result, right in pairs)
        return runs[-1], differing, cycles

    def _job(
        self,
        problem: BpProblem,
        method: Method,
        messages: Messages | None = None,
        *,
        choose: bool = False,
    ) -> KernelJob:
        options, machine = self._options, self._options.machine
        hierarchical = method == "hbp"
        iterations, costs = options.iterations, options.coarse_smoothness
        arguments: dict[str, Any] = {}
        if hierarchical:
            arguments["coarse_iterations"] = options.coarse_iterations
            arguments["smoothness"] = None if costs is None else costs[0]
        elif problem is not self._problem:
            iterations = options.coarse_iterations
        return bp_job_on(
            problem,
            iterations,
            machine,
            form=options.form,
            cut=fastest_cut(
                problem.width,
                problem.height,
                vaults=machine.vaults,
                pes=machine.slots,
                block=BLOCK if hierarchical else 1,
            ),
            choose=choose,
            damping=options.damping,
            messages=messages,
            **arguments,
        )

    def _form(self) -> str:
        """The form of the finest level's messages, chosen as its job does."""
        options = self._options
        shifts = shifts_of(
            self._problem,
            options.form,
            chip_engines(options.machine),
            blocks=options.method == "bp",
            damping=options.damping,
        )
        return "matrix" if shifts is None else "shifts"


def _iterate(
    problem: BpProblem,
    iterations: int,
    start: Messages | None,
    damping: int,
    step: Callable[[int], None],
) -> tuple[Messages, list[int]]:
    """Messages after ``iterations``, and the energy before the first and after each."""
    messages = iterate(problem, 0, start)
    energies = [energy(problem, best_labels(problem, messages))]
    for number in range(iterations):
        step(number)
        messages = iterate(problem, 1, messages, damping)
        energies.append(energy(problem, best_labels(problem, messages)))
    return messages, energies
