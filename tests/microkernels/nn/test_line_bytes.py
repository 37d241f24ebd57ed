"""Layers of lines on maps of bytes: kernels on the instruction set simulator against their golden
models, and those against formulas."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from microkernels.common.errors import KernelError
from microkernels.common.feature_map import FeatureMap
from microkernels.common.fixed_point import Elements, pack, unpack
from microkernels.nn.depthwise_plan import DepthwiseShape, best_strip, depthwise
from microkernels.nn.element import ElementLayout
from microkernels.nn.element_shape import OF_BYTES, OPERATIONS, ElementOperation, element
from microkernels.nn.jobs import pool_job
from microkernels.nn.pool import window_fits
from microkernels.nn.window_shape import PoolShape, pool
from microkernels.runtime.job import KernelJob, simulate
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import design
from tests.microkernels.nn import test_depthwise, test_element, test_pool
from tests.microkernels.nn.element_jobs import element_job

#: Bytes at the ends of their range, with others between.
HOSTILE = np.array([-128, -127, -1, 0, 1, 126, 127])


def drawn(seed: int, *size: int, hostile: bool = False) -> Elements:
    """Random bytes in pairs; the last size counts elements."""
    random = np.random.default_rng(seed)
    size = (*size[:-1], 2 * size[-1])
    numbers = random.choice(HOSTILE, size) if hostile else random.integers(-128, 128, size)
    return pack(numbers, 8)


def check(job: KernelJob, seed: int) -> None:
    outputs, hazards = simulate(job, seed=seed)
    assert not hazards
    assert np.array_equal(outputs, job.expected)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    shape=test_pool.shapes(bits=8),
    depth=st.integers(1, 40),
    biased=st.booleans(),
    relu=st.booleans(),
    hostile=st.booleans(),
    sharers=st.integers(1, 4),
    seed=st.integers(0, 1 << 20),
)
def test_pooling(
    shape: PoolShape, depth: int, biased: bool, relu: bool, hostile: bool, sharers: int, seed: int
) -> None:
    while not window_fits(shape, depth, biased=biased):
        depth -= 1
    size = (shape.segments, shape.height, shape.width, shape.channels)
    job = pool_job(
        shape,
        drawn(seed, *size, hostile=hostile),
        drawn(seed + 1, shape.channels, hostile=hostile) if biased else None,
        relu=relu,
        depth=depth,
        out_padding=seed % 2,
        sharers=sharers,
    )
    check(job, seed)


def of_bytes(function: str, **changes: Any) -> ElementOperation:
    constants: dict[str, dict[str, int]] = {
        "multiply": {"fraction": 5},
        "affine": {"factor": -77, "fraction": 6, "offset": 21},
        "clip": {"low": -30, "high": 70},
        "gate": {"factor": 85, "fraction": 5, "offset": 32, "low": 0, "high": 64},
    }
    return ElementOperation(function=function, bits=8, **{**constants.get(function, {}), **changes})


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("operation", OF_BYTES)
@pytest.mark.parametrize(("height", "channels"), [(5, 7), (33, 18)])
def test_every_operation_on_bytes(operation: str, height: int, channels: int, relu: bool) -> None:
    """Also on lines of several pieces, which overlap."""
    if relu and operation != "add":
        return
    shape = of_bytes(operation, relu=relu)
    size = (height, 3, channels)
    for hostile in (False, True):
        image, other = (drawn(seed, *size, hostile=hostile) for seed in (1, 2))
        second = other if shape.maps == 2 else None
        check(element_job(shape, image, second, depth=9, sharers=2), 1)
        x, y = (unpack(values, 8, 2 * channels).astype(int) for values in (image, other))
        wanted = {
            "add": x + y,
            "subtract": x - y,
            "maximum": np.maximum(x, y),
            "minimum": np.minimum(x, y),
            "multiply": (x * y + 16) >> 5,
            "relu": np.maximum(x, 0),
            "absolute": abs(x),
            "affine": np.clip((x * -77 + 32) >> 6, -128, 127) + 21,
            "clip": np.clip(x, -30, 70),
            "gate": (x * np.clip(np.clip((x * 85 + 16) >> 5, -128, 127) + 32, 0, 64) + 32) >> 6,
        }[operation]
        limited = np.clip(wanted, 0 if relu else -128, 127)
        assert np.array_equal(element(shape, image, second), pack(limited, 8))


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(test_depthwise.shapes(bits=8), st.integers(0, 9))
def test_depthwise_convolutions(case: tuple[DepthwiseShape, int, int], seed: int) -> None:
    shape, depth, sharers = case
    check(test_depthwise.layer(shape, depth, sharers=sharers, seed=seed), seed)


@pytest.mark.parametrize("relu", [False, True])
def test_the_depthwise_model_is_the_formula(relu: bool) -> None:
    """Products that are shifted right, rounded and limited one by one, then limited sums."""
    shape = DepthwiseShape(
        width=5, height=4, channels=3, kernel=2, kernel_down=3, fraction=5, relu=relu, bits=8
    )
    image, bias = drawn(1, 4, 5, 3, hostile=True), drawn(2, 3)
    taps = drawn(3, 3, 2, 3)
    weights = taps.transpose(2, 0, 1)
    x, w, b = (unpack(values, 8, 6).astype(int) for values in (image, taps, bias))
    total = np.zeros((2, 4, 6), int)
    for column in range(2):
        for row in range(3):
            product = (x[row : row + 2, column : column + 4] * w[row, column] + 16) >> 5
            total = np.clip(total + np.clip(product, -128, 127), -128, 127)
    wanted = np.clip(total + b, 0 if relu else -128, 127)
    assert np.array_equal(depthwise(shape, image, weights, bias), pack(wanted, 8))


def test_a_maximum_of_bytes_has_padding_of_bytes() -> None:
    shape = PoolShape(width=3, height=3, channels=1, kernel=2, padding=1, bits=8)
    assert unpack(np.array([shape.around]), 8).tolist() == [-128, -128]
    image = np.full((1, 3, 3, 1), shape.around, np.int16)
    assert np.array_equal(pool(shape, image), np.full((2, 2, 1), shape.around))


def test_vectors_of_bytes_have_as_many_numbers() -> None:
    shape = PoolShape(width=8, height=8, channels=200, kernel=2, bits=8)
    assert window_fits(shape, 64)
    assert not window_fits(shape, 65)
    maps = drawn(1, 1, 8, 8, 200)
    with pytest.raises(KernelError, match="a vector at most 128: give slices of at most 64 chan"):
        pool_job(shape, maps, depth=65)
    size = {"width": 3, "height": 64, "channels": 16}
    source, target = (FeatureMap(base=at, depth=16, **size) for at in (0, 1 << 16))
    for bits, piece in ((16, 256), (8, 128)):
        relu = ElementOperation(function="relu", bits=bits)
        assert ElementLayout(shape=relu, source=source, target=target, base=1 << 17).piece == piece
        apart = DepthwiseShape(**(size | {"height": 66}), fraction=1, bits=bits)
        assert best_strip(apart, 64).together <= piece // 64


@pytest.mark.parametrize("operation", sorted(set(OPERATIONS) - set(OF_BYTES)))
def test_operations_that_bytes_do_not_have(operation: str) -> None:
    with pytest.raises(KernelError) as error:
        ElementOperation(function=operation, bits=8, **test_element.GIVEN[operation])  # type: ignore[arg-type]
    assert str(error.value) == (
        f"{operation} needs 16 bits, not 8; operations on bytes are {', '.join(OF_BYTES)}"
    )


def test_other_shapes_that_can_not_be() -> None:
    size = {"width": 4, "height": 4, "channels": 2}
    with pytest.raises(
        KernelError, match=r"^mean needs 16 bits, not 8; operations on bytes are ma"
    ):
        PoolShape(**size, mean=True, bits=8)
    for shape in (PoolShape, DepthwiseShape):
        more = {"fraction": 3} if shape is DepthwiseShape else {}
        with pytest.raises(KernelError, match=r"^bits must be one of 16, 8, not 4$"):
            shape(**size, **more, bits=4)
    with pytest.raises(
        KernelError, match=r"^low must be a whole number from -128 to 127, not -129"
    ):
        ElementOperation(function="clip", low=-129, high=5, bits=8)


@pytest.mark.slow
def test_layers_of_bytes_on_the_verilog() -> None:
    config = design("vault")
    size = {"width": 7, "height": 9, "channels": 10, "bits": 8}
    image = drawn(1, 9, 7, 10)
    jobs = (
        pool_job(PoolShape(**size, kernel=3, padding=1), image[np.newaxis], sharers=4),
        element_job(ElementOperation(function="add", bits=8, relu=True), image, image, sharers=4),
        test_depthwise.layer(DepthwiseShape(**size, fraction=6), 10, sharers=4),
    )
    for job in jobs:
        runs = [run_on(job, config, on=on) for on in ("rtl", "model")]
        assert all(run.match for run in runs), job.name
        assert runs[0].cycles == runs[1].cycles
