"""The kernel on blocks of 2 x 2 pixels against the golden model, and their layout."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from isa.image import DramImage
from microkernels.bp.choice import plan_of
from microkernels.bp.contents import pack, unpack
from microkernels.bp.golden import iterate, labels
from microkernels.bp.jobs import bp_job, bp_levels_job
from microkernels.bp.labels import split_outputs
from microkernels.bp.layout import BpLayout
from microkernels.bp.problem import BpProblem, MessageDirection, check_messages
from microkernels.bp.record import BLOCK_VECTORS, block_fit
from microkernels.bp.smoothness import smoothness_costs
from microkernels.common.errors import KernelError
from microkernels.runtime.job import execute, simulate
from microkernels.runtime.ring import ChipEngines
from tests.microkernels.bp.addresses import address

COLUMN = 32


def problem(width: int, height: int, count: int = 16, name: str = "linear:2", most: int = 25):
    rng = np.random.default_rng([width, height, count])
    costs = rng.integers(0, most, (height, width, count), endpoint=True)
    return BpProblem(costs, smoothness_costs(count, name, 1 + most // 25), 8)


def layout(one: BpProblem, **options) -> BpLayout:
    plan = plan_of(one, "shifts", blocks=True)
    assert plan.in_blocks
    return BpLayout.of(one, plan, **options)


def test_tiles_are_cut_between_blocks() -> None:
    blocks = layout(problem(4, 4))
    with pytest.raises(KernelError, match="between blocks of 2 pixels"):
        replace(blocks, grid=replace(blocks.grid, block=1))


@given(
    width=st.integers(1, 6),
    height=st.integers(1, 6),
    count=st.integers(9, 16),
    name=st.sampled_from(["potts", "linear:2", "linear:3", "quadratic:7"]),
    pes=st.integers(1, 4),
    most=st.sampled_from([25, 127]),
    seed=st.integers(0, 9),
)
@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_messages_equal_those_of_the_matrix(width, height, count, name, pes, most, seed) -> None:
    one = problem(2 * width, 2 * height, count, name, most)
    outputs, hazards = simulate(
        bp_job(one, 2, engines=ChipEngines(pes=pes), form="shifts"), seed=seed
    )
    assert (outputs == iterate(one, 2)).all()
    assert not hazards


def test_cut_pairs_and_lone_lines_of_blocks() -> None:
    job = bp_job(problem(14, 22), 1, engines=ChipEngines(pes=4), form="shifts")
    outputs, hazards = simulate(job)
    assert not job.differing(outputs)
    assert not hazards


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (2, 2), (3, 1)])
def test_messages_and_labels_of_vaults(columns: int, rows: int) -> None:
    engines = ChipEngines(columns=columns, rows=rows, address_bits=22, pes=3)
    one = problem(22, 14)
    job = bp_job(one, 2, engines=engines, form="shifts", choose=True)
    run = execute(job)
    assert run.match
    messages, chosen = split_outputs(one, run.outputs)
    assert (messages == iterate(one, 2)).all()
    assert (chosen == labels(one, messages)).all()


def test_where_blocks_are_used() -> None:
    assert block_fit(4, 2, 16, 8)
    for size in ((5, 2, 16, 8), (4, 3, 16, 8), (4, 2, 17, 8), (4, 2, 9, 16)):
        assert not block_fit(*size)
    one = problem(4, 4)
    assert not plan_of(one, "shifts").in_blocks
    # The ring needs half of the thesis's scratchpad, behind the other half.
    assert not plan_of(
        one, "shifts", ChipEngines(pes=1, scratchpad_bytes=2048), blocks=True
    ).in_blocks
    # Programs between levels know pixels.
    assert execute(bp_levels_job(one, 1, 1, form="shifts")).match


def test_nothing_overlaps_and_memory_keeps_messages() -> None:
    one = problem(12, 10, 13)
    held = layout(one, engines=ChipEngines(columns=2, rows=1, address_bits=22, pes=2))
    starts = {address(held, "costs", x, y) for x in range(12) for y in range(10)}
    for direction in MessageDirection:
        starts |= {address(held, direction, x, y) for x in range(12) for y in range(10)}
    assert len(starts) == 5 * 120
    assert all(address % 16 == 0 for address in starts)
    rng = np.random.default_rng(1)
    messages = check_messages(one, rng.integers(-9, 9, one.no_messages().shape))
    with DramImage(2 << 22) as memory:
        pack(one, held, memory, iterations=0, messages=messages)
        assert (unpack(held, memory) == messages).all()
        for direction in MessageDirection:
            vector = np.frombuffer(memory.read(address(held, direction, 7, 4), 13), np.int8)
            assert (vector == messages[direction, 4, 7]).all()
        vector = np.frombuffer(memory.read(address(held, "costs", 7, 4), 13), np.int8)
        assert (vector == one.data_costs[4, 7]).all()


@pytest.mark.parametrize("direction", MessageDirection)
def test_messages_made_at_a_time_share_a_column(direction: MessageDirection) -> None:
    held = layout(problem(8, 8))
    for x, y in ((2, 4), (3, 4), (2, 5)):
        first = address(held, direction, x, y)
        other = (x, y ^ 1) if direction.horizontal else (x ^ 1, y)
        assert first // COLUMN == address(held, direction, *other) // COLUMN


def test_an_update_moves_two_columns() -> None:
    """Three vectors are read and one is written; of an image of pixels it would be three."""
    held = layout(problem(64, 64))
    for direction in MessageDirection:
        columns = held.sweep_bytes(direction) / COLUMN
        assert columns == pytest.approx(2 * 64 * 64, rel=0.01)
    assert held.record_bytes == BLOCK_VECTORS * 16
