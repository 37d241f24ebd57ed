"""Costs of a user's Markov random field against sums written out pixel by pixel."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from microkernels.bp.smoothness import coarse_costs, smoothness_costs
from microkernels.common.errors import KernelError
from microkernels.mrf.matching import CENSUS_SIDE, matching_costs


def pictures(seed: int, height: int = 6, width: int = 9) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, 256, (2, height, width, 3), np.uint8)
    return left, right


def differences(left: np.ndarray, right: np.ndarray, y: int, x: int, other: int) -> float:
    return sum(abs(float(left[y, x, c]) - float(right[y, other, c])) for c in range(3)) / 3


def birchfield_tomasi(left: np.ndarray, right: np.ndarray, y: int, x: int, other: int) -> float:
    def one_way(value: float, row: np.ndarray, at: int) -> float:
        near = [float(row[min(max(at + step, 0), len(row) - 1)]) for step in (-1, 1)]
        middle = float(row[at])
        values = [middle, *((one + middle) / 2 for one in near)]
        return max(0.0, value - max(values), min(values) - value)

    total = 0.0
    for c in range(3):
        mine, its = left[y, :, c], right[y, :, c]
        total += min(one_way(float(mine[x]), its, other), one_way(float(its[other]), mine, x))
    return total / 3


def census(left: np.ndarray, right: np.ndarray, y: int, x: int, other: int) -> float:
    def bits(picture: np.ndarray, at: int) -> list[bool]:
        grey = picture.astype(int) @ [2125, 7154, 721]
        grey //= 10000
        reach = CENSUS_SIDE // 2
        found = []
        for dy, dx in product(range(-reach, reach + 1), repeat=2):
            row = min(max(y + dy, 0), len(grey) - 1)
            column = min(max(at + dx, 0), len(grey[0]) - 1)
            found.append(bool(grey[row, column] < grey[y, at]))
        return found

    return sum(a != b for a, b in zip(bits(left, x), bits(right, other), strict=True))


@pytest.mark.parametrize(
    ("cost", "model", "most"),
    [
        ("ad", differences, 255),
        ("bt", birchfield_tomasi, 255),
        ("census", census, 24),
        ("ad-sum", lambda *place: 3 * differences(*place), 765),
        ("bt-sum", lambda *place: 3 * birchfield_tomasi(*place), 765),
    ],
)
@pytest.mark.parametrize(("first", "truncation"), [(0, None), (2, 20)])
def test_data_costs(cost, model, most, first, truncation) -> None:
    left, right = pictures(first)
    found = matching_costs(left, right, labels=4, first=first, cost=cost, truncation=truncation)
    most = most if truncation is None else min(most, truncation)
    for y, x, label in np.ndindex(found.shape):
        other = x - first - label
        expected = most
        if other >= 0:
            # Halves round up.
            expected = min(most, int(np.floor(model(left, right, y, x, other) + 0.5 + 1e-9)))
        assert found[y, x, label] == expected, (y, x, label)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("linear", lambda d: d),
        ("linear:2", lambda d: min(d, 2)),
        ("potts", lambda d: min(d, 1)),
        ("quadratic", lambda d: d * d),
        ("quadratic:7", lambda d: min(d * d, 7)),
    ],
)
def test_smoothness_costs(name: str, model) -> None:
    found = smoothness_costs(5, name, 3)
    for a, b in np.ndindex(5, 5):
        assert found[a, b] == 3 * model(abs(a - b))


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("linear:2", lambda d: min(d, 2)),
        ("linear", lambda d: d),
        ("potts", lambda d: min(d, 1)),
        ("quadratic", lambda d: d * d),
        ("quadratic:7", lambda d: min(d * d, 7)),
    ],
)
def test_coarse_costs_are_exact_between_whole_numbers(name: str, model) -> None:
    for weight in (3, 4):
        levels = coarse_costs(9, name, weight, 3)
        for scale, found in zip((2, 4), levels, strict=True):
            for a, b in np.ndindex(9, 9):
                exact = scale * weight * model(abs(a - b) / scale)
                assert found[a, b] == np.floor(exact + 0.5)


def test_coarse_costs_of_a_file_are_not_known() -> None:
    assert coarse_costs(3, "costs.npy", 1) is None


def test_smoothness_costs_of_a_file(tmp_path: Path) -> None:
    matrix = np.array([[0, 1], [5, -2]], np.int16)
    np.save(tmp_path / "costs.npy", matrix)
    assert (smoothness_costs(2, str(tmp_path / "costs.npy"), 4) == 4 * matrix.astype(int)).all()


def spoiled(folder: Path, matrix: np.ndarray) -> str:
    np.save(folder / "bad.npy", matrix)
    return str(folder / "bad.npy")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: smoothness_costs(4, "cubic", 1), "quadratic:T"),
        (lambda _: smoothness_costs(4, "linear:0", 1), "from 1"),
        (lambda _: smoothness_costs(4, "linear:", 1), "from 1"),
        (lambda _: smoothness_costs(4, "potts:2", 1), "unknown smoothness"),
        (lambda _: smoothness_costs(4, "linear", -1), "weight"),
        (lambda _: smoothness_costs(257, "linear", 1), "256"),
        (lambda _: smoothness_costs(4, "nosuch.npy", 1), "nosuch.npy: can't be read"),
        (lambda f: smoothness_costs(4, spoiled(f, np.zeros((4, 3), int)), 1), "(4, 4), not (4, 3)"),
        (lambda f: smoothness_costs(2, spoiled(f, np.full((2, 2), np.nan)), 1), "whole numbers"),
        (lambda f: smoothness_costs(2, spoiled(f, np.full((2, 2), 2**31)), 1), "below 2**31"),
        (lambda _: matching_costs(*pictures(1), labels=10), "disparities 0 to 9"),
        (lambda _: matching_costs(*pictures(1), labels=4, first=-1), "first"),
        (lambda _: matching_costs(*pictures(1), labels=4, truncation=0), "truncation"),
        (
            lambda _: matching_costs(pictures(1)[0], pictures(1, width=8)[1], labels=4),
            "not 9 x 6 and 8 x 6",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(make, message: str, tmp_path: Path) -> None:
    with pytest.raises(KernelError) as error:
        make(tmp_path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_all_bits_of_the_samples_count() -> None:
    """A texture within a grey level, as of a dark scene in 16 bits, is matched by its fractions."""
    texture = np.random.default_rng(4).uniform(80, 80.9, (20, 40, 1)).astype(np.float32)
    picture = np.repeat(texture, 3, axis=2)
    left, right = picture[:, 3:], picture[:, :-3]
    costs = matching_costs(right, left, labels=8, cost="census")
    inside = costs[2:-2, 10:-2]
    assert (inside[..., 3] == 0).all()
    assert (np.delete(inside, 3, axis=2).mean(axis=(0, 1)) > 5).all()


@pytest.mark.parametrize(("cost", "model"), [("ad", differences), ("bt", birchfield_tomasi)])
def test_costs_of_deep_pictures_are_rounded_once(cost, model) -> None:
    """Not the pictures: their fractions add up."""
    left, right = (one + np.float32(0.375) * n for n, one in enumerate(pictures(3)))
    left, right = left.astype(np.float32) / 2, right.astype(np.float32) / 2
    found = matching_costs(left, right, labels=2, cost=cost)
    for y, x in np.ndindex(left.shape[:2]):
        for label in range(min(2, x + 1)):
            expected = np.floor(model(left, right, y, x, x - label) + 0.5)
            assert found[y, x, label] == expected
