"""LSTM kernels on the simulator, bit by bit; their golden model against floating point."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.logistic import LogisticOp, logistic
from isa.table import BY_KEY
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import FRACTION_LIMIT, real_of, to_fixed
from microkernels.common.logistic import sigmoid, tanh
from microkernels.nn.jobs import lstm_job
from microkernels.nn.lstm_shape import (
    LstmShape,
    LstmState,
    LstmWeights,
    lstm_step,
    plan_lstm,
)
from microkernels.runtime.job import simulate

#: Of an engine with the logistic unit.
ALL = frozenset(BY_KEY)
ESE = LstmShape(inputs=153, cells=1024, outputs=512, batch=32)
FRACTION = 11


def real_layer(shape: LstmShape, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Weights of the size that training gives them."""
    width = shape.outputs + shape.inputs
    return {
        "gates": rng.normal(0, 1.5 / np.sqrt(width), (4, shape.cells, width)),
        "bias": rng.normal(0, 0.5, (4, shape.cells)),
        "peepholes": rng.normal(0, 0.3, (3, shape.cells)),
        "projection": rng.normal(0, 1.5 / np.sqrt(shape.cells), (shape.outputs, shape.cells)),
    }


def fixed_layer(real: dict[str, np.ndarray], fraction: int = FRACTION) -> LstmWeights:
    return LstmWeights(**{name: to_fixed(values, fraction) for name, values in real.items()})


def random_case(
    shape: LstmShape, seed: int, scale: float
) -> tuple[LstmWeights, np.ndarray, LstmState]:
    """A layer, inputs and a state with elements of any size up to ``scale`` times theirs."""
    rng = np.random.default_rng(seed)

    def values(*size: int) -> np.ndarray:
        return rng.integers(-(1 << 15) * scale, ((1 << 15) - 1) * scale, size, endpoint=True)

    width = shape.outputs + shape.inputs
    weights = LstmWeights(
        gates=values(4, shape.cells, width),
        bias=values(4, shape.cells),
        peepholes=values(3, shape.cells),
        projection=values(shape.outputs, shape.cells),
    )
    state = LstmState(
        c=values(shape.batch, shape.cells),
        y=values(shape.batch, shape.outputs),
        m=np.zeros((shape.batch, shape.cells), np.int16),
    )
    return weights, values(shape.batch, shape.inputs), state


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
def test_random_shapes(
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
        vaults=vaults,
        vault=place % vaults,
        sharers=sharers,
        base=256 * (seed % 5),
    )
    outputs, hazards = simulate(job, seed=seed, instructions=ALL)
    assert np.array_equal(outputs, job.expected)
    assert hazards == []


@pytest.mark.parametrize("batch", [1, 64])
def test_one_vector_and_the_largest_batch(batch: int) -> None:
    shape = LstmShape(inputs=9, cells=12, outputs=6, batch=batch)
    weights, x, state = random_case(shape, batch, 0.1)
    job = lstm_job(shape, weights, x, state, fraction=FRACTION)
    outputs, hazards = simulate(job, instructions=ALL)
    assert np.array_equal(outputs, job.expected)
    assert hazards == []


def float_step(
    real: dict[str, np.ndarray], x: np.ndarray, c: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Equation 6.1 as the thesis has it."""

    def logistic_function(values: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-values))

    joined = np.concatenate([y, x], axis=1)
    f, i, g, o = (joined @ real["gates"][n].T + real["bias"][n] for n in range(4))
    peep_f, peep_i, peep_o = real["peepholes"]
    f = logistic_function(f + peep_f * c)
    i = logistic_function(i + peep_i * c)
    c = i * np.tanh(g) + f * c
    o = logistic_function(o + peep_o * c)
    return c, (o * np.tanh(c)) @ real["projection"].T


def test_eight_steps_stay_within_a_hundredth_of_floating_point() -> None:
    rng = np.random.default_rng(5)
    shape = LstmShape(inputs=40, cells=64, outputs=32, batch=4)
    real = real_layer(shape, rng)
    weights = fixed_layer(real)
    plan = plan_lstm(shape, vaults=2, sharers=2)
    state = LstmState.start(shape)
    c, y = np.zeros((4, 64)), np.zeros((4, 32))
    for _ in range(8):
        x = rng.normal(0, 1, (4, 40))
        state = lstm_step(plan, weights, to_fixed(x, FRACTION), state, fraction=FRACTION)
        c, y = float_step(real, x, c, y)
        assert np.abs(real_of(state.c, FRACTION) - c).max() < 0.01
        assert np.abs(real_of(state.y, FRACTION) - y).max() < 0.01
    assert np.abs(y).max() > 0.5


def test_steps_follow_one_another_on_the_simulator() -> None:
    rng = np.random.default_rng(6)
    shape = LstmShape(inputs=10, cells=16, outputs=8, batch=3)
    weights = fixed_layer(real_layer(shape, rng))
    state = LstmState.start(shape)
    for _ in range(3):
        x = to_fixed(rng.normal(0, 1, (3, 10)), FRACTION)
        job = lstm_job(shape, weights, x, state, fraction=FRACTION)
        outputs, _ = simulate(job, instructions=ALL)
        assert np.array_equal(outputs, job.expected)
        c, y = np.split(outputs, [shape.cells], axis=1)
        state = LstmState(c=c, y=y, m=state.m)


def test_the_layer_of_the_thesis_fits() -> None:
    plan = plan_lstm(ESE, vaults=32, sharers=4)
    assert (plan.cells, plan.outputs, plan.vectors) == (32, 16, 8)
    assert plan.ring_end <= 4096
    assert plan.spaced_products
    assert plan.spaced_cells


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 65}, r"batch of 65 vectors on 1 engines .* at most 64 vectors for each"),
        ({"inputs": 0}, r"inputs must be at least 1, not 0"),
    ],
)
def test_shapes_that_do_not_fit(change: dict[str, int], message: str) -> None:
    size = {"inputs": 4, "cells": 4, "outputs": 4, "batch": 1} | change
    with pytest.raises(KernelError, match=message):
        plan_lstm(LstmShape(**size))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vault": 2, "vaults": 2}, "vault must be from 0 to 1, not 2"),
        ({"vaults": 0}, "vaults must be at least 1, not 0"),
        ({"sharers": 0}, "sharers must be at least 1, not 0"),
        ({"fraction": 16}, "fraction bits must be a whole number from 0 to 15, not 16"),
        ({"base": 32}, "base must be a multiple of 256, not 32"),
        ({"x": np.zeros((1, 3), np.int16)}, r"x must have the shape \(1, 4\), not \(1, 3\)"),
    ],
)
def test_bad_arguments(change: dict[str, object], message: str) -> None:
    shape = LstmShape(inputs=4, cells=4, outputs=4)
    weights, x, _ = random_case(shape, 0, 0.1)
    arguments = {"x": x, "fraction": FRACTION} | change
    with pytest.raises(KernelError, match=message):
        lstm_job(shape, weights, **arguments)  # type: ignore[arg-type]


def test_weights_of_another_shape() -> None:
    shape = LstmShape(inputs=4, cells=4, outputs=4)
    weights, _, _ = random_case(shape, 0, 0.1)
    with pytest.raises(KernelError, match=r"peepholes must have the shape \(3, 5\), not \(3, 4\)"):
        LstmWeights(
            gates=np.zeros((4, 5, 8), np.int16),
            bias=np.zeros((4, 5), np.int16),
            peepholes=weights.peepholes,
            projection=np.zeros((4, 5), np.int16),
        ).checked(LstmShape(inputs=4, cells=5, outputs=4))


def test_chunks_must_hold_whole_blocks() -> None:
    with pytest.raises(KernelError, match="chunk must be a multiple of block"):
        replace(plan_lstm(ESE, sharers=4), block=8, chunk=12)


def test_an_engine_without_the_logistic_unit_is_refused_by_name() -> None:
    shape = LstmShape(inputs=4, cells=8, outputs=4)
    weights = LstmWeights(
        gates=np.zeros((4, 8, 8), np.int16),
        bias=np.zeros((4, 8), np.int16),
        peepholes=np.zeros((3, 8), np.int16),
        projection=np.zeros((4, 8), np.int16),
    )
    job = lstm_job(shape, weights, np.zeros((1, 4), np.int16), fraction=8)
    with pytest.raises(
        KernelError, match=r"needs v\.sigmoid\[16\] \(word \d+\), which the PEs lack"
    ):
        simulate(job)
    lacking = ALL - {"m.v.mul.add[16]"}
    with pytest.raises(KernelError, match=r"needs m\.v\.mul\.add\[16\]"):
        simulate(job, instructions=lacking)
