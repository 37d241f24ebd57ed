"""Layout and sizes of a declared workspace (:mod:`isa.workspace`) within the load-store unit."""

from amaranth.lib import data

from isa.workspace import MOST_KERNEL, MOST_PIXELS
from pe.config import PeConfig

#: Bits of a number of pixels, and of a kernel's size, a stride or a padding.
PIXEL_BITS = MOST_PIXELS.bit_length()
KERNEL_BITS = MOST_KERNEL.bit_length()


def row_bits() -> int:
    """Bits of the signed number of an image row that a position of the kernel reaches."""
    return PIXEL_BITS + KERNEL_BITS + 1


def offset_bits() -> int:
    """Bits of the signed place, in bytes, that a position of the kernel reaches in an image row."""
    return 2 * PIXEL_BITS + KERNEL_BITS + 2


def geometry(config: PeConfig) -> data.StructLayout:
    """A declared workspace, as loads from it need it.

    Members:
        window: its first address. origin: address of the image's first pixel, were its padding
            stored above it, modulo the address space.
        height: rows of the image. output_width: positions in a row of them.
        kernel, stride, padding: in pixels.
        run, row, line: bytes of the window for a kernel row, a position, and a row of positions.
        pitch, hop: bytes of the image from a row to the next, and from a row of positions to the
            next, the latter modulo the address space.
        step, margin: bytes of the image in a stride and in the padding of a row.
    """
    address = config.address_bits
    return data.StructLayout(
        {
            "window": address,
            "origin": address,
            "height": PIXEL_BITS,
            "output_width": PIXEL_BITS,
            "kernel": KERNEL_BITS,
            "stride": KERNEL_BITS,
            "padding": KERNEL_BITS,
            "run": PIXEL_BITS + KERNEL_BITS,
            "row": PIXEL_BITS + 2 * KERNEL_BITS,
            "line": 2 * PIXEL_BITS + 2 * KERNEL_BITS,
            "pitch": 2 * PIXEL_BITS,
            "hop": address,
            "step": PIXEL_BITS + KERNEL_BITS,
            "margin": PIXEL_BITS + KERNEL_BITS,
        }
    )
