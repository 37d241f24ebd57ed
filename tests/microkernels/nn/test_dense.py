"""The fully connected kernel on the instruction set simulator against its golden model, and that
model against ONNX's reference."""

from dataclasses import replace
from functools import partial

import numpy as np
import onnx.parser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from microkernels.common.errors import KernelError
from microkernels.common.feature_map import vectors
from microkernels.common.fixed_point import BYTE, Elements, real_of
from microkernels.common.memory import Writable
from microkernels.nn.dense import DenseLayout
from microkernels.nn.dense_plan import dense, partial_sums, plan_dense
from microkernels.nn.jobs import dense_job
from microkernels.runtime.job import simulate
from tests.microkernels.nn.test_conv_bytes import INSTRUCTIONS, check

FRACTION = 8


def values(seed: int, *shape: int, limit: int = 1000) -> Elements:
    return np.random.default_rng(seed).integers(-limit, limit, shape, np.int16, endpoint=True)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    inputs=st.one_of(st.integers(1, 9), st.integers(1, 400)),
    outputs=st.integers(1, 50),
    batch=st.sampled_from([1, 1, 2, 3, 7]),
    others=st.integers(0, 8),
    sharers=st.integers(1, 4),
    limit=st.sampled_from([100, 30000]),
    relu=st.booleans(),
    base=st.sampled_from([0, 32, 4096]),
    seed=st.integers(0, 1 << 20),
)
def test_equals_the_golden_model(
    inputs: int,
    outputs: int,
    batch: int,
    others: int,
    sharers: int,
    limit: int,
    relu: bool,
    base: int,
    seed: int,
) -> None:
    job = dense_job(
        values(seed, batch, inputs, limit=limit),
        values(seed + 1, outputs, inputs, limit=limit),
        values(seed + 2, outputs, limit=limit),
        fraction=FRACTION,
        relu=relu,
        others=values(seed + 3, others, batch, outputs, limit=limit),
        sharers=sharers,
        base=base,
    )
    result, hazards = simulate(job, seed=seed)
    assert np.array_equal(result, job.expected)
    assert not hazards


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    inputs=st.integers(1, 400),
    outputs=st.integers(1, 30),
    batch=st.integers(1, 5),
    chunk=st.integers(1, 256),
    seed=st.integers(0, 1 << 20),
)
def test_golden_model_is_near_the_reference(
    inputs: int, outputs: int, batch: int, chunk: int, seed: int
) -> None:
    """Half a unit of the last place for each chunk."""
    vectors = values(seed, batch, inputs, limit=100)
    weights = values(seed + 1, outputs, inputs, limit=100)
    bias = values(seed + 2, outputs)
    sums = partial_sums(chunk, vectors, weights, fraction=FRACTION)
    fixed = dense(sums[np.newaxis], bias, relu=True)
    model = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 17]>
        graph (float[B, N] x, float[M, N] w, float[M] b) => (float[B, M] y) {
            s = Gemm <transB = 1> (x, w, b)
            y = Relu(s)
        }"""
    )
    arrays = {"x": vectors, "w": weights, "b": bias}
    reals = {name: real_of(array, FRACTION) for name, array in arrays.items()}
    (real,) = ReferenceEvaluator(model).run(None, reals)
    error = np.abs(real_of(fixed, FRACTION) - real)
    assert error.max() <= (0.5 * -(-inputs // chunk) + 1e-6) / (1 << FRACTION)


def test_largest_batch_that_fits() -> None:
    job = dense_job(
        values(1, 64, 24),
        values(2, 9, 24),
        values(3, 9),
        fraction=FRACTION,
        sharers=2,
    )
    result, hazards = simulate(job)
    assert np.array_equal(result, job.expected)
    assert not hazards
    with pytest.raises(KernelError, match=r"a batch of 1000 vectors does not fit.*at most 64"):
        plan_dense(inputs=24, outputs=9, batch=1000)


@pytest.mark.parametrize("inputs", [3136, 512, 153, 1])
def test_chunks_waste_little(inputs: int) -> None:
    plan = plan_dense(inputs=inputs, outputs=1024, sharers=4)
    assert inputs <= plan.chunks * plan.chunk < inputs + 8
    assert plan.pe_outputs == 256


@pytest.mark.parametrize(("outputs", "batch"), [(256, 16), (512, 8), (1024, 4)])
def test_products_of_several_vectors_need_no_drain(outputs: int, batch: int) -> None:
    assert plan_dense(inputs=784, outputs=outputs, batch=batch, sharers=4).spaced


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"segments": 65}, "segments must be from 1 to 64"),
        ({"sharers": 0}, "sharers must be at least 1"),
        ({"chunk": 257}, "chunk must be from 1 to 256"),
    ],
)
def test_plans_that_can_not_be(changes: dict[str, int], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        plan_dense(inputs=24, outputs=9, **changes)


def test_data_that_do_not_fit() -> None:
    inputs, weights, bias = values(1, 2, 24), values(2, 9, 24), values(3, 9)
    with pytest.raises(KernelError, match="inputs must have the shape batch x 24"):
        dense_job(inputs[:, :20], weights, bias, fraction=4)
    with pytest.raises(KernelError, match=r"bias must have the shape \(9,\)"):
        dense_job(inputs, weights, bias[:8], fraction=4)
    with pytest.raises(KernelError, match="segments x batch x outputs"):
        dense_job(inputs, weights, bias, fraction=4, others=values(4, 2, 9))
    with pytest.raises(KernelError, match="inputs must be at least 1"):
        plan_dense(inputs=0, outputs=1)


def test_vectors_that_do_not_fit() -> None:
    plan = plan_dense(inputs=24, outputs=9)
    with pytest.raises(KernelError, match=r"target must be 1 x 1 x 9 .*not 1 x 1 x 8"):
        DenseLayout(plan=plan, target=vectors(64, 8, 1), fraction=4, base=128)
    with pytest.raises(KernelError, match="source must have one slice, not 2"):
        DenseLayout(
            plan=plan,
            target=vectors(64, 9, 1),
            fraction=4,
            base=128,
            source=vectors(256, 24, 1, pitch=46),
        )


bytes_job = partial(dense_job, bits=8)


def byte_data(
    inputs: int, outputs: int, batch: int, seed: int, *, extreme: bool = False
) -> tuple[Elements, ...]:
    """Inputs, weights and biases; only the largest numbers if ``extreme``."""
    random = np.random.default_rng(seed)

    def values(low: int, high: int, *size: int) -> Elements:
        if extreme:
            return random.choice([low, high], size)
        return random.integers(low, high, size, endpoint=True)

    return (
        values(-128, 127, batch, inputs),
        values(-128, 127, outputs, inputs),
        values(-32000, 32000, outputs),
    )


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    inputs=st.one_of(st.integers(1, 9), st.integers(1, 700)),
    outputs=st.one_of(st.integers(1, 9), st.integers(1, 300)),
    batch=st.sampled_from([1, 1, 2, 3, 7]),
    sharers=st.integers(1, 4),
    fraction=st.integers(0, 15),
    narrow=st.none() | st.integers(0, 8),
    relu=st.booleans(),
    extreme=st.booleans(),
    seed=st.integers(0, 1 << 20),
)
def test_bytes_equal_the_golden_model(
    inputs: int,
    outputs: int,
    batch: int,
    sharers: int,
    fraction: int,
    narrow: int | None,
    relu: bool,
    extreme: bool,
    seed: int,
) -> None:
    numbers = byte_data(inputs, outputs, batch, seed, extreme=extreme)
    more = {"fraction": fraction, "narrow": narrow, "relu": relu, "sharers": sharers}
    check(bytes_job(*numbers, **more), seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("narrow", [None, 0, 8])
def test_sums_of_other_segments(narrow: int | None) -> None:
    others = np.random.default_rng(5).integers(-3000, 3000, (2, 3, 13))
    check(bytes_job(*byte_data(31, 13, 3, 4), fraction=3, narrow=narrow, others=others, sharers=2))


@pytest.mark.parametrize("outputs", [600, 601])
@pytest.mark.parametrize("narrow", [None, 5])
def test_several_row_groups(outputs: int, narrow: int | None) -> None:
    check(bytes_job(*byte_data(20, outputs, 2, 6), fraction=2, narrow=narrow))


@pytest.mark.parametrize("narrow", [0, 3, 8])
def test_the_model_is_the_sum_that_is_rounded_twice(narrow: int) -> None:
    inputs, weights, bias = byte_data(9, 4, 2, 3)
    bias //= 2
    sums = partial_sums(256, inputs, weights, fraction=4)
    found = dense(sums[np.newaxis], bias, relu=False, narrow=narrow)
    for vector, output in np.ndindex(found.shape):
        products = zip(inputs[vector], weights[output], strict=True)
        total = (sum(int(a) * int(b) for a, b in products) + 8) >> 4
        value = np.clip(total + int(bias[output]) + (1 << narrow >> 1), -32768, 32767)
        assert found[vector, output] == max(-128, min(127, int(value) >> narrow))
    assert found.dtype == BYTE


def test_an_odd_output_has_a_zero_beside_it() -> None:
    """Even if something else was there."""
    job = bytes_job(*byte_data(6, 5, 1, 1), fraction=0, narrow=2, relu=False)

    def prepare(memory: Writable) -> None:
        memory.write(0, bytes([0xFF] * 6))
        job.prepare(memory)

    whole = replace(job, prepare=prepare, outputs=lambda memory: np.array([*memory.read(0, 6)]))
    stored, _ = simulate(whole, instructions=INSTRUCTIONS)
    assert stored[5] == 0
    assert np.array_equal(stored[:5].astype(BYTE), job.expected[0])


def test_bytes_have_half_the_weights() -> None:
    numbers = byte_data(256, 64, 1, 1)
    ends = [dense_job(*numbers, fraction=6, bits=bits).end for bits in (16, 8)]
    assert ends[0] - ends[1] > 0.9 * 256 * 64


def test_bytes_need_their_instruction() -> None:
    job = bytes_job(*byte_data(4, 2, 1, 1), fraction=0)
    with pytest.raises(KernelError, match=r"^fully connected of bytes: the program needs m\.v"):
        simulate(job)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fraction": 16}, "fraction bits must be a whole number from 0 to 15, not 16"),
        ({"narrow": 9}, "shifted by to bytes must be a whole number from 0 to 8, not 9"),
        ({"inputs": [[1, 2, 3, 128]]}, "inputs must be from -128 to 127, but goes from 1 to 128"),
        ({"weights": [[1, 2, 3, 128]] * 2}, "weights must be from -128 to 127"),
        ({"bias": [32767, 0], "narrow": 8}, "bias with half of an output's last place must be"),
    ],
)
def test_bad_layers_of_bytes(change: dict[str, object], message: str) -> None:
    inputs, weights, bias = byte_data(4, 2, 1, 1)
    given = {"inputs": inputs, "weights": weights, "bias": bias, "fraction": 3}
    with pytest.raises(KernelError, match=message):
        bytes_job(**(given | change))  # type: ignore[arg-type]
