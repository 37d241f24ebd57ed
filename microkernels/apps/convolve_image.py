"""Convolution of an image with a small filter of whole numbers, on one processing engine.

``out[y, x] = round(sum over i, j of image[y + i, x + j] * filter[i, j] >> shift)`` wherever the
filter is completely inside the image. Elements have 16 bits; the products, and the sum after each
of them, row by row, saturate.

A vector instruction processes a whole row of a strip (:mod:`microkernels.apps.row_window`), shifted
by the column of the tap, which is free since vectors can begin at any byte. The program is
generated for the filter: taps of 0 take no time, and taps of 1 need no multiplication.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from isa.program import Program
from isa.table import Width
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import (
    ELEMENT,
    ELEMENT_BYTES,
    Elements,
    add,
    check_elements,
    multiply,
    subtract,
)
from microkernels.nn.window_shape import ConvShape
from microkernels.runtime.job import KernelJob
from support.checks import shown

from .array_job import array_job
from .row_window import RowWindow, image_windows, window_places

_MOST_TAPS = 7
_MOST_TAP = 127
_MOST_SHIFT = 15


@dataclass(frozen=True)
class ImageFilter:
    """A filter of whole numbers.

    Attributes:
        taps: down x across numbers from -127 to 127, 1 to 7 each way, not all 0.
        shift: bits by which sums are shifted right, with rounding; 0..15.

    Raises:
        KernelError: a value out of range, or rows of different lengths.
    """

    taps: tuple[tuple[int, ...], ...]
    shift: int = 0

    def __post_init__(self) -> None:
        CHECK.fields(self)
        rows: object = self.taps
        if not isinstance(rows, tuple) or not all(isinstance(row, tuple) for row in rows):
            raise KernelError(f"taps must be a tuple of tuples, not {shown(rows)}")
        CHECK.within("rows of the filter", len(self.taps), 1, _MOST_TAPS)
        CHECK.within("columns of the filter", self.across, 1, _MOST_TAPS)
        if len({len(row) for row in self.taps}) != 1:
            raise KernelError("the filter's rows must have equal lengths")
        for tap in (tap for row in self.taps for tap in row):
            CHECK.within("a tap", tap, -_MOST_TAP, _MOST_TAP)
        if not self.terms:
            raise KernelError("the filter's taps must not all be 0")
        CHECK.within("shift", self.shift, 0, _MOST_SHIFT)

    @property
    def down(self) -> int:
        """Number of rows."""
        return len(self.taps)

    @property
    def across(self) -> int:
        """Number of columns."""
        return len(self.taps[0])

    @property
    def terms(self) -> tuple[tuple[int, int, int], ...]:
        """Row, column and value of all taps that are not 0, in the order of the sum."""
        return tuple(
            (y, x, tap) for y, row in enumerate(self.taps) for x, tap in enumerate(row) if tap
        )

    @property
    def factors(self) -> tuple[int, ...]:
        """Factors in the program: 1, and the taps that need a multiplication, which are all except
        1 and -1, and the first one if it is -1."""
        first = self.terms[0][2]
        return (1, *sorted({tap for _, _, tap in self.terms} - {1, -1} | ({first} - {1})))

    def shape(self, image: tuple[int, ...]) -> ConvShape:
        """The windows of an image of this shape.

        Raises:
            KernelError: not an image, or one that is smaller than the filter or too large.
        """
        return image_windows(image, self.down, self.across)


def convolve_image(kernel: ImageFilter, image: Elements) -> Elements:
    """Golden model, bit-exact.

    Raises:
        KernelError: not an image, or one smaller than the filter or with values beyond 16 bits.
    """
    shape = kernel.shape(image.shape)
    height, width = shape.out_height, shape.out_width
    image = check_elements("image", image, image.shape)
    total = np.zeros((height, width), ELEMENT)
    for y, x, tap in kernel.terms:
        part = image[y : y + height, x : x + width]
        product = multiply(part, np.array(tap), 0)
        total = subtract(total, part) if tap == -1 else add(total, product)
    return multiply(total, np.array(1), kernel.shift)


@lru_cache(maxsize=64)
def _program(kernel: ImageFilter, height: int, width: int) -> Program:
    """The program for an image of this size.

    Raises:
        KernelError: the image is smaller than the filter, or larger than 4096 x 4096.
    """
    return (
        _ConvolveImage(kernel, kernel.shape((height, width)))
        .build()
        .program(f"convolve_image_{height}x{width}_{kernel.down}x{kernel.across}.s")
    )


class _ConvolveImage(RowWindow):
    """Code that computes a row of the result."""

    def __init__(self, kernel: ImageFilter, shape: ConvShape) -> None:
        self.kernel = kernel
        factors = (len(kernel.factors), f"factors: {', '.join(map(str, kernel.factors))}")
        super().__init__(
            f"Convolution of an image of {shape.height} x {shape.width} with a filter of "
            f"{shape.down} x {shape.across}.",
            shape,
            Width.W16,
            factors,
            buffers=1,
        )
        (self.product,) = self.buffers
        w = self.writer
        self.views = (
            w.register("view", "row at a tap"),
            w.register("other", "row at the next tap"),
        )
        self.factor = w.register("factor", "factor of the tap; value for a setting")

    def row(self) -> None:
        """Write the sum of the products of all taps."""
        w, kernel, result = self.writer, self.kernel, self.made
        w.op("set.vl", self.outputs)
        if kernel.shift and len(kernel.factors) > 1:
            w.op("set.fx", w.zero)
        total = ""
        for number, (y, x, tap) in enumerate(kernel.terms):
            view = self.shifted(self.views[number % 2], self.rows[y], x)
            if not total:
                total = view if tap == 1 else self._multiply(result, view, tap)
            elif tap in (1, -1):
                w.vector("v.v.add" if tap == 1 else "v.v.sub", result, total, view)
                total = result
            else:
                product = self._multiply(self.product, view, tap)
                w.vector("v.v.add", result, total, product)
                total = result
        if kernel.shift or total != result:
            w.op("mov", self.factor, kernel.shift)
            w.op("set.fx", self.factor)
            self._multiply(result, total, 1)

    def _multiply(self, result: str, view: str, tap: int) -> str:
        place = self.kernel.factors.index(tap) * ELEMENT_BYTES
        self.writer.op("mov", self.factor, place)
        self.writer.vector("v.s.mul", result, view, self.factor, note=f"times {tap}")
        return result


def convolve_image_job(kernel: ImageFilter, image: Elements) -> KernelJob:
    """The convolution of an image, height x width elements, with ``kernel``.

    Raises:
        KernelError: as for :func:`convolve_image`.
    """
    shape = kernel.shape(image.shape)
    factors, source, target, _ = window_places(shape, len(kernel.factors), Width.W16)
    return array_job(
        "image convolution",
        _program(kernel, shape.height, shape.width),
        {factors: np.array(kernel.factors, ELEMENT), source: image.astype(ELEMENT)},
        target,
        lambda: convolve_image(kernel, image),
        2 * len(kernel.terms) * shape.out_height * shape.out_width,
    )
