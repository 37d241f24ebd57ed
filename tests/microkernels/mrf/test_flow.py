"""Optical flow: costs and smoothness against loops, motions of moved pictures, files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from microkernels.bp.smoothness import coarse_costs, smoothness_costs
from microkernels.common.errors import KernelError
from microkernels.data.pictures import read_photographs
from microkernels.mrf.disparities import encoded_flow
from microkernels.mrf.matching import displacements, flow_costs, matching_costs

COSTS: dict[str, Callable[[int, int], int]] = {
    "linear:3": lambda right, down: min(abs(right) + abs(down), 3),
    "potts": lambda right, down: int((right, down) != (0, 0)),
    "quadratic:9": lambda right, down: min(right * right + down * down, 9),
}


def picture(seed: int, height: int = 9, width: int = 11) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


@pytest.mark.parametrize("cut", [None, 50])
def test_costs_are_differences_at_the_moved_pixel(cut: int | None) -> None:
    first, second = picture(1), picture(2)
    costs = flow_costs(first, second, window=5, truncation=cut)
    assert costs.shape == (9, 11, 25)
    for (y, x, label), cost in np.ndenumerate(costs):
        right, down = displacements(5)[label]
        expected = 255
        if 0 <= y + down < 9 and 0 <= x + right < 11:
            apart = abs(first[y, x].astype(int) - second[y + down, x + right])
            expected = int(np.floor(apart.mean() + 0.5))
        assert cost == min(expected, cut or 255)


@pytest.mark.parametrize("cost", ["ad", "bt", "census"])
def test_a_row_of_motions_is_stereo(cost: str) -> None:
    first, second = picture(3), picture(4)
    flow = flow_costs(first, second, window=3, cost=cost)  # type: ignore[arg-type]
    stereo = matching_costs(first, second, labels=2, cost=cost)  # type: ignore[arg-type]
    # Motions (0, 0) and (-1, 0) are disparities 0 and 1.
    assert np.array_equal(flow[..., [4, 3]], stereo)


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("window", [3, 7])
def test_smoothness_costs_are_of_motions(name: str, window: int) -> None:
    costs = smoothness_costs(window * window, name, 4, window)
    moves = displacements(window)
    for a, b in np.ndindex(costs.shape):
        assert costs[a, b] == 4 * COSTS[name](*(int(part) for part in moves[a] - moves[b]))
    (coarse,) = coarse_costs(window * window, "quadratic", 4, 2, window) or []
    assert np.array_equal(coarse, smoothness_costs(window * window, "quadratic", 2, window))


def test_motions_are_found_and_written(tmp_path: Path) -> None:
    scene = picture(5, 14, 16)
    moved = np.roll(scene, (1, -2), (0, 1))
    for name, content in (("a.png", scene), ("b.png", moved)):
        Image.fromarray(content).save(tmp_path / name)
    photographs = read_photographs(tmp_path / "a.png", tmp_path / "b.png")
    costs = flow_costs(*photographs, window=5)
    motions = displacements(5)[costs.argmin(axis=2)]
    assert (motions[:-1, 2:] == (-2, 1)).all()
    flo = encoded_flow(motions, ".flo")
    assert flo[:4] == np.array([202021.25], "<f4").tobytes()
    assert np.frombuffer(flo, "<i4", 2, 4).tolist() == [16, 14]
    assert np.array_equal(np.frombuffer(flo, "<f4", -1, 12).reshape(14, 16, 2), motions)


@pytest.mark.parametrize(
    ("window", "message"),
    [(4, "odd number"), (1, "from 3 to 15"), (17, "from 3 to 15"), (2, "from 3 to 15")],
)
def test_windows_are_odd_and_small(window: int, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        displacements(window)


def test_pictures_are_alike_and_larger_than_motions() -> None:
    with pytest.raises(KernelError, match=r"equal size, not 11 x 9 and 11 x 8"):
        flow_costs(picture(1), picture(1, 8), window=3)
    with pytest.raises(KernelError, match="11 x 3 pixels are too small for motions of 3 pixels"):
        flow_costs(picture(1, 3), picture(2, 3), window=7)
