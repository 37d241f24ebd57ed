"""TRW-S on one level or more, on the machine that is named."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from microkernels.bp.levels import copied
from microkernels.bp.problem import BpProblem, Messages
from microkernels.bp.shifts.choice import Form
from microkernels.bp.trws.golden import TrwsField, TrwsStep
from microkernels.bp.trws.jobs import trws_job, trws_transform
from microkernels.bp.trws.layout import fill_share
from microkernels.common.errors import KernelError
from microkernels.runtime.job import Golden, KernelJob
from vip.progress import Progress

from .levels import coarse_name, counted
from .machine import MrfMachine
from .result import MrfOptions, MrfRun

__all__ = ["solve_trws"]


def solve_trws(
    problem: BpProblem,
    machine: MrfMachine,
    options: MrfOptions,
    coarse: list[BpProblem],
    progress: Progress,
) -> MrfRun:
    """Labels by TRW-S.

    Parameters:
        coarse: problems of the coarse levels, the coarsest one last; empty for TRW-S on one level.
        problem, options, progress: as of :func:`vip.mrf.run.solve_mrf`.

    Raises:
        VipError: as from there.
    """
    on_machine = machine.on != "golden"
    fill = 0.0
    if on_machine:
        # Refused before the golden model works.
        job = _trws_job(problem, machine, options.iterations, options.form)
        fill = fill_share(problem.width, problem.height, job.pes)
        for level_problem in coarse:
            _trws_job(level_problem, machine, options.coarse_iterations, options.form)
    total = options.iterations + options.coarse_iterations * len(coarse)
    levels = [problem, *coarse]
    states: list[list[TrwsStep]] = []
    # Where a level begins: by the golden model, and by the machine.
    begun: list[Messages | None] = [None, None]
    cycles: dict[str, int] = {}
    differing = done = 0
    for level in range(len(coarse), -1, -1):
        iterations = options.coarse_iterations if level else options.iterations
        field = TrwsField(levels[level], begun[0])
        states.append(_trws_steps(field, iterations, counted(progress, done, total)))
        done += iterations
        expected = messages = field.messages
        if on_machine:
            job = _trws_job(levels[level], machine, iterations, options.form, begun[1])
            messages, counts = machine.run(
                replace(job, golden=Golden(partial(np.asarray, expected))), progress
            )
            name = coarse_name(level) if level else "fine" if coarse else ""
            cycles[name] = counts.get("", 0)
            differing += int(np.count_nonzero(messages != expected))
        if level:
            begun = [copied(levels[level - 1], one) for one in (expected, messages)]
    labels, form = states[-1][-1].labels, ""
    if on_machine:
        labels = TrwsField(problem, messages).labels()
        engine = machine.config.pe
        transform = trws_transform(
            problem, options.form, engine.scratchpad_bytes, engine.instruction_words
        )
        form = "matrix" if transform is None else "shifts"
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
        form=form,
        fill=fill,
    )


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
