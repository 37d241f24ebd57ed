"""Convolutions on the timing model of a vault: predicted cycles, and columns that are read."""

from dataclasses import replace

import numpy as np
import pytest

from microkernels.nn.conv_search import best_depth, plan_conv
from microkernels.nn.jobs import conv_job, conv_layout
from microkernels.nn.window_shape import ConvShape
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import tile_preset

#: Width, height, channels, filters, kernel, stride, padding.
CASES = [
    (30, 30, 3, 32, 3, 1, 1),
    (16, 9, 64, 32, 3, 1, 0),
    (28, 28, 6, 16, 5, 1, 0),
    (29, 29, 3, 16, 5, 2, 2),
    (32, 32, 1, 8, 5, 2, 2),
    (12, 12, 24, 24, 3, 1, 1),
]


def cycles(case: tuple[int, ...], *, strips: bool, sharers: int) -> tuple[float, int]:
    """Predicted and measured."""
    width, height, channels, filters, kernel, stride, padding = case
    shape = ConvShape(
        width=width,
        height=height,
        channels=channels,
        filters=filters,
        kernel=kernel,
        stride=stride,
        padding=padding,
    )
    out_depth = min(filters, 16)
    depth = best_depth(shape, out_depth=out_depth)
    rng = np.random.default_rng(1)
    job = conv_job(
        shape,
        rng.integers(-1000, 1000, (height, width, channels)),
        rng.integers(-100, 100, (filters, kernel, kernel, channels)),
        rng.integers(-1000, 1000, filters),
        fraction=10,
        depth=depth,
        out_depth=out_depth,
        strips=strips,
        sharers=sharers,
    )
    plan = plan_conv(shape, depth=depth, out_depth=out_depth, strips=strips)
    outcome = run_on(job, replace(tile_preset("vault"), pes=sharers), on="model")
    assert outcome.match
    return plan.predicted_cycles(sharers), outcome.cycles


@pytest.mark.parametrize("strips", [False, True])
@pytest.mark.parametrize("sharers", [1, 4])
def test_predictions_are_near_the_timing_models_cycles(strips: bool, sharers: int) -> None:
    errors = []
    for case in CASES:
        predicted, measured = cycles(case, strips=strips, sharers=sharers)
        errors.append(abs(predicted / measured - 1))
    assert max(errors) < 0.27
    assert np.mean(errors) < 0.14


@pytest.mark.parametrize(("width", "height"), [(7, 28), (14, 14), (28, 7)])
def test_bytes_with_line_buffers_are_as_predicted(width: int, height: int) -> None:
    """Lines that hold a row of windows are read once, where there are fewer lines not."""
    shape = ConvShape(width=width + 2, height=height + 2, channels=96, filters=64)
    rng = np.random.default_rng(width)
    data = (
        rng.integers(-100, 100, (height + 2, width + 2, 96)),
        rng.integers(-100, 100, (64, 3, 3, 96)),
        rng.integers(-1000, 1000, 64),
    )
    size = {"bits": 8, "narrow": 8, "depth": 16, "sharers": 4, "reuse": True}
    job = conv_job(shape, *data, fraction=6, **size)  # type: ignore[arg-type]
    machine = replace(tile_preset("vault-int8"), line_buffer=32)
    outcome = run_on(job, machine, on="model")
    assert outcome.match
    counters = outcome.result.vaults[0]
    plan = conv_layout(shape, narrow=8, bits=8, depth=16, sharers=4, reuse=True).plan
    moved = 32 * (counters["READS"] + counters["WRITES"])
    assert plan.memory_bytes(4, 1, 32) == pytest.approx(moved, rel=0.15)


def test_windows_that_share_columns_read_fewer() -> None:
    """Half of conv5_1's columns, in no more cycles."""
    shape = ConvShape(width=16, height=9, channels=64, filters=32)
    rng = np.random.default_rng(1)
    data = (
        rng.integers(-1000, 1000, (9, 16, 64)),
        rng.integers(-100, 100, (32, 3, 3, 64)),
        rng.integers(-1000, 1000, 32),
    )
    runs = {}
    for reuse in (False, True):
        job = conv_job(shape, *data, fraction=10, sharers=4, reuse=reuse)
        outcome = run_on(job, tile_preset("vault"), on="model")
        assert outcome.match
        runs[reuse] = (outcome.result.vaults[0]["READS"], outcome.cycles)
    assert runs[True][0] < 0.6 * runs[False][0]
    assert runs[True][1] <= runs[False][1]


def test_partial_sums_of_two_pixels_share_columns() -> None:
    shape = ConvShape(width=9, height=5, channels=64, filters=8)
    rng = np.random.default_rng(1)
    data = (
        rng.integers(-100, 100, (5, 9, 64)),
        rng.integers(-100, 100, (8, 3, 3, 64)),
        rng.integers(-1000, 1000, 8),
    )
    job = conv_job(shape, *data, fraction=6, narrow=4, bits=8, depth=16, filters=8)
    outcome = run_on(job, replace(tile_preset("vault-int8"), pes=1), on="model")
    assert outcome.match
    # Sums of the first slice, bytes of the second, and in both those of a pipeline that fills.
    pixels, filling = 7 * 3, 7
    written = -(-pixels // 2) + pixels + 2 * filling
    assert outcome.result.vaults[0]["WRITES"] <= written
