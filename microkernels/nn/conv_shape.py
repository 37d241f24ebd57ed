"""A convolution layer: its sizes and its golden model.

``out[y, x, o] = act(bias[o] + sum over i, j, c of image[y*s + i - p, x*s + j - p, c] *
weights[o, i, j, c])`` with stride ``s`` and ``p`` pixels of zeros around the image (thesis equation
2.12, with the filters as networks store them). The order of the additions, which matters because
they saturate, is that of the kernel (:class:`ConvOrder`).
"""

from dataclasses import dataclass

import numpy as np

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import Elements, add, check_elements, check_fraction, dot

__all__ = ["ConvOrder", "ConvShape", "convolve"]


@dataclass(frozen=True, kw_only=True)
class ConvShape:
    """Sizes of a convolution layer.

    Attributes:
        width, height, channels: of the image, at least 1 each.
        filters: at least 1.
        kernel: pixels across and down of a filter, at least 1.
        stride: pixels from one output's window to the next one's, at least 1.
        kernel_down, stride_down: the same downwards, if it is another than across; else None.
        padding: pixels of zeros around the image, less than ``kernel``.

    Raises:
        KernelError: a value outside its range, or a kernel larger than the padded image.
    """

    width: int
    height: int
    channels: int
    filters: int
    kernel: int = 3
    stride: int = 1
    padding: int = 0
    kernel_down: int | None = None
    stride_down: int | None = None

    def __post_init__(self) -> None:
        CHECK.fields(self)
        for name in ("width", "height", "channels", "filters", "kernel", "stride"):
            CHECK.at_least(name, getattr(self, name), 1)
        for name in ("kernel_down", "stride_down"):
            CHECK.at_least(name, getattr(self, name) or 1, 1)
        if not 0 <= self.padding < self.kernel:
            raise KernelError(f"padding must be from 0 to {self.kernel - 1}, not {self.padding}")
        around = 2 * self.padding
        if self.kernel > self.width + around or self.down > self.height + around:
            size = self.kernel if self.kernel == self.down else f"{self.kernel} x {self.down}"
            raise KernelError(
                f"a kernel of {size} does not fit an image of {self.width} x {self.height} "
                f"pixels with {self.padding} pixels around it"
            )

    @property
    def down(self) -> int:
        """Pixels down of a filter."""
        return self.kernel_down or self.kernel

    @property
    def step_down(self) -> int:
        """Pixels from an output's window to that of the output below."""
        return self.stride_down or self.stride

    @property
    def out_width(self) -> int:
        """Pixels across of the output."""
        return (self.width + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def out_height(self) -> int:
        """Pixels down of the output."""
        return (self.height + 2 * self.padding - self.down) // self.step_down + 1

    @property
    def macs(self) -> int:
        """Multiplications of the layer."""
        window = self.kernel * self.down * self.channels
        return self.out_width * self.out_height * self.filters * window


@dataclass(frozen=True, kw_only=True)
class ConvOrder:
    """Order of the rounded sums that make up the sum of an output.

    Slices of the channels come one after the other. The window of a slice is one sum of products
    (``joined``), or one for each of its columns. The sums of a window are added from left to right,
    then the partial sum of the earlier slices (the bias for the first), each time with saturation.

    Attributes:
        depth: channels in a slice.
        joined: the window of a slice is one sum.
    """

    depth: int
    joined: bool


def convolve(
    shape: ConvShape,
    order: ConvOrder,
    image: Elements,
    weights: Elements,
    bias: Elements,
    *,
    fraction: int,
    relu: bool,
) -> Elements:
    """Golden model of the convolution kernel, bit-exact.

    Parameters:
        image: height x width x channels elements.
        weights: filters x kernel (down) x kernel (across) x channels elements.
        bias: an element for each filter, with the fraction bits of the output.
        fraction: bits by which sums of products are shifted right, 0..15.
        relu: negative outputs become 0.

    Returns:
        out_height x out_width x filters elements.

    Raises:
        KernelError: an array of another shape, or values beyond 16 bits.
    """
    check_fraction(fraction)
    down, across = shape.down, shape.kernel
    image = check_elements("image", image, (shape.height, shape.width, shape.channels))
    weights = check_elements("weights", weights, (shape.filters, down, across, shape.channels))
    bias = check_elements("bias", bias, (shape.filters,))
    around = (shape.padding, shape.padding)
    padded = np.pad(image, (around, around, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (down, across), (0, 1))
    windows = windows[:: shape.step_down, :: shape.stride]
    # Pixels x window across x window down x channels.
    windows = windows.transpose(0, 1, 4, 3, 2).reshape(-1, across, down, shape.channels)
    filters = weights.transpose(2, 1, 3, 0)
    total = np.broadcast_to(bias, (len(windows), shape.filters))
    for first in range(0, shape.channels, order.depth):
        part = slice(first, first + order.depth)
        columns = [
            dot(
                windows[:, column, :, part].reshape(len(windows), -1),
                filters[column, :, part].reshape(-1, shape.filters),
                fraction,
            )
            for column in ([slice(None)] if order.joined else range(across))
        ]
        window = columns[0]
        for sums in columns[1:]:
            window = add(window, sums)
        total = add(window, total)
    if relu:
        total = np.maximum(total, 0)
    return total.reshape(shape.out_height, shape.out_width, shape.filters)
