"""Softmax and normalisations of rows: golden model, kernel on the simulator, error."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from microkernels.common.errors import KernelError
from microkernels.common.feature_map import FeatureMap, round_up
from microkernels.nn.jobs import layer_job
from microkernels.nn.line import line_program
from microkernels.nn.rows import RowsLayout
from microkernels.nn.rows_shape import NormalizeShape, normalize
from microkernels.runtime.job import Golden, KernelJob, simulate

#: Alignment of maps in different rows of the memory.
_APART = 4096


def layer(shape: NormalizeShape, image: np.ndarray, *, sharers: int = 2) -> KernelJob:
    size = {"width": shape.width, "height": shape.height, "channels": shape.channels}
    source = FeatureMap(base=0, **size, depth=shape.channels)
    target = FeatureMap(base=round_up(source.end, _APART), **size, depth=shape.channels)
    base = round_up(target.end, _APART)
    layout = RowsLayout(shape=shape, source=source, target=target, base=base, sharers=sharers)

    def prepare(memory) -> None:
        source.store(memory, image)
        layout.store(memory)

    return layer_job(
        shape.operation,
        layout,
        line_program(layout),
        prepare=prepare,
        outputs=target.load,
        golden=Golden(lambda: normalize(shape, image)),
    )


def softmax_shape(width: int, height: int, channels: int, source: int) -> NormalizeShape:
    return NormalizeShape(
        width=width,
        height=height,
        channels=channels,
        operation="softmax",
        source=source,
        factor=14,
    )


def normal_shape(operation: str, width: int, height: int, channels: int) -> NormalizeShape:
    return NormalizeShape(
        width=width,
        height=height,
        channels=channels,
        operation=operation,
        factor=23,
        fraction=12,
        epsilon=40,
    )


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    operation=st.sampled_from(["softmax", "layer", "rms"]),
    size=st.tuples(st.integers(1, 3), st.integers(1, 11), st.integers(1, 40)),
    source=st.integers(-3, 17),
    magnitude=st.integers(0, 15),
    seed=st.integers(0, 99),
)
def test_the_kernel_equals_the_golden_model(
    operation: str, size: tuple[int, int, int], source: int, magnitude: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    width, height, channels = size
    image = random.integers(-1 << magnitude, 1 << magnitude, (height, width, channels))
    if operation == "softmax":
        shape = softmax_shape(*size, source)
    else:
        shape = normal_shape(operation, *size)
    job = layer(shape, image)
    outputs, hazards = simulate(job)
    np.testing.assert_array_equal(outputs, job.expected)
    assert not hazards


@pytest.mark.parametrize("operation", ["softmax", "layer", "rms"])
def test_rows_of_a_whole_vector(operation: str) -> None:
    size = (1, 3, 256)
    shape = softmax_shape(*size, 11) if operation == "softmax" else normal_shape(operation, *size)
    image = np.random.default_rng(3).integers(-16000, 16000, (3, 1, 256))
    job = layer(shape, image, sharers=1)
    outputs, hazards = simulate(job)
    np.testing.assert_array_equal(outputs, job.expected)
    assert not hazards


@pytest.mark.parametrize(("channels", "rows"), [(257, 5), (600, 2), (1000, 3), (1024, 1)])
@pytest.mark.parametrize("operation", ["softmax", "layer", "rms"])
def test_rows_of_several_segments(operation: str, channels: int, rows: int) -> None:
    size = (2, rows, channels)
    shape = softmax_shape(*size, 11) if operation == "softmax" else normal_shape(operation, *size)
    image = np.random.default_rng(channels).integers(-16000, 16000, (rows, 2, channels))
    job = layer(shape, image)
    outputs, hazards = simulate(job)
    np.testing.assert_array_equal(outputs, job.expected)
    assert not hazards


@pytest.mark.parametrize("channels", [2, 16, 100, 256, 1000])
@pytest.mark.parametrize("source", [-2, 5, 11, 12, 14, 16])
def test_softmax_is_within_a_thousandth(channels: int, source: int) -> None:
    random = np.random.default_rng(channels + source)
    rows = random.uniform(-1, 1, (50, 1, channels)) * random.uniform(0.1, 1, (50, 1, 1))
    image = np.round(rows * min(2.0**14, 8 * 2.0**source)).astype(np.int16)
    real = image / 2.0**source
    wanted = np.exp(real - real.max(axis=2, keepdims=True))
    wanted /= wanted.sum(axis=2, keepdims=True)
    factor = int(np.floor(np.log2(32767.5 / wanted.max())))
    shape = NormalizeShape(
        width=1, height=50, channels=channels, operation="softmax", source=source, factor=factor
    )
    found = normalize(shape, image) / 2.0**factor
    assert np.abs(found - wanted).max() <= 5e-4 * wanted.max()
    np.testing.assert_allclose(found.sum(axis=2), 1, atol=max(4e-3, 1e-5 * channels))


@pytest.mark.parametrize("operation", ["layer", "rms"])
@pytest.mark.parametrize("channels", [8, 64, 256, 1000])
def test_normalisations_are_within_a_thousandth(operation: str, channels: int) -> None:
    """Rows whose deviations differ by factors of 8."""
    random = np.random.default_rng(channels)
    scale = 2.0 ** random.uniform(9, 12, (40, 2, 1))
    image = np.round(random.normal(size=(40, 2, channels)) * scale + 500).clip(-32768, 32767)
    centred = image - image.mean(axis=2, keepdims=True) if operation == "layer" else image
    deviation = np.sqrt(np.square(centred).mean(axis=2, keepdims=True) + 40)
    wanted = centred / deviation
    shape = normal_shape(operation, 2, 40, channels)
    found = normalize(shape, image.astype(np.int16)) / 2.0**11
    assert np.abs(found - wanted).max() <= 1e-3 * np.abs(wanted).max()


def test_a_row_of_zeros_stays_zero() -> None:
    shape = NormalizeShape(
        width=1, height=1, channels=8, operation="layer", factor=23, fraction=12, epsilon=0
    )
    assert not normalize(shape, np.zeros((1, 1, 8), np.int16)).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"channels": 2049}, "channels must be a whole number from 1 to 2048"),
        ({"operation": "group"}, "operation must be"),
        ({"source": -4}, "source must be a whole number from -3 to 30"),
        ({"factor": 29}, "factor must be a whole number from 0 to 28"),
        ({"epsilon": 1}, "softmax has no epsilon"),
        ({"operation": "rms", "source": 0, "fraction": 3}, "rms needs epsilon"),
    ],
)
def test_bad_shapes_are_refused(change: dict[str, object], message: str) -> None:
    values = {
        "width": 1, "height": 1, "channels": 8, "operation": "softmax", "source": 9, "factor": 14
    }  # fmt: skip
    with pytest.raises(KernelError, match=message):
        NormalizeShape(**{**values, **change})  # type: ignore[arg-type]


def test_maps_with_several_slices_are_refused() -> None:
    shape = softmax_shape(1, 4, 8, 11)
    held = FeatureMap(base=0, width=1, height=4, channels=8, depth=4)
    other = FeatureMap(base=4096, width=1, height=4, channels=8, depth=8)
    with pytest.raises(KernelError, match="source must have one slice of 8 channels"):
        RowsLayout(shape=shape, source=held, target=other, base=8192)
    with pytest.raises(KernelError, match="needs a scratchpad of"):
        RowsLayout(shape=shape, source=other, target=other, base=8192, scratchpad_bytes=64)
