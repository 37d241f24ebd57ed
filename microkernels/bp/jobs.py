"""Belief propagation on one and two levels as jobs of an engine, a vault or a chip."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from isa.run import Launch
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import Elements
from microkernels.common.memory import Readable, Writable
from microkernels.runtime.job import Golden, KernelJob
from microkernels.runtime.ring import ONE_ENGINE, ChipEngines

from .choice import Form, plan_of
from .contents import contents, pack, unpack
from .golden import BLOCK, check_damping, coarse_problem, copied, iterate, iterate_levels
from .labels import with_labels
from .layout import BpLayout
from .levels import LevelsLayout, coarse_base
from .problem import BpProblem, Messages, most_cycles


@CHECK.arguments
def bp_job(
    problem: BpProblem,
    iterations: int = 1,
    *,
    engines: ChipEngines = ONE_ENGINE,
    messages: Messages | None = None,
    form: Form = "matrix",
    cut: tuple[int, int] | None = None,
    choose: bool = False,
    damping: int = 0,
    sums: bool | None = None,
) -> KernelJob:
    """Run ``iterations`` (0 or more) BP-M iterations of four directions each; the outputs are all
    messages.

    Another launch continues with the same number of iterations; nothing needs rewriting, except
    with ``sums``.

    Parameters:
        problem: the problem to solve, of any size.
        engines: that share it.
        messages: initial messages; None: all 0.
        form: how new messages are computed; it does not change their values.
        cut: of the image into tiles (:func:`microkernels.bp.tiles.fastest_cut`); None: as many
            columns and rows as vaults. It does not change the messages.
        choose: also choose the labels (:func:`microkernels.bp.labels.with_labels`).
        damping: as for :func:`microkernels.bp.golden.iterate`.
        sums: make the sums of messages and costs one axis ahead (:mod:`microkernels.bp.sums`);
            None: where this is faster and fits. It does not change the messages.

    Raises:
        KernelError: tiles that don't fit their vault, labels that don't fit the scratchpad,
            negative iterations, or damping out of range.
    """
    CHECK.at_least("iterations", iterations, 0)
    check_damping(damping)
    plan = plan_of(
        problem,
        form,
        engines,
        blocks=True,
        sums=False if choose else sums,
        cut=cut,
        damping=damping,
    )
    layout = BpLayout.of(problem, plan, engines=engines, cut=cut)
    labels, updates = problem.labels, problem.updates * iterations
    launch = Launch(
        program=layout.program,
        parameters=layout.parameters,
        max_cycles=most_cycles(updates),
    )
    job = KernelJob(
        name="belief propagation",
        launches=(launch,),
        prepare=lambda memory: pack(
            problem, layout, memory, iterations=iterations, messages=messages
        ),
        outputs=lambda memory: unpack(layout, memory),
        golden=Golden(lambda: iterate(problem, iterations, messages, damping), lazy=True),
        end=layout.end,
        declared=layout.declared,
        pes=engines.pes,
        ring=engines,
        # Three sums of vectors and a difference, plus a sum and a minimum for each pair of labels.
        operations=updates * (4 * labels + 2 * labels * labels),
        updates=updates,
        remote_bytes=layout.remote_share,
    )
    return with_labels(job, problem, layout) if choose else job


class _Levels:
    """Common part of the two-level jobs (:mod:`microkernels.bp.golden`); parameters as for
    :func:`bp_levels_job`.

    Attributes:
        coarse: the coarse problem. unmade: the same before construct has run, without data costs.
        layout: addresses of both levels.
    """

    def __init__(
        self,
        problem: BpProblem,
        smoothness: NDArray[np.integer] | None = None,
        *,
        engines: ChipEngines = ONE_ENGINE,
        form: Form = "matrix",
        cut: tuple[int, int] | None = None,
        damping: int = 0,
    ) -> None:
        check_damping(damping)
        self.problem = problem
        self.engines = engines
        self.coarse = coarse_problem(problem, smoothness)
        costs = np.zeros_like(self.coarse.data_costs)
        self.unmade = replace(self.coarse, data_costs=costs)
        plan, coarse_plan = (
            plan_of(level, form, engines, cut=cut, damping=damping)
            for level in (problem, self.coarse)
        )
        fine = BpLayout.of(problem, plan, engines=engines, block=BLOCK, cut=cut)
        grid = replace(fine.grid, width=self.coarse.width, height=self.coarse.height, block=1)
        coarse = replace(
            fine,
            grid=grid,
            plan=coarse_plan,
            base=coarse_base(fine),
            symmetric=engines.on_chip and self.coarse.symmetric,
        )
        self.layout = LevelsLayout(fine=fine, coarse=coarse)

    def level(self, name: Literal["coarse", "fine"], updates: int) -> Launch:
        """The launch on a level."""
        layout = self.layout.fine if name == "fine" else self.layout.coarse
        return Launch(
            name=name,
            program=layout.program,
            parameters=layout.parameters,
            max_cycles=most_cycles(updates + self.problem.width * self.problem.height),
        )

    def job(
        self,
        name: str,
        launches: tuple[Launch, ...],
        golden: Golden,
        outputs: Callable[[Readable], Elements] | None = None,
        coarse: BpProblem | None = None,
        *,
        coarse_iterations: int = 0,
        iterations: int = 0,
        messages: Messages | None = None,
        operations: int = 0,
    ) -> KernelJob:
        """A job on the memory of both levels.

        Parameters:
            outputs: None: the fine level's messages.
            coarse: the coarse problem in memory; None: before construct.
            coarse_iterations, iterations: of the launches on the levels.
            messages: initial ones of the coarse problem; None: all 0.
            name, launches, golden, operations: of the job.
        """
        layout = self.layout
        begun = self.unmade if coarse is None else coarse

        def prepare(memory: Writable) -> None:
            pack(self.problem, layout.fine, memory, iterations=iterations)
            pack(begun, layout.coarse, memory, iterations=coarse_iterations, messages=messages)
            for vault in range(layout.fine.ring.vaults):
                for address, data in layout.parameters(vault):
                    memory.write(address, data)

        return KernelJob(
            name=name,
            launches=launches,
            prepare=prepare,
            outputs=outputs or (lambda memory: unpack(layout.fine, memory)),
            golden=golden,
            end=layout.coarse.end,
            declared=layout.declared,
            pes=self.engines.pes,
            ring=self.engines,
            operations=operations,
        )


@CHECK.arguments
def bp_levels_job(
    problem: BpProblem,
    coarse_iterations: int,
    iterations: int,
    *,
    engines: ChipEngines = ONE_ENGINE,
    smoothness: NDArray[np.integer] | None = None,
    form: Form = "matrix",
    cut: tuple[int, int] | None = None,
    choose: bool = False,
    damping: int = 0,
    messages: Messages | None = None,
) -> KernelJob:
    """Hierarchical BP-M: the launches ``construct``, ``coarse``, ``copy`` and ``fine``. The outputs
    are the fine level's messages.

    Parameters:
        coarse_iterations, iterations: of BP-M on the two levels, 0 or more.
        smoothness: of the coarse problem (:func:`microkernels.bp.golden.coarse_problem`).
        messages: initial messages of the coarse problem; None: all 0.
        engines: as for :func:`bp_job`; a single vault is a chip's.
        problem, form, cut, choose, damping: as for :func:`bp_job`.

    Raises:
        KernelError: as for :func:`bp_job` and :func:`microkernels.bp.golden.coarse_problem`.
    """
    CHECK.at_least("coarse_iterations", coarse_iterations, 0)
    CHECK.at_least("iterations", iterations, 0)
    if smoothness is not None:
        CHECK.kind("smoothness", smoothness, np.ndarray)
    both = _Levels(
        problem,
        smoothness,
        engines=replace(engines, on_chip=True),
        form=form,
        cut=cut,
        damping=damping,
    )
    job = both.job(
        "hierarchical belief propagation",
        (
            both.layout.launch("construct"),
            both.level("coarse", both.coarse.updates * coarse_iterations),
            both.layout.launch("copy"),
            both.level("fine", problem.updates * iterations),
        ),
        Golden(
            lambda: iterate_levels(
                problem, coarse_iterations, iterations, smoothness, damping, messages
            ),
            lazy=True,
        ),
        coarse_iterations=coarse_iterations,
        iterations=iterations,
        messages=messages,
    )
    return with_labels(job, problem, both.layout.fine) if choose else job


@CHECK.arguments
def bp_between_job(
    problem: BpProblem,
    messages: Messages,
    *,
    engines: ChipEngines,
) -> KernelJob:
    """Construct and copy on the first vault of a ring; they need no other vault. The outputs are
    all bytes of its tiles on both levels.

    Parameters:
        problem: with even sides, so that all blocks are full.
        messages: of the coarse level, which copy starts from.
        engines: of all vaults, which are a chip's.

    Raises:
        KernelError: an odd side, messages of the wrong shape, or as :func:`bp_job`.
    """
    if problem.width % BLOCK or problem.height % BLOCK:
        raise KernelError(f"{problem.width} x {problem.height} pixels: both sides must be even")
    both = _Levels(problem, engines=replace(engines, on_chip=True))
    begun = copied(problem, messages)
    after = [
        (address, data)
        for address, data in (
            *contents(both.coarse, both.layout.coarse, iterations=0, messages=messages),
            *contents(problem, both.layout.fine, iterations=0, messages=begun),
        )
        if engines.vault_of(address) == 0
    ]

    def joined(pieces: list[bytes]) -> Elements:
        return np.frombuffer(b"".join(pieces), np.uint8)

    job = both.job(
        "construct and copy",
        (both.layout.launch("construct"), both.layout.launch("copy")),
        Golden(lambda: joined([data for _, data in after])),
        lambda memory: joined([memory.read(at, len(data)) for at, data in after]),
        messages=messages,
    )
    return replace(
        job, prepare=lambda memory: job.prepare(_FirstVault(memory, engines)), ring=ONE_ENGINE
    )


class _FirstVault:
    """The first vault of a chip's memory; writes to the rest are ignored."""

    def __init__(self, memory: Writable, engines: ChipEngines) -> None:
        self._memory = memory
        self._engines = engines

    def write(self, address: int, data: bytes) -> None:
        if self._engines.vault_of(address) == 0:
            self._memory.write(address, data)


@CHECK.arguments
def bp_construct_job(problem: BpProblem) -> KernelJob:
    """The data costs of the coarse problem, ``[y, x, label]``, from those of ``problem``.

    Raises:
        KernelError: a problem that the kernel can't solve.
    """
    both = _Levels(problem)
    return both.job(
        "coarse data costs",
        (both.layout.launch("construct"),),
        Golden(lambda: coarse_problem(problem).data_costs),
        lambda memory: unpack(both.layout.coarse, memory, ("costs",))[0],
        operations=(BLOCK * BLOCK - 1) * both.coarse.data_costs.size,
    )


@CHECK.arguments
def bp_copy_job(problem: BpProblem) -> KernelJob:
    """The initial messages of ``problem``, copied from those of the coarse problem after an
    iteration.

    Raises:
        KernelError: a problem that the kernel can't solve.
    """
    both = _Levels(problem)
    messages = iterate(both.coarse, 1)
    return both.job(
        "messages of the fine level",
        (both.layout.launch("copy"),),
        Golden(lambda: copied(problem, messages)),
        coarse=both.coarse,
        messages=messages,
    )
