"""The kernels of the application suite on the instruction set simulator: equal to their golden
models for any shape, and safe on any memory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microkernels.apps import gauss
from microkernels.apps.bitonic_sort import bitonic_sort_job
from microkernels.apps.convolve_image import ImageFilter, convolve_image, convolve_image_job
from microkernels.apps.digits import (
    ACTIVATION_FRACTION,
    load_digits,
    nin_fixed_scores,
    trained_nin,
)
from microkernels.apps.gauss import diffusion_system, gauss_job, solve
from microkernels.apps.kmeans import FRACTION, assign, kmeans_job, moved_centres
from microkernels.apps.matrix_add import matrix_add_job
from microkernels.apps.matrix_multiply import matrix_multiply_job
from microkernels.apps.matrix_transpose import matrix_transpose_job
from microkernels.apps.median_pool import median_pool, median_pool_job
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements, real_of
from microkernels.data.pictures import photograph
from microkernels.runtime.job import KernelJob, simulate
from tests.microkernels.digits import nin_hidden

SEEDS = st.integers(0, 1 << 20)
LIMITS = st.sampled_from([100, 3000, 32767])
SOME = settings(max_examples=15, deadline=None, derandomize=True)


def values(seed: int, *shape: int, limit: int = 32767) -> Elements:
    rng = np.random.default_rng(seed)
    return rng.integers(-limit - 1, limit, shape, np.int16, endpoint=True)


def check(job: KernelJob) -> None:
    outputs, hazards = simulate(job)
    assert np.array_equal(outputs, job.expected)
    assert [str(hazard) for hazard in hazards] == []


@SOME
@given(rows=st.integers(1, 40), columns=st.integers(1, 40), seed=SEEDS)
def test_matrix_addition(rows: int, columns: int, seed: int) -> None:
    check(matrix_add_job(values(seed, rows, columns), values(seed + 1, rows, columns)))


@SOME
@given(
    rows=st.integers(1, 20),
    inner=st.integers(1, 256),
    columns=st.integers(1, 40),
    fraction=st.integers(0, 15),
    limit=LIMITS,
    seed=SEEDS,
)
def test_matrix_multiplication(
    rows: int, inner: int, columns: int, fraction: int, limit: int, seed: int
) -> None:
    first = values(seed, rows, inner, limit=limit)
    check(
        matrix_multiply_job(first, values(seed + 1, inner, columns, limit=limit), fraction=fraction)
    )


@SOME
@given(rows=st.integers(1, 140), columns=st.integers(1, 14), seed=SEEDS)
def test_matrix_transpose(rows: int, columns: int, seed: int) -> None:
    check(matrix_transpose_job(values(seed, rows, columns)))


@st.composite
def filters(draw: st.DrawFn) -> ImageFilter:
    down, across = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    tap = st.sampled_from([0, 1, -1, 2, -3, 127])
    taps = draw(
        st.lists(st.tuples(*[tap] * across), min_size=down, max_size=down).filter(
            lambda rows: any(any(row) for row in rows)
        )
    )
    return ImageFilter(tuple(taps), draw(st.integers(0, 6)))


@SOME
@given(
    kernel=filters(), height=st.integers(4, 12), width=st.integers(4, 400), limit=LIMITS, seed=SEEDS
)
def test_image_convolution(
    kernel: ImageFilter, height: int, width: int, limit: int, seed: int
) -> None:
    check(convolve_image_job(kernel, values(seed, height, width, limit=limit)))


def test_image_convolution_is_one() -> None:
    """Where nothing saturates, it is what NumPy's sums of products give."""
    image = photograph(12, 20).astype(np.int64)
    taps = np.array([[1, 2, 0], [-3, 4, 1]])
    expected = sum(taps[y, x] * image[y : y + 11, x : x + 18] for y in range(2) for x in range(3))
    kernel = ImageFilter(tuple(map(tuple, taps.tolist())), shift=1)
    assert np.array_equal(convolve_image(kernel, image), (expected + 1) >> 1)


@SOME
@given(rows=st.integers(1, 4), stages=st.integers(3, 8), seed=SEEDS, limit=LIMITS)
def test_bitonic_sort(rows: int, stages: int, seed: int, limit: int) -> None:
    check(bitonic_sort_job(values(seed, rows, 1 << stages, limit=limit)))


@SOME
@given(height=st.integers(3, 20), width=st.integers(3, 400), stride=st.integers(1, 8), seed=SEEDS)
def test_median_pooling(height: int, width: int, stride: int, seed: int) -> None:
    image = values(seed, height, width, limit=127)
    check(median_pool_job(image, stride))
    y, x = (height - 3) // stride, (width - 3) // stride
    window = image[y * stride : y * stride + 3, x * stride : x * stride + 3]
    assert median_pool(image, stride)[y, x] == np.median(window)


@SOME
@given(
    points=st.integers(1, 40),
    coordinates=st.integers(1, 60),
    centres=st.integers(1, 12),
    limit=st.sampled_from([4, 40, 32767]),
    seed=SEEDS,
)
def test_kmeans(points: int, coordinates: int, centres: int, limit: int, seed: int) -> None:
    found = values(seed, points, coordinates, limit=limit)
    around = values(seed + 1, centres, coordinates, limit=min(20, limit)) << FRACTION
    check(kmeans_job(found, around))


def test_kmeans_is_one() -> None:
    """Assignments are those of exact distances, and each round makes the clusters tighter."""
    rng = np.random.default_rng(3)
    middles = rng.integers(0, 100, (3, 5))
    points = (middles[rng.integers(0, 3, 60)] + rng.integers(-3, 3, (60, 5))).astype(np.int16)
    centres = points[:3] << FRACTION
    spreads = []
    for _ in range(4):
        distances = ((points[:, np.newaxis] - centres / (1 << FRACTION)) ** 2).sum(axis=2)
        found = assign(points, centres)
        # Costs are rounded to whole numbers.
        assert np.all(
            np.take_along_axis(distances, found[:, np.newaxis], 1)[:, 0]
            <= distances.min(axis=1) + 3
        )
        spreads.append(distances.min(axis=1).sum())
        centres = moved_centres(points, found, centres)
    assert spreads[-1] < spreads[0]
    far = np.full((1, 5), 20000, np.int16)
    assert np.array_equal(moved_centres(points, found, np.vstack([centres, far]))[-1:], far)


@SOME
@given(unknowns=st.integers(1, 20), systems=st.integers(1, 3), seed=SEEDS)
def test_gaussian_elimination(unknowns: int, systems: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrices = np.eye(unknowns) + rng.uniform(-0.4, 0.4, (systems, unknowns, unknowns)) / unknowns
    right = rng.uniform(-50, 50, (systems, unknowns, 1))
    fixed = np.concatenate([matrices, right], axis=2) * (1 << gauss.FRACTION)
    job = gauss_job(np.floor(fixed + 0.5).astype(np.int32))
    check(job)
    exact = np.linalg.solve(matrices, right)[:, :, 0]
    assert np.abs(job.expected / (1 << gauss.FRACTION) - exact).max() < 1e-3


def test_diffusion_smooths_but_keeps_the_sum() -> None:
    image = np.array([[0.0, 0.1, 0.0, 0.1], [0.9, 1.0, 0.9, 1.0]])
    found = solve(diffusion_system(image)[np.newaxis])[0] / (1 << gauss.FRACTION)
    assert found.sum() == pytest.approx(image.sum(), abs=1e-4)
    after = found.reshape(image.shape)
    assert np.ptp(after[0]) < 0.1
    assert after[1].min() - after[0].max() > 0.7


REFUSED = [
    (lambda: matrix_add_job(values(1, 2, 2), values(1, 2, 3)), r"second must have the shape"),
    (
        lambda: matrix_add_job(values(1, 0, 2), values(1, 0, 2)),
        "elements must be a whole number from 1 to",
    ),
    (lambda: matrix_multiply_job(values(1, 2, 3), values(1, 2, 3), fraction=0), "can't be mult"),
    (
        lambda: matrix_multiply_job(values(1, 2, 300), values(1, 300, 2), fraction=0),
        "inner must be a whole number from 1 to 256, not 300",
    ),
    (
        lambda: matrix_multiply_job(values(1, 2, 3), values(1, 3, 2), fraction=16),
        "fraction bits must be a whole number from 0 to 15",
    ),
    (lambda: matrix_transpose_job(values(1, 5)), "a matrix must have two dimensions, not 1"),
    (lambda: matrix_transpose_job(values(1, 5, 1).astype(float)), "must be whole numbers"),
    (lambda: ImageFilter(((0, 0),)), "must not all be 0"),
    (lambda: ImageFilter(((1, 0), (1,))), "rows must have equal lengths"),
    (lambda: ImageFilter(((200,),)), "a tap must be a whole number from -127 to 127, not 200"),
    (
        lambda: convolve_image_job(ImageFilter(((1, 1, 1),)), values(1, 5, 2)),
        "columns of the image must be a whole number from 3 to 4096, not 2",
    ),
    (lambda: bitonic_sort_job(values(1, 1, 24)), "must be a power of two, not 24"),
    (lambda: bitonic_sort_job(values(1, 1, 512)), "must be a whole number from 8 to 256, not 512"),
    (lambda: median_pool_job(values(1, 5, 5)), "image must be from -128 to 127, but goes"),
    (
        lambda: median_pool_job(values(1, 5, 5), stride=9),
        "stride must be a whole number from 1 to 8, not 9",
    ),
    (lambda: kmeans_job(values(1, 5, 4), values(1, 5, 3)), "do not fit"),
    (lambda: kmeans_job(values(1, 5, 255), values(1, 30, 255)), "do not fit the scratchpad"),
    (
        lambda: kmeans_job(values(1, 5, 20), np.full((1, 20), 32767, np.int16)),
        "centres and halves of their squares must be from -32768 to 32767",
    ),
    (lambda: gauss_job(np.zeros((1, 3, 3), np.int32)), "must be systems x unknowns x"),
    (
        lambda: gauss_job(np.full((1, 1, 2), 1 << 22, np.int32)),
        "pivot 0 of system 0 is 4.000, not from 0.5 to 1.5",
    ),
    (lambda: photograph(600, 10), "height must be a whole number from 1 to 512, not 600"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_can_not_be(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(KernelError, match=message):
        make()


def test_network_in_network_classifies_as_in_floating_point() -> None:
    _, (images, labels) = load_digits()
    layers = trained_nin()
    hidden = nin_hidden(layers[:2], images)
    scores = (hidden @ layers[2].weights[:, 0, 0].T + layers[2].bias).mean(axis=(1, 2))
    assert np.mean(scores.argmax(axis=1) == labels) >= 0.85
    for image, exact in zip(images[:12], scores, strict=False):
        fixed = nin_fixed_scores(layers, image, lambda job: job.expected)
        assert abs(real_of(fixed, ACTIVATION_FRACTION) - exact).max() < 0.01
        assert fixed.argmax() == exact.argmax()
