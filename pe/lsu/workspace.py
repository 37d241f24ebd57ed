"""The declared workspace: layouts and signals that say where its window and image are.

The workspace is that of :mod:`isa.workspace`. :class:`pe.lsu.declaration.Declaration` reads it from
memory, :class:`pe.lsu.lowering.Lowering` makes accesses to the image of loads from the window, and
:class:`pe.frontend.dispatch.Dispatch` tells the two kinds of loads apart.
"""

from amaranth.lib import data

from hdl.bundle import Bundle
from isa.workspace import DESCRIPTOR_BYTES, MOST_KERNEL, MOST_PIXELS
from pe.config import PeConfig

__all__ = [
    "DESCRIPTOR_SHIFT",
    "KERNEL_BITS",
    "PIXEL_BITS",
    "declared",
    "declaring",
    "geometry",
    "offset_bits",
    "row_bits",
    "workspace_bounds",
]

#: Bits of a number of pixels, and of a kernel's size, a stride or a padding.
PIXEL_BITS = MOST_PIXELS.bit_length()
KERNEL_BITS = MOST_KERNEL.bit_length()
#: Low bits of a descriptor's address, which are 0.
DESCRIPTOR_SHIFT = (DESCRIPTOR_BYTES - 1).bit_length()


def row_bits() -> int:
    """Bits of the signed number of an image row that a position of the kernel reaches."""
    return PIXEL_BITS + KERNEL_BITS + 1


def offset_bits() -> int:
    """Bits of the signed place, in bytes, that a position of the kernel reaches in an image row."""
    return 2 * PIXEL_BITS + KERNEL_BITS + 2


def declaring(config: PeConfig) -> Bundle:
    """``declare``: the workspace of the descriptor at ``descriptor``, in units of descriptors, is
    to be declared; both are of one cycle. No other access is under way. ``forget``: there is no
    workspace from now on."""
    return Bundle(declare=1, descriptor=config.address_bits - DESCRIPTOR_SHIFT, forget=1)


def declared() -> Bundle:
    """``declared``, for one cycle: it is, or, with ``refused``, the descriptor declares none."""
    return Bundle(declared=1, refused=1)


def workspace_bounds(config: PeConfig) -> Bundle:
    """``known``: a workspace is declared; ``window``, ``window_end``, ``image``, ``image_end``: the
    first byte of its parts and the first behind them."""
    bits = config.address_bits
    return Bundle(known=1, window=bits, window_end=bits + 1, image=bits, image_end=bits + 1)


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
