"""Where vectors are in memory, by the description in :mod:`microkernels.bp.record`."""

from microkernels.bp.layout import BpLayout
from microkernels.bp.problem import MessageDirection
from microkernels.bp.record import Kind

#: First vector in a block of each kind of part.
PARTS: dict[Kind, int] = {
    MessageDirection.UP: 0,
    MessageDirection.DOWN: 4,
    "costs": 8,
    MessageDirection.LEFT: 20,
    MessageDirection.RIGHT: 24,
}


def address(layout: BpLayout, kind: Kind, x: int, y: int) -> int:
    """Address of a vector of pixel (x, y)."""
    (tile,) = (
        tile
        for vault in range(layout.ring.vaults)
        for tile in layout.grid.tiles(vault)
        if tile.x <= x < tile.x + tile.width and tile.y <= y < tile.y + tile.height
    )
    record = layout.record(tile, x - tile.x, y - tile.y)
    if not layout.plan.in_blocks:
        return record + layout.place(kind) * layout.vector_bytes
    part = PARTS[kind]
    first, second = (y % 2, x % 2) if part < 16 else (x % 2, y % 2)
    return record + (part + 2 * first + second) * layout.vector_bytes
