"""Depth from stereo: on pictures made to measure, and on the Motorcycle pair."""

from pathlib import Path

import numpy as np
import pytest
from skimage.io import imread, imsave

from microkernels.bp import golden as bp_golden
from microkernels.bp.golden import percent_wrong
from microkernels.common.errors import KernelError
from microkernels.data.stereo import (
    StereoError,
    _grey,
    draw,
    motorcycle,
    read_pair,
    stereo_scene,
)


def two_planes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A random texture at disparity 2 with a square at disparity 9 in front of it."""
    rng = np.random.default_rng(3)
    background = np.kron(rng.integers(0, 256, (60, 60)), np.ones((2, 2), int)).astype(np.uint8)
    square = rng.integers(0, 256, (50, 40)).astype(np.uint8)
    left, truth = background[:, 20:].copy(), np.full((120, 100), 2.0)
    right = np.roll(background, -2, axis=1)[:, 20:].copy()
    left[30:80, 40:80] = square
    right[30:80, 31:71] = square
    truth[30:80, 40:80] = 9
    left, right = (np.repeat(image[:, :, None], 3, axis=2) for image in (left, right))
    return left, right, truth


def test_two_planes_are_told_apart() -> None:
    left, right, truth = two_planes()
    scene = stereo_scene(
        left, right, width=25, height=30, labels=12, disparities=(0, 11), truth=truth
    )
    assert scene.truth is not None
    assert set(np.unique(scene.truth)) == {2, 9}
    assert scene.disparities.tolist() == list(range(12))
    found = bp_golden.labels(scene.problem, bp_golden.iterate(scene.problem, 4))
    # The disparity of pixels hidden in the right image, beside the square, can't be known.
    assert percent_wrong(found, scene.truth, tolerance=0) < 6


@pytest.mark.parametrize(("width", "height", "limit"), [(64, 48, 8.0), (96, 64, 9.0)])
def test_motorcycle(width: int, height: int, limit: float) -> None:
    scene = motorcycle(width, height, 16)
    assert scene.problem.data_costs.shape == (height, width, 16)
    assert scene.truth is not None
    assert (scene.truth >= 0).mean() > 0.95
    messages = bp_golden.iterate(scene.problem, 5)
    assert np.abs(messages).max() < 1 << 10, "far from saturation"
    wrong = percent_wrong(bp_golden.labels(scene.problem, messages), scene.truth)
    alone = percent_wrong(bp_golden.labels(scene.problem, scene.problem.no_messages()), scene.truth)
    assert wrong < limit
    assert wrong < 0.7 * alone, "belief propagation must beat the data costs alone"


def test_unknown_truth_does_not_count() -> None:
    truth = np.array([[0, -1], [5, 5]])
    assert percent_wrong(np.array([[1, 9], [5, 8]]), truth) == pytest.approx(100 / 3)


def test_cells_of_unknown_truth_are_marked() -> None:
    left, right, truth = two_planes()
    truth[:20, :20] = np.inf
    truth[100:, :4] = np.nan
    scene = stereo_scene(
        left, right, width=25, height=30, labels=12, disparities=(0, 11), truth=truth
    )
    assert scene.truth is not None
    assert (scene.truth[:5, :5] == -1).all()
    assert (scene.truth[25:, 0] == -1).all()
    assert (scene.truth == -1).sum() == 30


def test_picture_shows_all_panels(tmp_path: Path) -> None:
    scene = motorcycle(32, 24, 8)
    labels = bp_golden.labels(scene.problem, bp_golden.iterate(scene.problem, 2))
    target = tmp_path / "depth.png"
    draw(scene, labels, target, caption="BP-M")
    first = target.read_bytes()
    image = imread(target)
    third = image.shape[1] // 3
    assert all(image[:, n * third : (n + 1) * third, :3].std() > 20 for n in range(3))
    draw(scene, labels, target, caption="BP-M")
    assert target.read_bytes() == first, "the same picture from the same input"
    assert list(tmp_path.iterdir()) == [target]


def test_picture_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    scene = motorcycle(16, 12, 8)
    with pytest.raises(StereoError, match="shape"):
        draw(scene, np.zeros((2, 2), int), tmp_path / "a.png", caption="")
    with pytest.raises(StereoError, match="No such file"):
        draw(scene, np.zeros((12, 16), int), tmp_path / "missing" / "a.png", caption="")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(StereoError, match="folder"):
        draw(scene, np.zeros((12, 16), int), tmp_path / "folder.png", caption="")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder.png"]


def test_files_are_read(tmp_path: Path) -> None:
    colour = np.random.default_rng(1).integers(0, 256, (6, 8, 3)).astype(np.uint8)
    paths = [tmp_path / name for name in ("left.png", "right.png")]
    imsave(paths[0], colour, check_contrast=False)
    imsave(paths[1], colour[:, :, 0], check_contrast=False)
    left, right = read_pair(*paths)
    assert (left == colour).all()
    assert (right == colour[:, :, :1]).all()


def test_bad_files_are_refused(tmp_path: Path) -> None:
    good, small, text = (tmp_path / f"{n}.png" for n in ("good", "small", "text"))
    imsave(good, np.zeros((6, 8, 3), np.uint8), check_contrast=False)
    imsave(small, np.zeros((5, 8, 3), np.uint8), check_contrast=False)
    text.write_text("not an image")
    for other, message in (
        (small, "8 x 6 and 8 x 5"),
        (text, "not a readable image"),
        (tmp_path / "missing.png", "No such file"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(KernelError) as error:
            read_pair(good, other)
        assert message in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"P6\n12 x\n255\n", "not a readable image"),
        (b"P6\n1 1\n99999999999999999999\n", "not a readable image"),
        (b"P6\n12000 12000\n255\n", "12000 x 12000 pixels"),
        (b"P6\n20000 20000\n255\n", "20000 x 20000 pixels|not a readable image"),
        (b"P6\n1000000 1000000\n255\n", "1000000 x 1000000 pixels"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a readable image"),
    ],
)
def test_images_are_refused_without_a_warning(
    content: bytes, message: str, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    path = tmp_path / "a.ppm"
    path.write_bytes(content)
    with pytest.raises(KernelError, match=message):
        read_pair(path, path)
    assert not recwarn.list


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"height": 1}, "at least 2 x 2 pixels, not 25 x 1"),
        ({"width": 1 << 20}, "1048576 x 30 pixels with 12 labels give 377,487,360 costs; at most"),
        ({"labels": 1}, "labels must be from 2 to 12"),
        ({"labels": 13}, "labels must be from 2 to 12"),
        ({"disparities": (5, 5)}, "disparities"),
        ({"disparities": (0, 100)}, "width 100"),
        ({"truth": np.zeros((3, 3))}, "images' size"),
        ({"right": np.zeros((3, 3, 3), np.uint8)}, "equal size"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(change: dict, message: str) -> None:
    left, right, truth = two_planes()
    given = {
        "left": left,
        "right": right,
        "width": 25,
        "height": 30,
        "labels": 12,
        "disparities": (0, 11),
        "truth": truth,
    }
    with pytest.raises(StereoError) as error:
        stereo_scene(**(given | change))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("size", [(200, 240), (150, 199), (101, 30), (300, 7), (25, 360)])
def test_a_grid_larger_than_the_photographs_repeats_its_costs(size: tuple[int, int]) -> None:
    """As full HD repeats those of 640 x 360 pixels."""
    left, right, truth = two_planes()
    width, height = size
    times = next(n for n in range(1, 9) if width <= 100 * n and height <= 120 * n)
    common = {"labels": 12, "disparities": (0, 11), "truth": truth}
    scene = stereo_scene(left, right, width=width, height=height, **common)
    small = stereo_scene(
        left, right, width=-(-width // times), height=-(-height // times), **common
    )
    y, x = np.arange(height) // times, np.arange(width) // times
    assert (scene.problem.data_costs == small.problem.data_costs[y][:, x]).all()
    assert (scene.problem.smoothness == small.problem.smoothness).all()
    assert scene.truth is not None
    assert small.truth is not None
    assert (scene.truth == small.truth[y][:, x]).all()
    assert (scene.picture == small.picture[y][:, x]).all()


def test_grey_is_scikit_images() -> None:
    from skimage.color import rgb2gray

    noise = np.random.default_rng(1).integers(0, 256, (33, 57, 3)).astype(np.uint8)
    for image in (motorcycle(246, 166, 16).picture, noise):
        expected = 255 * rgb2gray(image).astype(np.float32)
        assert np.array_equal(_grey(image), expected)
