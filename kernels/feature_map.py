"""Where the feature maps of a convolutional network lie in DRAM.

The channels of a map are cut into *slices* of ``depth`` channels. A slice is a plane of its own,
column by column of pixels: the rows of a column follow each other, the channels of a pixel too. A
column of a convolution's window, all channels of a slice, is then one contiguous piece of memory.
Pixels around the map (``padding``) lie in the plane, too, so that a kernel needs no case for edges.
Channels that only fill up the last slice hold zeros.
"""

from dataclasses import dataclass

import numpy as np

from isa.image import DramImage

from .errors import KernelError
from .fixed_point import ELEMENT, ELEMENT_BYTES, LOWEST, Elements, check_elements

__all__ = ["COLUMN_BYTES", "ROW_BYTES", "FeatureMap", "round_up"]

#: Bytes of a DRAM column, the unit of a request, and of a DRAM row (design.md, section 1).
COLUMN_BYTES = 32
ROW_BYTES = 256


def round_up(value: int, multiple: int) -> int:
    """The first multiple of ``multiple`` from ``value`` on."""
    return -(-value // multiple) * multiple


@dataclass(frozen=True, kw_only=True)
class FeatureMap:
    """Addresses of a feature map; see the module's text.

    Attributes:
        base: address of the first byte; a multiple of 32.
        width, height, channels: at least 1 each.
        depth: channels of a slice, at least 1.
        padding: pixels around the map, 0 or more.

    Raises:
        KernelError: a value outside its range.
    """

    base: int
    width: int
    height: int
    channels: int
    depth: int
    padding: int = 0

    def __post_init__(self) -> None:
        if self.base < 0 or self.base % COLUMN_BYTES:
            raise KernelError(f"base must be a multiple of {COLUMN_BYTES}, not {self.base}")
        for name in ("width", "height", "channels", "depth"):
            if getattr(self, name) < 1:
                raise KernelError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.padding < 0:
            raise KernelError(f"padding must be 0 or more, not {self.padding}")

    @property
    def slices(self) -> int:
        """Slices of the channels."""
        return -(-self.channels // self.depth)

    @property
    def y_step(self) -> int:
        """Bytes from a pixel to the one below."""
        return self.depth * ELEMENT_BYTES

    @property
    def x_step(self) -> int:
        """Bytes from a pixel to the one on its right."""
        return (self.height + 2 * self.padding) * self.y_step

    @property
    def slice_step(self) -> int:
        """Bytes from a slice to the next."""
        return round_up((self.width + 2 * self.padding) * self.x_step, COLUMN_BYTES)

    @property
    def end(self) -> int:
        """First byte behind the map."""
        return self.base + self.slices * self.slice_step

    def address(self, x: int, y: int, channel: int = 0) -> int:
        """Address of a channel of a pixel; pixels around the map have negative coordinates, or
        those beyond its size."""
        piece, inside = divmod(channel, self.depth)
        return (
            self.base
            + piece * self.slice_step
            + (x + self.padding) * self.x_step
            + (y + self.padding) * self.y_step
            + inside * ELEMENT_BYTES
        )

    def store(self, memory: DramImage, values: Elements, *, around: int = 0) -> None:
        """Put height x width x channels elements into ``memory``.

        Parameters:
            around: value of the pixels around the map: 0, or :data:`kernels.fixed_point.LOWEST` for
                a maximum over windows.

        Raises:
            KernelError: values of another shape or beyond 16 bits, or another ``around``.
            isa.image.ImageError: the map lies outside the memory.
        """
        if around not in (0, LOWEST):
            raise KernelError(f"around must be 0 or {LOWEST}, not {around}")
        shape = (self.height, self.width, self.channels)
        values = check_elements("feature map", values, shape)
        filled = self.slices * self.depth - self.channels
        values = np.pad(values, ((0, 0), (0, 0), (0, filled)))
        edge = (self.padding, self.padding)
        values = np.pad(values, (edge, edge, (0, 0)), constant_values=around)
        for number in range(self.slices):
            part = values[:, :, number * self.depth : (number + 1) * self.depth]
            plane = np.ascontiguousarray(part.transpose(1, 0, 2)).astype(ELEMENT)
            memory.write(self.base + number * self.slice_step, plane.tobytes())

    def load(self, memory: DramImage) -> Elements:
        """The height x width x channels elements in ``memory``, without the pixels around.

        Raises:
            isa.image.ImageError: the map lies outside the memory.
        """
        across, down = self.width + 2 * self.padding, self.height + 2 * self.padding
        planes = [
            np.frombuffer(
                memory.read(self.base + number * self.slice_step, across * self.x_step), ELEMENT
            ).reshape(across, down, self.depth)
            for number in range(self.slices)
        ]
        inside = slice(self.padding, self.padding + self.height)
        values = np.concatenate(planes, axis=2).transpose(1, 0, 2)[inside]
        return values[:, self.padding : self.padding + self.width, : self.channels]
