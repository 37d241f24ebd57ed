"""TRW-S on one or more levels, on any machine."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from microkernels.bp.golden import copied
from microkernels.bp.problem import BpProblem, Messages
from microkernels.bp.trws.golden import TrwsField
from microkernels.bp.trws.jobs import trws_job, trws_levels_job, trws_transform
from microkernels.bp.trws.layout import fill_share
from microkernels.common.errors import KernelError
from microkernels.runtime.job import Golden, KernelJob
from vip.progress import Progress

from .options import MrfOptions, counted
from .result import MrfRun


def solve_trws(
    problem: BpProblem,
    options: MrfOptions,
    progress: Progress,
) -> MrfRun:
    """Labels by TRW-S; parameters and errors as for :func:`vip.mrf.run.solve_mrf`."""
    if options.damping:
        raise KernelError("damping is for BP-M, not for TRW-S")
    levels = options.problems(problem)
    on_machine = options.on != "golden"
    fill = 0.0
    if on_machine:
        # Bad options are refused before the golden model runs.
        job = _trws_job(levels, options, 0, None)
        fill = fill_share(problem.width, problem.height, job.pes)
        for level in range(2, len(levels)):
            _trws_job(levels, options, level, None)
    states, expected = _golden(options, levels, progress)
    messages, differing, cycles = expected[-1], 0, dict[str, int]()
    if on_machine:
        # Those of level 1 stay on the machine.
        right = [*expected[:-2], expected[-1]]

        def job_of(level: int, start: Messages | None) -> KernelJob:
            result = right[len(levels) - 1 - level] if level else messages
            return replace(
                _trws_job(levels, options, level, start), golden=Golden(partial(np.asarray, result))
            )

        outputs, cycles = options.run_levels(levels, job_of, progress)
        pairs = zip(outputs, right, strict=True)
        differing = sum(int(np.count_nonzero(one != other)) for one, other in pairs)
        messages = outputs[-1]
    labels = TrwsField(problem, messages).labels()
    return MrfRun(
        problem=problem,
        method=options.method,
        on=options.on,
        config=options.machine if on_machine else None,
        labels=labels,
        energies=tuple(energy for energy, _ in states[-1]),
        coarse_energies=tuple(energy for energy, _ in states[-2]) if options.hierarchical else (),
        bounds=tuple(bound for _, bound in states[-1]),
        saturated=0,
        differing=differing,
        cycles=cycles if any(cycles.values()) else {},
        engines=options.machine.slots if on_machine else 0,
        form=_form(problem, options) if on_machine else "",
        fill=fill,
    )


def _golden(
    options: MrfOptions, levels: list[BpProblem], progress: Progress
) -> tuple[list[list[tuple[int, int]]], list[Messages]]:
    """Energies and bounds, and messages, of the golden model on each level, from the last, which is
    the coarsest, to the first."""
    total = options.iterations + options.coarse_iterations * (len(levels) - 1)
    states: list[list[tuple[int, int]]] = []
    messages: list[Messages] = []
    done = 0
    for level in reversed(range(len(levels))):
        iterations = options.coarse_iterations if level else options.iterations
        start = copied(levels[level], messages[-1]) if messages else None
        field = TrwsField(levels[level], start)
        states.append(field.steps(iterations, counted(progress, done, total)))
        messages.append(field.messages)
        done += iterations
    return states, messages


def _form(problem: BpProblem, options: MrfOptions) -> str:
    """The form of the messages, chosen as the job does."""
    engine = options.machine.pe
    room, words = engine.scratchpad_bytes, engine.instruction_words
    return "matrix" if trws_transform(problem, options.form, room, words) is None else "shifts"


def _trws_job(
    levels: list[BpProblem], options: MrfOptions, level: int, messages: Messages | None
) -> KernelJob:
    """The job of a level from the third on, or of the others, by the number 0."""
    if options.machine.kind == "chip":
        raise KernelError("TRW-S runs on an engine or on a vault, not on a chip of vaults")
    arguments: dict[str, Any] = {
        "pes": options.machine.slots,
        "messages": messages,
        "scratchpad_bytes": options.machine.pe.scratchpad_bytes,
        "instruction_words": options.machine.pe.instruction_words,
        "form": options.form,
    }
    if level:
        return trws_job(levels[level], options.coarse_iterations, **arguments)
    if options.hierarchical:
        costs = options.coarse_smoothness
        arguments["smoothness"] = None if costs is None else costs[0]
        return trws_levels_job(
            levels[0], options.coarse_iterations, options.iterations, **arguments
        )
    return trws_job(levels[0], options.iterations, **arguments)
