"""Convolutions of bytes on the instruction set simulator against their golden model, and that model
against sums in Python."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import BYTE, Elements, pack, packed, unpack
from microkernels.nn.jobs import conv_job, conv_layout
from microkernels.nn.window_shape import ConvShape, convolve
from microkernels.runtime.job import STANDARD, KernelJob, simulate
from tests.microkernels.nn.test_conv import shapes

INSTRUCTIONS = STANDARD | {"m.v.dot.add[16]"}


def data(shape: ConvShape, seed: int, limit: int = 128) -> tuple[Elements, Elements, Elements]:
    random = np.random.default_rng(seed)
    image = random.integers(-limit, limit, (shape.height, shape.width, shape.channels))
    size = (shape.filters, shape.kernel_rows, shape.kernel, shape.channels)
    weights = random.integers(-limit, limit, size)
    return image, weights, random.integers(-2000, 2000, shape.filters)


#: A convolution of bytes.
bytes_job = partial(conv_job, bits=8)


def check(job: KernelJob, seed: int = 0) -> None:
    outputs, hazards = simulate(job, seed=seed, instructions=INSTRUCTIONS)
    assert np.array_equal(outputs, job.expected)
    assert not hazards


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    shape=shapes(),
    seed=st.integers(0, 1 << 20),
    strips=st.booleans(),
    reuse=st.booleans(),
    sharers=st.integers(1, 4),
    fraction=st.integers(0, 15),
    bits=st.sampled_from([16, 8]),
    narrow=st.none() | st.integers(0, 8),
    relu=st.booleans(),
)
def test_equals_the_golden_model(
    shape: ConvShape,
    seed: int,
    strips: bool,
    reuse: bool,
    sharers: int,
    fraction: int,
    bits: int,
    narrow: int | None,
    relu: bool,
) -> None:
    numbers = {"fraction": fraction, "narrow": narrow, "relu": relu, "bits": bits}
    more = {"strips": strips, "reuse": reuse, "sharers": sharers, "out_padding": seed % 2}
    limit = 128 if bits == 8 else 1 << 6 + fraction // 2
    check(bytes_job(shape, *data(shape, seed, limit), **numbers, **more), seed)  # type: ignore[arg-type]


def test_sums_of_several_slices() -> None:
    shape = ConvShape(width=5, height=4, channels=301, filters=6, kernel=2)
    check(bytes_job(shape, *data(shape, 1), fraction=9, depth=64, sharers=2))


@pytest.mark.parametrize("narrow", [0, 8])
@pytest.mark.parametrize("fraction", [4, 9])
def test_groups_of_unequal_size(narrow: int, fraction: int) -> None:
    shape = ConvShape(width=6, height=5, channels=5, filters=22, kernel=2)
    numbers = {"fraction": fraction, "narrow": narrow, "filters": 6, "out_depth": 14}
    job = bytes_job(shape, *data(shape, 5), depth=5, sharers=2, **numbers)  # type: ignore[arg-type]
    check(job)


@pytest.mark.parametrize("narrow", [0, 3, 8])
def test_the_model_is_the_sum_that_is_rounded_twice(narrow: int) -> None:
    shape = ConvShape(width=4, height=3, channels=5, filters=2, kernel=2, padding=1)
    image, weights, bias = data(shape, 3)
    found = convolve(
        shape,
        image,
        weights,
        bias,
        depth=3,
        joined=True,
        fraction=4,
        narrow=narrow,
        relu=False,
        bits=8,
    )
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)))
    for y, x, o in np.ndindex(found.shape):
        window = padded[y : y + 2, x : x + 2]
        total = sum(int(a) * int(b) for a, b in zip(window.flat, weights[o].flat, strict=True))
        value = np.clip(((total + 8) >> 4) + int(bias[o]), -32768, 32767)
        value = (int(value) + (1 << narrow >> 1)) >> narrow
        assert found[y, x, o] == max(-128, min(127, value))
    assert found.dtype == BYTE


def test_slices_chosen_for_outputs_of_bytes_fit() -> None:
    shape = ConvShape(width=16, height=16, channels=130, filters=4)
    assert conv_layout(shape, bits=8, narrow=4).plan.narrow == 4


def test_pairs_of_bytes() -> None:
    values = np.array([[1, -2, -128], [127, 0, 5]])
    assert pack(values, 8).tolist() == [[0xFE01 - 65536, 0x80], [127, 5]]
    assert np.array_equal(unpack(pack(values, 8), 8, 3), values)


def test_saturation_is_counted() -> None:
    shape = ConvShape(width=3, height=3, channels=64, filters=2)
    image, weights, bias = (np.full_like(each, 127) for each in data(shape, 1))
    job = bytes_job(shape, image, weights, bias, fraction=6, narrow=6)
    assert job.expected.tolist() == [[[127, 127]]]
    assert job.saturated


def test_it_needs_its_instruction() -> None:
    shape = ConvShape(width=3, height=3, channels=2, filters=2)
    job = bytes_job(shape, *data(shape, 1), fraction=0)
    with pytest.raises(KernelError, match=r"^convolution of bytes: the program needs m\.v\.dot"):
        simulate(job)


SMALL = ConvShape(width=3, height=3, channels=2, filters=4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fraction": 16}, "fraction bits must be a whole number from 0 to 15, not 16"),
        ({"narrow": 9}, "shifted by to bytes must be a whole number from 0 to 8, not 9"),
    ],
)
def test_bad_layers(change: dict[str, int], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        bytes_job(SMALL, *data(SMALL, 1), **{"fraction": 3, **change})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"out_depth": 3}, "even number of filters in a slice of the output, not 3"),
        ({"filters": 1}, "filters at once must be even for outputs of bytes, not 1"),
    ],
)
def test_bad_plans(more: dict[str, int], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        bytes_job(SMALL, *data(SMALL, 1), fraction=3, narrow=4, **more)  # type: ignore[arg-type]


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    shape=shapes(),
    seed=st.integers(0, 1 << 20),
    channels=st.integers(3, 90),
    slices=st.integers(2, 5),
    sharers=st.integers(1, 4),
    narrow=st.integers(0, 8),
    relu=st.booleans(),
    bits=st.sampled_from([16, 8]),
)
def test_sums_of_several_slices_become_bytes(
    shape: ConvShape,
    seed: int,
    channels: int,
    slices: int,
    sharers: int,
    narrow: int,
    relu: bool,
    bits: int,
) -> None:
    shape = replace(shape, channels=channels)
    depth = max(1, min(-(-channels // packed(bits)) // slices, 40 // shape.down))
    numbers = {"fraction": seed % 16, "narrow": narrow, "relu": relu, "depth": depth}
    numbers["bits"] = bits
    more = {"reuse": bool(seed % 2), "sharers": sharers, "out_padding": seed % 3 % 2}
    check(bytes_job(shape, *data(shape, seed), **numbers, **more), seed)  # type: ignore[arg-type]


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    width=st.integers(2, 7),
    height=st.integers(2, 5),
    seed=st.integers(0, 1 << 20),
    slices=st.integers(2, 4),
    groups=st.integers(1, 3),
    sharers=st.integers(1, 4),
    narrow=st.sampled_from([0, 3, 8]),
    relu=st.booleans(),
    gap_down=st.integers(1, 2),
)
def test_sums_of_two_pixels_together(
    width: int,
    height: int,
    seed: int,
    slices: int,
    groups: int,
    sharers: int,
    narrow: int,
    relu: bool,
    gap_down: int,
) -> None:
    shape = ConvShape(
        width=width,
        height=height + gap_down - 1,
        channels=10 * slices - seed % 9,
        filters=8 * groups,
        kernel=2,
        dilation_down=gap_down,
    )
    numbers = {"fraction": 3 + seed % 8, "narrow": narrow, "relu": relu}
    more = {"depth": 5, "filters": 8, "reuse": bool(seed % 2), "sharers": sharers}
    plan = conv_layout(shape, bits=8, narrow=narrow, **more).plan  # type: ignore[arg-type]
    assert plan.sums_together == 2
    assert plan.slices == slices
    check(bytes_job(shape, *data(shape, seed), **numbers, **more), seed)  # type: ignore[arg-type]


def test_numbers_that_are_no_bytes() -> None:
    image, weights, bias = data(SMALL, 1)
    with pytest.raises(KernelError, match="image must be from -128 to 127, but goes"):
        bytes_job(SMALL, image + 200, weights, bias, fraction=3, narrow=8)
    with pytest.raises(KernelError, match="bias with half of an output's last place must be"):
        bytes_job(SMALL, image, weights, bias * 0 + 32767, fraction=3, narrow=8)
