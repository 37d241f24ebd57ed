"""TRW-S on one or more levels, on any machine."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.bp.problem import BpProblem, Messages
from microkernels.bp.trws.golden import TrwsField
from microkernels.bp.trws.jobs import trws_job, trws_levels_job, trws_transform
from microkernels.bp.trws.layout import fill_share
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements
from microkernels.runtime.job import KernelJob

from .options import MrfOptions
from .solver import Solver, State


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
            "pes": machine.slots,
            "messages": start,
            "scratchpad_bytes": machine.pe.scratchpad_bytes,
            "instruction_words": machine.pe.instruction_words,
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
        engine = self.options.machine.pe
        room, words = engine.scratchpad_bytes, engine.instruction_words
        return trws_transform(self.problem, self.options.form, room, words) is not None

    def fill(self) -> float:
        problem = self.problem
        return fill_share(problem.width, problem.height, self.options.machine.slots)
