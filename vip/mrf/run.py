"""The verb ``solve_mrf``: belief propagation on any grid, on the machine that is named."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from microkernels.bp.cut import fastest_cut
from microkernels.bp.golden import energy, iterate
from microkernels.bp.golden import labels as best_labels
from microkernels.bp.jobs import bp_job, bp_levels_job
from microkernels.bp.labels import machine_labels, split_outputs
from microkernels.bp.labels_kernel import labels_plan
from microkernels.bp.levels import BLOCK, coarse_problem, copied
from microkernels.bp.problem import BpProblem, Messages
from microkernels.bp.shifts.choice import Form, shifts_of
from microkernels.bp.trws.golden import TrwsField, TrwsStep
from microkernels.bp.trws.jobs import trws_job, trws_transform
from microkernels.bp.trws.layout import fill_share
from microkernels.bp.variants.variant import Variant
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
from .machine import Place, engine_of, run_job
from .result import Method, MrfRun

__all__ = ["solve_mrf"]

_GOLDEN = "golden model (iterations)"


def solve_mrf(
    problem: BpProblem,
    config: Design = "pe",
    *,
    method: Method = "bp",
    iterations: int = 5,
    coarse_iterations: int = 5,
    coarse_smoothness: NDArray[np.integer] | None = None,
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
        coarse_smoothness: smoothness costs on a quarter of the size; None: interpolated
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
    job, chosen = None, design(config)
    if method in ("trws", "htrws"):
        if damping:
            raise KernelError("damping is for BP-M, not for TRW-S")
        coarse_begin = None
        if method == "htrws":
            coarse_begin = (coarse_problem(problem, coarse_smoothness), coarse_iterations)
        return _trws(problem, chosen, iterations, coarse_begin, on, form, progress)
    chosen_on: Literal["machine", "host"] = "host"
    if on != "golden":
        chosen_on = "machine" if _labels_fit(problem, chosen) else "host"
        job = _job(
            problem,
            chosen,
            method,
            iterations,
            coarse_iterations,
            coarse_smoothness,
            form,
            damping,
            choose=chosen_on == "machine",
        )

    def golden(stop: Stop) -> _Expected:
        return _expected(
            problem,
            method,
            iterations,
            coarse_iterations,
            coarse_smoothness,
            damping,
            stopping(progress, stop),
            choose=chosen_on == "machine",
        )

    cycles: dict[str, int] = {}
    if job is None:
        expected = golden(Stop())
        found = expected.outputs
    else:
        # The golden model works on another processor while the machine runs.
        with meanwhile(golden) as wanted:
            checked = replace(job, golden=Golden(lambda: wanted().outputs, lazy=True))
            found, cycles = run_job(checked, chosen, on, progress)
            expected = wanted()
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
        differing=int(np.count_nonzero(found != expected.outputs)),
        cycles=cycles,
        engines=0 if job is None else job.pes * job.vaults,
        form="" if job is None else _form(problem, chosen, form, damping),
        chosen_on=chosen_on,
    )


@dataclass(frozen=True, kw_only=True)
class _Expected:
    """What the golden model says of BP-M.

    Attributes:
        outputs: messages, or as those of :func:`microkernels.bp.labels.with_labels`.
        energies, coarse_energies, saturated: as of :class:`MrfRun`.
    """

    outputs: Elements
    energies: list[int]
    coarse_energies: list[int]
    saturated: int


def _expected(
    problem: BpProblem,
    method: Method,
    iterations: int,
    coarse_iterations: int,
    coarse_smoothness: NDArray[np.integer] | None,
    damping: int,
    progress: Progress,
    *,
    choose: bool,
) -> _Expected:
    with count_saturation() as count:
        done = 0
        coarse_energies: list[int] = []
        messages = None
        total = iterations + (coarse_iterations if method == "hbp" else 0)
        if method == "hbp":
            coarse = coarse_problem(problem, coarse_smoothness)
            step = _counted(progress, done, total)
            coarse_messages, coarse_energies = _golden(
                coarse, coarse_iterations, None, damping, step
            )
            messages, done = copied(problem, coarse_messages), coarse_iterations
        outputs, energies = _golden(
            problem, iterations, messages, damping, _counted(progress, done, total)
        )
        if choose:
            labels = machine_labels(problem, outputs)
            outputs = np.concatenate([outputs.ravel(), labels.ravel().astype(outputs.dtype)])
    return _Expected(
        outputs=outputs,
        energies=energies,
        coarse_energies=coarse_energies,
        saturated=count.values,
    )


def _trws(
    problem: BpProblem,
    config: Configuration,
    iterations: int,
    coarse: tuple[BpProblem, int] | None,
    on: Place,
    form: Form,
    progress: Progress,
) -> MrfRun:
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
        if coarse is not None:
            _trws_job(coarse[0], config, coarse[1], form)
    before = 0 if coarse is None else coarse[1]
    coarse_steps: list[TrwsStep] = []
    messages = begun = None
    cycles: dict[str, int] = {}
    differing = 0
    if coarse is not None:
        field = TrwsField(coarse[0])
        coarse_steps = _trws_steps(field, before, _counted(progress, 0, before + iterations))
        messages = begun = copied(problem, field.messages)
        if on != "golden":
            found, cycles["coarse"] = machine(coarse[0], before, None, field.messages)
            differing += int(np.count_nonzero(found != field.messages))
            begun = copied(problem, found)
    field = TrwsField(problem, messages)
    steps = _trws_steps(field, iterations, _counted(progress, before, before + iterations))
    expected = field.messages
    found, labels = expected, steps[-1].labels
    by_shifts = False
    if on != "golden":
        found, cycles["" if coarse is None else "fine"] = machine(
            problem, iterations, begun, expected
        )
        labels = TrwsField(problem, found).labels()
        engine = engine_of(config)
        by_shifts = None is not trws_transform(
            problem, form, engine.scratchpad_bytes, engine.instruction_words
        )
    return MrfRun(
        problem=problem,
        method="trws" if coarse is None else "htrws",
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


def _form(problem: BpProblem, config: Configuration, form: Form, damping: int) -> str:
    engine = engine_of(config)
    found = shifts_of(
        problem, form, engine.scratchpad_bytes, engine.instruction_words, damping=damping
    )
    return "matrix" if found is None else "shifts"


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


def _counted(progress: Progress, done: int, total: int) -> Callable[[int], None]:
    return lambda step: progress(_GOLDEN, done + step, total)


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
    *,
    choose: bool,
) -> KernelJob:
    ring, pes, cut = None, 1, None
    if isinstance(config, ChipConfig):
        ring, pes = chip_ring(config), config.tile.pes
        block = BLOCK if method == "hbp" else 1
        cut = fastest_cut(problem.width, problem.height, vaults=config.vaults, pes=pes, block=block)
    elif isinstance(config, VaultTileConfig):
        pes = config.pes
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
    )
