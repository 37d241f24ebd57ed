"""Convolutions of bytes: at the rate of 8-bit products, with sums of 16 bits.

Image and weights are signed bytes. Two of them, for neighbouring channels, are an element of 16
bits in memory, the first in the low half; an odd channel is filled up with zeros. The layout of
such a map is that of a map of elements (:mod:`microkernels.common.feature_map`) with half as many
channels. The kernel is :mod:`microkernels.nn.conv_kernel` with ``m.v.dot.add`` for its products, so
that engines need this optional instruction.

Sums of products are shifted right by ``fraction`` bits and have 16 bits, as those of
:func:`microkernels.nn.conv_shape.convolve`. They are the outputs, or become bytes: shifted right by
``narrow`` bits, rounded to nearest, halves up, and saturated. For that, half of the last place of a
byte is added to the biases.
"""

from dataclasses import dataclass, replace

import numpy as np

from microkernels.common.errors import CHECK
from microkernels.common.fixed_point import ELEMENT, Elements, check_elements
from microkernels.common.saturation import clip

from .conv_plan import check_shifts
from .conv_shape import ConvOrder, ConvShape, convolve

__all__ = ["BYTE", "ByteConv", "convolve_bytes", "pair_bytes", "split_pairs"]

#: Type of a number in a map of bytes.
BYTE = np.dtype("i1")
_LOWEST, _HIGHEST = -128, 127


def pair_bytes(values: Elements) -> Elements:
    """Signed bytes as elements of two: ... x channels to ... x half as many, rounded up.

    Raises:
        KernelError: values beyond 8 bits.
    """
    found = check_elements("bytes", values, np.shape(values), BYTE)
    found = np.pad(found, [(0, 0)] * (found.ndim - 1) + [(0, found.shape[-1] % 2)])
    return np.ascontiguousarray(found).view(ELEMENT)


def split_pairs(elements: Elements, channels: int) -> Elements:
    """The bytes of elements of two, of the first ``channels`` channels."""
    return np.ascontiguousarray(elements.astype(ELEMENT)).view(BYTE)[..., :channels]


@dataclass(frozen=True, kw_only=True)
class ByteConv:
    """A convolution of bytes.

    Attributes:
        shape: of the layer; its channels and filters count bytes.
        fraction: bits by which sums of products are shifted right, 0..15; for outputs of bytes
            0..6.
        narrow: bits by which sums are shifted further to become bytes, 0..8; None: outputs are the
            sums, elements of 16 bits.
        relu: negative outputs become 0.

    Raises:
        KernelError: a value outside its range.
    """

    shape: ConvShape
    fraction: int
    narrow: int | None = None
    relu: bool = True

    def __post_init__(self) -> None:
        CHECK.fields(self)
        check_shifts(self.fraction, self.narrow)

    @property
    def pairs(self) -> ConvShape:
        """The same with a pair of channels for one."""
        return replace(self.shape, channels=-(-self.shape.channels // 2))

    def biases(self, bias: Elements) -> Elements:
        """The biases with what rounds outputs of bytes.

        Raises:
            KernelError: a bias that leaves no room for it.
        """
        bias = check_elements("bias", bias, (self.shape.filters,))
        half = 1 << self.narrow >> 1 if self.narrow is not None else 0
        return check_elements(
            "bias with half of an output's last place", bias + np.int64(half), bias.shape
        ).astype(ELEMENT)


def convolve_bytes(
    layer: ByteConv, order: ConvOrder, image: Elements, weights: Elements, bias: Elements
) -> Elements:
    """Golden model of the kernel on bytes, bit-exact.

    Parameters:
        order: of the sums, with pairs of channels in :attr:`ConvOrder.depth`.
        image: height x width x channels bytes.
        weights: filters x kernel (down) x kernel (across) x channels bytes.
        bias: an element of 16 bits for each filter, with the fraction bits of the sums.

    Returns:
        out_height x out_width x filters bytes, or elements where the layer does not narrow.

    Raises:
        KernelError: an array of another shape, or values beyond their type.
    """
    shape = layer.shape
    image = check_elements("image", image, (shape.height, shape.width, shape.channels), BYTE)
    size = (shape.filters, shape.down, shape.kernel, shape.channels)
    weights = check_elements("weights", weights, size, BYTE)
    sums = convolve(
        shape,
        replace(order, depth=2 * order.depth),
        image.astype(ELEMENT),
        weights.astype(ELEMENT),
        layer.biases(bias),
        fraction=layer.fraction,
        relu=layer.relu,
    )
    if layer.narrow is None:
        return sums
    return clip(sums.astype(np.int64) >> layer.narrow, _LOWEST, _HIGHEST).astype(BYTE)
