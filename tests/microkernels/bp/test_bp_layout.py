"""The tile's addresses: what they promise, and that packing and unpacking agree."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.image import DramImage
from microkernels.bp.contents import pack, unpack
from microkernels.bp.kernel import MatrixPlan
from microkernels.bp.layout import BpLayout
from microkernels.bp.problem import BpProblem, MessageDirection
from microkernels.bp.record import BANKS
from microkernels.bp.tiles import TileGrid
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import ROW_BYTES
from microkernels.runtime.ring import ChipEngines
from tests.microkernels.bp.addresses import address


def grid(width: int, height: int) -> TileGrid:
    return TileGrid(width=width, height=height, ring=ChipEngines())


SHAPES = st.builds(
    BpLayout,
    grid=st.builds(grid, st.integers(1, 70), st.integers(1, 20)),
    plan=st.builds(MatrixPlan, labels=st.integers(1, 40), bits=st.sampled_from([8, 16, 32])),
    base=st.sampled_from([0, 4096, 1 << 20]),
)


def vectors(layout: BpLayout) -> list[int]:
    places = []
    for y in range(layout.grid.height):
        for x in range(layout.grid.width):
            places.append(address(layout, "costs", x, y))
            places += [address(layout, direction, x, y) for direction in MessageDirection]
    return places


def bank(address: int) -> int:
    return address // ROW_BYTES % BANKS


@settings(max_examples=40, deadline=None)
@given(SHAPES)
def test_nothing_overlaps_and_short_vectors_stay_within_a_column(layout: BpLayout) -> None:
    size = layout.plan.labels * layout.plan.size
    places = sorted(vectors(layout))
    assert all(b - a >= size for a, b in pairwise(places))
    assert places[0] >= layout.tile >= layout.transposed + layout.plan.labels * size
    assert places[-1] + size <= layout.end
    assert all(place % 8 == 0 for place in places)
    if size <= 32:
        assert all(place // 32 == (place + size - 1) // 32 for place in places)


@settings(max_examples=20, deadline=None)
@given(SHAPES)
def test_what_a_sweep_loads_is_contiguous(layout: BpLayout) -> None:
    v = layout.vector_bytes
    tile = layout.grid.tile(0, 0)
    for direction in MessageDirection:
        place = layout.sweep(direction, tile)
        loaded, own, step, updates = (
            place.load_start,
            place.first_message,
            place.pixel_pitch,
            place.updates,
        )
        x = layout.grid.width - 1 if direction is MessageDirection.LEFT else 0
        y = layout.grid.height - 1 if direction is MessageDirection.UP else 0
        cost = address(layout, "costs", x, y)
        if direction.horizontal:
            expected = [
                address(layout, MessageDirection.UP, x, y),
                address(layout, MessageDirection.DOWN, x, y),
                cost,
            ]
            assert (place.line_pitch, updates) == (layout.pitch, layout.grid.width - 1)
            lines = layout.grid.height
        else:
            expected = [
                cost,
                address(layout, MessageDirection.LEFT, x, y),
                address(layout, MessageDirection.RIGHT, x, y),
            ]
            assert (place.line_pitch, updates) == (layout.record_bytes, layout.grid.height - 1)
            lines = layout.grid.width
        assert [loaded, loaded + v, loaded + 2 * v] == expected
        assert place.last_pitch == step
        assert own == address(layout, direction, x, y)
        last = own + updates * step + (lines - 1) * place.line_pitch
        assert layout.tile <= last < layout.end


def test_an_update_of_16_labels_opens_one_row_and_neighbouring_lines_use_other_banks() -> None:
    layout = BpLayout(grid=grid(64, 48), plan=MatrixPlan(labels=16))
    assert layout.record_bytes == ROW_BYTES
    assert layout.tile % ROW_BYTES == 0
    for x, y in ((0, 0), (17, 5), (40, 40)):
        rows = {bank(address(layout, "costs", x, y + n)) for n in range(8)}
        columns = {bank(address(layout, "costs", x + n, y)) for n in range(8)}
        assert len(rows) == len(columns) == 8


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from([8, 16, 32]),
    st.integers(0, 1 << 30),
)
def test_unpack_returns_what_was_packed(w: int, h: int, labels: int, bits: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = BpProblem(
        rng.integers(-100, 100, (h, w, labels)), rng.integers(-100, 100, (labels, labels)), bits
    )
    messages = rng.integers(-100, 100, (4, h, w, labels)).astype(f"<i{bits // 8}")
    layout = BpLayout.of(problem, MatrixPlan.of(problem), base=8192)
    memory = DramImage(layout.end)
    pack(problem, layout, memory, iterations=3, messages=messages)
    assert (unpack(layout, memory) == messages).all()
    size = bits // 8
    x, y = w - 1, h - 1
    costs = np.frombuffer(memory.read(address(layout, "costs", x, y), labels * size), f"<i{size}")
    assert (costs == problem.data_costs[y, x]).all()
    place = address(layout, MessageDirection.DOWN, x, y)
    down = np.frombuffer(memory.read(place, labels * size), f"<i{size}")
    assert (down == messages[MessageDirection.DOWN, y, x]).all()
    transposed = memory.read(layout.transposed, labels * labels * size)
    assert transposed == np.ascontiguousarray(problem.smoothness.T).tobytes()
    assert np.frombuffer(memory.read(layout.parameters, 8), "<i8")[0] == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BpLayout(grid=grid(0, 1), plan=MatrixPlan(labels=2)), "width must be at least 1"),
        (
            lambda: BpLayout(grid=grid(1, 1), plan=MatrixPlan(labels=2), base=100),
            "multiple of 4096",
        ),
        (lambda: BpLayout(grid=grid(1, 1), plan=MatrixPlan(labels=2, bits=64)), "8, 16, 32"),
        (lambda: BpLayout(grid=grid(1, 1), plan=MatrixPlan(labels=0)), "labels"),
        (
            lambda: BpLayout(grid=grid(1, 1), plan=MatrixPlan(labels=2)).parameter_block(-1),
            "iterations",
        ),
        (
            lambda: pack(
                BpProblem(np.zeros((2, 2, 2), int), np.zeros((2, 2), int)),
                BpLayout(grid=grid(3, 2), plan=MatrixPlan(labels=2)),
                DramImage(1 << 16),
                iterations=1,
            ),
            "the problem needs",
        ),
        (
            lambda: pack(
                BpProblem(np.zeros((2, 2, 2), int), np.array([[0, 1], [2, 0]])),
                BpLayout(grid=grid(2, 2), plan=MatrixPlan(labels=2), symmetric=True),
                DramImage(1 << 16),
                iterations=1,
            ),
            "symmetric smoothness costs",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(make, message: str) -> None:
    with pytest.raises(KernelError) as error:
        make()
    assert message in str(error.value)
    assert "\n" not in str(error.value)
