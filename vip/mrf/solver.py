"""What the methods have in common: levels, the golden model beside the machine, the result."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from microkernels.bp.golden import copied
from microkernels.bp.problem import BpProblem, Messages
from microkernels.common.fixed_point import Elements, count_saturation
from microkernels.runtime.job import KernelJob
from sim_tb.cosim.kernels import run_on
from sim_tb.cosim.machine import On
from support.errors import VipError
from vip.progress import Progress, counting

from .options import MrfOptions
from .result import MrfRun

ResultT = TypeVar("ResultT")

_GOLDEN = "golden model (iterations)"
_CYCLES = "machine (cycles)"
_SIMULATOR = "instruction set simulator (instructions)"


class _UnneededError(VipError):
    """The work ended early, as its result is no longer needed."""


@contextmanager
def beside(
    work: Callable[[Progress], ResultT], progress: Progress
) -> Iterator[Callable[[], ResultT]]:
    """Run ``work`` in another thread. The context's value returns the result, or raises the
    exception, when called; after the context, the work ends at its next report of ``progress``."""
    unneeded = threading.Event()

    def show(stage: str, done: float = 0, total: float | None = None, part: str = "") -> None:
        if unneeded.is_set():
            raise _UnneededError
        progress(stage, done, total, part)

    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(work, show)
        try:
            yield future.result
        finally:
            unneeded.set()


#: Energy of the labels, and the bound below all energies; None: the method has none.
State = tuple[int, int | None]
#: Results of the golden model: the outputs of the jobs, and states before the first iteration and
#: after each, both from the coarsest level on; and the number of limited sums.
_Expected = tuple[list[Elements], list[list[State]], int]


class Solver(ABC):
    """A method on one level or more.

    Raises:
        KernelError: smoothness costs of coarse levels that can't be used.
    """

    #: Who chooses the labels of a machine's messages.
    chosen_on: Literal["machine", "host"] = "host"

    def __init__(self, problem: BpProblem, options: MrfOptions) -> None:
        self.problem = problem
        self.options = options
        self.levels = options.problems(problem)

    @abstractmethod
    def iterate(
        self,
        problem: BpProblem,
        iterations: int,
        start: Messages | None,
        step: Callable[[int], None],
    ) -> tuple[Messages, list[State]]:
        """Messages of the golden model after ``iterations`` from ``start`` on (None: all 0), and
        the state before the first and after each; ``step`` is called before each."""

    @abstractmethod
    def job(self, level: int, start: Messages | None) -> KernelJob:
        """The job of a level from the third on, or of the others, by the number 0.

        Raises:
            KernelError: it does not fit the machine.
        """

    @abstractmethod
    def labels(self, outputs: Elements) -> NDArray[np.int64]:
        """The labels, from the outputs of the last job."""

    @abstractmethod
    def by_shifts(self) -> bool:
        """Whether the machine computes the finest level's messages by shifts."""

    def outputs(self, messages: Messages) -> Elements:
        """What the last job leaves, from the golden model's messages."""
        return messages

    def fill(self) -> float:
        """See :attr:`vip.mrf.result.MrfRun.fill`, on a machine."""
        return 0.0

    def run(self, progress: Progress) -> MrfRun:
        """Solve the problem.

        Raises:
            VipError: as of :func:`vip.mrf.run.solve_mrf`.
        """
        job, differing, cycles = None, 0, dict[str, int]()
        if (on := self.options.on) == "golden":
            expected, states, saturated = self._golden(progress)
            outputs = expected[-1]
        else:
            # Bad options are refused before the golden model runs.
            jobs = {level: self.job(level, None) for level in (0, *range(2, len(self.levels)))}
            job = jobs[0]
            # The golden model runs on another processor, beside the machine.
            with beside(self._golden, progress) as golden:
                runs, cycles = self._run_levels(jobs, on, progress)
                expected, states, saturated = golden()
            pairs = zip(runs, expected, strict=True)
            differing = sum(int(np.count_nonzero(result != right)) for result, right in pairs)
            outputs = runs[-1]
        return MrfRun(
            problem=self.problem,
            method=self.options.method,
            on=on,
            config=None if job is None else self.options.machine,
            labels=self.labels(outputs),
            energies=tuple(energy for energy, _ in states[-1]),
            coarse_energies=tuple(energy for state in states[-2:-1] for energy, _ in state),
            bounds=tuple(bound for _, bound in states[-1] if bound is not None),
            saturated=saturated,
            differing=differing,
            cycles=cycles if any(cycles.values()) else {},
            engines=0 if job is None else job.pes * job.vaults,
            form="" if job is None else "shifts" if self.by_shifts() else "matrix",
            chosen_on=self.chosen_on,
            fill=0.0 if job is None else self.fill(),
        )

    def _golden(self, progress: Progress) -> _Expected:
        options, levels = self.options, self.levels
        messages: Messages | None = None
        states: list[list[State]] = []
        passed: list[Elements] = []
        total = options.iterations + options.coarse_iterations * (len(levels) - 1)
        done = 0

        def step(number: int) -> None:
            progress(_GOLDEN, done + number, total)

        with count_saturation() as count:
            for level in reversed(range(len(levels))):
                iterations = options.coarse_iterations if level else options.iterations
                reached, steps = self.iterate(levels[level], iterations, messages, step)
                states.append(steps)
                passed.append(reached if level else self.outputs(reached))
                messages = copied(levels[level - 1], reached) if level else None
                done += iterations
        # The last two levels are one job, unless there is only one.
        return [*passed[:-2], passed[-1]], states, count()

    def _run_levels(
        self, jobs: Mapping[int, KernelJob], on: On, progress: Progress
    ) -> tuple[list[Elements], dict[str, int]]:
        """Outputs of the jobs, from the coarsest level on, and cycles of their launches by name.
        The host copies messages to all but the first two levels, which are one job if there are
        more."""
        outputs: list[Elements] = []
        cycles: dict[str, int] = {}
        counts = counting(progress, _SIMULATOR if on == "iss" else _CYCLES)
        for level in (*range(len(self.levels) - 1, 1, -1), 0):
            job = jobs[level]
            if outputs:
                job = self.job(level, copied(self.levels[level or 1], outputs[-1]))
            outcome = run_on(job, self.options.machine, on=on, preload=True, progress=counts)
            outputs.append(outcome.outputs)
            for name, result in outcome.results.items():
                cycles[f"coarse {level}" if level else name] = result.cycles
        return outputs, cycles
