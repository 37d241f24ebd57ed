"""Convolutions with dilation and in groups: golden model, kernel on simulator and Verilog."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements
from microkernels.nn.conv_search import plan_conv
from microkernels.nn.jobs import conv_job
from microkernels.nn.window_shape import ConvShape, convolve
from microkernels.runtime.job import KernelJob, simulate
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import design


def expanded(shape: ConvShape, weights: Elements) -> Elements:
    """Weights of a dense kernel, with zeros for other groups and between a window's pixels."""
    full = np.zeros((shape.filters, shape.down, shape.across, shape.channels), np.int16)
    inner, filters = shape.group_channels, shape.filters // shape.groups
    for number, one in enumerate(weights):
        first = number // filters * inner
        full[number, :: shape.gap_down, :: shape.dilation, first : first + inner] = one
    return full


@st.composite
def cases(draw: st.DrawFn) -> tuple[ConvShape, dict[str, int]]:
    inner, groups, filters = (draw(st.integers(1, most)) for most in (19, 4, 8))
    try:
        shape = ConvShape(
            width=draw(st.integers(4, 19)),
            height=draw(st.integers(4, 10)),
            channels=inner * groups,
            filters=filters * groups,
            kernel=draw(st.integers(1, 4)),
            kernel_down=draw(st.integers(1, 4)),
            dilation=draw(st.integers(1, 4)),
            dilation_down=draw(st.integers(1, 3)),
            stride=draw(st.integers(1, 3)),
            stride_down=draw(st.integers(1, 2)),
            inner=inner if groups > 1 else None,
        )
    except KernelError:
        assume(False)
    parts = [size for size in range(1, inner + 1) if inner % size == 0]
    depths = [*parts, *(inner * number for number in range(2, groups + 1))]
    options = {
        "depth": draw(st.sampled_from(depths)),
        "out_depth": draw(st.sampled_from((1, filters, filters * groups))),
        "sharers": draw(st.integers(1, 4)),
    }
    return shape, options


def job_of(shape: ConvShape, seed: int, limit: int = 1000, **options: int) -> KernelJob:
    random = np.random.default_rng(seed)
    sizes = (
        (shape.height, shape.width, shape.channels),
        (shape.filters, shape.kernel_rows, shape.kernel, shape.group_channels),
        (shape.filters,),
    )
    arrays = [random.integers(-limit, limit, size, np.int16, endpoint=True) for size in sizes]
    return conv_job(shape, *arrays, fraction=8, **options)


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(cases(), st.booleans(), st.integers(0, 99), st.sampled_from((100, 30000)))
def test_the_kernel_equals_the_golden_model(
    case: tuple[ConvShape, dict[str, int]], reuse: bool, seed: int, limit: int
) -> None:
    shape, options = case
    try:
        job = job_of(shape, seed, limit, reuse=reuse, **options)
    except KernelError:
        # Too large for the scratchpad.
        assume(False)
    outputs, hazards = simulate(job)
    assert not hazards
    np.testing.assert_array_equal(outputs, job.expected)


@pytest.mark.parametrize("depth", [2, 6, 12])
@pytest.mark.parametrize("joined", [False, True])
def test_the_golden_model_is_that_of_a_dense_kernel(depth: int, joined: bool) -> None:
    random = np.random.default_rng(3)
    shape = ConvShape(
        width=9, height=8, channels=12, filters=4, kernel=2, dilation=3, dilation_down=2, inner=6
    )
    dense = ConvShape(width=9, height=8, channels=12, filters=4, kernel=4, kernel_down=3)
    image = random.integers(-300, 300, (8, 9, 12), np.int16)
    weights = random.integers(-300, 300, (4, 2, 2, 6), np.int16)
    bias = random.integers(-300, 300, 4, np.int16)
    more = {"depth": depth, "joined": joined, "fraction": 6, "relu": False}
    one = convolve(shape, image, weights, bias, **more)
    other = convolve(dense, image, expanded(shape, weights), bias, **more)
    np.testing.assert_array_equal(one, other)


def test_groups_that_do_not_fit_are_refused() -> None:
    with pytest.raises(KernelError, match="groups of 5 channels must divide 12 channels"):
        ConvShape(width=5, height=5, channels=12, filters=4, inner=5)
    with pytest.raises(KernelError, match="and their number 4 filters"):
        ConvShape(width=5, height=5, channels=12, filters=4, inner=4)
    shape = ConvShape(width=5, height=5, channels=12, filters=4, inner=6)
    with pytest.raises(KernelError, match="slices of 4 channels do not divide groups of 6"):
        plan_conv(shape, depth=4, out_depth=2)
    apart = ConvShape(width=5, height=5, channels=2, filters=4, dilation=2)
    with pytest.raises(KernelError, match="a map in strips has no pixels between"):
        plan_conv(apart, depth=2, out_depth=2, strips=True)


def test_dilation_and_groups_take_hardly_more_than_a_dense_layer() -> None:
    size = {"width": 18, "height": 12, "filters": 32}
    dense = ConvShape(**size, channels=16)
    plain = run_on(job_of(dense, 1, depth=16, reuse=True), design("vault"), on="model")
    groups = ConvShape(**size, channels=64, dilation=2, inner=16, padding=2)
    made = run_on(job_of(groups, 1, depth=16, reuse=True), design("vault"), on="model")
    assert plain.match
    assert made.match
    rate, dense_rate = groups.macs / made.cycles, dense.macs / plain.cycles
    assert rate > 0.9 * dense_rate


@pytest.mark.slow
def test_a_tile_on_the_verilog() -> None:
    shape = ConvShape(width=9, height=8, channels=24, filters=8, dilation=2, inner=12)
    job = job_of(shape, 2, depth=12, reuse=True, sharers=4)
    runs = [run_on(job, design("vault"), on=on) for on in ("rtl", "model")]
    assert all(run.match for run in runs)
    assert runs[0].cycles == runs[1].cycles


@pytest.mark.parametrize(
    ("sharers", "channels", "stride", "filled"), [(1, 1, 1, 3), (1, 6, 2, 0), (4, 6, 2, 2)]
)
def test_columns_are_filled_up_with_elements_that_do_not_count(
    sharers: int, channels: int, stride: int, filled: int
) -> None:
    """Where windows that share columns take fewer cycles by estimate than whole ones."""
    shape = ConvShape(width=13, height=13, channels=channels, filters=10, kernel=5, stride=stride)
    sizes = {"depth": channels, "out_depth": 10, "reuse": True, "sharers": sharers}
    plan = plan_conv(shape, **sizes)
    assert (plan.sliding, plan.filled) == (filled > 0, filled)
    job = job_of(shape, 4, 30000, **sizes)
    outputs, hazards = simulate(job)
    assert not hazards
    np.testing.assert_array_equal(outputs, job.expected)
