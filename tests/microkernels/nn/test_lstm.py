"""The LSTM kernel on simulators, bit by bit, on one vault and on chips; against floating point."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.sequences import SEQUENCES, pruned, sequence_job
from isa.logistic import LogisticOp, logistic
from isa.table import BY_KEY
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import FRACTION_LIMIT, Elements, real_of, to_fixed
from microkernels.common.logistic import sigmoid, tanh
from microkernels.nn.jobs import lstm_job
from microkernels.nn.lstm_layout import LstmLayout
from microkernels.nn.lstm_shape import (
    LstmShape,
    LstmState,
    LstmWeights,
    plan_lstm,
    usual_weights,
)
from microkernels.runtime.barrier import FLAG_GROUP, FlagCode
from microkernels.runtime.job import KernelJob, execute, simulate
from microkernels.runtime.ring import ONE_ENGINE, ChipEngines
from noc.routing import route
from soc.generate.presets import chip_preset
from tests.microkernels.nn.lstm_case import lstm_case
from tests.microkernels.runtime.schedules import in_bursts, right

#: Of an engine with the logistic unit.
ALL = frozenset(BY_KEY)
ESE = LstmShape(inputs=153, cells=1024, outputs=512, batch=32)
FRACTION = 11
SMALL = LstmShape(inputs=4, cells=4, outputs=4)
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

    def values(*size: int) -> Elements:
        return rng.integers(-3000, 3000, size).astype(np.int16)

    _, x, state = lstm_case(shape, values, steps=steps)
    return lstm_job(
        shape,
        layer(shape, seed, weight_fraction or FRACTION),
        x,
        state,
        fraction=FRACTION,
        weight_fraction=weight_fraction,
        engines=machine,
    )


def random_case(
    shape: LstmShape, seed: int, scale: float
) -> tuple[LstmWeights, Elements, LstmState]:
    """A layer, inputs and a state with elements of any size up to ``scale`` times theirs."""
    rng = np.random.default_rng(seed)

    def values(*size: int) -> Elements:
        return rng.integers(-(1 << 15) * scale, ((1 << 15) - 1) * scale, size, endpoint=True)

    return lstm_case(shape, values)


@pytest.mark.parametrize("fraction", range(FRACTION_LIMIT + 1))
def test_golden_functions_equal_the_instructions(fraction: int) -> None:
    every = np.arange(-(1 << 15), 1 << 15).astype("<i2")
    assert np.array_equal(sigmoid(every, fraction), logistic(LogisticOp.SIGMOID, every, fraction))
    assert np.array_equal(tanh(every, fraction), logistic(LogisticOp.TANH, every, fraction))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    shape=st.builds(
        LstmShape,
        inputs=st.integers(1, 70),
        cells=st.integers(1, 40),
        outputs=st.integers(1, 40),
        batch=st.integers(1, 9),
    ),
    vaults=st.integers(1, 3),
    place=st.integers(0, 2),
    sharers=st.integers(1, 3),
    fraction=st.integers(0, FRACTION_LIMIT),
    scale=st.sampled_from([1.0, 0.1, 0.01]),
    seed=st.integers(0, 1 << 16),
)
def test_a_vault_s_part_of_random_layers(
    shape: LstmShape,
    vaults: int,
    place: int,
    sharers: int,
    fraction: int,
    scale: float,
    seed: int,
) -> None:
    weights, x, state = random_case(shape, seed, scale)
    job = lstm_job(
        shape,
        weights,
        x,
        state,
        fraction=fraction,
        engines=ChipEngines(pes=sharers),
        vaults=vaults,
        vault=place % vaults,
    )
    outputs, hazards = simulate(job, seed=seed, instructions=ALL)
    assert np.array_equal(outputs, job.expected)
    assert hazards == []


@pytest.mark.parametrize("batch", [1, 64])
def test_one_vector_and_the_largest_batch(batch: int) -> None:
    shape = LstmShape(inputs=9, cells=12, outputs=6, batch=batch)
    weights, x, state = random_case(shape, batch, 0.1)
    job = lstm_job(shape, weights, x, state, fraction=FRACTION, engines=ONE_ENGINE)
    outputs, hazards = simulate(job, instructions=ALL)
    assert np.array_equal(outputs, job.expected)
    assert hazards == []


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
    assert plan_lstm(PLAIN, engines(pes=4)).sharers == 1
    assert plan_lstm(ESE, engines(8, 4, pes=4, address_bits=28)).sharers == 4


def float_step(
    real: LstmWeights, x: np.ndarray, c: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Equation 6.1 as the thesis has it."""

    def logistic_function(values: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-values))

    joined = np.concatenate([y, x], axis=1)
    f, i, g, o = (joined @ real.gates[n].T + real.bias[n] for n in range(4))
    peep_f, peep_i, peep_o = real.peepholes
    f = logistic_function(f + peep_f * c)
    i = logistic_function(i + peep_i * c)
    c = i * np.tanh(g) + f * c
    y = logistic_function(o + peep_o * c) * np.tanh(c)
    return c, y @ real.projection.T if len(real.projection) else y


@pytest.mark.parametrize(
    ("shape", "weight_fraction", "limit"),
    [
        (LstmShape(inputs=40, cells=64, outputs=32, batch=4), FRACTION, 0.01),
        (LstmShape(inputs=16, cells=32, outputs=32, batch=2, projected=False), 13, 0.02),
    ],
    ids=["projected", "plain"],
)
def test_eight_steps_stay_near_floating_point(
    shape: LstmShape, weight_fraction: int, limit: float
) -> None:
    rng = np.random.default_rng(5)
    real = usual_weights(shape, lambda scale, *size: rng.normal(0, scale, size))
    of_weights = {
        name: to_fixed(getattr(real, name), weight_fraction)
        for name in ("gates", "peepholes", "projection")
    }
    weights = LstmWeights(**of_weights, bias=to_fixed(real.bias, FRACTION))
    steps = rng.normal(0, 1, (8, shape.batch, shape.inputs))
    job = lstm_job(
        shape,
        weights,
        to_fixed(steps, FRACTION),
        fraction=FRACTION,
        weight_fraction=weight_fraction,
        engines=engines(2, 1),
    )
    outcome = execute(job, instructions=ALL)
    assert outcome.match
    results, cells = np.split(outcome.outputs, [8 * shape.batch * shape.outputs])
    c, y = np.zeros((shape.batch, shape.cells)), np.zeros((shape.batch, shape.outputs))
    for x, result in zip(steps, results.reshape(8, *y.shape), strict=True):
        c, y = float_step(real, x, c, y)
        assert np.abs(real_of(result, FRACTION) - y).max() < limit
    assert np.abs(real_of(cells.reshape(c.shape), FRACTION) - c).max() < limit
    assert np.abs(y).max() > 0.5


def test_a_sequence_continues_from_the_state_of_another() -> None:
    rng = np.random.default_rng(6)
    shape, machine = replace(PROJECTED, batch=1), engines(2, 1)
    weights = layer(shape, 6, FRACTION)
    x = to_fixed(rng.normal(0, 1, (4, 1, shape.inputs)), FRACTION)
    whole = lstm_job(shape, weights, x, fraction=FRACTION, engines=machine).expected
    first = lstm_job(shape, weights, x[:3], fraction=FRACTION, engines=machine)
    y, c = np.split(execute(first, instructions=ALL).outputs, [3 * shape.outputs])
    state = LstmState(c=c[np.newaxis], y=y[np.newaxis, -shape.outputs :])
    last = lstm_job(shape, weights, x[3:], state, fraction=FRACTION, engines=machine)
    assert np.array_equal(
        execute(last, instructions=ALL).outputs, whole[-shape.outputs - shape.cells :]
    )


def test_the_layer_of_the_thesis_fits() -> None:
    plan = plan_lstm(ESE, ChipEngines(pes=4), vaults=32)
    assert (plan.cells, plan.outputs, plan.vectors) == (32, 16, 8)
    assert plan.places.used <= 4096
    assert plan.spaced_products
    assert plan.spaced_cells


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 65}, r"batch of 65 vectors on 1 engines .* at most 64 vectors for each"),
        ({"inputs": 0}, r"inputs must be at least 1, not 0"),
        ({"outputs": 2, "projected": False}, "without a projection, outputs must equal cells"),
    ],
)
def test_shapes_that_do_not_fit(change: dict[str, int], message: str) -> None:
    size = {"inputs": 4, "cells": 4, "outputs": 4, "batch": 1} | change
    with pytest.raises(KernelError, match=message):
        plan_lstm(LstmShape(**size), ONE_ENGINE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vault": 2, "vaults": 2}, "vault must be .* from 0 to 1, not 2"),
        ({"vault": 1}, "vault is one of vaults that share a layer: give vaults, too"),
        ({"vaults": 0}, "vaults must be at least 1, not 0"),
        ({"vaults": 4, "engines": ChipEngines(columns=2)}, "1 part of 4 engines are not the 4 "),
        ({"vaults": 4, "x": np.zeros((2, 1, 4), np.int16)}, "alone takes one step on one vault"),
        ({"fraction": 16}, "fraction bits must be a whole number from 0 to 15, not 16"),
        ({"weight_fraction": 16}, "fraction bits must be a whole number from 0 to 15, not 16"),
        ({"engines": ChipEngines(columns=2, address_bits=12)}, "give more vaults, or fewer steps"),
        ({"x": np.zeros((0, 1, 4), np.int16)}, "steps must be at least 1, not 0"),
    ],
)
def test_bad_arguments(change: dict[str, object], message: str) -> None:
    weights, x, _ = random_case(SMALL, 0, 0.1)
    arguments = {"x": x, "fraction": FRACTION} | change
    with pytest.raises(KernelError, match=message):
        lstm_job(SMALL, weights, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((2, 1, 3), int), r"\(2, 1, 3\)"),
        (None, r"\(\)"),
        ([[1, 2], [3]], "rows of different lengths"),
    ],
)
def test_inputs_that_do_not_fit(x: Elements, message: str) -> None:
    weights, _, _ = random_case(SMALL, 0, 0.1)
    message = f"^x must have the shape steps x 1 x 4, not {message}$"
    with pytest.raises(KernelError, match=message):
        lstm_job(SMALL, weights, x, fraction=FRACTION)


def test_a_layout_is_for_as_many_engines_as_its_plan() -> None:
    plan = plan_lstm(PROJECTED, engines())
    with pytest.raises(KernelError, match="are not the 4 engines of each of 1 vault"):
        LstmLayout(plan=plan, engines=engines(pes=4), steps=1)
    # Nor on as many engines of more vaults.
    plan = plan_lstm(replace(SMALL, batch=4), engines(pes=4))
    assert (plan.parts, plan.sharers) == (1, 4)
    with pytest.raises(KernelError, match="are not the 2 engines of each of 2 vaults"):
        LstmLayout(plan=plan, engines=engines(2, pes=2), steps=1)


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
        lstm_job(PROJECTED, layer(PROJECTED, 1, FRACTION), x, state, fraction=FRACTION)


def test_weights_of_another_shape() -> None:
    weights, _, _ = random_case(replace(SMALL, cells=5), 0, 0.1)
    with pytest.raises(KernelError, match=r"peepholes must have the shape \(3, 5\), not \(3, 4\)"):
        replace(weights, peepholes=weights.peepholes[:, :4]).checked(replace(SMALL, cells=5))


def test_chunks_must_hold_whole_blocks() -> None:
    with pytest.raises(KernelError, match="chunk must be a multiple of block"):
        replace(plan_lstm(ESE, ChipEngines(pes=4)), block=8, chunk=12)


@pytest.mark.parametrize("chunks", [1, 5, 21, 32])
def test_vaults_read_different_chunks_at_a_time(chunks: int) -> None:
    """All of them, in an order of its own; in each turn at most as many vaults as must share."""
    machine = engines(8, 4, pes=4, address_bits=24)
    plan = plan_lstm(ESE, machine)
    orders = np.array([plan.order(part, chunks) for part in range(plan.parts)])
    assert (np.sort(orders) == np.arange(chunks)).all()
    if chunks == plan.parts:
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
    plan = plan_lstm(MANY, engines(6, 1))
    layout = LstmLayout(plan=plan, engines=engines(6, 1), steps=2)
    assert layout.y_flags.count > FLAG_GROUP


def test_an_engine_without_the_logistic_unit_is_refused_by_name() -> None:
    weights, x, _ = random_case(SMALL, 0, 0.1)
    job = lstm_job(SMALL, weights, x, fraction=8, engines=ONE_ENGINE)
    with pytest.raises(
        KernelError, match=r"needs v\.sigmoid\[16\] \(word \d+\), which the PEs lack"
    ):
        simulate(job)
    lacking = ALL - {"m.v.mul.add[16]"}
    with pytest.raises(KernelError, match=r"needs m\.v\.mul\.add\[16\]"):
        simulate(job, instructions=lacking)
