"""DRAM layout of a convolutional network's feature maps.

A map's channels are divided into *slices* of ``depth`` channels. Each slice is a separate plane,
stored column by column: a column's rows are contiguous, and so are a pixel's channels. One column
of a convolution window, with all channels of a slice, is then one contiguous piece of memory. The
pixels around the map (``padding``) are part of the plane, so kernels need no special case at the
edges. Channels that only fill up the last slice contain zeros.

A plane may consist of *strips*: each row of windows then has its own ``strip_rows`` rows of pixels,
laid out as a plane of this height. A complete window of a slice is one contiguous piece of memory,
but some rows are stored more than once. This suits a network's first image, which has few channels
and comes from the host.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .errors import CHECK, KernelError
from .fixed_point import (
    ELEMENT,
    ELEMENT_BYTES,
    NUMBERS,
    Elements,
    check_elements,
    lowest_element,
)
from .memory import Readable, Writable

#: Bytes in a DRAM column, the unit of a request, and in a DRAM row (thesis, section 5.2).
COLUMN_BYTES = 32
ROW_BYTES = 256


def even_parts(length: int, most: int) -> Iterator[int]:
    """Divide a length into parts of 1..``most``, as even as their number allows."""
    for part in range(1, min(length, most) + 1):
        count = -(-length // part)
        if -(-length // count) == part:
            yield part


def part_starts(length: int, part: int) -> list[int]:
    """Starts of the parts of a length; the last one ends with it, and overlaps the previous one if
    the parts do not divide the length evenly."""
    return [min(start, length - part) for start in range(0, length, part)]


def round_up(value: int, multiple: int) -> int:
    """Round ``value`` up to a multiple of ``multiple``."""
    return -(-value // multiple) * multiple


@dataclass(frozen=True, kw_only=True)
class FeatureMap:
    """Addresses of a feature map; see the module's text.

    Attributes:
        base: address of the first byte; a multiple of 32.
        width, height, channels: at least 1 each.
        depth: channels per slice, at least 1.
        padding: pixels around the map, 0 or more.
        strip_rows: height of a strip, and of a window, in pixels, at least 1; None: no strips.
        strip_pitch: pixels from one strip's first row to the next one's, at least 1.

    Raises:
        KernelError: a value out of range, or windows higher than the padded map.
    """

    base: int
    width: int
    height: int
    channels: int
    depth: int
    padding: int = 0
    strip_rows: int | None = None
    strip_pitch: int = 1

    def __post_init__(self) -> None:
        CHECK.fields(self)
        if self.base < 0 or self.base % COLUMN_BYTES:
            raise KernelError(f"base must be a multiple of {COLUMN_BYTES}, not {self.base}")
        for name in ("width", "height", "channels", "depth"):
            CHECK.at_least(name, getattr(self, name), 1)
        if self.padding < 0:
            raise KernelError(f"padding must be 0 or more, not {self.padding}")
        CHECK.at_least("strip_pitch", self.strip_pitch, 1)
        most = self.height + 2 * self.padding
        if self.strip_rows is not None and not 1 <= self.strip_rows <= most:
            raise KernelError(f"strip_rows must be from 1 to {most}, not {self.strip_rows}")

    def check_size(self, name: str, width: int, height: int, channels: int) -> None:
        """Check that the map, which messages call ``name``, has this size.

        Raises:
            KernelError: the size differs.
        """
        size, expected = (self.width, self.height, self.channels), (width, height, channels)
        if size != expected:
            raise KernelError(
                f"{name} must be {' x '.join(map(str, expected))} (width, height, channels), "
                f"not {' x '.join(map(str, size))}"
            )

    @property
    def slices(self) -> int:
        """Number of slices."""
        return -(-self.channels // self.depth)

    @cached_property
    def y_step(self) -> int:
        """Bytes from a pixel to the one below."""
        return self.depth * ELEMENT_BYTES

    @cached_property
    def _rows(self) -> int:
        """Rows of pixels of a strip, or of the whole plane."""
        return self.strip_rows or self.height + 2 * self.padding

    @cached_property
    def x_step(self) -> int:
        """Bytes from a pixel to the one to its right."""
        return self._rows * self.y_step

    @property
    def strips(self) -> int:
        """Number of strips; 1 if the plane is not divided."""
        return (self.height + 2 * self.padding - self._rows) // self.strip_pitch + 1

    @property
    def strip_step(self) -> int:
        """Bytes from a strip to the next."""
        return round_up((self.width + 2 * self.padding) * self.x_step, COLUMN_BYTES)

    @cached_property
    def slice_step(self) -> int:
        """Bytes from a slice to the next."""
        return self.strips * self.strip_step

    def down_step(self, stride: int) -> int:
        """Bytes from a row of windows to the next one, ``stride`` pixels below.

        Raises:
            KernelError: the strips are not as far apart.
        """
        if self.strip_rows is None:
            return stride * self.y_step
        if stride != self.strip_pitch:
            raise KernelError(f"the strips are {self.strip_pitch} rows apart, not {stride}")
        return self.strip_step

    @property
    def end(self) -> int:
        """First byte after the map."""
        return self.base + self.slices * self.slice_step

    def address(self, x: int, y: int, channel: int = 0) -> int:
        """Address of one channel of a pixel, with strips of a pixel in the uppermost row of one.
        Pixels around the map have negative coordinates or coordinates beyond its size.

        Raises:
            KernelError: no strip starts at ``y``.
        """
        down = (y + self.padding) * self.y_step
        if self.strip_rows is not None:
            strip, inside = divmod(y + self.padding, self.strip_pitch)
            if inside or not 0 <= strip < self.strips:
                raise KernelError(f"no strip starts at row {y}")
            down = strip * self.strip_step
        piece, rest = divmod(channel, self.depth)
        return (
            self.base
            + piece * self.slice_step
            + (x + self.padding) * self.x_step
            + down
            + rest * ELEMENT_BYTES
        )

    def store(self, memory: Writable, values: Elements, *, around: int = 0) -> None:
        """Put height x width x channels elements into ``memory``.

        Parameters:
            around: value of the pixels around the map: 0 or, for a maximum over windows,
                :func:`microkernels.common.fixed_point.lowest_element`.

        Raises:
            KernelError: wrong shape, values that don't fit in 16 bits, or another ``around``.
            isa.image.ImageError: the map lies outside the memory.
        """
        CHECK.one_of("around", around, (0, *map(lowest_element, NUMBERS)))
        shape = (self.height, self.width, self.channels)
        values = check_elements("feature map", values, shape)
        filled = self.slices * self.depth - self.channels
        values = np.pad(values, ((0, 0), (0, 0), (0, filled)))
        edge = (self.padding, self.padding)
        values = np.pad(values, (edge, edge, (0, 0)), constant_values=around)
        for number in range(self.slices):
            part = values[:, :, number * self.depth : (number + 1) * self.depth]
            self._store_plane(memory, self.base + number * self.slice_step, part)

    def _store_plane(self, memory: Writable, base: int, plane: Elements) -> None:
        """Write one slice (down x across x channels, with the pixels around it) at ``base``."""
        for strip in range(self.strips):
            rows = plane[strip * self.strip_pitch : strip * self.strip_pitch + self._rows]
            columns = np.ascontiguousarray(rows.transpose(1, 0, 2))
            memory.write(base + strip * self.strip_step, columns.astype(ELEMENT).tobytes())

    def load(self, memory: Readable) -> Elements:
        """The height x width x channels elements in ``memory``, without the pixels around; rows
        outside all strips are 0.

        Raises:
            isa.image.ImageError: the map lies outside the memory.
        """
        across = self.width + 2 * self.padding
        shape = (self.height + 2 * self.padding, across, self.slices * self.depth)
        values = np.zeros(shape, ELEMENT)
        for number in range(self.slices):
            for strip in range(self.strips):
                where = self.base + number * self.slice_step + strip * self.strip_step
                data = np.frombuffer(memory.read(where, across * self.x_step), ELEMENT)
                columns = data.reshape(across, self._rows, self.depth)
                top, first = strip * self.strip_pitch, number * self.depth
                values[top : top + self._rows, :, first : first + self.depth] = columns.transpose(
                    1, 0, 2
                )
        inside = slice(self.padding, self.padding + self.height)
        return values[inside, self.padding : self.padding + self.width, : self.channels]


def vectors(base: int, length: int, batch: int, pitch: int | None = None) -> FeatureMap:
    """A batch of vectors as a row of pixels, each with ``length`` channels in one slice.

    Parameters:
        base, batch: address and number of the vectors.
        pitch: bytes from one to the next, even; None: whole columns, as few as hold a vector.

    Raises:
        KernelError: a value out of range.
    """
    pitch = round_up(length * ELEMENT_BYTES, COLUMN_BYTES) if pitch is None else pitch
    depth = pitch // ELEMENT_BYTES
    return FeatureMap(base=base, width=batch, height=1, channels=length, depth=depth)


@dataclass(frozen=True, kw_only=True)
class PartMap(FeatureMap):
    """A rectangle of some slices of another map; pixels keep their addresses.

    A layer that writes into the interior of its successor's input uses such a map as its target.

    Attributes:
        whole: the other map. left, top: the pixel of ``whole`` that is this map's first.
        first: the channel of ``whole`` that is this map's first, of a slice.

    Raises:
        KernelError: the rectangle is not inside ``whole`` including its padding.
    """

    whole: FeatureMap
    left: int
    top: int
    first: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = self.whole
        edge = whole.padding
        if not (
            -edge <= self.left <= self.left + self.width <= whole.width + edge
            and -edge <= self.top <= self.top + self.height <= whole.height + edge
        ):
            raise KernelError(
                f"{self.width} x {self.height} pixels from ({self.left}, {self.top}) on are not in "
                f"a map of {whole.width} x {whole.height} pixels with {edge} around"
            )

    @classmethod
    def of(
        cls,
        whole: FeatureMap,
        *,
        left: int,
        top: int,
        width: int,
        height: int,
        first: int = 0,
        channels: int | None = None,
    ) -> "PartMap":
        """The ``width`` x ``height`` rectangle of ``whole`` that starts at a pixel; ``channels``
        from ``first`` on, or all."""
        return cls(
            whole=whole,
            left=left,
            top=top,
            first=first,
            base=whole.base + first // whole.depth * whole.slice_step,
            width=width,
            height=height,
            channels=whole.channels if channels is None else channels,
            depth=whole.depth,
        )

    @cached_property
    def x_step(self) -> int:
        return self.whole.x_step

    @cached_property
    def slice_step(self) -> int:
        return self.whole.slice_step

    def down_step(self, stride: int) -> int:
        return self.whole.down_step(stride)

    def address(self, x: int, y: int, channel: int = 0) -> int:
        return self.whole.address(self.left + x, self.top + y, self.first + channel)

    def store(self, memory: Writable, values: Elements, *, around: int = 0) -> None:
        """Not supported for a part.

        Raises:
            KernelError: always.
        """
        raise KernelError("a part of a map has no memory of its own: store the whole map")

    def load(self, memory: Readable) -> Elements:
        elements = self.whole.load(memory)
        return elements[
            self.top : self.top + self.height,
            self.left : self.left + self.width,
            self.first : self.first + self.channels,
        ]
