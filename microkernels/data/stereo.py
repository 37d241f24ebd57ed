"""Depth from stereo: from two photographs to a belief propagation problem and back to a picture.

The photographs are rectified: a point at column ``x`` of the left photograph is at column ``x - d``
of the same row of the right one; the disparity ``d`` is larger for nearer objects. The problem's
grid is coarser than the photographs: each of its pixels is a *cell* of ``f x f`` photograph pixels.
A grid finer than the photographs repeats the costs of a coarser one: each cell becomes ``e x e``
pixels of the grid.

Data costs: for every whole disparity of the photographs, the absolute difference of their grey
levels (0..255), truncated, is averaged over each cell. A label represents a range of disparities
and has the smallest of their costs. Smoothness costs are truncated linear in the difference of
labels. Both are integers, in units of 1/16 grey level.
"""

from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from microkernels.bp.golden import percent_wrong
from microkernels.bp.problem import BpProblem
from microkernels.bp.smoothness import smoothness_costs
from microkernels.common.errors import KernelError
from support.errors import unknown
from support.picture import DISPARITIES, picture

from .pictures import Photograph, displayed, need_photographs, read_photographs

#: Cost units per grey level.
COST_UNITS = 16
#: Truncation of the photographs' difference, in grey levels.
DATA_TRUNCATION = 20.0
#: Cost of a difference of one label between neighbours, in grey levels.
SMOOTHNESS_WEIGHT = 1.0
#: Truncation of that difference, in labels.
SMOOTHNESS_TRUNCATION = 3
#: Minimum columns and rows of the problem's grid, and maximum number of its data costs.
MIN_SIDE = 2
MAX_COSTS = 1 << 28

#: Weights of red, green and blue in the luminance of ITU-R BT.709.
_LUMINANCE = (0.2125, 0.7154, 0.0721)

#: The Motorcycle pair's smallest and largest true disparity in pixels, rounded outward.
_MOTORCYCLE_DISPARITIES = (7, 60)

#: Width of a picture's panel, and the colour of unknown parts.
_PANEL_INCHES = 4.0
_UNKNOWN = "lightgrey"

#: Element type of an array over the photographs' pixels.
_Pixel = TypeVar("_Pixel", bound=np.generic)


class StereoError(KernelError):
    """Photographs or parameters from which depth can't be computed; one line."""


@dataclass(frozen=True, eq=False)
class StereoScene:
    """A stereo problem with the data needed to show its result.

    Attributes:
        problem: the belief propagation problem; each label is a range of disparities, from far to
            near.
        picture: ``[y, x, rgb]``, 0..255: the part of the left photograph that the grid covers.
        disparities: ``[label]``: the middle of each label's range, in photograph pixels.
        truth: ``[y, x]``: label of the true disparity, -1 where unknown; None: no ground truth.
        name: for captions.
    """

    problem: BpProblem
    picture: NDArray[np.uint8]
    disparities: NDArray[np.float64]
    truth: NDArray[np.int64] | None
    name: str


def read_pair(left: Path, right: Path) -> tuple[Photograph, Photograph]:
    """Read two photographs of the same size (:func:`microkernels.data.pictures.read_photographs`).

    Raises:
        StereoError: images of different sizes.
        KernelError: a file that can't be read as a photograph.
        MissingExtraError: Pillow is not installed.
    """
    one, other = read_photographs(left, right)
    try:
        _same_size(one, other)
    except StereoError as error:
        raise StereoError(f"{left}, {right}: {error}") from None
    return one, other


def _same_size(left: Photograph, right: Photograph) -> None:
    if left.shape != right.shape:
        sizes = " and ".join(f"{image.shape[1]} x {image.shape[0]}" for image in (left, right))
        raise StereoError(f"the two images must be of equal size, not {sizes}")


def motorcycle(width: int = 64, height: int = 48, labels: int = 16) -> StereoScene:
    """The Motorcycle pair of the Middlebury set, with its true disparities, from scikit-image.

    Parameters:
        width, height: grid, as for :func:`stereo_scene`; the photographs have 741 x 500 pixels.
        labels: at least 2.

    Raises:
        StereoError: a size or number of labels out of range.
        MissingExtraError: scikit-image or Pillow is not installed.
    """
    need_photographs()
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


#: Photographs of scikit-image on which scenes are made.
MADE = ("astronaut.png", "coffee.png")
#: Disparities of a made scene's ground, at the top and bottom, and the smallest and largest of the
#: rectangles before it; standard deviation of its noise, in grey levels.
_GROUND, _BEFORE, _NOISE = (6, 26), (20, 50), 3.0
_RECTANGLES = 8


def made_scene(picture: str, width: int = 64, height: int = 48, labels: int = 16) -> StereoScene:
    """A pair made of one photograph of scikit-image, as if it were the pattern on a slanted ground
    with rectangles before it, with noise in the right one; drawn with the seed 1.

    Parameters:
        picture: one of :data:`MADE`. width, height, labels: as for :func:`motorcycle`.

    Raises:
        StereoError: as for :func:`motorcycle`, or no such picture.
        MissingExtraError: scikit-image or Pillow is not installed.
    """
    if picture not in MADE:
        raise StereoError(unknown("picture", picture, MADE))
    need_photographs()
    with as_file(files("skimage") / "data" / picture) as path:
        (left,) = read_photographs(path)
    rng = np.random.default_rng(1)
    rows, columns = left.shape[:2]
    truth = np.rint(np.linspace(*_GROUND, rows)).astype(np.int64)[:, None].repeat(columns, axis=1)
    for disparity in np.sort(rng.integers(*_BEFORE, _RECTANGLES)):
        y, x, high, wide = rng.integers(
            (0, 0, rows // 12, columns // 12),
            (rows - rows // 4, columns - columns // 4, rows // 4, columns // 4),
        )
        truth[y : y + high, x : x + wide] = disparity
    right = left.astype(np.float64)
    # What is near hides what is far.
    for disparity in np.unique(truth).tolist():
        rows_of, columns_of = np.nonzero(truth == disparity)
        right[rows_of, np.maximum(columns_of - disparity, 0)] = left[rows_of, columns_of]
    right += rng.normal(0, _NOISE, right.shape)
    return stereo_scene(
        left,
        np.rint(right.clip(0, 255)).astype(np.uint8),
        width=width,
        height=height,
        labels=labels,
        disparities=(_GROUND[0], _BEFORE[1]),
        truth=truth.astype(np.float64),
        name=picture.removesuffix(".png"),
    )


def stereo_scene(
    left: Photograph,
    right: Photograph,
    *,
    width: int,
    height: int,
    labels: int,
    disparities: tuple[int, int],
    truth: NDArray[np.floating] | None = None,
    name: str = "stereo",
) -> StereoScene:
    """The belief propagation problem of two photographs.

    Parameters:
        left, right: ``[y, x, rgb]``.
        width, height: grid, at least 2 per side. Its cells are the largest squares of whole pixels
            for which the grid fits; they cover the middle of the left photograph. In a grid larger
            than the photographs, squares of as few pixels as possible share a cell.
        labels: at least 2.
        disparities: smallest and largest, in photograph pixels; the labels share the range evenly.
        truth: ``[y, x]``, disparities of the left photograph's pixels; not finite where unknown.

    Raises:
        StereoError: arguments that don't fit together.
    """
    _same_size(left, right)
    rows, columns = left.shape[:2]
    _check_scene((rows, columns), (height, width), labels, disparities, truth)
    times = max(-(-width // columns), -(-height // rows))
    cells = _Cells(rows, columns, -(-width // times), -(-height // times))
    edges = np.linspace(disparities[0], disparities[1] + 1, labels + 1)

    def enlarged(values: NDArray[_Pixel]) -> NDArray[_Pixel]:
        """Enlarge ``[y, x, ...]`` from one pixel per cell to a finer grid."""
        if times == 1:
            return values
        return values.repeat(times, axis=0).repeat(times, axis=1)[:height, :width]

    return StereoScene(
        problem=BpProblem(
            enlarged(_data_costs(left, right, cells, edges)),
            smoothness_costs(
                labels, f"linear:{SMOOTHNESS_TRUNCATION}", round(COST_UNITS * SMOOTHNESS_WEIGHT)
            ),
        ),
        picture=enlarged(displayed(cells.cut(left))),
        disparities=(edges[:-1] + edges[1:] - 1) / 2,
        truth=None if truth is None else enlarged(_true_labels(truth, cells, edges)),
        name=name,
    )


def _check_scene(
    size: tuple[int, int],
    grid: tuple[int, int],
    labels: int,
    disparities: tuple[int, int],
    truth: NDArray[np.floating] | None,
) -> None:
    (rows, columns), (height, width) = size, grid
    if min(width, height) < MIN_SIDE:
        raise StereoError(
            f"the grid must have at least {MIN_SIDE} x {MIN_SIDE} pixels, not {width} x {height}"
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
    count = width * height * labels
    if count > MAX_COSTS:
        raise StereoError(
            f"{width} x {height} pixels with {labels} labels give {count:,} costs; at most "
            f"{MAX_COSTS:,} are allowed"
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
        """The part of a photograph covered by the grid."""
        return image[
            self.top : self.top + self.height * self.side,
            self.left : self.left + self.width * self.side,
        ]

    def split(self, image: NDArray[_Pixel]) -> NDArray[_Pixel]:
        """``[y, x, pixel]``: the pixels of each cell."""
        parts = self.cut(image).reshape(self.height, self.side, self.width, self.side)
        return parts.swapaxes(1, 2).reshape(self.height, self.width, -1)


def _grey(image: Photograph) -> NDArray[np.float32]:
    """``[y, x]``, 0 to 255: luminance; a test compares it with scikit-image's, bit for bit."""
    share = np.multiply(image, 1 / 255, dtype=np.float64) @ np.array(_LUMINANCE)
    grey: NDArray[np.float32] = 255 * share.astype(np.float32)
    return grey


def _data_costs(
    left: Photograph, right: Photograph, cells: _Cells, edges: NDArray[np.float64]
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


def _true_labels(
    truth: NDArray[np.floating], cells: _Cells, edges: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Label of each cell's median true disparity; -1 where less than half of it is known."""
    inside = cells.split(np.where(np.isfinite(truth), truth, np.nan))
    finite = np.isfinite(inside)
    enough = 2 * finite.sum(axis=2) > inside.shape[2]
    middle = np.full(enough.shape, edges[0])
    # The lower median is an actual disparity; the mean of two would invent one.
    place = (finite[enough].sum(axis=1) - 1) // 2
    # Unknown values sort last.
    ordered = np.sort(inside[enough], axis=1)
    middle[enough] = np.take_along_axis(ordered, place[:, None], axis=1)[:, 0]
    # A label's range of whole disparities extends half a pixel to either side.
    labels = np.searchsorted(edges - 0.5, middle, side="right") - 1
    return np.where(enough, np.clip(labels, 0, len(edges) - 2), -1)


def draw(scene: StereoScene, labels: NDArray[np.integer], path: Path, *, caption: str) -> None:
    """Write a picture: left photograph, true disparities (if known), computed disparities.

    Parameters:
        scene: the problem that was solved.
        labels: ``[y, x]``, its solution.
        path: file to write; replaced only when the picture is complete.
        caption: title of the computed disparities, e.g. ``BP-M on the PE, 5 iterations``.

    Raises:
        StereoError: labels of another size, or the file can't be written.
    """
    expected = (scene.problem.height, scene.problem.width)
    if labels.shape != expected:
        raise StereoError(f"labels must have the shape {expected}, not {labels.shape}")
    panels: list[tuple[str, NDArray[np.number]]] = [(f"{scene.name}, left image", scene.picture)]
    if scene.truth is not None:
        panels.append(("true disparities", _in_pixels(scene, scene.truth)))
        caption += f": {percent_wrong(labels, scene.truth):.1f} % off by more than one label"
    panels.append((caption, _in_pixels(scene, labels)))

    height = _PANEL_INCHES * expected[0] / expected[1] + 0.6
    limits = {"vmin": float(scene.disparities[0]), "vmax": float(scene.disparities[-1])}
    try:
        with picture(_PANEL_INCHES * len(panels) + 0.8, height, path) as figure:
            from matplotlib import colormaps

            axes = figure.subplots(1, len(panels), squeeze=False)[0]
            colours = colormaps[DISPARITIES].with_extremes(bad=_UNKNOWN)
            for axis, (title, image) in zip(axes, panels, strict=True):
                axis.set_title(title, fontsize=9)
                axis.set_axis_off()
                if image.ndim == 3:
                    axis.imshow(image)
                else:
                    mapped = axis.imshow(image, cmap=colours, interpolation="nearest", **limits)
            figure.colorbar(mapped, ax=axes[-1], label="disparity (pixels of the photograph)")
    except OSError as error:
        raise StereoError(f"{path}: {error.strerror or error}") from error


def _in_pixels(scene: StereoScene, labels: NDArray[np.integer]) -> NDArray[np.float64]:
    return np.where(labels >= 0, scene.disparities[labels], np.nan)
