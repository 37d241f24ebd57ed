"""The verb ``solve_mrf``: belief propagation on any grid, on the machine that is named."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from microkernels.bp.golden import energy, iterate
from microkernels.bp.golden import labels as best_labels
from microkernels.bp.jobs import bp_job, bp_levels_job
from microkernels.bp.labels import machine_labels, split_outputs
from microkernels.bp.labels_kernel import labels_plan
from microkernels.bp.levels import BLOCK, copied
from microkernels.bp.problem import BpProblem, Messages
from microkernels.bp.shifts.choice import Form, shifts_of
from microkernels.bp.tiles import fastest_cut
from microkernels.bp.variant import Variant
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import Elements
from microkernels.common.saturation import count_saturation
from microkernels.runtime.job import Golden, KernelJob
from sim_tb.cosim.kernels import chip_ring
from soc.chip.config import ChipConfig
from soc.generate.designs import Configuration
from soc.tile.config import VaultTileConfig
from vip.configurations import Design, design
from vip.progress import Progress, silent

from .beside import Stop, meanwhile, stopping
from .levels import coarse_name, coarse_problems, counted
from .machine import Place, engine_of, run_job
from .result import Method, MrfRun
from .trws import solve_trws

__all__ = ["MOST_LEVELS", "solve_mrf"]

#: Levels of hierarchical methods, at most.
MOST_LEVELS = 8


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
    """Labels of low energy for a Markov random field on a grid of pixels.

    On a machine every message is compared with the golden model's. Engines choose the labels of
    BP-M, too, if labels and records fit them; those of TRW-S are chosen on the host.

    Parameters:
        problem: data costs, smoothness costs, element width.
        config: of an engine, a vault or a chip; all engines work. Not used on ``golden``.
        method: ``bp``; ``hbp`` with ``coarse_iterations`` on a quarter of the size before;
            ``trws``, on an engine or a vault, with a lower bound (:mod:`microkernels.bp.trws`);
            ``htrws``, the same after ``coarse_iterations`` on a quarter of the size; the host sums
            its costs and copies its messages.
        iterations, coarse_iterations: 0 or more; on a machine at least 1.
        levels: of ``hbp`` and ``htrws``, 2 to :data:`MOST_LEVELS`: each after the first has half of
            the sides, and ``coarse_iterations``. From the third on the host sums costs and copies
            messages for ``hbp``, too.
        coarse_smoothness: smoothness costs of each level after the first; None: interpolated
            (:func:`microkernels.bp.levels.coarse_smoothness`).
        on: the place of the computation.
        form: how a machine computes new messages, by a matrix or by shifts; ``auto``: in the way
            that takes fewer cycles. The messages are the same.
        damping: sixteenths of the old message in a new one of BP-M, 0 to 15.
        progress: called with the iterations of the golden model and with the machine's cycles; for
            BP-M the golden model works beside the machine, in a thread of its own.

    Raises:
        VipError: a value outside its range, a problem that does not fit, a run that faults or does
            not end, or a simulator that can't be built.
    """
    CHECK.at_least("iterations", iterations, 0)
    CHECK.at_least("coarse_iterations", coarse_iterations, 0)
    CHECK.within("levels", levels, 2, MOST_LEVELS)
    if method not in ("hbp", "htrws"):
        levels = 1
    job, chosen = None, design(config)
    if method in ("trws", "htrws"):
        if damping:
            raise KernelError("damping is for BP-M, not for TRW-S")
        coarse = coarse_problems(problem, levels, coarse_smoothness)
        return solve_trws(
            problem, chosen, iterations, coarse, coarse_iterations, on, form, progress
        )
    chosen_on: Literal["machine", "host"] = "host"
    fits = on != "golden" and _labels_fit(problem, chosen)
    if fits:
        chosen_on = "machine"

    def make(one: BpProblem, kind: Method, begun: Messages | None, *, choose: bool) -> KernelJob:
        smoothness = None if coarse_smoothness is None else coarse_smoothness[0]
        count = iterations if one is problem else coarse_iterations
        return _job(
            *(one, chosen, kind, count, coarse_iterations, smoothness, form, damping, begun),
            choose=choose,
        )

    if on != "golden":
        job = make(problem, method, None, choose=fits)

    def golden(stop: Stop) -> _Expected:
        return _expected(
            problem,
            levels,
            iterations,
            coarse_iterations,
            coarse_smoothness,
            damping,
            stopping(progress, stop),
            choose=fits,
        )

    cycles: dict[str, int] = {}
    differing = 0
    if job is None:
        expected = golden(Stop())
        found = expected.outputs
    else:
        # The golden model works on another processor while the machine runs.
        with meanwhile(golden) as wanted:
            coarse = coarse_problems(problem, levels, coarse_smoothness)
            seen: list[Messages] = []
            for level in range(len(coarse), 1, -1):
                one = coarse[level - 1]
                begun = copied(one, seen[-1]) if seen else None
                found, counts = run_job(make(one, "bp", begun, choose=False), chosen, on, progress)
                seen.append(found)
                cycles |= {coarse_name(level): count for count in counts.values()}
            if seen:
                job = make(problem, method, copied(coarse[0], seen[-1]), choose=fits)
            checked = replace(job, golden=Golden(lambda: wanted().outputs, lazy=True))
            found, counts = run_job(checked, chosen, on, progress)
            cycles |= counts
            expected = wanted()
        for one_seen, right in zip(seen, expected.coarse, strict=True):
            differing += int(np.count_nonzero(one_seen != right))
    if chosen_on == "machine":
        _, labels = split_outputs(problem, found)
    else:
        labels = best_labels(problem, found)
    return MrfRun(
        problem=problem,
        method=method,
        on=on,
        config=None if job is None else chosen,
        labels=labels,
        energies=tuple(expected.energies),
        coarse_energies=tuple(expected.coarse_energies),
        bounds=(),
        saturated=expected.saturated,
        differing=differing + int(np.count_nonzero(found != expected.outputs)),
        cycles=cycles,
        engines=0 if job is None else job.pes * job.vaults,
        form="" if job is None else _form(problem, chosen, method, form, damping),
        chosen_on=chosen_on,
    )


@dataclass(frozen=True, kw_only=True)
class _Expected:
    """What the golden model says of BP-M.

    Attributes:
        outputs: messages, or as those of :func:`microkernels.bp.labels.with_labels`.
        coarse: messages of the levels whose messages the host copies, the coarsest one first.
        energies, coarse_energies, saturated: as of :class:`MrfRun`.
    """

    outputs: Elements
    coarse: list[Messages]
    energies: list[int]
    coarse_energies: list[int]
    saturated: int


def _expected(
    problem: BpProblem,
    levels: int,
    iterations: int,
    coarse_iterations: int,
    coarse_smoothness: Sequence[NDArray[np.integer]] | None,
    damping: int,
    progress: Progress,
    *,
    choose: bool,
) -> _Expected:
    with count_saturation() as count:
        done = 0
        coarse_energies: list[int] = []
        messages = None
        coarse = coarse_problems(problem, levels, coarse_smoothness)
        total = iterations + coarse_iterations * len(coarse)
        passed: list[Messages] = []
        for level in range(len(coarse), 0, -1):
            one, finer = coarse[level - 1], [problem, *coarse][level - 1]
            step = counted(progress, done, total)
            found, coarse_energies = _golden(one, coarse_iterations, messages, damping, step)
            passed.append(found)
            messages, done = copied(finer, found), done + coarse_iterations
        outputs, energies = _golden(
            problem, iterations, messages, damping, counted(progress, done, total)
        )
        if choose:
            labels = machine_labels(problem, outputs)
            outputs = np.concatenate([outputs.ravel(), labels.ravel().astype(outputs.dtype)])
    return _Expected(
        outputs=outputs,
        coarse=passed[:-1],
        energies=energies,
        coarse_energies=coarse_energies,
        saturated=count.values,
    )


def _form(
    problem: BpProblem, config: Configuration, method: Method, form: Form, damping: int
) -> str:
    """The form of the messages of the finest level, chosen as its job does."""
    engine = engine_of(config)
    found = shifts_of(
        problem,
        form,
        engine.scratchpad_bytes,
        engine.instruction_words,
        blocks=method == "bp",
        pes=_engines(config),
        vaults=config.vaults if isinstance(config, ChipConfig) else 1,
        damping=damping,
    )
    return "matrix" if found is None else "shifts"


def _engines(config: Configuration) -> int:
    """Engines of a vault."""
    if isinstance(config, ChipConfig):
        return config.tile.pes
    return config.pes if isinstance(config, VaultTileConfig) else 1


def _labels_fit(problem: BpProblem, config: Configuration) -> bool:
    """Whether engines can choose the labels."""
    try:
        labels_plan(
            problem.labels,
            problem.bits,
            engine_of(config).scratchpad_bytes,
            tail=Variant(problem.weights is not None).tail,
        )
    except KernelError:
        return False
    return True


def _golden(
    problem: BpProblem,
    iterations: int,
    start: Messages | None,
    damping: int,
    step: Callable[[int], None],
) -> tuple[Messages, list[int]]:
    """Messages after ``iterations``, and the energy before them and after each."""
    messages = iterate(problem, 0, start)
    energies = [energy(problem, best_labels(problem, messages))]
    for number in range(iterations):
        step(number)
        messages = iterate(problem, 1, messages, damping)
        energies.append(energy(problem, best_labels(problem, messages)))
    return messages, energies


def _job(
    problem: BpProblem,
    config: Configuration,
    method: Method,
    iterations: int,
    coarse: int,
    smoothness: NDArray[np.integer] | None,
    form: Form,
    damping: int,
    messages: Messages | None,
    *,
    choose: bool,
) -> KernelJob:
    ring, pes, cut = None, _engines(config), None
    if isinstance(config, ChipConfig):
        ring = chip_ring(config)
        block = BLOCK if method == "hbp" else 1
        cut = fastest_cut(problem.width, problem.height, vaults=config.vaults, pes=pes, block=block)
    engine = engine_of(config)
    if method == "bp":
        return bp_job(
            problem,
            iterations,
            ring=ring,
            pes=pes,
            scratchpad_bytes=engine.scratchpad_bytes,
            instruction_words=engine.instruction_words,
            form=form,
            cut=cut,
            choose=choose,
            damping=damping,
            messages=messages,
        )
    return bp_levels_job(
        problem,
        coarse,
        iterations,
        ring=ring,
        pes=pes,
        smoothness=smoothness,
        scratchpad_bytes=engine.scratchpad_bytes,
        instruction_words=engine.instruction_words,
        form=form,
        cut=cut,
        choose=choose,
        damping=damping,
        messages=messages,
    )
