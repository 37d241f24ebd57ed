"""Convolutions by the product of matrices, from a workspace: against a direct golden model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isa.workspace import WorkspaceError
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements
from microkernels.runtime.job import STANDARD, KernelJob, simulate
from tests.microkernels.lowered_convolution import lowered, lowered_convolution_job

from .test_suite_kernels import SEEDS, SOME, values


def _check(job: KernelJob) -> None:
    outputs, hazards = simulate(job, instructions=STANDARD | {"set.ws"})
    assert np.array_equal(outputs, job.expected)
    assert hazards == []


def _direct(
    image: Elements, filters: Elements, stride: int, padding: int, fraction: int
) -> Elements:
    """The convolution by its definition, pixel by pixel."""
    height, width, _ = image.shape
    count, kernel = filters.shape[:2]
    rows = (height + 2 * padding - kernel) // stride + 1
    columns = (width + 2 * padding - kernel) // stride + 1
    sums = np.zeros((rows, columns, count), np.int64)
    for y, x, ky, kx in np.ndindex(rows, columns, kernel, kernel):
        row, column = y * stride + ky - padding, x * stride + kx - padding
        if 0 <= row < height and 0 <= column < width:
            sums[y, x] += filters[:, ky, kx].astype(np.int64) @ image[row, column]
    rounded = sums + (1 << fraction >> 1) >> fraction
    return np.clip(rounded, -(1 << 15), (1 << 15) - 1).reshape(-1, count).astype(np.int16)


@SOME
@given(
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    channels=st.integers(1, 6),
    count=st.integers(1, 9),
    kernel=st.integers(1, 5),
    stride=st.integers(1, 4),
    padding=st.integers(0, 3),
    seed=SEEDS,
)
def test_convolution(
    height: int,
    width: int,
    channels: int,
    count: int,
    kernel: int,
    stride: int,
    padding: int,
    seed: int,
) -> None:
    kernel = min(kernel, min(height, width) + 2 * padding)
    image = values(seed, height, width, channels, limit=300)
    filters = values(seed + 1, count, kernel, kernel, channels, limit=300)
    job = lowered_convolution_job(image, filters, fraction=3, stride=stride, padding=padding)
    assert np.array_equal(job.expected, _direct(image, filters, stride, padding, 3))
    _check(job)


def test_the_lowered_matrix_is_stored_nowhere() -> None:
    image, filters = values(1, 12, 12, 8, limit=9), values(2, 4, 3, 3, 8, limit=9)
    job = lowered_convolution_job(image, filters, fraction=0, padding=1)
    assert lowered(image, 3, 1, 1).nbytes > job.end
    _check(job)


@pytest.mark.parametrize(
    ("image", "filters", "settings", "error", "message"),
    [
        ((4, 4, 2), (1, 3, 2, 2), {}, KernelError, "filters must be square, not 3 x 2"),
        ((4, 4, 2), (1, 3, 3, 3), {}, KernelError, "do not fit an image of"),
        ((2, 4, 2), (1, 3, 3, 2), {}, KernelError, "a kernel of 3 pixels does not fit"),
        (
            (9, 9, 30),
            (1, 3, 3, 30),
            {},
            KernelError,
            "inner must be a whole number from 1 to 256, not 270",
        ),
        (
            (9, 9, 2),
            (1, 3, 3, 2),
            {"stride": 16},
            WorkspaceError,
            "stride must be a whole number from 1 to 15",
        ),
        (
            (9, 9, 2),
            (1, 3, 3, 2),
            {"padding": 16},
            WorkspaceError,
            "padding must be a whole number from 0 to 15",
        ),
    ],
)
def test_bad_shapes(image, filters, settings, error, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        lowered_convolution_job(values(1, *image), values(2, *filters), fraction=0, **settings)


def test_engines_without_a_workspace_are_refused() -> None:
    job = lowered_convolution_job(values(1, 3, 3, 1), values(2, 1, 3, 3, 1), fraction=0)
    with pytest.raises(KernelError, match=r"the program needs set\.ws"):
        simulate(job)
