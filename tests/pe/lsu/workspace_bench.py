"""Bench for the units of the load-store unit that serve a workspace: loads and what they give."""

import random

from isa.workspace import Workspace

#: Address space of the bench; all of it is memory.
ADDRESS_BITS = 14


def random_span(
    rng: random.Random, workspace: Workspace, most: int, alignment: int
) -> tuple[int, int]:
    """Address and bytes of a load from the window."""
    size = min(rng.choice((1, 2, 7, 8, 9, 31, 64, 100, 200)), most, workspace.window_bytes)
    size = max(alignment, size // alignment * alignment)
    start = rng.randint(0, workspace.window_bytes - size) // alignment * alignment
    return workspace.window + start, size


def lowered(workspace: Workspace, data: bytes, start: int, size: int) -> bytes:
    """The bytes of the window from ``start`` on, by the definition of a convolution."""
    found = bytearray()
    for offset in range(start - workspace.window, start - workspace.window + size):
        position, rest = divmod(offset, workspace.row_bytes)
        oy, ox = divmod(position, workspace.output_width)
        pixel, byte = divmod(rest, workspace.pixel_bytes)
        ky, kx = divmod(pixel, workspace.kernel)
        y = oy * workspace.stride + ky - workspace.padding
        x = ox * workspace.stride + kx - workspace.padding
        inside = 0 <= x < workspace.width and 0 <= y < workspace.height
        place = workspace.image + (y * workspace.width + x) * workspace.pixel_bytes + byte
        found.append(data[place] if inside else 0)
    return bytes(found)
