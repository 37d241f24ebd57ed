"""Integer data costs of two pictures: absolute differences, Birchfield-Tomasi, census.

Label ``l`` stands for disparity ``first + l``: the pixel at column ``x`` of the left picture is
compared with the one at column ``x - first - l`` in the same row of the right picture. If that
column is outside the right picture, the cost is the largest of its kind.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import CHECK, KernelError
from microkernels.data.pictures import Photograph

#: ``ad``: absolute differences. ``bt``: those of Birchfield and Tomasi. ``census``: Hamming
#: distance of census transforms. ``ad-sum``, ``bt-sum``: sums of the channels instead of means.
Cost = Literal["ad", "bt", "census", "ad-sum", "bt-sum"]
#: Side of the census transform's window in pixels.
CENSUS_SIDE = 5
#: Weights of red, green and blue in the luminance of ITU-R BT.709, of 10,000.
_LUMINANCE = (2125, 7154, 721)
#: Costs or picture values: whole numbers, or fractional if samples have many bits.
_Plane = NDArray[np.int16 | np.float32]
#: Rows and columns.
_Place = tuple[slice, ...]
#: Costs of pixels at a place of the first picture against those at one of the second.
_Comparison = Callable[[_Place, _Place], _Plane]
#: Most labels across a window of motions.
MOST_WINDOW = 15


def matching_costs(
    left: Photograph,
    right: Photograph,
    *,
    labels: int,
    first: int = 0,
    cost: Cost = "ad",
    truncation: int | None = None,
) -> NDArray[np.int16]:
    """``[y, x, label]``: the cost of each disparity at each pixel of the left picture.

    - ``ad``: the mean of the channels' absolute differences, 0 to 255, rounded.
    - ``bt``: the same with the dissimilarity of Birchfield and Tomasi (1998), which compares each
      pixel with the range of values within half a pixel of the other, in both directions.
    - ``ad-sum``, ``bt-sum``: the sums of the channels' differences, 0 to 255 for each channel.
    - ``census``: number of differing bits in the census transforms of the luminances, 0 to
      :data:`CENSUS_SIDE` squared minus 1; a bit is set if a neighbour is darker than the middle.

    Parameters:
        left, right: ``[y, x, rgb]`` of equal size.
        labels: 1 to 256.
        first: disparity of label 0, at least 0.
        truncation: largest cost, at least 1; None: no limit.

    Raises:
        KernelError: pictures of different sizes, a value out of range, or disparities beyond the
            width of the pictures.
    """
    _check_sizes(left, right)
    CHECK.within("labels", labels, 1, 256)
    CHECK.at_least("first", first, 0)
    width = left.shape[1]
    if first + labels > width:
        raise KernelError(
            f"disparities {first} to {first + labels - 1} don't fit images {width} pixels wide; "
            f"the largest is {width - 1}"
        )
    return _costs(left, right, cost, truncation, [(0, -first - label) for label in range(labels)])


def displacements(window: int) -> NDArray[np.int64]:
    """``[label, (right, down)]``: the motions in pixels of a ``window`` of labels, row by row.

    Parameters:
        window: labels across and down, odd, 3 to :data:`MOST_WINDOW`.

    Raises:
        KernelError: another window.
    """
    CHECK.within("window", window, 3, MOST_WINDOW)
    if window % 2 == 0:
        raise KernelError(f"a window has an odd number of labels across, not {window}")
    down, right = np.divmod(np.arange(window * window), window)
    return np.stack([right, down], axis=1) - window // 2


def flow_costs(
    first: Photograph,
    second: Photograph,
    *,
    window: int,
    cost: Cost = "ad",
    truncation: int | None = None,
) -> NDArray[np.int16]:
    """``[y, x, label]``: the cost of each motion of :func:`displacements` of each pixel of the
    first picture, by which it is in the second; otherwise as :func:`matching_costs`.

    Raises:
        KernelError: pictures of different sizes or no larger than the window, or a value out of
            range.
    """
    _check_sizes(first, second)
    moves = displacements(window)
    if min(first.shape[:2]) <= window // 2:
        raise KernelError(
            f"images of {first.shape[1]} x {first.shape[0]} pixels are too small for motions of "
            f"{window // 2} pixels"
        )
    return _costs(first, second, cost, truncation, [(down, right) for right, down in moves])


def _check_sizes(first: Photograph, second: Photograph) -> None:
    if first.shape != second.shape:
        sizes = " and ".join(f"{one.shape[1]} x {one.shape[0]}" for one in (first, second))
        raise KernelError(f"the two images must be of equal size, not {sizes}")


def _costs(
    first: Photograph,
    second: Photograph,
    cost: Cost,
    truncation: int | None,
    moves: Sequence[tuple[int, int]],
) -> NDArray[np.int16]:
    """``[y, x, label]``: costs of the moves (down, right) from the first to the second picture."""
    if truncation is not None:
        CHECK.at_least("truncation", truncation, 1)
    limit, compare = _comparison(cost, first, second)
    limit = min(limit, truncation or limit)
    size = first.shape[:2]
    costs = np.full((*size, len(moves)), limit, np.int16)
    for label, move in enumerate(moves):
        ends = list(zip(size, move, strict=True))
        in_first = tuple(slice(max(0, -step), side - max(0, step)) for side, step in ends)
        in_second = tuple(slice(max(0, step), side - max(0, -step)) for side, step in ends)
        part = costs[in_first][..., label]
        np.minimum(compare(in_first, in_second), limit, out=part, casting="unsafe")
    return costs


def _comparison(cost: Cost, first: Photograph, second: Photograph) -> tuple[int, _Comparison]:
    """The largest cost of a kind, and the function that compares two pictures by it."""
    if cost == "census":
        return CENSUS_SIDE * CENSUS_SIDE - 1, _census_distances(first, second)
    kind, _, summed = cost.partition("-")
    channels = first.shape[2]
    parts = 1 if summed else channels
    differences, units = (_differences, 1) if kind == "ad" else (_dissimilarities, 2)
    at = differences(first, second)
    return 255 * channels // parts, lambda *places: _mean(at(*places), units * parts)


def _differences(left: Photograph, right: Photograph) -> _Comparison:
    """Absolute differences of each channel."""
    one, other = _values(left), _values(right)
    return lambda in_left, in_right: np.abs(one[in_left] - other[in_right])


def _dissimilarities(left: Photograph, right: Photograph) -> _Comparison:
    """Birchfield and Tomasi's dissimilarity of each channel, in half grey levels, which are
    exact."""
    one, other = _Range(left), _Range(right)

    def at(in_left: _Place, in_right: _Place) -> _Plane:
        ways = (
            other.distance(one.value[in_left], in_right),
            one.distance(other.value[in_right], in_left),
        )
        return np.minimum(*ways)

    return at


class _Range:
    """Twice a picture's values, and twice their minimum and maximum within half a pixel."""

    def __init__(self, picture: Photograph) -> None:
        values = _values(picture)
        padded = np.pad(values, ((0, 0), (1, 1), (0, 0)), mode="edge")
        self.value = 2 * values
        before, after = padded[:, :-2] + values, padded[:, 2:] + values
        self.low = np.minimum(np.minimum(before, after), self.value)
        self.high = np.maximum(np.maximum(before, after), self.value)

    def distance(self, values: _Plane, place: _Place) -> _Plane:
        """Distance of ``values`` from the ranges at ``place``; 0 inside."""
        above, below = values - self.high[place], self.low[place] - values
        result: _Plane = np.maximum(np.maximum(above, below), 0)
        return result


def _census_distances(left: Photograph, right: Photograph) -> _Comparison:
    """Numbers of differing bits."""
    one, other = _census(left), _census(right)
    return lambda in_left, in_right: np.bitwise_count(one[in_left] ^ other[in_right]).astype(
        np.int16
    )


def _census(picture: Photograph) -> NDArray[np.uint32]:
    grey = picture.astype(np.float64) @ np.array(_LUMINANCE) / sum(_LUMINANCE)
    if picture.dtype == np.uint8:
        # Whole grey levels if the picture has whole grey levels.
        grey = np.floor(grey)
    reach = CENSUS_SIDE // 2
    padded = np.pad(grey, reach, mode="edge")
    height, width = grey.shape
    result = np.zeros(grey.shape, np.uint32)
    for down in range(CENSUS_SIDE):
        for across in range(CENSUS_SIDE):
            if (down, across) != (reach, reach):
                darker = padded[down : down + height, across : across + width] < grey
                result = (result << np.uint32(1)) | darker
    return result


def _values(picture: Photograph) -> _Plane:
    """A picture's values in a type in which their sums and differences are exact, or nearly so."""
    return picture.astype(np.int16 if picture.dtype == np.uint8 else np.float32)


def _mean(values: _Plane, count: int) -> _Plane:
    """Sums of the channels, divided by ``count``, rounded to nearest, halves up."""
    totals = values.sum(axis=2, dtype=values.dtype)
    result: _Plane = (2 * totals + count) // (2 * count)
    return result
