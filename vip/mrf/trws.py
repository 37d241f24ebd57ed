"""TRW-S on one or more levels, on any machine."""

from dataclasses import replace
from functools import partial

import numpy as np

from microkernels.bp.golden import copied
from microkernels.bp.problem import BpProblem, Messages
from microkernels.bp.trws.golden import TrwsField
from microkernels.bp.trws.jobs import trws_job, trws_transform
from microkernels.bp.trws.layout import fill_share
from microkernels.common.errors import KernelError
from microkernels.runtime.job import Golden, KernelJob
from vip.progress import Progress

from .options import MrfOptions, coarse_name, counted
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
        job = _trws_job(problem, options, options.iterations)
        fill = fill_share(problem.width, problem.height, job.pes)
        for level_problem in levels[1:]:
            _trws_job(level_problem, options, options.coarse_iterations)
    states, messages, differing, cycles = _pass_levels(options, levels, progress)
    labels = TrwsField(problem, messages).labels()
    return MrfRun(
        problem=problem,
        method=options.method,
        on=options.on,
        config=options.config if on_machine else None,
        labels=labels,
        energies=tuple(energy for energy, _ in states[-1]),
        coarse_energies=tuple(energy for energy, _ in states[-2]) if options.hierarchical else (),
        bounds=tuple(bound for _, bound in states[-1]),
        saturated=0,
        differing=differing,
        cycles=cycles if any(cycles.values()) else {},
        engines=options.config.slots if on_machine else 0,
        form=_form(problem, options) if on_machine else "",
        fill=fill,
    )


def _pass_levels(
    options: MrfOptions, levels: list[BpProblem], progress: Progress
) -> tuple[list[list[tuple[int, int]]], Messages, int, dict[str, int]]:
    """Pass messages on all levels, from the last, which is the coarsest, to the first.

    Returns:
        The golden model's energies and bounds on each level; the messages of the finest level, the
        machine's if there is one; the number of its messages' elements that differ from the golden
        model's; its cycles.
    """
    total = options.iterations + options.coarse_iterations * (len(levels) - 1)
    states: list[list[tuple[int, int]]] = []
    # Messages that a level starts from: the golden model's, and the machine's.
    begun: list[Messages | None] = [None, None]
    cycles: dict[str, int] = {}
    differing = done = 0
    for level in reversed(range(len(levels))):
        iterations = options.coarse_iterations if level else options.iterations
        field = TrwsField(levels[level], begun[0])
        states.append(field.steps(iterations, counted(progress, done, total)))
        done += iterations
        expected = messages = field.messages
        if options.on != "golden":
            job = _trws_job(levels[level], options, iterations, begun[1])
            job = replace(job, golden=Golden(partial(np.asarray, expected)))
            messages, counts = options.run(job, progress)
            name = coarse_name(level) if level else "fine" if len(levels) > 1 else ""
            cycles[name] = counts.get("", 0)
            differing += int(np.count_nonzero(messages != expected))
        if level:
            begun = [copied(levels[level - 1], one) for one in (expected, messages)]
    return states, messages, differing, cycles


def _form(problem: BpProblem, options: MrfOptions) -> str:
    """The form of the messages, chosen as the job does."""
    engine = options.config.pe
    room, words = engine.scratchpad_bytes, engine.instruction_words
    return "matrix" if trws_transform(problem, options.form, room, words) is None else "shifts"


def _trws_job(
    problem: BpProblem,
    options: MrfOptions,
    iterations: int,
    messages: Messages | None = None,
) -> KernelJob:
    if options.config.kind == "chip":
        raise KernelError("TRW-S runs on an engine or on a vault, not on a chip of vaults")
    return trws_job(
        problem,
        iterations,
        pes=options.config.slots,
        messages=messages,
        scratchpad_bytes=options.config.pe.scratchpad_bytes,
        instruction_words=options.config.pe.instruction_words,
        form=options.form,
    )
