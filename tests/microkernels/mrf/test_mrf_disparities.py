"""Disparity maps in files, and their errors."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from microkernels.common.errors import KernelError
from microkernels.mrf.disparities import (
    encoded,
    png_factor,
    read_mask,
    read_truth,
    sampled,
    stereo_errors,
)

MAP = np.array([[0.0, 3.0, 7.0], [1.0, 2.0, 60.0]])


@pytest.mark.parametrize("ending", [".npy", ".pfm"])
def test_a_map_is_read_as_it_was_written(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"map{ending}"
    path.write_bytes(encoded(MAP, ending))
    assert (read_truth(path, 1.0) == MAP).all()
    assert (read_truth(path, 2.0) == MAP / 2).all()


def test_a_map_in_a_picture_has_a_factor_and_0_for_unknown(tmp_path: Path) -> None:
    path = tmp_path / "map.png"
    path.write_bytes(encoded(MAP, ".png"))
    assert png_factor(MAP) == 4
    found = read_truth(path, 4.0)
    assert found[0, 0] == np.inf
    assert (found.ravel()[1:] == MAP.ravel()[1:]).all()


def test_pfm_has_its_rows_from_the_bottom() -> None:
    content = encoded(MAP, ".pfm")
    assert content.startswith(b"Pf\n3 2\n-1.0\n")
    assert np.frombuffer(content[-24:], "<f4").reshape(2, 3).tolist() == MAP[::-1].tolist()


@pytest.mark.parametrize(
    "head",
    [
        b"Pf\n3 2\n-1e0\n",
        b"Pf\r\n3 2\r\n-1.0\r\n",
        b"Pf\n# made by hand\n3 2 # columns, rows\n-1\n",
        b"Pf 3 2 -.5 ",
        b"Pf\n3\n2\n-0.003922  \n",
        b"Pf\r3 2\r-1\r",
    ],
)
def test_spellings_of_pfm(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "map.pfm"
    # 1.25 begins with a line feed's byte.
    values = np.array([[1.25, 3, 7], [np.inf, 2, 60]], "<f4")
    values.view(np.uint8)[0, 0] = 10
    path.write_bytes(head + values.tobytes())
    np.testing.assert_array_equal(read_truth(path, 1.0), values[::-1])


def test_pfm_of_the_other_order_of_bytes(tmp_path: Path) -> None:
    path = tmp_path / "map.pfm"
    path.write_bytes(b"Pf\n3 2\n+1.0E+0\n" + MAP[::-1].astype(">f4").tobytes())
    assert (read_truth(path, 1.0) == MAP).all()


@pytest.mark.parametrize("kind", ["u1", "u2", "f4"])
def test_a_truth_in_a_picture_has_all_bits(tmp_path: Path, kind: str) -> None:
    """As KITTI's, of 16 bits, 256 times the disparity."""
    path = tmp_path / "map.tif"
    values = np.array([[0, 7, 200], [1, 2, 255 if kind == "u1" else 60000]]).astype(kind)
    Image.fromarray(values).save(path)
    expected = np.where(values == 0, np.inf, values / 4)
    np.testing.assert_array_equal(read_truth(path, 4.0), expected)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([[0, 128, 255]], np.uint8), [False, False, True]),
        (np.array([[0, 1, 1]], np.uint8), [False, True, True]),
        (np.array([[False, True, False]]), [False, True, False]),
        (np.array([[0, 32768, 65535]], np.uint16), [False, False, True]),
        (np.array([[0, 255, 128]], np.uint16), [False, True, False]),
        (np.array([[0, 1, 0]], np.uint16), [False, True, False]),
    ],
)
def test_a_mask_is_white_where_it_holds(
    tmp_path: Path, values: np.ndarray, expected: list[bool]
) -> None:
    path = tmp_path / "mask.png"
    Image.fromarray(values).save(path)
    assert read_mask(path).tolist() == [expected]


def test_a_coarser_grid_takes_the_nearest_value() -> None:
    values = np.arange(6 * 4).reshape(6, 4)
    assert sampled(values, (3, 2)).tolist() == [[5, 7], [13, 15], [21, 23]]
    assert (sampled(values, (6, 4)) == values).all()


def test_errors_count_known_pixels_alone() -> None:
    truth = np.array([[0.0, 4.0, 9.5], [np.inf, 2.0, np.nan]])
    errors = stereo_errors(MAP, truth)
    assert errors["pixels"] == 4
    assert (errors["bad_1"], errors["bad_2"]) == (25.0, 25.0)
    assert errors["mean"] == pytest.approx((0 + 1 + 2.5 + 0) / 4)
    assert errors["rms"] == pytest.approx(np.sqrt((1 + 6.25) / 4))
    masked = stereo_errors(MAP, truth, np.array([[0, 1, 0], [1, 1, 1]], bool))
    assert (masked["pixels"], masked["bad_1"]) == (2, 0.0)


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def picture(values: np.ndarray) -> bytes:
    target = BytesIO()
    Image.fromarray(values).save(target, format="PNG")
    return target.getvalue()


GREY = picture(np.array([[0, 200]], np.uint8))
COLOUR = picture(np.arange(12, dtype=np.uint8).reshape(2, 2, 3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda f: read_truth(f / "nosuch.png", 1.0), "can't be read"),
        (lambda f: read_truth(write(f / "a.pfm", b"PF\n3 2\n-1.0\n"), 1.0), "one channel"),
        (lambda f: read_truth(write(f / "a.pfm", b"Pf\n3 2\n-1.0\nabc"), 1.0), "need 24 bytes"),
        (lambda f: read_truth(write(f / "a.npy", b"x"), 1.0), "not a NumPy array"),
        (lambda f: read_truth(write(f / "a.npz", b"x"), 1.0), "not a NumPy array"),
        (lambda f: read_truth(write(f / "a.png", b"x"), 1.0), "not a readable image"),
        (lambda f: read_truth(write(f / "a.png", COLOUR), 1.0), "one channel"),
        (lambda f: read_truth(write(f / "a.pfm", b"Pf\n3 2\n0\n"), 1.0), "one channel"),
        (lambda f: read_truth(write(f / "a.pfm", b"Pf\n3 2\nnan\n"), 1.0), "one channel"),
        (lambda f: read_mask(write(f / "a.png", COLOUR)), "one channel"),
        (lambda f: read_mask(write(f / "a.png", GREY)), "the largest number is 200"),
        (lambda _: stereo_errors(MAP, MAP[:1]), "the truth has 3 x 1 pixels"),
        (lambda _: stereo_errors(MAP, MAP, np.ones((1, 3), bool)), "the mask has 3 x 1"),
        (lambda _: stereo_errors(MAP, np.full(MAP.shape, np.inf)), "no pixel"),
    ],
)
def test_bad_input_is_refused_in_one_line(make, message: str, tmp_path: Path) -> None:
    with pytest.raises(KernelError) as error:
        make(tmp_path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
