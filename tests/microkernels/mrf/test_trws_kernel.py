"""The kernel of TRW-S against the golden model, which visits diagonals."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from isa.image import DramImage
from microkernels.bp.golden import coarse_problem, copied
from microkernels.bp.problem import BpProblem, EdgeWeights
from microkernels.bp.shifts.transform import transform_of
from microkernels.bp.smoothness import smoothness_costs
from microkernels.bp.trws.golden import TrwsField
from microkernels.bp.trws.jobs import trws_job, trws_levels_job
from microkernels.bp.trws.kernel import trws_builder
from microkernels.bp.trws.order import TrwsPlan
from microkernels.common.errors import KernelError
from microkernels.common.memory import Writable
from microkernels.runtime.interleave import Schedule, Together
from microkernels.runtime.job import execute, simulate
from microkernels.runtime.ring import ChipEngines
from tests.microkernels.runtime.schedules import in_bursts, one_behind, right

NAMES = ("potts", "linear:2", "linear:4", "quadratic:7", "linear")


def problem(width: int, height: int, labels: int, name: str = "linear:2", bits=16) -> BpProblem:
    rng = np.random.default_rng(width + 100 * height)
    costs = rng.integers(-20, 60, (height, width, labels), endpoint=True)
    return BpProblem(costs, smoothness_costs(labels, name, 3), bits)


@given(
    width=st.integers(1, 11),
    height=st.integers(1, 9),
    labels=st.integers(2, 20),
    bits=st.sampled_from([16, 32]),
    name=st.sampled_from(NAMES),
    pes=st.integers(1, 4),
    block=st.integers(1, 5),
    form=st.sampled_from(["matrix", "shifts"]),
    seed=st.integers(0, 9),
)
@settings(max_examples=5, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_messages_equal_the_golden_model(
    width, height, labels, bits, name, pes, block, form, seed
) -> None:
    one = problem(width, height, labels, name, bits)
    outputs, hazards = simulate(
        trws_job(one, 2, engines=ChipEngines(pes=pes), block=block, form=form), seed=seed
    )
    field = TrwsField(one)
    field.iterate()
    field.iterate()
    assert (outputs == field.messages).all()
    assert not hazards


@given(
    width=st.integers(1, 13),
    height=st.integers(1, 11),
    labels=st.integers(2, 17),
    bits=st.sampled_from([16, 32]),
    name=st.sampled_from(NAMES),
    pes=st.integers(1, 4),
    weighted=st.booleans(),
    seed=st.integers(0, 9),
)
@settings(max_examples=6, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_two_levels_equal_the_golden_model(
    width, height, labels, bits, name, pes, weighted, seed
) -> None:
    """Memory is not 0 before, and engines sum all costs and copy all messages."""
    one = problem(width, height, labels, name, bits)
    if weighted:
        rng = np.random.default_rng(seed)
        right, down = (
            rng.integers(0, 4, shape) for shape in ((height, width - 1), (height - 1, width))
        )
        one = replace(one, weights=EdgeWeights(right, down))
    job = trws_levels_job(one, 2, 1, engines=ChipEngines(pes=pes))
    noise = np.random.default_rng(seed).integers(0, 256, job.end, np.uint8).tobytes()

    def prepare(memory: Writable) -> None:
        memory.write(0, noise)
        job.prepare(memory)

    outputs, hazards = simulate(replace(job, prepare=prepare), seed=seed)
    small = coarse_problem(one)
    coarse = TrwsField(small)
    coarse.iterate()
    coarse.iterate()
    field = TrwsField(one, copied(one, coarse.messages))
    field.iterate()
    assert (outputs == field.messages).all()
    assert not hazards


def test_costs_that_are_not_symmetric() -> None:
    rng = np.random.default_rng(3)
    one = BpProblem(rng.integers(0, 40, (5, 6, 7)), rng.integers(0, 20, (7, 7)))
    outputs, hazards = simulate(trws_job(one, 2, engines=ChipEngines(pes=2), block=3))
    assert (outputs == trws_job(one, 2).expected).all()
    assert not hazards


@pytest.mark.parametrize("labels", [60, 64])
def test_many_labels(labels: int) -> None:
    job = trws_job(problem(9, 5, labels), 1)
    outputs, hazards = simulate(job)
    assert not job.differing(outputs)
    assert not hazards


@pytest.mark.parametrize("schedule", [in_bursts(3, 300), one_behind(0, 20), one_behind(2, 20)])
def test_engines_wait_for_the_row_before(schedule: Schedule) -> None:
    """Whatever their speed."""
    assert right(trws_job(problem(8, 6, 3), 1, engines=ChipEngines(pes=3), block=3), schedule)


def test_a_further_launch_goes_on() -> None:
    one = problem(9, 7, 6)
    job = trws_job(one, 1, engines=ChipEngines(pes=2), block=4)
    with DramImage(job.end) as memory:
        job.prepare(memory)
        for _ in range(2):
            together = Together(job.program, memory, members=2, parameters=job.parameters)
            together.run(together.in_step)
        assert (job.outputs(memory) == trws_job(one, 2).expected).all()


def test_it_begins_with_given_messages() -> None:
    one = problem(6, 5, 4)
    begun = trws_job(one, 1).expected
    job = trws_job(one, 1, messages=begun)
    assert execute(job).match
    assert (job.expected == trws_job(one, 2).expected).all()


def test_the_loop_has_no_drain_and_few_cycles() -> None:
    transform = transform_of(smoothness_costs(16, "linear:2", 1))
    shape = TrwsPlan(transform=transform, labels=16, bits=16)
    text = trws_builder(shape, 32).text()
    assert "v.drain" not in text[text.index("pixel:") : text.index("bne updates")]
    assert TrwsPlan(transform=transform, labels=16, bits=16).cycles <= 2 * 50
    assert TrwsPlan(transform=None, labels=16, bits=16).cycles <= 2 * 96


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(KernelError, match="TRW-S with 128 labels of 16 bits does not fit"):
        trws_job(problem(3, 3, 128))
    with pytest.raises(KernelError, match="an engine has room for 100"):
        trws_job(problem(3, 3, 16), engines=ChipEngines(pes=1, instruction_words=100))
    with pytest.raises(KernelError, match="TRW-S runs on one vault, not on 2"):
        trws_job(problem(3, 3, 4), engines=ChipEngines(columns=2))
    with pytest.raises(KernelError, match="8 bits with 4 fraction bits allow 7"):
        trws_job(problem(3, 3, 4, bits=8))
    with pytest.raises(KernelError, match="convex"):
        trws_job(BpProblem(np.zeros((2, 2, 2), int), np.array([[0, 1], [2, 0]])), form="shifts")
    with pytest.raises(KernelError, match="block"):
        trws_job(problem(3, 3, 4), block=0)
