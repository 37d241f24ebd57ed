"""TRW-S on one level or two as a job of an engine or a vault."""

from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from isa.program import Program
from isa.run import Launch
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.memory import Writable
from microkernels.runtime.job import Golden, KernelJob
from microkernels.runtime.ring import ONE_ENGINE, ChipEngines

from ..choice import Form, transform_for
from ..golden import coarse_problem, copied
from ..levels import BETWEEN, LevelsLayout, coarse_base
from ..problem import BpProblem, Messages, most_cycles
from ..shifts.transform import Transform
from .golden import check_costs, iterated
from .kernel import trws_builder
from .layout import TrwsLayout, block_of
from .order import TrwsPlan


@CHECK.arguments
def trws_job(
    problem: BpProblem,
    iterations: int = 1,
    *,
    engines: ChipEngines = ONE_ENGINE,
    messages: Messages | None = None,
    form: Form = "auto",
    block: int | None = None,
) -> KernelJob:
    """Run ``iterations`` (0 or more) of TRW-S, forwards and backwards; the outputs are all
    messages, in fixed point (:data:`microkernels.bp.trws.golden.FRACTION`).

    Another launch continues with the same number of iterations; nothing needs rewriting.

    Parameters:
        problem: the problem to solve, of any size.
        engines: of the vault, which share the rows.
        messages: initial messages, in fixed point; None: all 0.
        form: how new messages are computed; it does not change their values.
        block: pixels after which an engine lets the engine with the next row continue, at least 1;
            None: about as many as take the least time.

    Raises:
        KernelError: labels that don't fit the scratchpad, a program that does not fit the engine,
            costs whose sums don't fit an element, or negative iterations.
    """
    CHECK.at_least("iterations", iterations, 0)
    level = _Level(problem, engines, form, block)
    updates = problem.updates * iterations
    return KernelJob(
        name="TRW-S",
        launches=(level.launch("", updates),),
        prepare=lambda memory: level.layout.pack(memory, iterations, messages),
        outputs=level.layout.unpack,
        golden=Golden(partial(iterated, problem, iterations, messages), lazy=True),
        end=level.layout.end,
        declared=level.layout.declared,
        pes=engines.pes,
        # Two and a half sums of vectors, a difference before and one after the minimum, plus a sum
        # and a minimum for each pair of labels.
        operations=updates * (9 * problem.labels // 2 + 2 * problem.labels**2),
        updates=updates,
    )


@CHECK.arguments
def trws_levels_job(
    problem: BpProblem,
    coarse_iterations: int,
    iterations: int,
    *,
    engines: ChipEngines = ONE_ENGINE,
    messages: Messages | None = None,
    smoothness: NDArray[np.integer] | None = None,
    form: Form = "auto",
) -> KernelJob:
    """Hierarchical TRW-S: the launches ``construct``, ``coarse``, ``copy`` and ``fine``. The
    outputs are the fine level's messages.

    Parameters:
        coarse_iterations, iterations: on the two levels, 0 or more.
        messages: initial messages of the coarse problem; None: all 0.
        smoothness: of the coarse problem (:func:`microkernels.bp.golden.coarse_problem`).
        problem, engines, form: as for :func:`trws_job`.

    Raises:
        KernelError: as for :func:`trws_job`, for either level.
    """
    CHECK.at_least("coarse_iterations", coarse_iterations, 0)
    CHECK.at_least("iterations", iterations, 0)
    small = coarse_problem(problem, smoothness)
    fine = _Level(problem, engines, form)
    coarse = _Level(small, engines, form, base=coarse_base(fine.layout))
    layout = LevelsLayout(fine=fine.layout, coarse=coarse.layout)
    empty = replace(small, data_costs=np.zeros_like(small.data_costs))

    def prepare(memory: Writable) -> None:
        fine.layout.pack(memory, iterations, None)
        replace(coarse.layout, problem=empty).pack(memory, coarse_iterations, messages)
        for address, data in layout.parameters(0):
            memory.write(address, data)

    updates = small.updates * coarse_iterations, problem.updates * iterations
    on_coarse, on_fine = coarse.launch("coarse", updates[0]), fine.launch("fine", updates[1])
    construct, copy = map(layout.launch, BETWEEN)
    return KernelJob(
        name="hierarchical TRW-S",
        launches=(construct, on_coarse, copy, on_fine),
        prepare=prepare,
        outputs=fine.layout.unpack,
        golden=Golden(
            lambda: iterated(
                problem, iterations, copied(problem, iterated(small, coarse_iterations, messages))
            ),
            lazy=True,
        ),
        end=coarse.layout.end,
        declared=layout.declared,
        pes=engines.pes,
        updates=sum(updates),
    )


class _Level:
    """Layout and program of a level; parameters and errors as for :func:`trws_job`."""

    def __init__(
        self,
        problem: BpProblem,
        engines: ChipEngines,
        form: Form,
        block: int | None = None,
        base: int = 0,
    ) -> None:
        if engines.vaults > 1:
            raise KernelError(f"TRW-S runs on one vault, not on {engines.vaults}")
        pes = engines.pes
        if block is None:
            block = block_of(problem.width, problem.height, pes)
        CHECK.at_least("block", block, 1)
        check_costs(problem)
        transform = trws_transform(problem, form, engines)
        plan = _plan(problem, transform, engines.scratchpad_bytes)
        assert plan.pad
        self.layout = TrwsLayout(problem=problem, plan=plan, sharers=pes, block=block, base=base)
        self._program = _program(plan, block, engines.instruction_words)

    def launch(self, name: str, updates: int) -> Launch:
        """The launch that updates so many messages."""
        parameters, cycles = self.layout.parameters, most_cycles(updates)
        return Launch(name=name, program=self._program, parameters=parameters, max_cycles=cycles)


def trws_transform(problem: BpProblem, form: Form, engines: ChipEngines) -> Transform | None:
    """The shifts by which a kernel computes messages; None if it uses a matrix.

    Raises:
        KernelError: ``shifts`` can't be used.
    """
    transform = transform_for(problem, form)
    if transform is not None and form == "auto" and problem.weights is None:
        cycles = []
        for candidate in (transform, None):
            plan = _plan(problem, candidate, engines.scratchpad_bytes)
            try:
                _program(plan, 1, engines.instruction_words)
            except KernelError:
                continue
            cycles.append((plan.cycles, candidate is None))
        return None if cycles and min(cycles)[1] else transform
    return transform


def _plan(problem: BpProblem, transform: Transform | None, scratchpad_bytes: int) -> TrwsPlan:
    return TrwsPlan(
        transform=transform,
        labels=problem.labels,
        bits=problem.bits,
        weighted=problem.weights is not None,
        scratchpad_bytes=scratchpad_bytes,
    )


@lru_cache(maxsize=8)
def _program(plan: TrwsPlan, block: int, instruction_words: int) -> Program:
    name = f"{plan.labels}x{plan.bits}"
    program = trws_builder(plan, block).program(f"trws_{name}.s")
    if len(program.words) > instruction_words:
        raise KernelError(
            f"the program of TRW-S for {plan.labels} labels of {plan.bits} bits has "
            f"{len(program.words)} words; an engine has room for {instruction_words}"
        )
    return program
