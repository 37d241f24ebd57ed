"""The fully connected kernel on the instruction set simulator against its golden model, and that
model against ONNX's reference."""

import numpy as np
import onnx.parser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements
from microkernels.networks.parameters import real_of
from microkernels.nn.dense_layout import DenseLayout, Vectors
from microkernels.nn.dense_plan import DenseShape, dense, partial_sums, plan_dense
from microkernels.nn.jobs import dense_job
from microkernels.runtime.job import simulate

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
    shape = DenseShape(inputs=inputs, outputs=outputs, batch=batch)
    job = dense_job(
        shape,
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
    shape = DenseShape(inputs=inputs, outputs=outputs, batch=batch)
    vectors = values(seed, batch, inputs, limit=100)
    weights = values(seed + 1, outputs, inputs, limit=100)
    bias = values(seed + 2, outputs)
    sums = partial_sums(shape, chunk, vectors, weights, fraction=FRACTION)
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
    shape = DenseShape(inputs=24, outputs=9, batch=64)
    job = dense_job(
        shape,
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
        plan_dense(DenseShape(inputs=24, outputs=9, batch=1000))


@pytest.mark.parametrize("inputs", [3136, 512, 153, 1])
def test_chunks_waste_little(inputs: int) -> None:
    plan = plan_dense(DenseShape(inputs=inputs, outputs=1024), sharers=4)
    assert inputs <= plan.chunks * plan.chunk < inputs + 8
    assert plan.pe_outputs == 256


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
        plan_dense(DenseShape(inputs=24, outputs=9), **changes)


def test_data_that_do_not_fit() -> None:
    shape = DenseShape(inputs=24, outputs=9, batch=2)
    inputs, weights, bias = values(1, 2, 24), values(2, 9, 24), values(3, 9)
    with pytest.raises(KernelError, match=r"inputs must have the shape \(2, 24\)"):
        dense_job(shape, inputs[:1], weights, bias, fraction=4)
    with pytest.raises(KernelError, match=r"bias must have the shape \(9,\)"):
        dense_job(shape, inputs, weights, bias[:8], fraction=4)
    with pytest.raises(KernelError, match="segments x batch x outputs"):
        dense_job(shape, inputs, weights, bias, fraction=4, others=values(4, 2, 9))
    with pytest.raises(KernelError, match="inputs must be at least 1"):
        DenseShape(inputs=0, outputs=1)


def test_vectors_that_do_not_fit() -> None:
    plan = plan_dense(DenseShape(inputs=24, outputs=9))
    with pytest.raises(KernelError, match="target must be 1 vectors of 9 elements"):
        DenseLayout(plan=plan, target=Vectors.packed(64, 8, 1), base=128)
    with pytest.raises(KernelError, match="pitch must be even and at least 48"):
        Vectors(base=0, length=24, batch=2, pitch=46)
