"""TRW-S as a job of an engine or a vault."""

from functools import lru_cache, partial

from isa.program import Program
from isa.run import Launch
from microkernels.common.builder import DEFAULT_SCRATCHPAD, INSTRUCTION_WORDS
from microkernels.common.errors import CHECK, KernelError
from microkernels.runtime.job import Golden, KernelJob

from ..problem import BpProblem, Messages
from ..shifts.choice import Form
from ..shifts.transform import Transform, transform_of
from .golden import TrwsField, check_costs
from .kernel import trws_builder
from .layout import TrwsLayout, block_of
from .order import TrwsShape

#: Maximum cycles of a launch, and per message that the launch updates.
_START_CYCLES = 1_000_000
_UPDATE_CYCLES = 20_000


@CHECK.arguments
def trws_job(
    problem: BpProblem,
    iterations: int = 1,
    *,
    pes: int = 1,
    messages: Messages | None = None,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
    form: Form = "auto",
    instruction_words: int = INSTRUCTION_WORDS,
    block: int | None = None,
) -> KernelJob:
    """Run ``iterations`` (0 or more) of TRW-S, forwards and backwards; the outputs are all
    messages, in fixed point (:data:`microkernels.bp.trws.golden.FRACTION`).

    Another launch continues with the same number of iterations; nothing needs rewriting.

    Parameters:
        problem: the problem to solve, of any size.
        pes: engines of the vault, which share the rows.
        messages: initial messages, in fixed point; None: all 0.
        scratchpad_bytes, instruction_words: per engine.
        form: how new messages are computed; it does not change their values.
        block: pixels after which an engine lets the engine with the next row continue, at least 1;
            None: about as many as take the least time.

    Raises:
        KernelError: labels that don't fit the scratchpad, a program that does not fit the engine,
            costs whose sums don't fit an element, or negative iterations.
    """
    CHECK.at_least("iterations", iterations, 0)
    CHECK.at_least("pes", pes, 1)
    if block is None:
        block = block_of(problem.width, problem.height, pes)
    CHECK.at_least("block", block, 1)
    check_costs(problem)
    transform = trws_transform(problem, form, scratchpad_bytes, instruction_words)
    shape = _shape(problem, transform, scratchpad_bytes)
    assert shape.pad
    layout = TrwsLayout(problem=problem, shape=shape, sharers=pes, block=block)
    program = _program(shape, block, instruction_words)
    updates = problem.updates * iterations
    cycles = _START_CYCLES + updates * _UPDATE_CYCLES
    launch = Launch(program=program, parameters=layout.parameters, max_cycles=cycles)

    return KernelJob(
        name="TRW-S",
        launches=(launch,),
        prepare=lambda memory: layout.pack(memory, iterations, messages),
        outputs=layout.unpack,
        golden=Golden(partial(_golden, problem, iterations, messages), lazy=True),
        end=layout.end,
        declared=layout.declared,
        pes=pes,
        # Two and a half sums of vectors, a difference before and one after the minimum, plus a sum
        # and a minimum for each pair of labels.
        operations=updates * (9 * problem.labels // 2 + 2 * problem.labels**2),
        updates=updates,
    )


def _golden(problem: BpProblem, iterations: int, messages: Messages | None) -> Messages:
    field = TrwsField(problem, messages)
    for _ in range(iterations):
        field.iterate()
    return field.messages


def trws_transform(
    problem: BpProblem,
    form: Form,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
    instruction_words: int = INSTRUCTION_WORDS,
) -> Transform | None:
    """The shifts by which a kernel computes messages; None if it uses a matrix.

    Raises:
        KernelError: ``shifts`` can't be used.
    """
    transform = transform_of(problem.smoothness)
    if form == "matrix":
        return None
    if transform is None:
        if form == "auto":
            return None
        raise KernelError(
            "messages by shifts need smoothness costs that depend on the labels' difference, "
            "start at 0 and are convex up to an optional plateau"
        )
    if form == "auto" and problem.weights is None:
        cycles = []
        for candidate in (transform, None):
            shape = _shape(problem, candidate, scratchpad_bytes)
            try:
                _program(shape, 1, instruction_words)
            except KernelError:
                continue
            cycles.append((shape.order.cycles, candidate is None))
        return None if cycles and min(cycles)[1] else transform
    return transform


def _shape(problem: BpProblem, transform: Transform | None, scratchpad_bytes: int) -> TrwsShape:
    return TrwsShape(
        transform=transform,
        labels=problem.labels,
        bits=problem.bits,
        weighted=problem.weights is not None,
        scratchpad_bytes=scratchpad_bytes,
    )


@lru_cache(maxsize=8)
def _program(shape: TrwsShape, block: int, instruction_words: int) -> Program:
    name = f"{shape.labels}x{shape.bits}"
    program = trws_builder(shape, block).program(f"trws_{name}.s")
    if len(program.words) > instruction_words:
        raise KernelError(
            f"the program of TRW-S for {shape.labels} labels of {shape.bits} bits has "
            f"{len(program.words)} words; an engine has room for {instruction_words}"
        )
    return program
