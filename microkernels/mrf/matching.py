"""Integer data costs of a stereo pair: absolute differences, Birchfield-Tomasi, census.

Label ``l`` stands for disparity ``first + l``: the pixel at column ``x`` of the left picture is
compared with the one at column ``x - first - l`` in the same row of the right picture. If that
column is outside the right picture, the cost is the largest of its kind.
"""

from collections.abc import Callable
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import CHECK, KernelError
from microkernels.data.pictures import Photograph

#: ``ad``: absolute differences. ``bt``: those of Birchfield and Tomasi. ``census``: Hamming
#: distance of census transforms.
Cost = Literal["ad", "bt", "census"]
#: Side of the census transform's window in pixels.
CENSUS_SIDE = 5
#: Weights of red, green and blue in the luminance of ITU-R BT.709, of 10,000.
_LUMINANCE = (2125, 7154, 721)
#: Costs or picture values: whole numbers, or fractional if samples have many bits.
_Plane = NDArray[np.int16 | np.float32]


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
    if left.shape != right.shape:
        sizes = " and ".join(f"{one.shape[1]} x {one.shape[0]}" for one in (left, right))
        raise KernelError(f"the two images must be of equal size, not {sizes}")
    CHECK.within("labels", labels, 1, 256)
    CHECK.at_least("first", first, 0)
    if truncation is not None:
        CHECK.at_least("truncation", truncation, 1)
    height, width = left.shape[:2]
    if first + labels > width:
        raise KernelError(
            f"disparities {first} to {first + labels - 1} don't fit images {width} pixels wide; "
            f"the largest is {width - 1}"
        )
    compare = _COMPARISONS[cost](left, right)
    limit = compare.largest if truncation is None else min(truncation, compare.largest)
    costs = np.full((height, width, labels), limit, np.int16)
    for label in range(labels):
        disparity = first + label
        costs_at = compare.at(slice(disparity, width), slice(0, width - disparity))
        np.minimum(costs_at, limit, out=costs[:, disparity:, label], casting="unsafe")
    return costs


class _Comparison(Protocol):
    """A kind of cost for a pair; ``largest`` is the highest cost."""

    largest: int

    def at(self, columns: slice, shifted: slice) -> _Plane:
        """Costs of ``columns`` of the left picture against ``shifted`` of the right one."""


class _Differences:
    largest = 255

    def __init__(self, left: Photograph, right: Photograph) -> None:
        self._left, self._right = _values(left), _values(right)

    def at(self, columns: slice, shifted: slice) -> _Plane:
        differences = np.abs(self._left[:, columns] - self._right[:, shifted])
        return _mean(differences, self._left.shape[2])


class _BirchfieldTomasi:
    """Birchfield and Tomasi's dissimilarity, computed in half grey levels, which are exact."""

    largest = 255

    def __init__(self, left: Photograph, right: Photograph) -> None:
        self._left, self._right = _Range(left), _Range(right)

    def at(self, columns: slice, shifted: slice) -> _Plane:
        left, right = self._left, self._right
        ways = (
            right.distance(left.value[:, columns], shifted),
            left.distance(right.value[:, shifted], columns),
        )
        return _mean(np.minimum(*ways), 2 * left.value.shape[2])


class _Range:
    """Twice a picture's values, and twice their minimum and maximum within half a pixel."""

    def __init__(self, picture: Photograph) -> None:
        values = _values(picture)
        padded = np.pad(values, ((0, 0), (1, 1), (0, 0)), mode="edge")
        self.value = 2 * values
        before, after = padded[:, :-2] + values, padded[:, 2:] + values
        self.low = np.minimum(np.minimum(before, after), self.value)
        self.high = np.maximum(np.maximum(before, after), self.value)

    def distance(self, values: _Plane, columns: slice) -> _Plane:
        """Distance of ``values`` from the ranges of ``columns``; 0 inside."""
        above, below = values - self.high[:, columns], self.low[:, columns] - values
        result: _Plane = np.maximum(np.maximum(above, below), 0)
        return result


class _Census:
    largest = CENSUS_SIDE * CENSUS_SIDE - 1

    def __init__(self, left: Photograph, right: Photograph) -> None:
        self._left, self._right = _census(left), _census(right)

    def at(self, columns: slice, shifted: slice) -> _Plane:
        differing = np.bitwise_count(self._left[:, columns] ^ self._right[:, shifted])
        result: _Plane = differing.astype(np.int16)
        return result


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


_COMPARISONS: dict[Cost, Callable[[Photograph, Photograph], _Comparison]] = {
    "ad": _Differences,
    "bt": _BirchfieldTomasi,
    "census": _Census,
}


def _values(picture: Photograph) -> _Plane:
    """A picture's values in a type in which their sums and differences are exact, or nearly so."""
    return picture.astype(np.int16 if picture.dtype == np.uint8 else np.float32)


def _mean(values: _Plane, count: int) -> _Plane:
    """Sums of the channels, divided by ``count``, rounded to nearest, halves up."""
    totals = values.sum(axis=2, dtype=values.dtype)
    result: _Plane = (2 * totals + count) // (2 * count)
    return result
