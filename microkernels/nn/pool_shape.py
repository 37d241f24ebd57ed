"""Pooling and completing partial sums: sizes and golden model.

An output is computed from the maps of all *segments* (partial sums of a convolution; one for plain
pooling): they are added element by element, combined over a window by maximum or mean, then the
bias is added, and with ReLU negative values become 0 (thesis section 6.2). Without a bias, with one
segment, this is a pooling layer; with a window of one pixel it completes a convolution.

A mean is the window's saturating sum times :meth:`PoolShape.reciprocal`, which has
:data:`MEAN_FRACTION` fraction bits: exact to half a unit in the last place plus 2**-16 of the sum,
as long as the sum fits in 16 bits. Bytes, whose sums would not fit, have no mean.
"""

from dataclasses import dataclass

import numpy as np

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import (
    ELEMENT,
    Elements,
    add,
    check_bits,
    check_elements,
    lowest_element,
    multiply,
    unpack,
)

from .conv_shape import StridedShape

#: Fraction bits of the reciprocal of a window's number of pixels.
MEAN_FRACTION = 15


@dataclass(frozen=True, kw_only=True)
class PoolShape(StridedShape):
    """Sizes of a pooling layer. Padding is the lowest element for a maximum, and 0 for a mean,
    which includes it.

    Attributes:
        window: pixels across and down, at least 1.
        window_down: pixels down, if different from across; otherwise None.
        bits: of a number, 16 or 8; channels count elements.
        mean: compute the mean instead of the maximum.
        segments: number of maps to add, at least 1.

    Raises:
        KernelError: a value out of range, a window larger than the padded map, a mean of bytes,
            or a mean of more than 65,536 pixels, whose reciprocal would be 0.
    """

    stride: int = 2
    window: int = 2
    mean: bool = False
    segments: int = 1
    window_down: int | None = None
    bits: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bits(self.bits, "mean" if self.scaled else "maximum", ("maximum",))
        CHECK.at_least("window", self.window, 1)
        CHECK.at_least("window_down", self.down, 1)
        CHECK.at_least("segments", self.segments, 1)
        self.check_window("a window", "a map")
        if self.segments > 1 and self.padding:
            raise KernelError("maps of several segments can't be padded: padding would be added")
        if self.scaled and not self.reciprocal:
            raise KernelError(
                f"a mean takes at most {2 << MEAN_FRACTION:,} pixels, not "
                f"{self.window} x {self.down}"
            )

    @property
    def across(self) -> int:
        return self.window

    @property
    def down(self) -> int:
        return self.window_down or self.window

    @property
    def scaled(self) -> bool:
        """Whether sums of windows are multiplied by :attr:`reciprocal`."""
        return self.mean and self.window * self.down > 1

    @property
    def reciprocal(self) -> int:
        """One pixel's share of a window, with :data:`MEAN_FRACTION` fraction bits."""
        pixels = self.window * self.down
        return ((1 << MEAN_FRACTION) + pixels // 2) // pixels

    @property
    def around(self) -> int:
        """Value of the padding."""
        return 0 if self.mean else lowest_element(self.bits)


def pool(
    shape: PoolShape, maps: Elements, bias: Elements | None = None, *, relu: bool = False
) -> Elements:
    """Golden model of the pooling kernel, bit-exact.

    Parameters:
        maps: segments x height x width x channels elements.
        bias: one element per channel; None: none is added.
        relu: negative outputs become 0.

    Returns:
        out_height x out_width x channels elements.

    Raises:
        KernelError: an array of another shape, or values beyond 16 bits.
    """
    size = (shape.segments, shape.height, shape.width, shape.channels)
    maps = check_elements("maps", maps, size)
    edge = (shape.padding, shape.padding)
    maps = np.pad(maps, ((0, 0), edge, edge, (0, 0)), constant_values=shape.around)
    maps = unpack(maps, shape.bits)
    total: Elements = maps[0]
    for segment in maps[1:]:
        total = add(total, segment)
    combine = add if shape.mean else np.maximum
    sides = (
        (1, shape.out_width, shape.stride, shape.window),
        (0, shape.out_height, shape.step_down, shape.down),
    )
    for axis, count, stride, window in sides:
        starts = np.arange(count) * stride
        combined = total.take(starts, axis)
        for step in range(1, window):
            combined = combine(combined, total.take(starts + step, axis))
        total = combined
    if shape.scaled:
        total = multiply(total, np.array(shape.reciprocal), MEAN_FRACTION)
    if bias is not None:
        bias = check_elements("bias", bias, (shape.channels,))
        total = add(total, unpack(bias, shape.bits))
    if relu:
        total = np.maximum(total, 0)
    return np.ascontiguousarray(total).view(ELEMENT)
