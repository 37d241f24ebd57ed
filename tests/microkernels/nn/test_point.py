"""Convolutions of single pixels with few products: kernel on the simulator, timing and Verilog."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from microkernels.common.errors import KernelError
from microkernels.common.feature_map import FeatureMap, PartMap, round_up
from microkernels.nn.jobs import layer_job
from microkernels.nn.line import line_program
from microkernels.nn.point import PointLayout, predict_point
from microkernels.nn.window_shape import ConvShape, convolve
from microkernels.runtime.job import Golden, KernelJob, simulate
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import design


def job_of(
    shape: ConvShape,
    seed: int = 1,
    *,
    relu: bool = True,
    around: int = 0,
    sharers: int = 4,
    scratchpad: int = 4096,
) -> KernelJob:
    """Parameters: around: pixels around the output, in whose map it is a part."""
    random = np.random.default_rng(seed)
    size = {"width": shape.width, "height": shape.height}
    maps = []
    base = 0
    for channels, edge in ((shape.channels, 0), (shape.filters, around)):
        whole = {"width": shape.width + 2 * edge, "height": shape.height + 2 * edge}
        maps.append(FeatureMap(base=base, **whole, channels=channels, depth=channels))
        base = round_up(maps[-1].end, 4096)
    source, target = maps
    if around:
        target = PartMap.of(target, left=around, top=around, **size)
    layout = PointLayout(
        shape=shape,
        fraction=6,
        relu=relu,
        source=source,
        target=target,
        base=base,
        sharers=sharers,
        scratchpad_bytes=scratchpad,
    )
    sizes = ((shape.height, shape.width, shape.channels), (shape.filters, 1, 1, shape.channels))
    image, weights = (random.integers(-900, 900, each).astype(np.int16) for each in sizes)
    bias = random.integers(-900, 900, shape.filters).astype(np.int16)

    def prepare(memory) -> None:
        source.store(memory, image)
        layout.store(memory, weights, bias)

    options = {"depth": shape.channels, "joined": True, "fraction": 6, "relu": relu}
    return layer_job(
        "pixels",
        layout,
        line_program(layout),
        prepare=prepare,
        outputs=target.load,
        golden=Golden(lambda: convolve(shape, image, weights, bias, **options)),
    )


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    st.tuples(st.integers(1, 9), st.integers(1, 20), st.integers(1, 17), st.integers(1, 40)),
    st.booleans(),
    st.integers(0, 1),
    st.integers(1, 4),
    st.sampled_from((2048, 4096)),
)
def test_the_kernel_equals_the_golden_model(
    sizes: tuple[int, int, int, int], relu: bool, around: int, sharers: int, scratchpad: int
) -> None:
    width, height, channels, filters = sizes
    shape = ConvShape(width=width, height=height, channels=channels, filters=filters, kernel=1)
    job = job_of(shape, relu=relu, around=around, sharers=sharers, scratchpad=scratchpad)
    outputs, hazards = simulate(job)
    assert not hazards
    np.testing.assert_array_equal(outputs, job.expected)


def test_eight_channels_use_most_of_the_multipliers() -> None:
    shape = ConvShape(width=32, height=32, channels=8, filters=8, kernel=1)
    run = run_on(job_of(shape), design("vault"), on="model")
    assert run.match
    assert shape.macs / (16 * run.cycles) > 0.55
    assert abs(predict_point(shape, sharers=4) / run.cycles - 1) < 0.15


@pytest.mark.parametrize(
    "attributes", [{"kernel": 2}, {"kernel": 1, "stride": 2}, {"kernel": 1, "inner": 4}]
)
def test_other_convolutions_are_refused(attributes: dict[str, int]) -> None:
    shape = ConvShape(width=4, height=4, channels=8, filters=8, **attributes)
    with pytest.raises(KernelError, match="filters of 8 channels do not fit pieces"):
        predict_point(shape, sharers=1)
    large = ConvShape(width=4, height=4, channels=64, filters=64, kernel=1)
    with pytest.raises(KernelError, match="filters of 64 channels do not fit pieces"):
        predict_point(large, sharers=1)


@pytest.mark.slow
def test_a_tile_on_the_verilog() -> None:
    job = job_of(ConvShape(width=5, height=9, channels=6, filters=4, kernel=1), around=1)
    runs = [run_on(job, design("vault"), on=on) for on in ("rtl", "model")]
    assert all(run.match for run in runs)
    assert runs[0].cycles == runs[1].cycles
