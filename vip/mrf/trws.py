"""TRW-S on one level or more, on the machine that is named."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from microkernels.bp.levels import copied
from microkernels.bp.problem import BpProblem, Messages
from microkernels.bp.shifts.choice import Form
from microkernels.bp.trws.golden import TrwsField, TrwsStep
from microkernels.bp.trws.jobs import trws_job, trws_transform
from microkernels.bp.trws.layout import fill_share
from microkernels.common.errors import KernelError
from microkernels.runtime.job import Golden, KernelJob
from soc.chip.config import ChipConfig
from soc.generate.designs import Configuration
from soc.tile.config import VaultTileConfig
from vip.progress import Progress

from .levels import coarse_name, counted
from .machine import Place, engine_of, run_job
from .result import MrfRun

__all__ = ["solve_trws"]


def solve_trws(
    problem: BpProblem,
    config: Configuration,
    iterations: int,
    coarse: list[BpProblem],
    coarse_iterations: int,
    on: Place,
    form: Form,
    progress: Progress,
) -> MrfRun:
    """Labels by TRW-S.

    Parameters:
        coarse: problems of the coarse levels, the coarsest one last; empty for TRW-S on one level.
        problem, config, iterations, coarse_iterations, on, form, progress: as of
            :func:`vip.mrf.run.solve_mrf`.

    Raises:
        VipError: as from there.
    """

    def machine(
        one: BpProblem, count: int, start: Messages | None, expected: Messages
    ) -> tuple[Messages, int]:
        """Messages of the machine after ``count`` iterations, and its cycles."""
        job = _trws_job(one, config, count, form, start)
        job = replace(job, golden=Golden(lambda: expected))
        found, cycles = run_job(job, config, on, progress)
        return found, cycles.get("", 0)

    fill = 0.0
    if on != "golden":
        # Refused before the golden model works.
        job = _trws_job(problem, config, iterations, form)
        fill = fill_share(problem.width, problem.height, job.pes)
        for one in coarse:
            _trws_job(one, config, coarse_iterations, form)
    total = iterations + coarse_iterations * len(coarse)
    coarse_steps: list[TrwsStep] = []
    messages = begun = None
    cycles: dict[str, int] = {}
    differing = done = 0
    for level in range(len(coarse), 0, -1):
        one, finer = coarse[level - 1], [problem, *coarse][level - 1]
        field = TrwsField(one, messages)
        coarse_steps = _trws_steps(field, coarse_iterations, counted(progress, done, total))
        done += coarse_iterations
        messages = copied(finer, field.messages)
        if on != "golden":
            found, cycles[coarse_name(level)] = machine(
                one, coarse_iterations, begun, field.messages
            )
            differing += int(np.count_nonzero(found != field.messages))
            begun = copied(finer, found)
    field = TrwsField(problem, messages)
    steps = _trws_steps(field, iterations, counted(progress, done, total))
    expected = field.messages
    found, labels = expected, steps[-1].labels
    by_shifts = False
    if on != "golden":
        found, cycles["fine" if coarse else ""] = machine(problem, iterations, begun, expected)
        labels = TrwsField(problem, found).labels()
        engine = engine_of(config)
        by_shifts = None is not trws_transform(
            problem, form, engine.scratchpad_bytes, engine.instruction_words
        )
    return MrfRun(
        problem=problem,
        method="htrws" if coarse else "trws",
        on=on,
        config=None if on == "golden" else config,
        labels=labels,
        energies=tuple(state.energy for state in steps),
        coarse_energies=tuple(state.energy for state in coarse_steps),
        bounds=tuple(state.bound for state in steps),
        saturated=0,
        differing=differing + int(np.count_nonzero(found != expected)),
        cycles=cycles if any(cycles.values()) else {},
        engines=0 if on == "golden" else config.pes if isinstance(config, VaultTileConfig) else 1,
        form="" if on == "golden" else "shifts" if by_shifts else "matrix",
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
    config: Configuration,
    iterations: int,
    form: Form,
    messages: Messages | None = None,
) -> KernelJob:
    if isinstance(config, ChipConfig):
        raise KernelError("TRW-S runs on an engine or on a vault, not on a chip of vaults")
    engine = engine_of(config)
    return trws_job(
        problem,
        iterations,
        pes=config.pes if isinstance(config, VaultTileConfig) else 1,
        messages=messages,
        scratchpad_bytes=engine.scratchpad_bytes,
        instruction_words=engine.instruction_words,
        form=form,
    )
