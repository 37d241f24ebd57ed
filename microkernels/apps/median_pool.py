"""Medians of windows of 3 x 3 8-bit pixels, on one processing engine.

A network of minima and maxima finds the medians of a row of windows at once. It first sorts each
column of three pixels; the median of a window is that of three numbers: the largest of its columns'
lowest pixels, the median of their middle ones, and the smallest of their highest. Columns shared by
windows are sorted once. With a stride above 1, medians are computed for every pixel of the row and
the first of every ``stride`` is picked: it is the maximum of the element-wise minima of these
medians and a vector with the highest number in the first place and the lowest in all others.
"""

from functools import lru_cache

import numpy as np

from isa.program import Program
from isa.table import Width
from microkernels.common.errors import CHECK
from microkernels.common.fixed_point import Elements, check_elements
from microkernels.nn.window_shape import ConvShape
from microkernels.runtime.job import KernelJob

from .array_job import array_job
from .row_window import RowWindow, image_windows, window_places

_SIDE = 3
_PIXEL = np.dtype(np.int8)
_MOST_STRIDE = 8
#: Minima and maxima per median, including those for three columns of its own.
_OPERATIONS = 30
_BUFFERS = 6


def _shape(image: tuple[int, ...], stride: int) -> ConvShape:
    CHECK.within("stride", stride, 1, _MOST_STRIDE)
    return image_windows(image, _SIDE, _SIDE, stride)


def median_pool(image: Elements, stride: int = 1) -> Elements:
    """Golden model.

    Parameters:
        image: height x width elements of 8 bits, signed.
        stride: pixels from window to window, 1..8.

    Raises:
        KernelError: not an image, or one that is smaller than a window or has values beyond 8 bits;
            or an invalid stride.
    """
    _shape(image.shape, stride)
    image = check_elements("image", image, image.shape, _PIXEL)
    windows = np.lib.stride_tricks.sliding_window_view(image, (_SIDE, _SIDE))[::stride, ::stride]
    flat = windows.reshape(*windows.shape[:2], -1)
    return np.sort(flat, axis=-1)[..., _SIDE * _SIDE // 2]


@lru_cache(maxsize=64)
def _program(height: int, width: int, stride: int) -> Program:
    """The program for an image of this size.

    Raises:
        KernelError: the image is smaller than a window or larger than 4096 x 4096, or the stride
            invalid.
    """
    return (
        _MedianPool(_shape((height, width), stride))
        .build()
        .program(f"median_pool_{height}x{width}_{stride}.s")
    )


def _picker(stride: int) -> Elements:
    """The vector that picks the first of ``stride`` elements."""
    limits = np.iinfo(_PIXEL)
    return np.array([limits.max] + [limits.min] * (stride - 1), _PIXEL)


class _MedianPool(RowWindow):
    """Code that computes a row of medians."""

    def __init__(self, shape: ConvShape) -> None:
        self.stride = shape.stride
        super().__init__(
            f"Medians of 3 x 3 pixels of an image of {shape.height} x {shape.width}, stride "
            f"{shape.stride}.",
            shape,
            Width.W8,
            (shape.stride, "vector that picks the first element"),
            buffers=_BUFFERS,
        )
        w = self.writer
        self.views = (w.register("second", "second columns"), w.register("third", "third ones"))
        self.positions = self.outputs
        if self.stride > 1:
            positions = self.span - _SIDE + 1
            self.positions = w.constant("positions", positions, "medians of a strip")
            self.between = w.constant("between", self.stride, "pixels from window to window")

    def row(self) -> None:
        """Write the medians of all windows."""
        w, step = self.writer, self.writer.vector
        top, middle, bottom = self.rows
        spare, high, low, mid, highest, lowest = self.buffers
        w.op("set.vl", self.pixels)
        step("v.v.min", spare, top, middle, note="sort each column")
        step("v.v.max", high, top, middle)
        step("v.v.min", low, spare, bottom)
        step("v.v.max", spare, spare, bottom)
        step("v.v.min", mid, high, spare)
        step("v.v.max", high, high, spare)
        w.op("set.vl", self.positions)
        second, third = self._shifted(low)
        step("v.v.max", highest, low, second, note="the largest of the lowest")
        step("v.v.max", highest, highest, third)
        second, third = self._shifted(high)
        step("v.v.min", lowest, high, second, note="the smallest of the highest")
        step("v.v.min", lowest, lowest, third)
        second, third = self._shifted(mid)
        step("v.v.min", spare, mid, second, note="the median of the middle ones")
        step("v.v.max", low, mid, second)
        step("v.v.min", low, low, third)
        step("v.v.max", low, low, spare)
        step("v.v.min", spare, highest, low, note="the median of the three")
        step("v.v.max", highest, highest, low)
        step("v.v.min", highest, highest, lowest)
        if self.stride == 1:
            step("v.v.max", self.made, highest, spare)
            return
        step("v.v.max", spare, highest, spare)
        w.op("set.vl", self.between)
        w.op("set.mr", self.outputs)
        w.op("v.drain")
        w.vector("m.v.min.max", self.made, spare, w.zero, note="those that count")

    def _shifted(self, base: str) -> tuple[str, str]:
        """Registers with the addresses of a buffer's second and third columns."""
        second, third = self.views
        return self.shifted(second, base, 1), self.shifted(third, base, 2)


@CHECK.arguments
def median_pool_job(image: Elements, stride: int = 1) -> KernelJob:
    """Medians of the windows of an image; parameters and errors as for :func:`median_pool`."""
    shape = _shape(image.shape, stride)
    picker = _picker(stride)
    places = window_places(shape, picker.size, Width.W8)
    return array_job(
        "median pooling",
        _program(shape.height, shape.width, stride),
        {places[0]: picker, places[1]: image.astype(_PIXEL)},
        places[2],
        lambda: median_pool(image, stride),
        _OPERATIONS * shape.out_height * shape.out_width,
    )
