"""Hierarchical BP-M: golden model, construct and copy on the simulator, all phases on a chip."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microkernels.bp.contents import unpack
from microkernels.bp.golden import (
    BLOCK,
    coarse_problem,
    coarse_smoothness,
    copied,
    energy,
    iterate,
    iterate_levels,
    labels,
)
from microkernels.bp.jobs import bp_levels_job
from microkernels.bp.kernel import MatrixPlan
from microkernels.bp.layout import BpLayout
from microkernels.bp.levels import LevelsLayout, between_program, coarse_base
from microkernels.bp.problem import BpProblem
from microkernels.common.errors import KernelError
from microkernels.data.stereo import motorcycle
from microkernels.runtime.ring import ChipEngines
from tests.microkernels.bp.addresses import address
from tests.microkernels.runtime.schedules import in_bursts, launch_all, loaded

ADDRESS_BITS = 20
TINY = 1 - np.eye(3, dtype=int)


def linear(count: int, weight: int, most: int) -> np.ndarray:
    difference = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    return weight * np.minimum(difference, most)


def problem_of(seed: int, width: int, height: int, count: int, bits: int = 16) -> BpProblem:
    rng = np.random.default_rng(seed)
    # Sums of four saturate now and then at 8 and at 16 bits.
    limit = (1 << (bits - 1)) // 3
    return BpProblem(rng.integers(-limit, limit, (height, width, count)), linear(count, 5, 3), bits)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    grid=st.sampled_from([(1, 1, 1), (1, 1, 4), (2, 1, 2), (2, 2, 1), (3, 1, 1)]),
    seed=st.integers(0, 1 << 20),
    width=st.integers(1, 11),
    height=st.integers(1, 11),
    count=st.sampled_from([3, 8, 16]),
    bits=st.sampled_from([8, 16, 32]),
    iterations=st.integers(0, 1),
    cut=st.none() | st.tuples(st.integers(1, 4), st.integers(1, 4)),
)
def test_all_phases_equal_the_golden_model(
    grid: tuple[int, int, int],
    seed: int,
    width: int,
    height: int,
    count: int,
    bits: int,
    iterations: int,
    cut: tuple[int, int] | None,
) -> None:
    columns, rows, pes = grid
    problem = problem_of(seed, width, height, count, bits)
    engines = ChipEngines(columns=columns, rows=rows, address_bits=ADDRESS_BITS, pes=pes)
    job = bp_levels_job(problem, 1, iterations, engines=engines, cut=cut)
    expected = coarse_problem(problem)
    plan = MatrixPlan(labels=count, bits=bits)
    fine = BpLayout.of(problem, plan, engines=engines, block=BLOCK, cut=cut)
    grid = replace(fine.grid, width=expected.width, height=expected.height, block=1)
    level = replace(fine, grid=grid, base=coarse_base(fine), symmetric=expected.symmetric)
    layout = LevelsLayout(fine=fine, coarse=level)
    with loaded(job) as memory:
        launches = launch_all(job, memory, in_bursts(seed, 200), seed)
        messages = job.outputs(memory)
        coarse = unpack(layout.coarse, memory)
        unit = problem.bits // 8
        for y, x in np.ndindex(expected.height, expected.width):
            place = address(layout.coarse, "costs", x, y)
            costs = np.frombuffer(memory.read(place, count * unit), f"<i{unit}")
            assert (costs == expected.data_costs[y, x]).all()
    assert (coarse == iterate(expected, 1)).all()
    assert not job.differing(messages)
    # Construct and copy touch the own vault only.
    assert set(launches[0].traffic) | set(launches[2].traffic) <= {0}


@pytest.mark.parametrize(("count", "bits"), [(1, 8), (5, 16), (34, 16), (20, 32)])
def test_construct_and_copy_at_any_vector_length(count: int, bits: int) -> None:
    """Without fine iterations the messages are the coarse ones, copied."""
    problem = problem_of(count, 7, 6, count, bits)
    job = bp_levels_job(problem, 1, 0, engines=ChipEngines(address_bits=ADDRESS_BITS, pes=2))
    with loaded(job) as memory:
        launch_all(job, memory, in_bursts(0, 200))
        messages = job.outputs(memory)
    coarse = iterate(coarse_problem(problem), 1)
    assert (messages == copied(problem, coarse)).all()
    assert coarse.any() or count == 1


def test_costs_of_blocks_are_added_and_saturate() -> None:
    costs = np.array([[[100, 1], [27, 2], [5, 3]], [[1, 4], [-120, 5], [6, 6]], [[7, 7]] * 3][:2])
    problem = BpProblem(costs, TINY[:2, :2], bits=8)
    # 100 + 27 saturates at nothing yet; 127 + (1 - 120) does not either; the last block is half.
    assert coarse_problem(problem).data_costs.tolist() == [[[8, 12], [11, 9]]]
    high = BpProblem(np.full((2, 2, 1), 100), np.zeros((1, 1), int), bits=8)
    assert coarse_problem(high).data_costs.tolist() == [[[127]]]


def test_the_coarse_smoothness_is_that_of_half_the_difference() -> None:
    # 2 V(d / 2), V truncated at 3 labels: it is truncated at 6.
    assert (coarse_smoothness(linear(9, 4, 3)) == linear(9, 4, 6)).all()
    steps = np.subtract.outer(np.arange(4), np.arange(4)) ** 2
    assert coarse_smoothness(steps)[3].tolist() == [5, 2, 1, 0]
    assert coarse_smoothness(steps)[0].tolist() == [0, 1, 2, 5]


def test_messages_are_copied_to_all_pixels_of_a_block() -> None:
    problem = problem_of(0, 5, 3, 2)
    coarse = np.arange(4 * 2 * 3 * 2).reshape(4, 2, 3, 2)
    fine = copied(problem, coarse)
    for y, x in np.ndindex(3, 5):
        assert (fine[:, y, x] == coarse[:, y // 2, x // 2]).all()


def test_five_iterations_on_two_levels_reach_the_energy_of_eight_on_one() -> None:
    """Thesis 7.2.1, on a stereo pair; the energies are in the guide's figure."""
    problem = motorcycle(246, 166, 16).problem
    flat = energy(problem, labels(problem, iterate(problem, 8)))
    levels = energy(problem, labels(problem, iterate_levels(problem, 5, 5)))
    assert levels <= flat


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"iterations": -1}, "iterations must be at least 0, not -1"),
        ({"coarse_iterations": -1}, "coarse_iterations must be at least 0, not -1"),
        ({"smoothness": np.zeros((2, 2), int)}, "must have the shape (16, 16)"),
        (
            {"engines": ChipEngines(pes=1, scratchpad_bytes=64)},
            "do not fit 8 vectors in a scratchpad of 64 bytes; 1 to 4 fit",
        ),
        ({"engines": ChipEngines(pes=1, address_bits=16)}, "the vault has 65536 bytes"),
        ({"problem": problem_of(0, 16385, 1, 1), "smoothness": TINY[:1, :1]}, "take at most 8191"),
    ],
)
def test_bad_input_is_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "problem": problem_of(0, 9, 9, 16),
        "iterations": 1,
        "coarse_iterations": 1,
    }
    with pytest.raises(KernelError) as error:
        bp_levels_job(**given | change)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_vectors_that_do_not_fit_are_refused() -> None:
    with pytest.raises(KernelError, match="a scratchpad of 256 bytes; 1 to 16 fit"):
        between_program("copy", 17, scratchpad_bytes=256)
    assert between_program("copy", 16, scratchpad_bytes=256).words


def test_a_smoothness_that_can_not_be_halved_is_refused() -> None:
    with pytest.raises(KernelError, match="do not depend only on the labels"):
        coarse_smoothness(np.arange(9).reshape(3, 3))
