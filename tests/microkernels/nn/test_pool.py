"""The pooling kernel on the instruction set simulator against its golden model, and that model
against ONNX's reference."""

from dataclasses import replace

import numpy as np
import onnx.parser
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from microkernels.common.errors import KernelError
from microkernels.common.feature_map import FeatureMap
from microkernels.common.fixed_point import Elements
from microkernels.nn.jobs import pool_job
from microkernels.nn.line import line_program
from microkernels.nn.pool import PoolLayout
from microkernels.nn.window_shape import PoolShape, pool
from microkernels.runtime.job import execute, simulate

#: Columns up to which a window takes little time on the simulator in Python.
_SIMULATED = 500


def values(seed: int, *shape: int, limit: int = 1000) -> Elements:
    return np.random.default_rng(seed).integers(-limit, limit, shape, np.int16, endpoint=True)


@st.composite
def shapes(draw: st.DrawFn, segments: int = 8, bits: int = 16) -> PoolShape:
    window = draw(st.integers(1, 4))
    count = draw(st.integers(1, segments))
    padding = draw(st.integers(0, window - 1)) if count == 1 else 0
    least = max(1, window - 2 * padding)
    return PoolShape(
        width=draw(st.integers(least, 9)),
        height=draw(st.integers(least, 9)),
        channels=draw(st.integers(1, 70)),
        kernel=window,
        stride=draw(st.integers(1, 4)),
        padding=padding,
        mean=bits == 16 and draw(st.booleans()),
        segments=count,
        bits=bits,
    )


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    shape=shapes(),
    depth=st.integers(1, 64),
    biased=st.booleans(),
    relu=st.booleans(),
    sharers=st.integers(1, 4),
    limit=st.sampled_from([50, 30000]),
    seed=st.integers(0, 1 << 20),
)
def test_equals_the_golden_model(
    shape: PoolShape,
    depth: int,
    biased: bool,
    relu: bool,
    sharers: int,
    limit: int,
    seed: int,
) -> None:
    assume(shape.kernel * depth <= 256)
    assume(shape.kernel * shape.kernel * shape.segments * depth <= 1500)
    job = pool_job(
        shape,
        values(seed, shape.segments, shape.height, shape.width, shape.channels, limit=limit),
        values(seed + 1, shape.channels, limit=limit) if biased else None,
        relu=relu,
        depth=depth,
        out_padding=seed % 2,
        sharers=sharers,
        base=32 * (seed % 3),
    )
    outputs, hazards = simulate(job, seed=seed)
    assert np.array_equal(outputs, job.expected)
    assert not hazards


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    window=st.integers(90, 2000),
    down=st.integers(1, 5),
    segments=st.integers(1, 2),
    channels=st.integers(1, 3),
    mean=st.booleans(),
    biased=st.booleans(),
    stride=st.integers(1, 3),
    limit=st.sampled_from([3, 30000]),
    seed=st.integers(0, 1 << 20),
)
def test_long_windows_equal_the_golden_model(
    window: int,
    down: int,
    segments: int,
    channels: int,
    mean: bool,
    biased: bool,
    stride: int,
    limit: int,
    seed: int,
) -> None:
    """Windows of which programs without a loop, or the scratchpad, hold only the shortest."""
    padding = seed % 3 if segments == 1 else 0
    shape = PoolShape(
        width=window + seed % 2 * stride - 2 * padding,
        height=down,
        channels=channels,
        kernel=window,
        kernel_down=down + 2 * padding,
        stride=stride,
        padding=padding,
        mean=mean,
        segments=segments,
    )
    job = pool_job(
        shape,
        values(seed, segments, shape.height, shape.width, channels, limit=limit),
        values(seed + 1, channels) if biased else None,
        relu=seed % 4 == 0,
        sharers=1 + seed % 2,
        depth=1 + seed % channels,
    )
    assert len(job.program.words) <= 1024
    assert execute(job).match
    if window < _SIMULATED:
        outputs, hazards = simulate(job, seed=seed)
        assert np.array_equal(outputs, job.expected)
        assert not hazards


def layout(window: int, instruction_words: int) -> PoolLayout:
    shape = PoolShape(width=window, height=1, channels=1, kernel=window, kernel_down=1)
    source = FeatureMap(base=0, width=window, height=1, channels=1, depth=1)
    target = replace(source, base=1 << 16, width=1)
    return PoolLayout(
        shape=shape,
        source=source,
        target=target,
        base=1 << 17,
        instruction_words=instruction_words,
    )


@pytest.mark.parametrize(("instruction_words", "longest"), [(512, 46), (1024, 103)])
def test_programs_have_a_loop_only_where_they_must(instruction_words: int, longest: int) -> None:
    words = [
        len(line_program(layout(window, instruction_words)).words)
        for window in (longest - 1, longest, longest + 1, 250, 2000)
    ]
    assert words[0] < words[1] <= instruction_words
    assert max(words[2:]) < 200


@settings(max_examples=30, deadline=None, derandomize=True)
@given(shape=shapes(segments=1), seed=st.integers(0, 1 << 20))
def test_golden_model_is_near_the_reference(shape: PoolShape, seed: int) -> None:
    """A maximum is exact; a mean within half a unit and what its reciprocal lacks."""
    assume(shape.padding * 2 <= shape.kernel)
    maps = values(seed, 1, shape.height, shape.width, shape.channels)
    kind = "AveragePool <count_include_pad = 1," if shape.mean else "MaxPool <"
    window = f"[{shape.kernel}, {shape.kernel}]"
    pads = ", ".join([str(shape.padding)] * 4)
    model = onnx.parser.parse_model(
        f"""
        <ir_version: 8, opset_import: ["" : 17]>
        graph (float[1, C, H, W] x) => (float[1, C, P, Q] y) {{
            y = {kind} kernel_shape = {window}, strides = [{shape.stride}, {shape.stride}],
                pads = [{pads}]> (x)
        }}"""
    )
    image = maps[0].transpose(2, 0, 1)[np.newaxis].astype(np.float32)
    (real,) = ReferenceEvaluator(model).run(None, {"x": image})
    error = np.abs(pool(shape, maps) - real[0].transpose(1, 2, 0))
    assert error.max() <= (0.5 + 16 * 1000 / (1 << 16) + 1e-3 if shape.mean else 0)


def test_completes_and_pools_partial_sums() -> None:
    """The operations after a convolution of several segments: sums, maximum, bias, ReLU."""
    shape = PoolShape(width=4, height=4, channels=2, segments=3)
    maps = np.zeros((3, 4, 4, 2), np.int16)
    maps[:, 1, 1, 0] = (5, 6, 7)
    maps[:, :, :, 1] = -10
    out = pool(shape, maps, np.array([100, 20]), relu=True)
    assert out[0, 0].tolist() == [118, 0]
    assert out[1, 1].tolist() == [100, 0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": 9}, "a window of 9 does not fit a map of 4 x 4"),
        ({"padding": 2}, "padding must be from 0 to 1"),
        ({"padding": 1, "segments": 2}, "can't be padded"),
        ({"channels": 0}, "channels must be at least 1"),
        ({"dilation_down": 2, "height": 9}, "no pixels between its own"),
        (
            {"width": 65537, "height": 1, "kernel": 65537, "kernel_down": 1, "mean": True},
            "a mean takes at most 65,536 pixels, not 65537 x 1",
        ),
    ],
)
def test_shapes_that_can_not_be(changes: dict[str, int], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        PoolShape(**{"width": 4, "height": 4, "channels": 2, **changes})


def test_windows_that_do_not_fit() -> None:
    shape = PoolShape(width=8, height=8, channels=200, segments=4)
    maps = values(1, 4, 8, 8, 200)
    with pytest.raises(KernelError, match="give slices of at most 128 channels"):
        pool_job(shape, maps, depth=200)
    with pytest.raises(
        KernelError, match="a scratchpad of 2048 bytes: give slices of at most 84 channels"
    ):
        pool_job(shape, maps, depth=128, scratchpad_bytes=2048)
    with pytest.raises(KernelError, match=r"bias must have the shape \(200,\)"):
        pool_job(shape, maps, values(2, 100), depth=32)
