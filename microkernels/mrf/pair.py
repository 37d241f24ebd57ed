"""A stereo pair as a Markov random field."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from microkernels.bp.problem import MOST_WEIGHT, BpProblem, EdgeWeights
from microkernels.bp.smoothness import smoothness_costs
from microkernels.common.errors import KernelError
from microkernels.data.pictures import Photograph, displayed
from microkernels.data.stereo import read_pair
from support.errors import clipped
from support.extras import need

from .disparities import Disparities, read_mask, read_truth, sampled
from .matching import Cost, matching_costs

_MOST_THRESHOLD = 255


def edge_weights(name: str, picture: Photograph) -> EdgeWeights:
    """Weights of all edges by name.

    ``gradient:T,P``: P for an edge between pixels of similar colour, otherwise 1, like the option
    of that name in MRF 2.2. Colours are similar if the root mean square of their channels'
    differences is below T grey levels.

    Parameters:
        name: of the weights; T is from 1 to 255, P from 1 to 255.
        picture: ``[y, x, channel]``.

    Raises:
        KernelError: unknown name, or numbers out of range.
    """
    kind, _, numbers = name.partition(":")
    parameters = numbers.split(",")
    if (
        kind != "gradient"
        or len(parameters) != 2
        or not all(one.isascii() and one.isdigit() and len(one) < 6 for one in parameters)
        or not 1 <= int(parameters[0]) <= _MOST_THRESHOLD
        or not 1 <= int(parameters[1]) <= MOST_WEIGHT
    ):
        raise KernelError(
            f"unknown edges {clipped(name, 40)!r}; allowed: gradient:T,P with a threshold T from 1 "
            f"to {_MOST_THRESHOLD} and a weight P from 1 to {MOST_WEIGHT}"
        )
    threshold, weight = map(int, parameters)
    colours = picture.astype(np.float64)
    weights = []
    for axis in (1, 0):
        squares = np.diff(colours, axis=axis) ** 2
        alike = squares.sum(axis=2) < threshold**2 * picture.shape[2]
        weights.append(np.where(alike, weight, 1))
    return EdgeWeights(*weights)


_LEAST_SIDE = 2
#: An array over the pixels of a picture.
Values = TypeVar("Values", NDArray[np.float64], NDArray[np.bool_])


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """How to convert a pair to a Markov random field.

    Attributes:
        labels: disparities, 2 to 256; a label is one pixel of the scaled pictures.
        first: disparity of label 0 in pixels of the scaled pictures.
        scale: factor for both sides of the pictures, above 0 and up to 1, with antialiasing.
        cost: kind of data costs. truncation: their largest; None: no limit
            (:func:`microkernels.mrf.matching.matching_costs`).
        smooth: name of the smoothness costs. weight: their factor
            (:func:`microkernels.bp.smoothness.smoothness_costs`).
        edges: name of edge weights, which follow the left picture
            (:func:`microkernels.mrf.pair.edge_weights`); None: all are 1.
        bits: element width, 8, 16 or 32.
    """

    labels: int = 16
    first: int = 0
    scale: float = 1.0
    cost: Cost = "ad"
    truncation: int | None = None
    smooth: str = "linear:2"
    weight: int = 20
    edges: str | None = None
    bits: int = 16


def stereo_field(
    left: Path,
    right: Path,
    options: PairOptions,
    *,
    truth: Path | None = None,
    truth_factor: float | None = None,
    mask: Path | None = None,
) -> tuple[BpProblem, Disparities | None, NDArray[np.bool_] | None]:
    """The Markov random field of two rectified photographs, at its pixels the true disparities in
    pixels of the files, and which pixels are visible in both photographs; None: unknown.

    Parameters:
        left, right: image files of equal size, both grey or both in colour.
        truth: file of the left picture's true disparities.
        truth_factor: factor of the truth's numbers; None: 1
            (:func:`microkernels.mrf.disparities.read_truth`).
        mask: picture that is white at points visible in both photographs; only with ``truth``.

    Raises:
        KernelError: a file or value that can't be used, or costs that don't fit in ``options.bits``
            bits; one line.
        MissingExtraError: Pillow or scikit-image is not installed.
    """
    if not 2 <= options.labels <= 256:
        raise KernelError(f"labels must be from 2 to 256, not {options.labels}")
    if truth is None and (mask is not None or truth_factor is not None):
        raise KernelError("a mask or a truth factor needs a truth, but none is given")
    if truth_factor is not None and not 0 < truth_factor < math.inf:
        raise KernelError(f"the truth factor must be above 0, not {truth_factor}")
    pair = read_pair(left, right)
    _check_kinds(*pair)
    size = pair[0].shape[:2]
    scaled = [_scaled(one, options.scale) for one in pair]
    costs = matching_costs(
        *scaled,
        labels=options.labels,
        first=options.first,
        cost=options.cost,
        truncation=options.truncation,
    )
    smoothness = smoothness_costs(options.labels, options.smooth, options.weight)
    weights = None if options.edges is None else edge_weights(options.edges, scaled[0])
    problem = BpProblem(costs, smoothness, options.bits, weights)
    disparities = (
        None if truth is None else _fitting(truth, read_truth(truth, truth_factor or 1.0), size)
    )
    in_both = None if mask is None else _fitting(mask, read_mask(mask), size)
    grid = (problem.height, problem.width)
    return (
        problem,
        None if disparities is None else sampled(disparities, grid),
        None if in_both is None else sampled(in_both, grid),
    )


def _check_kinds(left: Photograph, right: Photograph) -> None:
    grey = [bool((one == one[..., :1]).all()) for one in (left, right)]
    if grey[0] != grey[1]:
        kinds = ["grey" if one else "in colour" for one in grey]
        raise KernelError(
            f"the left image is {kinds[0]}, the right one {kinds[1]}; they must match"
        )


def _scaled(picture: Photograph, scale: float) -> Photograph:
    if not 0 < scale <= 1:
        raise KernelError(f"the scale must be above 0 and at most 1, not {scale}")
    if scale == 1:
        return picture
    need("skimage", "scaled photographs")
    from skimage.transform import resize

    height, width = (round(side * scale) for side in picture.shape[:2])
    if min(height, width) < _LEAST_SIDE:
        raise KernelError(
            f"scale {scale} leaves {width} x {height} pixels; at least {_LEAST_SIDE} per side are "
            "needed"
        )
    result: Disparities = resize(  # type: ignore[no-untyped-call]
        picture, (height, width), anti_aliasing=True, preserve_range=True
    )
    result = result.clip(0, 255)
    return displayed(result) if picture.dtype == np.uint8 else result.astype(np.float32)


def _fitting(path: Path, values: Values, size: tuple[int, ...]) -> Values:
    if values.shape != size:
        raise KernelError(
            f"{path}: {values.shape[1]} x {values.shape[0]} pixels, but the photographs have "
            f"{size[1]} x {size[0]}"
        )
    return values
