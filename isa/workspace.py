"""The virtual workspace: addresses from which a lowered matrix can be loaded without being stored.

A convolution is a product with a *lowered* matrix: a row for each position of the kernel, in which
the pixels below it follow each other, kernel row by kernel row. ``set.ws`` declares a range of
addresses, the *window*, as the lowered matrix of an image. A load from the window reads the image
instead, and zeros for pixels outside it. The idea is Duplo's (element identities of a workspace);
its published equation holds only for square outputs, stride 1 and no padding; this one always
holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from support.checks import Checks
from support.errors import VipError

#: Bytes of a descriptor, and its alignment.
DESCRIPTOR_BYTES = 32
#: Largest width, height, bytes of a pixel, and rows and columns of outputs.
MOST_PIXELS = 4095
#: Largest kernel and stride, and largest padding.
MOST_KERNEL = 15
MOST_PADDING = 15

_LAYOUT = Struct("<QQ5H3B3s")
_PIXELS = ("width", "height", "pixel_bytes", "output_width", "output_height")


class WorkspaceError(VipError):
    """A workspace that can't be declared; the message names the value and what is allowed."""


_CHECK = Checks(WorkspaceError)


def element(
    row: int, column: int, *, output_width: int, width: int, channels: int, kernel: int,
    stride: int, padding: int,
) -> int:  # fmt: skip
    """The place in the padded image of an element of the lowered matrix.

    Parameters:
        row, column: of the lowered matrix, from 0 on; a row has ``kernel * kernel * channels``.
        output_width: kernel positions in a row of the image. width: of the image, in pixels.
        channels: elements of a pixel. padding: pixels before and after each row, and rows before
            and after the image.

    The result counts elements of the padded image, whose rows have ``width + 2 * padding`` pixels.
    """
    patch_row, run = row // output_width, column // (kernel * channels)
    return (
        row % output_width * stride * channels
        + column % (kernel * channels)
        + (patch_row * stride + run) * (width + 2 * padding) * channels
    )


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A declared workspace: the contents of a descriptor.

    The descriptor has, in little-endian order, ``image`` and ``window`` (8 bytes each), ``width``,
    ``height``, ``pixel_bytes``, ``output_width``, ``output_height`` (2 bytes each), ``kernel``,
    ``stride``, ``padding`` (1 byte each) and 3 bytes of 0.

    Attributes:
        image: DRAM address of the first pixel; rows of pixels follow each other.
        window: DRAM address of the lowered matrix.
        width, height: of the image in pixels; 1..4095.
        pixel_bytes: bytes of a pixel, all its channels; 1..4095.
        output_width, output_height: positions of the kernel; 1..4095.
        kernel: its width and height in pixels; 1..15, at most those of the padded image.
        stride: pixels between positions; 1..15.
        padding: pixels around the image that read as zeros; 0..15. Pixels further out, reached if
            there are more positions than the image has, are zeros too.
    """

    image: int
    window: int
    width: int
    height: int
    pixel_bytes: int
    output_width: int
    output_height: int
    kernel: int
    stride: int = 1
    padding: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of the lowered matrix."""
        return self.kernel * self.kernel * self.pixel_bytes

    @property
    def window_bytes(self) -> int:
        """Bytes of the lowered matrix."""
        return self.output_height * self.output_width * self.row_bytes

    @property
    def image_bytes(self) -> int:
        """Bytes of the image."""
        return self.height * self.width * self.pixel_bytes

    def check(self, memory_bytes: int, alignment: int = 1) -> None:
        """Check it for an engine that reaches ``memory_bytes`` and aligns transfers to
        ``alignment`` bytes.

        Raises:
            WorkspaceError: a value outside its range, a kernel larger than the padded image,
                addresses that are misaligned or outside the memory, or a window that overlaps the
                image.
        """
        for name in _PIXELS:
            _CHECK.within(name, getattr(self, name), 1, MOST_PIXELS)
        _CHECK.within("kernel", self.kernel, 1, MOST_KERNEL)
        _CHECK.within("stride", self.stride, 1, MOST_KERNEL)
        _CHECK.within("padding", self.padding, 0, MOST_PADDING)
        limit = min(self.width, self.height) + 2 * self.padding
        if self.kernel > limit:
            raise WorkspaceError(
                f"kernel must be at most {limit}, the padded image's pixels, not {self.kernel}"
            )
        for name, size in (("image", self.image_bytes), ("window", self.window_bytes)):
            _CHECK.within(name, getattr(self, name), 0, memory_bytes - size)
        for name in ("image", "window", "pixel_bytes"):
            if getattr(self, name) % alignment:
                raise WorkspaceError(f"{name} must be a multiple of {alignment}")
        if self.touches_image(self.window, self.window_bytes):
            raise WorkspaceError("window must not overlap the image")

    def pack(self) -> bytes:
        """The descriptor.

        Raises:
            WorkspaceError: a value that its field can't hold.
        """
        values = (
            *(self.image, self.window),
            *(getattr(self, name) for name in _PIXELS),
            *(self.kernel, self.stride, self.padding),
        )
        bits = (64, 64, 16, 16, 16, 16, 16, 8, 8, 8)
        names = ("image", "window", *_PIXELS, "kernel", "stride", "padding")
        for name, value, width in zip(names, values, bits, strict=True):
            _CHECK.within(name, value, 0, (1 << width) - 1)
        return _LAYOUT.pack(*values, bytes(3))

    @classmethod
    def unpack(cls, descriptor: bytes) -> "Workspace":
        """The workspace that ``descriptor`` (32 bytes) declares, not checked further.

        Raises:
            WorkspaceError: its last three bytes are not 0.
        """
        image, window, *pixels, kernel, stride, padding, rest = _LAYOUT.unpack(descriptor)
        if any(rest):
            raise WorkspaceError("the last 3 bytes of a descriptor must be 0")
        return cls(
            image=image,
            window=window,
            **dict(zip(_PIXELS, pixels, strict=True)),
            kernel=kernel,
            stride=stride,
            padding=padding,
        )

    def touches_image(self, start: int, size: int) -> bool:
        """Whether one of ``size`` bytes from ``start`` on lies in the image."""
        return size > 0 and start < self.image + self.image_bytes and self.image < start + size

    def touches_window(self, start: int, size: int) -> bool:
        """Whether one of ``size`` bytes from ``start`` on lies in the window."""
        return size > 0 and start < self.window + self.window_bytes and self.window < start + size

    def contains(self, start: int, size: int) -> bool:
        """Whether all of ``size`` bytes from ``start`` on lie in the window."""
        return self.window <= start and start + size <= self.window + self.window_bytes

    def pieces(self, start: int, size: int) -> Iterator[tuple[int | None, int]]:
        """The ``size`` bytes of the window starting at ``start``, as pieces in order: each one's
        address in the image, or None for zeros, and its number of bytes.

        A piece is a pixel or the requested part of one.
        """
        offset = start - self.window
        while size:
            row, column = divmod(offset, self.row_bytes)
            run, place = divmod(column, self.kernel * self.pixel_bytes)
            across, byte = divmod(place, self.pixel_bytes)
            y = row // self.output_width * self.stride + run - self.padding
            x = row % self.output_width * self.stride + across - self.padding
            count = min(size, self.pixel_bytes - byte)
            inside = 0 <= x < self.width and 0 <= y < self.height
            first = self.image + (y * self.width + x) * self.pixel_bytes + byte
            yield (first if inside else None), count
            offset, size = offset + count, size - count
