"""The share of belief propagation's traffic that goes to another vault, from the layout alone."""

from dataclasses import dataclass

from microkernels.common.feature_map import COLUMN_BYTES

from .blocks import BLOCK, PART
from .layout import BpLayout
from .problem import Direction, element_type
from .record import LOADED_VECTORS

__all__ = ["Traffic", "remote_share", "sweep_traffic"]


@dataclass(frozen=True)
class Traffic:
    """Bytes that the engines read and write.

    Attributes:
        total: all. remote: those in another vault, one link away.
    """

    total: int
    remote: int

    @property
    def share(self) -> float:
        """Part of the bytes that is remote; 0 without any."""
        return self.remote / self.total if self.total else 0.0


def sweep_traffic(layout: BpLayout, direction: Direction) -> Traffic:
    """Traffic of one sweep: data costs and messages, without flags, parameters, smoothness costs.

    Each update reads three vectors and writes one. A line begins with one more read, and its last
    write goes to the following tile, if there is one (thesis 6.1). Of blocks, an update has four
    times and a line twice as many vectors; short vectors are read with the bytes after them.
    """
    vector = layout.labels * element_type(layout.bits).itemsize
    if layout.in_blocks:
        return _blocks_traffic(layout, direction)
    total = remote = 0
    for vault in range(layout.ring.vaults):
        for tile in layout.grid.tiles(vault):
            lines = tile.height if direction.horizontal else tile.width
            updates = layout.sweep(direction, tile).updates
            if updates:
                total += lines * vector * ((LOADED_VECTORS + 1) * updates + 1)
            if layout.grid.following(direction, tile) is not None:
                remote += lines * vector
    return Traffic(total, remote)


def _blocks_traffic(layout: BpLayout, direction: Direction) -> Traffic:
    total = remote = 0
    for vault in range(layout.ring.vaults):
        for tile in layout.grid.tiles(vault):
            lines = (tile.height if direction.horizontal else tile.width) // BLOCK
            updates = layout.sweep(direction, tile).updates
            # Messages move in pairs, which are a column.
            total += lines * (updates * (LOADED_VECTORS * PART + BLOCK * COLUMN_BYTES))
            total += lines * COLUMN_BYTES
            if layout.grid.following(direction, tile) is not None:
                remote += lines * COLUMN_BYTES
    return Traffic(total, remote)


def remote_share(layout: BpLayout) -> float:
    """Part of the bytes of an iteration that goes to another vault; 0 without any."""
    sweeps = [sweep_traffic(layout, direction) for direction in Direction]
    return Traffic(sum(one.total for one in sweeps), sum(one.remote for one in sweeps)).share
