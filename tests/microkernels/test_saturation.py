"""Values that saturate: golden models and the simulator count the same."""

import numpy as np
import pytest

from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.table import BY_KEY
from microkernels.apps.convolve_image import ImageFilter, convolve_image_job
from microkernels.apps.gauss import FRACTION, gauss_job
from microkernels.apps.matrix_add import matrix_add_job
from microkernels.apps.matrix_multiply import matrix_multiply_job
from microkernels.bp.jobs import bp_construct_job, bp_copy_job, bp_job
from microkernels.bp.problem import BpProblem
from microkernels.common.fixed_point import Elements, clip, count_saturation, to_fixed
from microkernels.nn.jobs import conv_job, dense_job, lstm_job, pool_job
from microkernels.nn.lstm_shape import LstmShape
from microkernels.nn.window_shape import ConvShape, PoolShape
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import ONE_ENGINE
from microkernels.suite import bitonic_sort, kmeans, matrix_transposition, median_pooling
from tests.microkernels.nn.lstm_case import lstm_case


def values(*shape: int) -> Elements:
    """Elements of all sizes, so that much saturates."""
    rng = np.random.default_rng(list(shape))
    return rng.integers(-32768, 32767, shape, np.int16, endpoint=True)


def convolution(*, channels: int, strips: bool) -> KernelJob:
    shape = ConvShape(width=12, height=8, channels=channels, filters=8, padding=1)
    weights = values(8, 3, 3, channels)
    return conv_job(shape, values(8, 12, channels), weights, values(8), fraction=8, strips=strips)


def fully_connected(others: Elements | None) -> KernelJob:
    data = (values(1, 256), values(48, 256), values(48))
    return dense_job(*data, fraction=8, others=others)


def lstm() -> KernelJob:
    shape = LstmShape(inputs=12, cells=24, outputs=16, batch=4)
    weights, x, state = lstm_case(shape, values)
    return lstm_job(shape, weights, x, state, fraction=8, engines=ONE_ENGINE)


def problem(width: int, scale: int) -> BpProblem:
    labels = np.arange(16)
    smoothness = np.abs(np.subtract.outer(labels, labels)) * scale
    return BpProblem(np.abs(values(6, width, 16) // 2), smoothness.astype(np.int16))


def systems() -> Elements:
    """Equations whose solutions go beyond 32 bits."""
    rng = np.random.default_rng(1)
    found = rng.normal(0, 0.05, (2, 6, 7))
    found[:, range(6), range(6)] += 1
    found[:, :, 6] = 2**31 / (1 << FRACTION) * 0.99
    return np.clip(found * (1 << FRACTION), -(2**31), 2**31 - 1).astype(np.int32)


def simulated(job: KernelJob) -> int:
    with DramImage(job.end) as memory:
        job.prepare(memory)
        simulator = Simulator(
            job.program,
            memory,
            parameters=job.parameters,
            instructions=frozenset(BY_KEY),
            count_saturation=True,
        )
        assert simulator.run().state == "halted"
        assert job.differing(job.outputs(memory)) == 0
    return sum(simulator.saturated)


EQUAL = {
    "matrix addition": lambda: matrix_add_job(values(32, 256), values(32, 256)),
    "image convolution": lambda: convolve_image_job(
        ImageFilter(((127, 2), (2, 127))), values(12, 64)
    ),
    "convolution in strips": lambda: convolution(channels=3, strips=True),
    "convolution": lambda: convolution(channels=64, strips=False),
    "pooling": lambda: pool_job(
        PoolShape(width=14, height=8, channels=32, segments=2), values(2, 8, 14, 32), values(32)
    ),
    "mean pooling": lambda: pool_job(
        PoolShape(width=8, height=8, channels=32, mean=True), values(1, 8, 8, 32)
    ),
    "fully connected": lambda: fully_connected(None),
    "fully connected, two segments": lambda: fully_connected(values(1, 1, 48)),
    "LSTM": lstm,
}


@pytest.mark.parametrize("name", EQUAL)
def test_the_golden_model_counts_what_the_simulator_counts(name: str) -> None:
    job = EQUAL[name]()
    assert job.saturated == simulated(job) > 0


#: Programs that compute more than their golden model: ends of vectors, sums that take time.
MORE = {
    "matrix addition": lambda: matrix_add_job(values(60, 300), values(60, 300)),
    "matrix multiplication": lambda: matrix_multiply_job(values(9, 64), values(64, 40), fraction=8),
    "belief propagation": lambda: bp_job(problem(8, 2000), 2),
    "belief propagation, lone line": lambda: bp_job(problem(9, 2000)),
    "construct": lambda: bp_construct_job(problem(8, 10)),
    "Gaussian elimination": lambda: gauss_job(systems()),
}


@pytest.mark.parametrize("name", MORE)
def test_the_simulator_counts_at_least_what_the_golden_model_counts(name: str) -> None:
    job = MORE[name]()
    assert 0 < job.saturated <= simulated(job)


@pytest.mark.parametrize("make", [bitonic_sort, kmeans, matrix_transposition, median_pooling])
def test_what_compares_or_copies_saturates_nothing(make) -> None:
    for job in make():
        assert job.saturated == simulated(job) == 0


def test_small_values_saturate_nothing() -> None:
    job = matrix_add_job(values(8, 256) // 4, values(8, 256) // 4)
    assert job.saturated == simulated(job) == 0
    assert bp_copy_job(problem(8, 10)).saturated == 0


def test_only_what_is_beyond_the_limits_counts() -> None:
    with count_saturation() as outer:
        with count_saturation() as inner:
            assert list(clip(np.array([-3, -2, 0, 2, 3, 9]), -2, 2)) == [-2, -2, 0, 2, 2, 2]
        clip(np.array([5]), 0, 4)
    clip(np.array([5]), 0, 4)
    assert (inner(), outer()) == (3, 4)


def test_numbers_that_become_elements_are_not_counted() -> None:
    with count_saturation() as count:
        assert list(to_fixed(np.array([1e6, -1e6]), 8)) == [32767, -32768]
    assert count() == 0
