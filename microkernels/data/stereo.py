"""Depth from stereo: from two photographs to a belief propagation problem, and back to a picture.

The photographs are rectified: a point at column ``x`` of the left photograph is at column ``x - d``
of the same row of the right one; the disparity ``d`` is larger for nearer objects. The grid of the
problem is coarser than the photographs: each of its pixels is a *cell* of ``f x f`` photograph
pixels.

Data costs: for every whole disparity of the photographs, the absolute difference of the two in grey
(0..255), truncated, is averaged over each cell; a label stands for a range of disparities and has
the least of their costs. Smoothness costs are truncated linear in the difference of labels. Both
are integers, in units of 1/16 grey level.
"""

import warnings
from dataclasses import dataclass
from importlib.resources import as_file, files
from io import BytesIO
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from isa.support.extras import need
from isa.support.files import read_bytes
from microkernels.bp.problem import BpProblem
from microkernels.common.errors import KernelError

__all__ = [
    "StereoError",
    "StereoScene",
    "motorcycle",
    "percent_wrong",
    "read_pair",
    "read_photograph",
    "stereo_scene",
]

#: Units of cost in a grey level.
COST_UNITS = 16
#: Grey levels at which a difference of the photographs is truncated.
DATA_TRUNCATION = 20.0
#: Grey levels that a difference of one label between neighbours costs.
SMOOTHNESS_WEIGHT = 1.0
#: Labels at which that difference is truncated.
SMOOTHNESS_TRUNCATION = 3
#: Fewest columns and rows of the problem's grid.
MIN_SIDE = 2

#: Shares of red, green and blue in the luminance of ITU-R BT.709.
_LUMINANCE = (0.2125, 0.7154, 0.0721)
#: Pillow's names of the formats, and further down of the modes, of images that are read.
_FORMATS = ("PNG", "JPEG", "PPM", "BMP", "TIFF", "WEBP", "GIF")
#: Bytes and pixels that a photograph may have: work on it takes some 30 bytes a pixel.
MAX_PHOTOGRAPH_BYTES = 1 << 26
MAX_PHOTOGRAPH_PIXELS = 1 << 24
_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr")

#: The Motorcycle pair's disparities (pixels): the least and the greatest true one, rounded outward.
_MOTORCYCLE_DISPARITIES = (7, 60)

#: Element type of an array over the photographs' pixels.
_Pixel = TypeVar("_Pixel", bound=np.generic)


class StereoError(KernelError):
    """Photographs or parameters that depth can't be computed from; one line."""


@dataclass(frozen=True, eq=False)
class StereoScene:
    """A stereo problem with the data needed to show its result.

    Attributes:
        problem: the belief propagation problem; one label a range of disparities, far to near.
        picture: ``[y, x, rgb]``, 0..255: the part of the left photograph that the grid covers.
        disparities: ``[label]``: the middle of each label's range, in pixels of the photographs.
        truth: ``[y, x]``: label of the true disparity, -1 where it is not known; None: no truth.
        name: for captions.
    """

    problem: BpProblem
    picture: NDArray[np.uint8]
    disparities: NDArray[np.float64]
    truth: NDArray[np.int64] | None
    name: str


def read_pair(left: Path, right: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Read two photographs of equal size, as ``[y, x, rgb]``.

    Raises:
        StereoError: a file that is missing or no image; images of different sizes.
        MissingExtraError: Pillow is not installed.
    """
    images = (read_photograph(left), read_photograph(right))
    _same_size(*images)
    return images


def read_photograph(path: Path) -> NDArray[np.uint8]:
    """Read a photograph as ``[y, x, rgb]``.

    Raises:
        StereoError: a file that is missing or no image.
        MissingExtraError: Pillow is not installed.
    """
    try:
        content = read_bytes(path, MAX_PHOTOGRAPH_BYTES)
    except OSError as error:
        raise StereoError(f"{path}: can't be read: {error.strerror}") from error
    with warnings.catch_warnings(record=True) as warned:
        # For a rejected image only the reason is shown, not the decoder's warnings.
        pixels = _decode(path, content)
    for one in warned:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return pixels


def _decode(path: Path, content: bytes) -> NDArray[np.uint8]:
    need("PIL", "photographs")
    from PIL import Image

    try:
        with Image.open(BytesIO(content), formats=_FORMATS) as image:
            pixels = image.width * image.height
            if pixels > MAX_PHOTOGRAPH_PIXELS:
                raise StereoError(
                    f"{path}: the image has {image.width} x {image.height} pixels; at most "
                    f"{MAX_PHOTOGRAPH_PIXELS:,} can be taken"
                )
            if image.mode not in _MODES:
                raise StereoError(
                    f"{path}: an image of 8 bits a channel, grey or colour, is needed, "
                    f"not {image.mode}"
                )
            return np.asarray(image.convert("RGB"))
    except StereoError:
        raise
    except Exception as error:
        # Pillow's decoders raise many kinds of exceptions on damaged files.
        raise StereoError(f"{path}: not a readable image") from error


def _same_size(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> None:
    if left.shape != right.shape:
        sizes = " and ".join(f"{image.shape[1]} x {image.shape[0]}" for image in (left, right))
        raise StereoError(f"the two images must be of equal size, not {sizes}")


def motorcycle(width: int = 64, height: int = 48, labels: int = 16) -> StereoScene:
    """The Motorcycle pair of the Middlebury set with its true disparities, from scikit-image.

    Parameters:
        width, height: grid, from 2 up to the photographs' 741 x 500.
        labels: at least 2.

    Raises:
        StereoError: a size or number of labels that is not allowed.
        MissingExtraError: scikit-image or Pillow is not installed.
    """
    need("skimage", "photographs")
    data = files("skimage") / "data"
    with (
        as_file(data / "motorcycle_left.png") as left_path,
        as_file(data / "motorcycle_right.png") as right_path,
        as_file(data / "motorcycle_disp.npz") as truth_path,
    ):
        left, right = read_pair(left_path, right_path)
        with np.load(truth_path) as archive:
            truth = archive["arr_0"]
    return stereo_scene(
        left,
        right,
        width=width,
        height=height,
        labels=labels,
        disparities=_MOTORCYCLE_DISPARITIES,
        truth=truth,
        name="Motorcycle",
    )


def stereo_scene(
    left: NDArray[np.uint8],
    right: NDArray[np.uint8],
    *,
    width: int,
    height: int,
    labels: int,
    disparities: tuple[int, int],
    truth: NDArray[np.floating] | None = None,
    name: str = "stereo",
) -> StereoScene:
    """The belief propagation problem of a pair of photographs.

    Parameters:
        left, right: ``[y, x, rgb]``.
        width, height: grid. Its cells are the largest squares of whole pixels for which the grid
            fits; they cover the middle of the left photograph.
        labels: at least 2.
        disparities: least and greatest, in pixels of the photographs; the labels share the range
            evenly.
        truth: ``[y, x]``, disparities of the left photograph's pixels; not finite where unknown.

    Raises:
        StereoError: arguments that don't fit each other.
    """
    _same_size(left, right)
    rows, columns = left.shape[:2]
    if not (MIN_SIDE <= width <= columns and MIN_SIDE <= height <= rows):
        raise StereoError(
            f"the grid must be from {MIN_SIDE} x {MIN_SIDE} to the images' {columns} x {rows}, "
            f"not {width} x {height}"
        )
    low, high = disparities
    if not 0 <= low < high < columns:
        raise StereoError(
            f"disparities must rise from at least 0 to less than the images' width {columns}, "
            f"not from {low} to {high}"
        )
    if not 2 <= labels <= min(256, high - low + 1):
        raise StereoError(
            f"labels must be from 2 to {min(256, high - low + 1)} for disparities "
            f"{low} to {high}, not {labels}"
        )
    if truth is not None and truth.shape != (rows, columns):
        raise StereoError(
            f"the true disparities must have the images' size {columns} x {rows}, "
            f"not {truth.shape[::-1]}"
        )
    cells = _Cells(rows, columns, width, height)
    edges = np.linspace(low, high + 1, labels + 1)
    costs = _data_costs(left, right, cells, edges)
    return StereoScene(
        problem=BpProblem(costs, _smoothness(labels)),
        picture=cells.cut(left),
        disparities=(edges[:-1] + edges[1:] - 1) / 2,
        truth=None if truth is None else _true_labels(truth, cells, edges),
        name=name,
    )


class _Cells:
    """The grid's cells on the photographs."""

    def __init__(self, rows: int, columns: int, width: int, height: int) -> None:
        self.side = min(columns // width, rows // height)
        self.width = width
        self.height = height
        self.top = (rows - height * self.side) // 2
        self.left = (columns - width * self.side) // 2

    def cut(self, image: NDArray[_Pixel]) -> NDArray[_Pixel]:
        """The part of a photograph that the grid covers."""
        return image[
            self.top : self.top + self.height * self.side,
            self.left : self.left + self.width * self.side,
        ]

    def split(self, image: NDArray[_Pixel]) -> NDArray[_Pixel]:
        """``[y, x, pixel]``: the pixels of each cell."""
        parts = self.cut(image).reshape(self.height, self.side, self.width, self.side)
        return parts.swapaxes(1, 2).reshape(self.height, self.width, -1)


def _grey(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """``[y, x]``, 0 to 255: luminance; a test holds it against scikit-image's, bit for bit."""
    share = np.multiply(image, 1 / 255, dtype=np.float64) @ np.array(_LUMINANCE)
    grey: NDArray[np.float32] = 255 * share.astype(np.float32)
    return grey


def _data_costs(
    left: NDArray[np.uint8], right: NDArray[np.uint8], cells: _Cells, edges: NDArray[np.float64]
) -> NDArray[np.int64]:
    left_grey, right_grey = (_grey(image) for image in (left, right))
    labels = len(edges) - 1
    costs = np.full((cells.height, cells.width, labels), np.inf)
    for disparity in range(int(edges[0]), int(edges[-1])):
        difference = np.full(left_grey.shape, DATA_TRUNCATION, np.float32)
        columns = left_grey.shape[1] - disparity
        np.minimum(
            np.abs(left_grey[:, disparity:] - right_grey[:, :columns]),
            DATA_TRUNCATION,
            out=difference[:, disparity:],
        )
        label = int(np.searchsorted(edges, disparity, side="right")) - 1
        np.minimum(costs[:, :, label], cells.split(difference).mean(axis=2), out=costs[:, :, label])
    units: NDArray[np.float64] = np.rint(COST_UNITS * costs)
    return units.astype(np.int64)


def _smoothness(labels: int) -> NDArray[np.int64]:
    difference = np.abs(np.subtract.outer(np.arange(labels), np.arange(labels)))
    weight = round(COST_UNITS * SMOOTHNESS_WEIGHT)
    return weight * np.minimum(difference, SMOOTHNESS_TRUNCATION)


def _true_labels(
    truth: NDArray[np.floating], cells: _Cells, edges: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Label of the median true disparity of each cell; -1 where less than half of it is known."""
    inside = cells.split(np.where(np.isfinite(truth), truth, np.nan))
    known = np.isfinite(inside)
    enough = 2 * known.sum(axis=2) > inside.shape[2]
    middle = np.full(enough.shape, edges[0])
    # The lower median is a disparity that occurs, where the mean of two would invent one.
    place = (known[enough].sum(axis=1) - 1) // 2
    # What is unknown comes last.
    ordered = np.sort(inside[enough], axis=1)
    middle[enough] = np.take_along_axis(ordered, place[:, None], axis=1)[:, 0]
    # A label's range of whole disparities reaches half a pixel to either side.
    found = np.searchsorted(edges - 0.5, middle, side="right") - 1
    return np.where(enough, np.clip(found, 0, len(edges) - 2), -1)


def percent_wrong(
    labels: NDArray[np.integer], truth: NDArray[np.integer], *, tolerance: int = 1
) -> float:
    """Percentage of the pixels of known truth (not -1) that are more than ``tolerance`` labels off.

    Raises:
        StereoError: different shapes; no pixel of known truth.
    """
    if labels.shape != truth.shape:
        raise StereoError(f"labels of shape {labels.shape} for a truth of shape {truth.shape}")
    known = truth >= 0
    if not known.any():
        raise StereoError("the true disparity of no pixel is known")
    return float(100 * (np.abs(labels - truth)[known] > tolerance).mean())
