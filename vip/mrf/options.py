"""How a Markov random field is solved, and where: method, levels, and the machine for its jobs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from microkernels.bp.choice import Form
from microkernels.bp.golden import coarse_problem, copied
from microkernels.bp.problem import BpProblem, Messages
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import Elements
from microkernels.runtime.job import KernelJob
from sim_tb.cosim.kernels import run_on
from sim_tb.cosim.machine import Place
from soc.generate.designs import Configuration
from soc.generate.presets import Design, design
from vip.progress import Progress, counting

#: ``bp``: BP-M. ``trws``: TRW-S. ``hbp``, ``htrws``: the same on a quarter of the size first.
Method = Literal["bp", "hbp", "trws", "htrws"]
#: Most levels of a hierarchical method.
MOST_LEVELS = 8

_GOLDEN = "golden model (iterations)"
_CYCLES = "machine (cycles)"
_SIMULATOR = "instruction set simulator (instructions)"


@dataclass(frozen=True, kw_only=True)
class MrfOptions:
    """How a Markov random field is solved, and where.

    Attributes:
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

    Raises:
        KernelError: a number of iterations or levels is outside its range.
    """

    config: Design = "pe"
    method: Method = "bp"
    iterations: int = 5
    coarse_iterations: int = 5
    levels: int = 2
    coarse_smoothness: Sequence[NDArray[np.integer]] | None = None
    on: Place = "golden"
    form: Form = "auto"
    damping: int = 0

    def __post_init__(self) -> None:
        CHECK.at_least("iterations", self.iterations, 0)
        CHECK.at_least("coarse_iterations", self.coarse_iterations, 0)
        CHECK.within("levels", self.levels, 2, MOST_LEVELS)

    @cached_property
    def machine(self) -> Configuration:
        """The hardware.

        Raises:
            VipError: ``config`` can't be used.
        """
        return design(self.config)

    @property
    def by_trws(self) -> bool:
        """Whether messages are passed by TRW-S."""
        return self.method in ("trws", "htrws")

    @property
    def hierarchical(self) -> bool:
        """Whether there are coarse levels."""
        return self.method in ("hbp", "htrws")

    def problems(self, problem: BpProblem) -> list[BpProblem]:
        """``problem`` and those of the coarse levels, each with sides half as long as the last.

        Raises:
            KernelError: smoothness costs can't be used or don't fit the element width.
        """
        problems = [problem]
        for level in range(self.levels - 1 if self.hierarchical else 0):
            costs = None if self.coarse_smoothness is None else self.coarse_smoothness[level]
            problems.append(coarse_problem(problems[-1], costs))
        return problems

    def run_levels(
        self,
        levels: Sequence[BpProblem],
        job: Callable[[int, Messages | None], KernelJob],
        progress: Progress,
    ) -> tuple[list[Elements], dict[str, int]]:
        """Run all levels, from the last, which is the coarsest. The host copies messages to all but
        the first two, which are one job if there are more.

        Parameters:
            levels: as of :meth:`problems`.
            job: of a level by its number, 0 for the last one to run, and its initial messages.

        Returns:
            Outputs of the jobs, and cycles of their launches by name.
        """
        outputs: list[Elements] = []
        cycles: dict[str, int] = {}
        for level in (*range(len(levels) - 1, 1, -1), 0):
            start = copied(levels[level or 1], outputs[-1]) if outputs else None
            output, counts = self.run(job(level, start), progress)
            outputs.append(output)
            if level:
                counts = {coarse_name(level): count for count in counts.values()}
            cycles |= counts
        return outputs, cycles

    def run(self, job: KernelJob, progress: Progress) -> tuple[Elements, dict[str, int]]:
        """Outputs of the machine, and cycles of its launches by name.

        Raises:
            VipError: the run faults or does not end, or the simulator can't be built.
        """
        if self.on == "golden":
            raise KernelError("the golden model does not run jobs")
        stage = _SIMULATOR if self.on == "iss" else _CYCLES
        cycles = counting(progress, stage)
        outcome = run_on(job, self.machine, on=self.on, preload=True, progress=cycles)
        counts = {name: result.cycles for name, result in outcome.results.items()}
        return outcome.outputs, counts


def coarse_name(level: int) -> str:
    """Name of the launch on a coarse level; level 1 has sides half as long."""
    return "coarse" if level == 1 else f"coarse {level}"


def counted(progress: Progress, done: int, total: int) -> Callable[[int], None]:
    """Reports the golden model's iterations, of which ``done`` came before."""
    return lambda step: progress(_GOLDEN, done + step, total)
