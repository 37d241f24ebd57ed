"""How a Markov random field is solved, and where: method, levels, and the machine for its jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from microkernels.bp.choice import Form
from microkernels.bp.golden import coarse_problem
from microkernels.bp.problem import BpProblem
from microkernels.common.errors import CHECK
from sim_tb.cosim.machine import Place
from soc.generate.designs import Configuration
from soc.generate.presets import Design, design

#: ``bp``: BP-M. ``trws``: TRW-S. ``hbp``, ``htrws``: the same on a quarter of the size first.
Method = Literal["bp", "hbp", "trws", "htrws"]
#: Most levels of a hierarchical method.
MOST_LEVELS = 8


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
