"""Sequences of LSTM steps over the vaults of a chip, on simulators, bit by bit."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.sequences import SEQUENCES, pruned, sequence_job
from isa.table import BY_KEY
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements, real_of, to_fixed
from microkernels.networks.lstm_sequence import SequenceLayout, lstm_sequence_job, plan_sequence
from microkernels.nn.lstm_shape import LstmShape, LstmState, LstmWeights, usual_weights
from microkernels.runtime.barrier import FLAG_GROUP, FlagCode
from microkernels.runtime.compiled import execute
from microkernels.runtime.job import KernelJob, simulate
from microkernels.runtime.ring import ChipEngines
from noc.routing import route
from soc.generate.presets import chip_preset
from tests.microkernels.runtime.schedules import in_bursts, right

#: Of an engine with the logistic unit.
ALL = frozenset(BY_KEY)
FRACTION = 11
PROJECTED = LstmShape(inputs=10, cells=24, outputs=12, batch=3)
PLAIN = LstmShape(inputs=20, cells=40, outputs=40, batch=1, projected=False)


def engines(columns: int = 1, rows: int = 1, pes: int = 2, address_bits: int = 20) -> ChipEngines:
    return ChipEngines(columns=columns, rows=rows, address_bits=address_bits, pes=pes)


def layer(shape: LstmShape, seed: int, fraction: int) -> LstmWeights:
    rng = np.random.default_rng(seed)

    def draw(scale: float, *size: int) -> Elements:
        return to_fixed(rng.normal(0, scale, size), fraction)

    return usual_weights(shape, draw)


def job_of(
    shape: LstmShape,
    machine: ChipEngines,
    *,
    steps: int = 3,
    seed: int = 1,
    weight_fraction: int | None = None,
) -> KernelJob:
    rng = np.random.default_rng(seed)
    state = LstmState(
        c=rng.integers(-2000, 2000, (shape.batch, shape.cells)).astype(np.int16),
        y=rng.integers(-2000, 2000, (shape.batch, shape.outputs)).astype(np.int16),
        m=np.zeros((shape.batch, shape.cells), np.int16),
    )
    return lstm_sequence_job(
        shape,
        layer(shape, seed, weight_fraction or FRACTION),
        rng.integers(-3000, 3000, (steps, shape.batch, shape.inputs)),
        state,
        fraction=FRACTION,
        weight_fraction=weight_fraction,
        engines=machine,
    )


@pytest.mark.parametrize(("columns", "rows", "pes"), [(1, 1, 1), (1, 1, 4), (2, 2, 1), (3, 2, 4)])
@pytest.mark.parametrize("shape", [PROJECTED, PLAIN])
@pytest.mark.parametrize("weight_fraction", [None, 13])
def test_every_output_equals_the_golden_models(
    columns: int, rows: int, pes: int, shape: LstmShape, weight_fraction: int | None
) -> None:
    job = job_of(shape, engines(columns, rows, pes), weight_fraction=weight_fraction)
    assert execute(job, instructions=ALL).match
    assert job.expected.any()


@settings(max_examples=15, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 30), st.integers(1, 40), st.integers(1, 30)),
    batch=st.integers(1, 9),
    projected=st.booleans(),
    grid=st.tuples(st.integers(1, 3), st.integers(1, 2)),
    pes=st.sampled_from([1, 2, 4]),
    steps=st.integers(1, 4),
    seed=st.integers(0, 999),
)
def test_random_layers(
    sizes: tuple[int, int, int],
    batch: int,
    projected: bool,
    grid: tuple[int, int],
    pes: int,
    steps: int,
    seed: int,
) -> None:
    inputs, cells, outputs = sizes
    shape = LstmShape(
        inputs=inputs,
        cells=cells,
        outputs=outputs if projected else cells,
        batch=batch,
        projected=projected,
    )
    job = job_of(shape, engines(*grid, pes), steps=steps, seed=seed)
    assert execute(job, instructions=ALL).match


@pytest.mark.parametrize("shape", [PROJECTED, PLAIN])
def test_programs_have_no_hazards(shape: LstmShape) -> None:
    job = job_of(shape, ChipEngines(pes=2))
    outputs, hazards = simulate(job, instructions=ALL)
    assert (outputs == job.expected).all()
    assert not hazards


def exact_in_bursts(shape: LstmShape, columns: int, seed: int) -> bool:
    """Whether outputs are right if engines run in bursts and stores become visible late."""
    job = job_of(shape, engines(columns, 1, 2, address_bits=17), steps=2)
    return right(job, in_bursts(seed, 200), seed, far=True, instructions=ALL)


#: A chunk of six parts, so more flags than are asked for at a time.
MANY = replace(PROJECTED, cells=48, outputs=44)


@pytest.mark.parametrize(("shape", "columns", "seed"), [(PROJECTED, 2, 1), (MANY, 6, 2)])
def test_engines_in_any_order_with_stores_that_become_visible_late(
    shape: LstmShape, columns: int, seed: int
) -> None:
    assert exact_in_bursts(shape, columns, seed)


def test_engines_that_do_not_wait_miss_what_others_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FlagCode, "wait_requested", lambda *_: None)
    assert not exact_in_bursts(PROJECTED, 2, 1)


def test_small_batches_are_cut_over_cells_and_large_ones_over_vectors() -> None:
    assert plan_sequence(PLAIN, engines(pes=4))[1] == 4
    large = LstmShape(inputs=153, cells=1024, outputs=512, batch=32)
    assert plan_sequence(large, engines(8, 4, pes=4, address_bits=28))[1] == 1


def test_a_sequence_without_projection_stays_near_floating_point() -> None:
    shape = LstmShape(inputs=16, cells=32, outputs=32, batch=2, projected=False)
    rng = np.random.default_rng(5)
    weights = layer(shape, 5, 13)
    x = rng.normal(0, 1, (8, 2, 16))
    job = lstm_sequence_job(
        shape,
        weights,
        to_fixed(x, FRACTION),
        fraction=FRACTION,
        weight_fraction=13,
        engines=engines(2, 1),
    )
    found = execute(job, instructions=ALL).outputs[: 8 * 2 * 32].reshape(8, 2, 32)
    gates, peep = real_of(weights.gates, 13), real_of(weights.peepholes, 13)
    # Biases have the fraction bits of sums.
    bias = real_of(weights.bias, FRACTION)
    y, c = np.zeros((2, 32)), np.zeros((2, 32))

    def sigmoid(values: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-values))

    for step in range(8):
        sums = np.einsum("gci,bi->gbc", gates, np.concatenate([y, x[step]], axis=1))
        f, i, g, o = sums + bias[:, np.newaxis]
        new = sigmoid(i + peep[1] * c) * np.tanh(g) + sigmoid(f + peep[0] * c) * c
        y, c = sigmoid(o + peep[2] * new) * np.tanh(new), new
        assert np.abs(real_of(found[step], FRACTION) - y).max() < 0.02


def test_data_that_do_not_fit_are_refused() -> None:
    weights = layer(PROJECTED, 1, FRACTION)
    x = np.zeros((2, 3, 10), int)
    with pytest.raises(KernelError, match="without a projection, outputs must equal cells"):
        LstmShape(inputs=1, cells=3, outputs=2, projected=False)
    for values, found in (
        (x[:, :, :4], r"\(2, 3, 4\)"),
        (None, r"\(\)"),
        ([[1, 2], [3]], "rows of different lengths"),
    ):
        with pytest.raises(
            KernelError, match=f"^x must have the shape steps x 3 x 10, not {found}$"
        ):
            lstm_sequence_job(PROJECTED, weights, values, fraction=FRACTION)  # type: ignore[arg-type]
    with pytest.raises(KernelError, match="steps must be at least 1"):
        lstm_sequence_job(PROJECTED, weights, x[:0], fraction=FRACTION)
    with pytest.raises(KernelError, match="fraction bits"):
        lstm_sequence_job(PROJECTED, weights, x, fraction=16)
    with pytest.raises(KernelError, match="give more vaults, or fewer steps"):
        job_of(PROJECTED, engines(2, 1, address_bits=12))
    plan, parts = plan_sequence(PROJECTED, engines())
    with pytest.raises(KernelError, match="are not the 4 engines of a vault"):
        SequenceLayout(plan=plan, parts=parts, engines=engines(pes=4), steps=1)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"c": np.zeros((3, 23), int)}, r"c of the state must have the shape \(3, 24\), not "),
        ({"y": np.zeros((2, 12), int)}, r"y of the state must have the shape \(3, 12\), not "),
        ({"c": np.full((3, 24), 40000)}, "c of the state must be from -32768 to 32767, but goes "),
        ({"y": np.zeros((3, 12))}, "y of the state must be whole numbers .* not float64"),
        ({"y": None}, r"y of the state must have the shape \(3, 12\), not \(\)"),
    ],
)
def test_states_that_do_not_fit_are_refused(broken: dict[str, Elements], message: str) -> None:
    state = replace(LstmState.start(PROJECTED), **broken)
    x = np.zeros((2, 3, 10), int)
    with pytest.raises(KernelError, match=f"^{message}"):
        lstm_sequence_job(PROJECTED, layer(PROJECTED, 1, FRACTION), x, state, fraction=FRACTION)


@pytest.mark.parametrize("chunks", [1, 5, 21, 32])
def test_vaults_read_different_chunks_at_a_time(chunks: int) -> None:
    """All of them, in an order of its own; in each turn at most as many vaults as must share."""
    machine = engines(8, 4, pes=4, address_bits=24)
    plan, _ = plan_sequence(LstmShape(inputs=153, cells=1024, outputs=512, batch=32), machine)
    orders = np.array([plan.order(vault, chunks) for vault in range(plan.vaults)])
    assert (np.sort(orders) == np.arange(chunks)).all()
    if chunks == plan.vaults:
        assert all(len(set(turn)) == chunks for turn in orders.T.tolist())
        # A link carries at most two chunks in a turn, and three in two turns.
        network = chip_preset("thesis").network
        busiest = [
            max(
                Counter(
                    link
                    for vault, home in enumerate(turn)
                    for link in route(network, home, vault, 1, 1)
                ).values(),
                default=0,
            )
            for turn in orders.T.tolist()
        ]
        assert max(busiest) == 2
        assert all(one + other <= 3 for one, other in pairwise(busiest))


def test_pruned_products_and_loads_are_shorter() -> None:
    """A quarter of a row of 32; and of its bytes three eighths, as an index comes to each."""
    job = sequence_job("little", SEQUENCES["little"].machine(chip_preset("tiny")))

    def sizes(percent: int, *, accumulate: bool = False) -> list[tuple[int, int]]:
        (dense,), (left,) = job.launches, pruned(job, percent, accumulate=accumulate).launches
        programs = zip(dense.program.words, left.program.words, strict=True)
        return [(old & 0xFFFF, new & 0xFFFF) for old, new in programs if old != new]

    assert sizes(100) == []
    assert sizes(25)[:2] == [(32, 8), (128, 48)]
    # Two lengths and an addition in each of the two loops over vectors.
    assert len(sizes(100, accumulate=True)) == 6


def test_flags_of_a_chunk_that_more_parts_compute_than_are_asked_at_a_time() -> None:
    plan, parts = plan_sequence(MANY, engines(6, 1))
    layout = SequenceLayout(plan=plan, parts=parts, engines=engines(6, 1), steps=1)
    assert layout.y_flags.count > FLAG_GROUP
