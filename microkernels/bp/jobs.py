"""Belief propagation and the two steps between its levels as jobs of one processing engine."""

import numpy as np

from isa.image import DramImage
from isa.program import Program
from microkernels.common.errors import CHECK
from microkernels.common.fixed_point import Elements
from microkernels.common.saturation import count_saturation
from microkernels.nn.job import NnJob

from .contents import pack, unpack
from .golden import iterate
from .kernel import bp_program
from .layout import BpLayout
from .levels import coarse_problem, copied
from .levels_kernel import construct_program, copy_program
from .levels_layout import LevelsLayout
from .problem import BpProblem

__all__ = ["bp_construct_job", "bp_copy_job", "bp_job"]

#: Pixels of the fine level for one of the coarse level.
_BLOCK_PIXELS = 4


@CHECK.arguments
def bp_job(problem: BpProblem, iterations: int = 1) -> NnJob:
    """So many BP-M iterations (at least 1), from messages of 0; the outputs are all messages.

    Raises:
        KernelError: a problem that the kernel can't solve.
    """
    layout = BpLayout.of(problem)
    labels = problem.labels
    # Three sums of vectors, a sum and a minimum for each pair of labels, and a subtraction.
    update = 3 * labels + 2 * labels * labels + labels

    def prepare(memory: DramImage) -> None:
        pack(problem, layout, memory, iterations=iterations)

    with count_saturation() as clipped:
        expected = iterate(problem, iterations)
    return NnJob(
        name="belief propagation",
        program=bp_program(labels, problem.bits),
        parameters=layout.parameters,
        sharers=1,
        end=layout.end,
        prepare=prepare,
        outputs=lambda memory: unpack(layout, memory),
        expected=expected,
        operations=update * problem.updates * iterations,
        saturated=clipped.values,
    )


def _unmade(problem: BpProblem) -> BpProblem:
    """The coarse problem before construct has run: no data costs."""
    coarse = coarse_problem(problem)
    return BpProblem(np.zeros_like(coarse.data_costs), coarse.smoothness, coarse.bits)


@CHECK.arguments
def bp_construct_job(problem: BpProblem) -> NnJob:
    """The data costs of the coarse problem, ``[y, x, label]``, from those of ``problem``.

    Raises:
        KernelError: a problem that the kernel can't solve.
    """
    layout = LevelsLayout(problem=problem)
    coarse = layout.coarse
    with count_saturation() as clipped:
        expected = coarse_problem(problem).data_costs
    length = problem.labels * expected.itemsize

    def prepare(memory: DramImage) -> None:
        pack(problem, layout.fine, memory, iterations=0)
        pack(_unmade(problem), coarse, memory, iterations=0)
        for address, data in layout.parameters(0):
            memory.write(address, data)

    def outputs(memory: DramImage) -> Elements:
        found = np.empty_like(expected)
        for y, x in np.ndindex(expected.shape[:2]):
            data = memory.read(coarse.data_cost(x, y), length)
            found[y, x] = np.frombuffer(data, expected.dtype)
        return found

    return NnJob(
        name="coarse data costs",
        program=construct_program(problem.labels, problem.bits),
        parameters=layout.construct_parameters,
        sharers=1,
        end=coarse.end,
        prepare=prepare,
        outputs=outputs,
        expected=expected,
        operations=(_BLOCK_PIXELS - 1) * expected.size,
        saturated=clipped.values,
    )


@CHECK.arguments
def bp_copy_job(problem: BpProblem, iterations: int = 1) -> NnJob:
    """The messages of ``problem`` that the coarse problem's begin it with, after so many iterations
    there (0 or more).

    Raises:
        KernelError: a problem that the kernel can't solve.
    """
    layout = LevelsLayout(problem=problem)
    coarse = coarse_problem(problem)
    messages = iterate(coarse, iterations)
    program: Program = copy_program(problem.labels, problem.bits)

    def prepare(memory: DramImage) -> None:
        pack(problem, layout.fine, memory, iterations=0)
        pack(coarse, layout.coarse, memory, iterations=0, messages=messages)
        for address, data in layout.parameters(0):
            memory.write(address, data)

    return NnJob(
        name="messages of the fine level",
        program=program,
        parameters=layout.copy_parameters,
        sharers=1,
        end=layout.coarse.end,
        prepare=prepare,
        outputs=lambda memory: unpack(layout.fine, memory),
        expected=copied(problem, messages),
        operations=0,
    )
