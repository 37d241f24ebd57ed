"""Data costs of pixels for denoising and segmentation; costs, edge weights and seeds in files."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.bp.problem import EdgeWeights
from microkernels.common.errors import CHECK, KernelError
from microkernels.data.pictures import Photograph, read_grey
from support.files import read_bytes

_GREY_LEVELS = 256
_MOST_BYTES = 1 << 32
_LARGEST = 1 << 31
_EDGES = "a NumPy archive (.npz) with the arrays right [y, x] and down [y, x]"


def grey_levels(labels: int) -> NDArray[np.int64]:
    """The grey levels, 0 to 255, of ``labels`` evenly spaced labels, 2 to 256."""
    CHECK.within("labels", labels, 2, _GREY_LEVELS)
    return np.rint(np.linspace(0, _GREY_LEVELS - 1, labels)).astype(np.int64)


def denoising_costs(
    picture: Photograph, labels: int, truncation: int | None = None
) -> NDArray[np.int64]:
    """``[y, x, label]``: the absolute difference between each pixel and the label's grey level.

    Parameters:
        picture: ``[y, x, rgb]``, grey (equal channels).
        labels: 2 to 256 (:func:`grey_levels`).
        truncation: largest cost, at least 1; None: no limit.

    Raises:
        KernelError: a picture in colour, or a value out of range.
    """
    if (picture != picture[..., :1]).any():
        raise KernelError("denoising needs a grey image; this one is in colour")
    costs = np.abs(picture[..., :1].astype(np.float64) - grey_levels(labels))
    return _truncated(np.rint(costs).astype(np.int64), truncation)


def segmentation_costs(
    picture: Photograph,
    seeds: NDArray[np.integer],
    truncation: int | None = None,
) -> NDArray[np.int64]:
    """``[y, x, label]``: the channels' mean absolute difference between each pixel and the mean
    colour of the label's seeds, rounded; a seed costs 0 for its own label and the maximum for all
    others.

    Parameters:
        picture: ``[y, x, rgb]``.
        seeds: ``[y, x]``: 0 where there is no seed, otherwise label + 1; each label needs a seed.
        truncation: largest cost, at least 1; None: 255.

    Raises:
        KernelError: different shapes, fewer than two labels, a label without a seed, or a value out
            of range.
    """
    if seeds.shape != picture.shape[:2]:
        raise KernelError(
            f"the seeds have {seeds.shape[1]} x {seeds.shape[0]} pixels, the image "
            f"{picture.shape[1]} x {picture.shape[0]}"
        )
    labels = int(seeds.max())
    counts = np.bincount(seeds.ravel(), minlength=labels + 1)[1:]
    if labels < 2 or not counts.all():
        raise KernelError(
            "seeds must be numbered from 1, at least 1 and 2, each on at least one pixel; "
            f"the largest is {labels}, {int((counts == 0).sum())} are missing"
        )
    values = picture.astype(np.float64)
    channels = values.shape[2]
    costs = np.empty((*seeds.shape, labels), np.int64)
    for label in range(labels):
        mean = np.rint(values[seeds == label + 1].mean(axis=0))
        total = np.abs(values - mean).sum(axis=2)
        costs[..., label] = (2 * total + channels) // (2 * channels)
    costs = _truncated(costs, truncation)
    seeded = seeds > 0
    costs[seeded] = _GREY_LEVELS - 1 if truncation is None else truncation
    costs[seeded, seeds[seeded] - 1] = 0
    return costs


def _truncated(costs: NDArray[np.int64], truncation: int | None) -> NDArray[np.int64]:
    if truncation is None:
        return costs
    CHECK.at_least("truncation", truncation, 1)
    return np.minimum(costs, truncation)


def read_costs(path: Path) -> NDArray[np.int64]:
    """Data costs ``[y, x, label]`` from a NumPy file.

    Raises:
        KernelError: not such an array, or costs that are not whole numbers (or NaN) or too large.
    """
    costs = _numpy(path, "a NumPy array of numbers (.npy)")
    if not isinstance(costs, np.ndarray) or costs.dtype.kind not in "iuf":
        raise KernelError(f"{path}: not a NumPy array of numbers (.npy)")
    if costs.ndim != 3 or 0 in costs.shape:
        raise KernelError(
            f"{path}: costs must have the shape (height, width, labels), not {costs.shape}"
        )
    if costs.shape[2] > _GREY_LEVELS:
        raise KernelError(f"{path}: {costs.shape[2]} labels; at most 256 fit in a vector")
    if costs.dtype.kind == "f" and np.isnan(costs).any():
        raise KernelError(f"{path}: {int(np.isnan(costs).sum())} costs are NaN")
    if (np.abs(costs.astype(np.float64)) >= _LARGEST).any() or (costs != np.rint(costs)).any():
        raise KernelError(f"{path}: costs must be whole numbers below 2**31; scale and round them")
    return costs.astype(np.int64)


def read_edges(path: Path) -> EdgeWeights:
    """Edge weights from the arrays ``right`` and ``down`` of a NumPy archive.

    Raises:
        KernelError: not such an archive, or weights that can't be used.
    """
    arrays = _numpy(path, _EDGES)
    if isinstance(arrays, np.ndarray) or sorted(arrays) != ["down", "right"]:
        raise KernelError(f"{path}: not {_EDGES}")
    try:
        return EdgeWeights(arrays["right"], arrays["down"])
    except KernelError as error:
        raise KernelError(f"{path}: {error}") from error


def _numpy(path: Path, content: str) -> NDArray[Any] | dict[str, NDArray[Any]]:
    """The array of a ``.npy`` file, or those of an ``.npz`` file by name.

    Raises:
        KernelError: the file can't be read, or is neither; ``content`` says what it should be.
    """
    try:
        data = BytesIO(read_bytes(path, _MOST_BYTES))
    except OSError as error:
        raise KernelError(f"{path}: can't be read: {error.strerror}") from error
    try:
        arrays = np.load(data, allow_pickle=False)
        return arrays if isinstance(arrays, np.ndarray) else dict(arrays)
    except Exception as error:
        # NumPy raises many kinds of exceptions for damaged files.
        raise KernelError(f"{path}: not {content}") from error


def read_seeds(path: Path) -> NDArray[np.int64]:
    """Seeds ``[y, x]`` from a grey picture whose pixels are 0 or label + 1.

    Raises:
        KernelError: not a readable picture, or one in colour.
    """
    grey = read_grey(path)
    if grey is None or not np.isin(grey, range(_GREY_LEVELS + 1)).all():
        raise KernelError(
            f"{path}: seeds must be a grey image: 0 for none, otherwise label + 1, at most "
            f"{_GREY_LEVELS}"
        )
    return grey.astype(np.int64)
