"""TRW-S on one level or more, on the machine that is named."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from microkernels.bp.golden import copied
from microkernels.bp.problem import BpProblem, Messages
from microkernels.bp.shifts.choice import Form
from microkernels.bp.trws.golden import TrwsField, TrwsStep
from microkernels.bp.trws.jobs import trws_job, trws_transform
from microkernels.bp.trws.layout import fill_share
from microkernels.common.errors import KernelError
from microkernels.runtime.job import Golden, KernelJob
from vip.progress import Progress

from .levels import coarse_name, coarse_problems, counted
from .machine import MrfMachine
from .result import MrfOptions, MrfRun

__all__ = ["solve_trws"]


def solve_trws(
    problem: BpProblem,
    machine: MrfMachine,
    options: MrfOptions,
    levels: int,
    progress: Progress,
) -> MrfRun:
    """Labels by TRW-S.

    Parameters:
        levels: 1 for TRW-S on the pixels alone.
        problem, options, progress: as of :func:`vip.mrf.run.solve_mrf`.

    Raises:
        VipError: as from there.
    """
    if options.damping:
        raise KernelError("damping is for BP-M, not for TRW-S")
    coarse = coarse_problems(problem, levels, options.coarse_smoothness)
    on_machine = machine.on != "golden"
    fill = 0.0
    if on_machine:
        # Refused before the golden model works.
        job = _trws_job(problem, machine, options.iterations, options.form)
        fill = fill_share(problem.width, problem.height, job.pes)
        for level_problem in coarse:
            _trws_job(level_problem, machine, options.coarse_iterations, options.form)
    states, messages, differing, cycles = _pass_levels(
        machine, options, [problem, *coarse], progress
    )
    labels = TrwsField(problem, messages).labels() if on_machine else states[-1][-1].labels
    return MrfRun(
        problem=problem,
        method=options.method,
        on=machine.on,
        config=machine.config if on_machine else None,
        labels=labels,
        energies=tuple(state.energy for state in states[-1]),
        coarse_energies=tuple(state.energy for state in states[-2]) if coarse else (),
        bounds=tuple(state.bound for state in states[-1]),
        saturated=0,
        differing=differing,
        cycles=cycles if any(cycles.values()) else {},
        engines=machine.config.slots if on_machine else 0,
        form=_form(problem, machine, options.form) if on_machine else "",
        fill=fill,
    )


def _pass_levels(
    machine: MrfMachine, options: MrfOptions, levels: list[BpProblem], progress: Progress
) -> tuple[list[list[TrwsStep]], Messages, int, dict[str, int]]:
    """Pass messages on all levels, the coarsest one, which is the last, first.

    Returns:
        The golden model's states on each level; the messages of the finest level, the machine's if
        there is one; elements of its messages that differ from the golden model's; its cycles.
    """
    total = options.iterations + options.coarse_iterations * (len(levels) - 1)
    states: list[list[TrwsStep]] = []
    # Where a level begins: by the golden model, and by the machine.
    begun: list[Messages | None] = [None, None]
    cycles: dict[str, int] = {}
    differing = done = 0
    for level in reversed(range(len(levels))):
        iterations = options.coarse_iterations if level else options.iterations
        field = TrwsField(levels[level], begun[0])
        states.append(_trws_steps(field, iterations, counted(progress, done, total)))
        done += iterations
        expected = messages = field.messages
        if machine.on != "golden":
            job = _trws_job(levels[level], machine, iterations, options.form, begun[1])
            job = replace(job, golden=Golden(partial(np.asarray, expected)))
            messages, counts = machine.run(job, progress)
            name = coarse_name(level) if level else "fine" if len(levels) > 1 else ""
            cycles[name] = counts.get("", 0)
            differing += int(np.count_nonzero(messages != expected))
        if level:
            begun = [copied(levels[level - 1], one) for one in (expected, messages)]
    return states, messages, differing, cycles


def _form(problem: BpProblem, machine: MrfMachine, form: Form) -> str:
    """The form of the messages, chosen as the job does."""
    engine = machine.config.pe
    room, words = engine.scratchpad_bytes, engine.instruction_words
    return "matrix" if trws_transform(problem, form, room, words) is None else "shifts"


def _trws_steps(field: TrwsField, iterations: int, step: Callable[[int], None]) -> list[TrwsStep]:
    """The states before the first iteration and after each."""
    steps = [field.step()]
    for number in range(iterations):
        step(number)
        field.iterate()
        steps.append(field.step())
    return steps


def _trws_job(
    problem: BpProblem,
    machine: MrfMachine,
    iterations: int,
    form: Form,
    messages: Messages | None = None,
) -> KernelJob:
    if machine.config.kind == "chip":
        raise KernelError("TRW-S runs on an engine or on a vault, not on a chip of vaults")
    return trws_job(
        problem,
        iterations,
        pes=machine.config.slots,
        messages=messages,
        scratchpad_bytes=machine.config.pe.scratchpad_bytes,
        instruction_words=machine.config.pe.instruction_words,
        form=form,
    )
