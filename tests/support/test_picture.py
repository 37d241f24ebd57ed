"""The style of pictures: colours that everybody can distinguish, and files that are as named."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from support.picture import COLOURS, DISPARITIES, SUFFIXES, picture, tint

#: Machado, Oliveira and Fernandes 2009: what people without one kind of cone see, in linear light.
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
#: CIE 1976 difference: about 2.3 is just noticeable; the default colours of matplotlib come to 6.
APART = 15.0


def seen(colour: tuple[float, float, float], deficiency: str) -> np.ndarray:
    """CIE L*a*b* of a colour as someone sees it."""
    value = np.array(colour)
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    shown = np.clip(DEFICIENCIES[deficiency] @ linear, 0, 1)
    ratio = TO_XYZ @ shown / (TO_XYZ @ np.ones(3))
    root = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def least_difference(colours: list[tuple[float, float, float]], deficiency: str) -> float:
    values = [seen(colour, deficiency) for colour in colours]
    return min(float(np.linalg.norm(one - other)) for one, other in combinations(values, 2))


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_colours_differ_for_everybody(deficiency: str) -> None:
    assert least_difference([tint(colour, 1) for colour in COLOURS], deficiency) > APART


def test_the_measure_refuses_colours_that_look_alike() -> None:
    usual = ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b"]
    colours = [tint(colour, 1) for colour in usual]
    assert min(least_difference(colours, name) for name in DEFICIENCIES) < APART


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_disparities_rise_in_lightness(deficiency: str) -> None:
    from matplotlib import colormaps

    lightness = [
        seen(colormaps[DISPARITIES](share)[:3], deficiency)[0] for share in np.linspace(0, 1, 16)
    ]
    assert (np.diff(lightness) > 1).all()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_picture_is_of_its_kind_and_the_same_each_time(suffix: str, tmp_path: Path) -> None:
    contents = []
    for _ in range(2):
        path = tmp_path / f"a{suffix.upper()}"
        with picture(2, 1, path) as figure:
            figure.subplots().plot([1, 2], label="line")
            figure.legend()
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]
    begin = b"\x89PNG" if suffix == ".png" else b"<?xml"
    assert contents[0].startswith(begin)


def test_a_picture_that_fails_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), picture(2, 1, path):
        raise ZeroDivisionError
    assert path.read_bytes() == b"before"


def test_tints_run_from_white_to_the_colour() -> None:
    assert tint("#102030", 0) == (1, 1, 1)
    assert tint("#336699", 1) == pytest.approx((0.2, 0.4, 0.6))
