"""Convolutions of elements and of bytes, and pooling: sizes and golden models.

``out[y, x, o] = act(bias[o] + sum over i, j, c of image[y*s + i*d - p, x*s + j*d - p, c] *
weights[o, i, j, c])`` with stride ``s``, dilation ``d`` and ``p`` pixels of zeros around the image
(thesis equation 2.12, with the filters as networks store them). In groups, equal parts of the
filters read equal parts of the channels. The additions saturate, so their order, which is the
kernel's, matters. The slices of the channels follow each other. The window of a slice is one sum of
products (*joined*), or one per column. The sums of a window are added from left to right, then the
partial sum of the earlier slices (the bias for the first).

Convolutions of bytes run at the rate of 8-bit products, with 16-bit sums. Image and weights are
signed bytes. Two of them, for neighbouring channels, form a 16-bit element in memory, the first in
the low half; an odd channel is padded with zeros. Such a map is laid out like a map of elements
(:mod:`microkernels.common.feature_map`) with half as many channels. The kernel is
:mod:`microkernels.nn.conv_kernel` with ``m.v.dot.add`` for its products, so engines need this
optional instruction.

Sums of products are shifted right by ``fraction`` bits and have 16 bits, like those of
:func:`microkernels.nn.window_shape.convolve`. They are the outputs, or they become bytes: shifted
right by ``narrow`` bits, rounded to nearest, halves up, and saturated. For that, half a unit in a
byte's last place is added to the biases.

An output of pooling is computed from the maps of all *segments* (partial sums of a convolution; one
for plain pooling): they are added element by element, combined over a window by maximum or mean,
then the bias is added, and with ReLU negative values become 0 (thesis section 6.2). Without a bias,
with one segment, this is a pooling layer; with a window of one pixel it completes a convolution.

A mean is the window's saturating sum times :meth:`PoolShape.reciprocal`, which has
:data:`MEAN_FRACTION` fraction bits: exact to half a unit in the last place plus 2**-16 of the sum,
as long as the sum fits in 16 bits. Bytes, whose sums would not fit, have no mean.
"""

from dataclasses import dataclass

import numpy as np

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import (
    BYTE,
    ELEMENT,
    NUMBERS,
    Elements,
    add,
    check_bits,
    check_elements,
    check_fraction,
    clip,
    dot,
    lowest_element,
    multiply,
    packed,
    unpack,
)

#: Maximum bits that a sum is shifted by when it becomes a byte.
MOST_NARROW = 8
#: Most fraction bits with which sums are packed to bytes, as a byte is a factor of 1; with more, a
#: convolution sets them to 0 for that.
MOST_BYTE_FRACTION = 6
#: Fraction bits of the reciprocal of a window's number of pixels.
MEAN_FRACTION = 15


def check_shifts(fraction: int, narrow: int | None) -> None:
    """Check that sums of products can be shifted right by ``fraction`` bits: 0..15; and sums that
    become bytes by ``narrow`` bits: 0..8.

    Raises:
        KernelError: a shift is out of range.
    """
    check_fraction(fraction)
    if narrow is not None:
        CHECK.within("bits that sums are shifted by to bytes", narrow, 0, MOST_NARROW)


@dataclass(frozen=True, kw_only=True)
class StridedShape:
    """Sizes of a layer whose window slides over a map.

    Attributes:
        width, height, channels: of the map, at least 1 each.
        kernel: pixels of a window across and down, at least 1.
        stride: pixels from one output's window to the next, at least 1.
        dilation: pixels from one of a window's to the next, at least 1.
        kernel_down, stride_down, dilation_down: pixels down, if different from across; otherwise
            None.
        padding: pixels around the map, fewer than a window's width.

    Raises:
        KernelError: a value out of range.
    """

    width: int
    height: int
    channels: int
    kernel: int = 3
    kernel_down: int | None = None
    stride: int = 1
    stride_down: int | None = None
    dilation: int = 1
    dilation_down: int | None = None
    padding: int = 0

    def __post_init__(self) -> None:
        CHECK.fields(self)
        for name in ("width", "height", "channels", "kernel", "stride", "dilation"):
            CHECK.at_least(name, getattr(self, name), 1)
        for name in ("kernel_rows", "step_down", "gap_down"):
            CHECK.at_least(name, getattr(self, name), 1)

    @property
    def kernel_rows(self) -> int:
        """Pixels of a window down."""
        return self.kernel_down or self.kernel

    @property
    def gap_down(self) -> int:
        """Pixels from one of a window's to the next one down."""
        return self.dilation_down or self.dilation

    @property
    def across(self) -> int:
        """Width of a window in pixels, including those between its own."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def down(self) -> int:
        """Height of a window in pixels, including those between its own."""
        return (self.kernel_rows - 1) * self.gap_down + 1

    @property
    def step_down(self) -> int:
        """Pixels from one output's window to that of the output below."""
        return self.stride_down or self.stride

    @property
    def out_width(self) -> int:
        """Width of the output in pixels."""
        return (self.width + 2 * self.padding - self.across) // self.stride + 1

    @property
    def out_height(self) -> int:
        """Height of the output in pixels."""
        return (self.height + 2 * self.padding - self.down) // self.step_down + 1

    def check_window(self, window: str, image: str) -> None:
        """Check the padding, and that the window fits.

        Parameters:
            window, image: the layer's names for them, with an article.

        Raises:
            KernelError: one is out of range.
        """
        if not 0 <= self.padding < self.across:
            raise KernelError(f"padding must be from 0 to {self.across - 1}, not {self.padding}")
        around = 2 * self.padding
        if self.across > self.width + around or self.down > self.height + around:
            size = self.across if self.across == self.down else f"{self.across} x {self.down}"
            raise KernelError(
                f"{window} of {size} does not fit {image} of {self.width} x {self.height} "
                f"pixels with {self.padding} pixels around it"
            )


@dataclass(frozen=True, kw_only=True)
class ConvShape(StridedShape):
    """Sizes of a convolution layer, whose padding is zeros.

    Attributes:
        filters: number of filters, at least 1.
        inner: channels that a filter reads, for a convolution in groups; None: all.

    Raises:
        KernelError: a value out of range, a kernel larger than the padded image, or groups that do
            not divide channels and filters.
    """

    filters: int
    inner: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("filters", "group_channels"):
            CHECK.at_least(name, getattr(self, name), 1)
        self.check_window("a kernel", "an image")
        if self.channels % self.group_channels or self.filters % self.groups:
            raise KernelError(
                f"groups of {self.group_channels} channels must divide {self.channels} channels, "
                f"and their number {self.filters} filters"
            )

    @property
    def group_channels(self) -> int:
        """Channels that a filter reads."""
        return self.inner or self.channels

    @property
    def groups(self) -> int:
        """Groups of channels."""
        return self.channels // self.group_channels

    @property
    def pointwise(self) -> bool:
        """Whether each output is of one pixel, and each pixel has outputs, of all channels."""
        sizes = (self.kernel, self.kernel_rows, self.stride, self.step_down)
        return sizes == (1, 1, 1, 1) and self.groups == 1

    @property
    def macs(self) -> int:
        """Multiplications per layer."""
        window = self.kernel * self.kernel_rows * self.group_channels
        return self.out_width * self.out_height * self.filters * window


def convolve(
    shape: ConvShape,
    image: Elements,
    weights: Elements,
    bias: Elements,
    *,
    depth: int,
    joined: bool,
    fraction: int,
    relu: bool,
    narrow: int | None = None,
    bits: int = 16,
) -> Elements:
    """Golden model of the convolution kernel, bit-exact.

    Parameters:
        shape: of the layer; its channels and filters count numbers.
        image: height x width x channels numbers.
        weights: filters x kernel (down) x kernel (across) x channels of a group, as numbers.
        bias: one element per filter, with the fraction bits of the sums.
        depth: elements of a pixel per slice.
        joined: a slice's window is one sum.
        fraction: bits by which sums of products are shifted right, 0..15.
        relu: negative outputs become 0.
        narrow: bits by which sums are shifted further to become bytes, 0..8; None: the outputs are
            the sums, elements of 16 bits.
        bits: of the numbers of image and weights, 16 or 8.

    Returns:
        out_height x out_width x filters elements, or bytes if the layer narrows.

    Raises:
        KernelError: an array of another shape, or values beyond their bits.
    """
    check_shifts(fraction, narrow)
    CHECK.one_of("bits", bits, tuple(NUMBERS))
    number, pixel = NUMBERS[bits], (shape.height, shape.width, shape.channels)
    size = (shape.filters, shape.kernel_rows, shape.kernel, shape.group_channels)
    image = check_elements("image", image, pixel, number).astype(ELEMENT)
    weights = check_elements("weights", weights, size, number).astype(ELEMENT)
    depth *= packed(bits)
    bias = rounding_bias(bias, shape.filters, narrow)
    windows = _windows(shape, image)
    parts = zip(
        np.split(windows, shape.groups, axis=3),
        np.split(weights.transpose(2, 1, 3, 0), shape.groups, axis=3),
        np.split(bias, shape.groups),
        strict=True,
    )
    sums = [_group_sums(*part, depth=depth, joined=joined, fraction=fraction) for part in parts]
    total = np.concatenate(sums, axis=1)
    if relu:
        total = np.maximum(total, 0)
    total = total.reshape(shape.out_height, shape.out_width, shape.filters)
    return total if narrow is None else narrowed(total, narrow)


def _group_sums(
    windows: Elements,
    filters: Elements,
    bias: Elements,
    *,
    depth: int,
    joined: bool,
    fraction: int,
) -> Elements:
    """Sums of a group: pixels x filters.

    Parameters:
        windows: as of :func:`_windows`. filters: across x down x channels x filters.
        bias, depth, joined, fraction: as for :func:`convolve`.
    """
    total = np.broadcast_to(bias, (len(windows), len(bias)))
    for first in range(0, windows.shape[3], depth):
        part = slice(first, first + depth)
        columns = [
            dot(
                windows[:, column, :, part].reshape(len(windows), -1),
                filters[column, :, part].reshape(-1, len(bias)),
                fraction,
            )
            for column in ([slice(None)] if joined else range(len(filters)))
        ]
        window = columns[0]
        for sums in columns[1:]:
            window = add(window, sums)
        total = add(window, total)
    return total


def _windows(shape: ConvShape, image: Elements) -> Elements:
    """Pixels x window across x window down x channels."""
    down, across = shape.kernel_rows, shape.kernel
    around = (shape.padding, shape.padding)
    padded = np.pad(image, (around, around, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (shape.down, shape.across), (0, 1))
    windows = windows[:: shape.step_down, :: shape.stride, :, :: shape.gap_down, :: shape.dilation]
    return windows.transpose(0, 1, 4, 3, 2).reshape(-1, across, down, shape.channels)


def outputs_per_element(narrow: int | None) -> int:
    """Outputs in an element of memory, for sums that become bytes by ``narrow`` bits; None: they
    stay sums."""
    return 1 if narrow is None else 2


def rounding_bias(bias: Elements, filters: int, narrow: int | None) -> Elements:
    """The biases including what rounds outputs of bytes.

    Parameters:
        narrow: as for :func:`convolve`.

    Raises:
        KernelError: a bias that leaves no room for it.
    """
    bias = check_elements("bias", bias, (filters,))
    half = 1 << narrow >> 1 if narrow is not None else 0
    return check_elements(
        "bias with half of an output's last place", bias + np.int64(half), bias.shape
    ).astype(ELEMENT)


def narrowed(sums: Elements, narrow: int) -> Elements:
    """Sums as bytes: shifted right by ``narrow`` bits and saturated."""
    limits = np.iinfo(BYTE)
    return clip(sums.astype(np.int64) >> narrow, limits.min, limits.max).astype(BYTE)


@dataclass(frozen=True, kw_only=True)
class PoolShape(StridedShape):
    """Sizes of a pooling layer. Padding is the lowest element for a maximum, and 0 for a mean,
    which includes it.

    Attributes:
        bits: of a number, 16 or 8; channels count elements.
        mean: compute the mean instead of the maximum.
        segments: number of maps to add, at least 1.

    Raises:
        KernelError: a value out of range, a window larger than the padded map, dilation, a mean of
            bytes, or a mean of more than 65,536 pixels, whose reciprocal would be 0.
    """

    kernel: int = 2
    stride: int = 2
    mean: bool = False
    segments: int = 1
    bits: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bits(self.bits, "mean" if self.scaled else "maximum", ("maximum",))
        CHECK.at_least("segments", self.segments, 1)
        self.check_window("a window", "a map")
        if max(self.dilation, self.gap_down) > 1:
            raise KernelError("a window of pooling has no pixels between its own")
        if self.segments > 1 and self.padding:
            raise KernelError("maps of several segments can't be padded: padding would be added")
        if self.scaled and not self.reciprocal:
            raise KernelError(
                f"a mean takes at most {2 << MEAN_FRACTION:,} pixels, not "
                f"{self.kernel} x {self.down}"
            )

    @property
    def scaled(self) -> bool:
        """Whether sums of windows are multiplied by :attr:`reciprocal`."""
        return self.mean and self.kernel * self.down > 1

    @property
    def reciprocal(self) -> int:
        """One pixel's share of a window, with :data:`MEAN_FRACTION` fraction bits."""
        pixels = self.kernel * self.down
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
        (1, shape.out_width, shape.stride, shape.kernel),
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
