"""Depthwise convolutions: sizes, and the golden model.

Each channel has one filter, which sees that channel alone. As channels lie in the lanes of the
vector unit, a product is shifted right and rounded by itself; sums saturate.
"""

from dataclasses import dataclass

import numpy as np

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import (
    LOWEST,
    Elements,
    add,
    check_elements,
    check_fraction,
    multiply,
)

__all__ = ["DepthwiseShape", "depthwise"]


@dataclass(frozen=True, kw_only=True)
class DepthwiseShape:
    """Sizes of a depthwise convolution.

    Attributes:
        width, height, channels: of the input with the pixels around it, at least 1 each.
        across, down: pixels of a window, at least 1.
        stride_across, stride_down: pixels from window to window, at least 1.
        fraction: bits by which products are shifted right, 0..15.
        relu: negative outputs become 0.

    Raises:
        KernelError: a value outside its range, or a window larger than the map.
    """

    width: int
    height: int
    channels: int
    across: int = 3
    down: int = 3
    stride_across: int = 1
    stride_down: int = 1
    fraction: int
    relu: bool = True

    def __post_init__(self) -> None:
        CHECK.fields(self)
        for name in ("width", "height", "channels", "across", "down"):
            CHECK.at_least(name, getattr(self, name), 1)
        for name in ("stride_across", "stride_down"):
            CHECK.at_least(name, getattr(self, name), 1)
        check_fraction(self.fraction)
        if self.across > self.width or self.down > self.height:
            raise KernelError(
                f"a window of {self.across} x {self.down} does not fit a map of {self.width} x "
                f"{self.height} pixels"
            )

    @property
    def taps(self) -> int:
        """Pixels of a window."""
        return self.across * self.down

    @property
    def out_width(self) -> int:
        """Pixels across of the output."""
        return (self.width - self.across) // self.stride_across + 1

    @property
    def out_height(self) -> int:
        """Pixels down of the output."""
        return (self.height - self.down) // self.stride_down + 1


def depthwise(
    shape: DepthwiseShape, image: Elements, weights: Elements, bias: Elements
) -> Elements:
    """Golden model: out height x out width x channels elements.

    Products are added column by column of the window, each from top to bottom; then the bias.

    Parameters:
        image: height x width x channels elements. weights: channels x down x across.
        bias: an element for each channel.

    Raises:
        KernelError: arrays of another shape.
    """
    image = check_elements("image", image, (shape.height, shape.width, shape.channels))
    weights = check_elements("weights", weights, (shape.channels, shape.down, shape.across))
    bias = check_elements("bias", bias, (shape.channels,))
    total: Elements | None = None
    for column in range(shape.across):
        for row in range(shape.down):
            seen = image[
                row : row + (shape.out_height - 1) * shape.stride_down + 1 : shape.stride_down,
                column : column
                + (shape.out_width - 1) * shape.stride_across
                + 1 : shape.stride_across,
            ]
            product = multiply(seen, weights[:, row, column], shape.fraction)
            total = product if total is None else add(total, product)
    assert total is not None
    return np.maximum(add(total, bias), 0 if shape.relu else LOWEST)
