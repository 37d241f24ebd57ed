"""The verb ``solve_mrf``: belief propagation on any grid, on any machine."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from microkernels.bp.golden import BLOCK, copied, energy, iterate
from microkernels.bp.golden import labels as best_labels
from microkernels.bp.jobs import bp_job, bp_levels_job
from microkernels.bp.labels import labels_kernel, machine_labels, split_outputs
from microkernels.bp.problem import BpProblem, Messages, UpdateVariant
from microkernels.bp.shifts.choice import Form, shifts_of
from microkernels.bp.tiles import fastest_cut
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import Elements, count_saturation
from microkernels.runtime.job import Golden, KernelJob
from sim_tb.cosim.kernels import chip_ring
from sim_tb.cosim.machine import Place
from support.errors import VipError
from vip.configurations import Design, design
from vip.progress import Progress, silent

from .options import Method, MrfOptions, counted
from .result import MrfRun
from .trws import solve_trws

#: Most levels of a hierarchical method.
MOST_LEVELS = 8
ResultT = TypeVar("ResultT")


def solve_mrf(
    problem: BpProblem,
    config: Design = "pe",
    *,
    method: Method = "bp",
    iterations: int = 5,
    coarse_iterations: int = 5,
    levels: int = 2,
    coarse_smoothness: Sequence[NDArray[np.integer]] | None = None,
    on: Place = "golden",
    form: Form = "auto",
    damping: int = 0,
    progress: Progress = silent,
) -> MrfRun:
    """Find labels of low energy for a Markov random field on a grid of pixels.

    On a machine, every message is compared with the golden model's. For BP-M, engines choose the
    labels, too, if labels and records fit; for TRW-S the host chooses them.

    Parameters:
        problem: data costs, smoothness costs, element width.
        config: of an engine, a vault or a chip, all of whose engines work; unused on ``golden``.
        method: ``bp``; ``hbp``, after ``coarse_iterations`` at a quarter of the size; ``trws``, on
            an engine or a vault, with a lower bound (:mod:`microkernels.bp.trws`); ``htrws``, the
            same after ``coarse_iterations`` at a quarter of the size.
        iterations, coarse_iterations: 0 or more; on a machine at least 1.
        levels: of ``hbp`` and ``htrws``, 2 to :data:`MOST_LEVELS`. Each after the first has sides
            half as long, and ``coarse_iterations``. From the third on, the host sums costs and
            copies messages.
        coarse_smoothness: smoothness costs of each level after the first; None: interpolated
            (:func:`microkernels.bp.golden.coarse_smoothness`).
        on: where to compute.
        form: how a machine computes new messages, by a matrix or by shifts; ``auto``: whichever
            takes fewer cycles. The messages are the same.
        damping: sixteenths of the old message in a new one of BP-M, 0 to 15.
        progress: called with the golden model's iterations and the machine's cycles; for BP-M the
            golden model works beside the machine, in a thread of its own.

    Raises:
        VipError: a value is outside its range, the problem does not fit, a run faults or does not
            end, or a simulator can't be built.
    """
    CHECK.at_least("iterations", iterations, 0)
    CHECK.at_least("coarse_iterations", coarse_iterations, 0)
    CHECK.within("levels", levels, 2, MOST_LEVELS)
    options = MrfOptions(
        config=design(config),
        on=on,
        method=method,
        iterations=iterations,
        coarse_iterations=coarse_iterations,
        levels=levels,
        coarse_smoothness=coarse_smoothness,
        form=form,
        damping=damping,
    )
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


@dataclass(frozen=True, kw_only=True)
class _Expected:
    """Results of the golden model of BP-M.

    Attributes:
        outputs: messages, or as those of :func:`microkernels.bp.labels.with_labels`.
        coarse: messages of the levels that the host copies from, the coarsest first.
        energies, coarse_energies, saturated: as for :class:`MrfRun`.
    """

    outputs: Elements
    coarse: list[Messages]
    energies: list[int]
    coarse_energies: list[int]
    saturated: int


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
        room = self._options.config.pe.scratchpad_bytes
        try:
            labels_kernel(problem.labels, problem.bits, room, tail=tail)
        except KernelError:
            return False
        return True

    def run(self, progress: Progress) -> MrfRun:
        """Solve the problem."""
        job = None
        if self._options.on == "golden":
            expected = self._golden(progress)
            outputs, differing, cycles = expected.outputs, 0, dict[str, int]()
        else:
            # Bad options are refused before the golden model runs.
            job = self._job(self._problem, self._options.method, choose=self._choose)
            # The golden model runs on another processor, beside the machine.
            with run_in_background(
                lambda cancel: self._golden(cancellable(progress, cancel))
            ) as golden:
                outputs, differing, cycles = self._measure(job, golden, progress)
                expected = golden()
        if self._choose:
            _, labels = split_outputs(self._problem, outputs)
        else:
            labels = best_labels(self._problem, outputs)
        return MrfRun(
            problem=self._problem,
            method=self._options.method,
            on=self._options.on,
            config=None if job is None else self._options.config,
            labels=labels,
            energies=tuple(expected.energies),
            coarse_energies=tuple(expected.coarse_energies),
            bounds=(),
            saturated=expected.saturated,
            differing=differing,
            cycles=cycles,
            engines=0 if job is None else job.pes * job.vaults,
            form="" if job is None else self._form(),
            chosen_on="machine" if self._choose else "host",
        )

    def _golden(self, progress: Progress) -> _Expected:
        options = self._options
        messages: Messages | None = None
        coarse_energies: list[int] = []
        passed: list[Messages] = []
        done = 0
        with count_saturation() as count:
            levels = options.problems(self._problem)
            total = options.iterations + options.coarse_iterations * (len(levels) - 1)
            for level in range(len(levels) - 1, 0, -1):
                step = counted(progress, done, total)
                messages, coarse_energies = _iterate(
                    levels[level], options.coarse_iterations, messages, options.damping, step
                )
                passed.append(messages)
                messages = copied(levels[level - 1], messages)
                done += options.coarse_iterations
            step = counted(progress, done, total)
            outputs, energies = _iterate(
                self._problem, options.iterations, messages, options.damping, step
            )
            if self._choose:
                labels = machine_labels(self._problem, outputs)
                outputs = np.concatenate([outputs.ravel(), labels.ravel().astype(outputs.dtype)])
        return _Expected(
            outputs=outputs,
            coarse=passed[:-1],
            energies=energies,
            coarse_energies=coarse_energies,
            saturated=count(),
        )

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
            return replace(last, golden=Golden(lambda: golden().outputs, lazy=True))

        levels = self._options.problems(self._problem)
        runs, cycles = self._options.run_levels(levels, job_of, progress)
        expected = golden()
        pairs = zip(runs, [*expected.coarse, expected.outputs], strict=True)
        differing = sum(int(np.count_nonzero(own != right)) for own, right in pairs)
        return runs[-1], differing, cycles

    def _job(
        self,
        problem: BpProblem,
        method: Method,
        messages: Messages | None = None,
        *,
        choose: bool = False,
    ) -> KernelJob:
        options = self._options
        ring = cut = None
        if options.config.kind == "chip":
            ring, vaults = chip_ring(options.config), options.config.vaults
            block = BLOCK if method == "hbp" else 1
            cut = fastest_cut(
                problem.width, problem.height, vaults=vaults, pes=options.config.slots, block=block
            )
        arguments: dict[str, Any] = {
            "ring": ring,
            "pes": options.config.slots,
            "scratchpad_bytes": options.config.pe.scratchpad_bytes,
            "instruction_words": options.config.pe.instruction_words,
            "form": options.form,
            "cut": cut,
            "choose": choose,
            "damping": options.damping,
            "messages": messages,
        }
        if method == "hbp":
            costs = options.coarse_smoothness
            arguments["smoothness"] = None if costs is None else costs[0]
            return bp_levels_job(
                problem, options.coarse_iterations, options.iterations, **arguments
            )
        fine = problem is self._problem
        return bp_job(
            problem, options.iterations if fine else options.coarse_iterations, **arguments
        )

    def _form(self) -> str:
        """The form of the finest level's messages, chosen as its job does."""
        options = self._options
        shifts = shifts_of(
            self._problem,
            options.form,
            options.config.pe.scratchpad_bytes,
            options.config.pe.instruction_words,
            blocks=options.method == "bp",
            pes=options.config.slots,
            vaults=options.config.vaults,
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
