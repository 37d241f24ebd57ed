"""Partition of the image over vaults: thesis section 6.1 and Figure 6.2.

The image is cut into as many columns and rows of tiles as there are vaults, or fewer if it has
fewer pixels or a cut says so. Tile (column, row) belongs to the vault at position
``column + row`` of the ring (:mod:`microkernels.runtime.ring`). Hence

- each row and each column of tiles is spread over different vaults: a sweep in any direction goes
  from one column (or row) of tiles to the next, and each vault always has one of its tiles;
- adjacent tiles are one link apart: messages that move right or down go to the next vault of the
  ring, messages that move left or up to the previous one.

Each tile of a vault has a *place* in its memory: the tile's column number.

Tiles may be required to be cut only between *blocks* of pixels, so that a block's pixels, which
form one pixel of a coarser image (:mod:`microkernels.bp.golden`), stay together.

*Few large tiles, or many small ones.* A sweep advances along a line one pixel at a time, so it
takes as long as its longest lines, regardless of the number of tiles along it. More tiles across it
leave fewer lines per engine, until each has one. Each tile along it costs the start of a run and
the wait for the previous tile's flag. A small image is therefore faster in fewer tiles than the
machine has vaults.

Times are in message updates, from the rates of :mod:`microkernels.bp.runs`.
"""

from dataclasses import dataclass

from microkernels.common.errors import CHECK
from microkernels.runtime.ring import ChipEngines

from .problem import MessageDirection
from .runs import START_UPDATES, TIME, TIME_ALONE


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A tile of the image.

    Attributes:
        column, row: its place in the square of tiles.
        vault: index of the vault that stores it.
        x, y: its first pixel.
        width, height: pixels, at least 1 each.
    """

    column: int
    row: int
    vault: int
    x: int
    y: int
    width: int
    height: int

    @property
    def pixels(self) -> tuple[slice, slice]:
        """Index of the tile's pixels in an image array ``[y, x]``."""
        return slice(self.y, self.y + self.height), slice(self.x, self.x + self.width)


@dataclass(frozen=True, kw_only=True)
class TileGrid:
    """Partition of an image into tiles.

    Attributes:
        width, height: image size in pixels; at least 1 each.
        ring: of the vaults.
        block: side of a block in pixels, at least 1.
        cut: maximum columns and rows of tiles, at least 1 each; None: as many as vaults.

    Raises:
        KernelError: a value out of range.
    """

    width: int
    height: int
    ring: ChipEngines
    block: int = 1
    cut: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        CHECK.fields(self)
        for name in ("width", "height", "block"):
            CHECK.at_least(name, getattr(self, name), 1)
        if self.cut is not None:
            CHECK.kind("cut", self.cut, tuple)
            CHECK.within("numbers of a cut", len(self.cut), 2, 2)
            for name, limit in zip(("columns", "rows"), self.cut, strict=True):
                CHECK.at_least(name, limit, 1)

    @property
    def _limits(self) -> tuple[int, int]:
        return self.cut or (self.ring.vaults, self.ring.vaults)

    @property
    def columns(self) -> int:
        """Columns of tiles, which are the steps of a sweep to the right or left."""
        return min(self._limits[0], self.ring.vaults, self.blocks(self.width))

    @property
    def rows(self) -> int:
        """Rows of tiles, which are the steps of a sweep down or up."""
        return min(self._limits[1], self.ring.vaults, self.blocks(self.height))

    @property
    def tile_width(self) -> int:
        """Width in pixels of the widest tile, with the last block filled up; others are one block
        narrower."""
        return self.block * -(-self.blocks(self.width) // self.columns)

    @property
    def tile_height(self) -> int:
        """Height in pixels of the highest tile, with the last block filled up; others are one block
        lower."""
        return self.block * -(-self.blocks(self.height) // self.rows)

    def blocks(self, pixels: int) -> int:
        """Number of blocks for ``pixels`` pixels."""
        return -(-pixels // self.block)

    def tile(self, column: int, row: int) -> Tile:
        """The tile in ``column`` (0..columns - 1) and ``row`` (0..rows - 1)."""
        x, width = self._part(self.width, self.columns, column)
        y, height = self._part(self.height, self.rows, row)
        vault = self.ring.vault(column + row)
        return Tile(column=column, row=row, vault=vault, x=x, y=y, width=width, height=height)

    def tiles(self, vault: int) -> list[Tile]:
        """The tiles of ``vault``, by column."""
        position = self.ring.position(vault)
        rows = [(position - column) % self.ring.vaults for column in range(self.columns)]
        return [self.tile(column, row) for column, row in enumerate(rows) if row < self.rows]

    def step(self, direction: MessageDirection, vault: int, step: int) -> Tile | None:
        """The tile that ``vault`` sweeps in step ``step`` of a sweep; None if there is none."""
        along, across = self.columns, self.rows
        if not direction.horizontal:
            along, across = across, along
        first = along - 1 - step if direction.reverse else step
        other = (self.ring.position(vault) - first) % self.ring.vaults
        if other >= across:
            return None
        return self.tile(first, other) if direction.horizontal else self.tile(other, first)

    def steps(self, direction: MessageDirection) -> int:
        """Number of steps of a sweep."""
        return self.columns if direction.horizontal else self.rows

    def following(self, direction: MessageDirection, tile: Tile) -> Tile | None:
        """The tile that receives the messages of ``direction`` from ``tile``; None: the image
        ends."""
        change = -1 if direction.reverse else 1
        column = tile.column + (change if direction.horizontal else 0)
        row = tile.row + (0 if direction.horizontal else change)
        inside = 0 <= column < self.columns and 0 <= row < self.rows
        return self.tile(column, row) if inside else None

    def _part(self, pixels: int, parts: int, number: int) -> tuple[int, int]:
        """First pixel and length of one of ``parts`` parts of a side."""
        first, length = _part(self.blocks(pixels), parts, number)
        return first * self.block, min(length * self.block, pixels - first * self.block)


def _part(blocks: int, parts: int, number: int) -> tuple[int, int]:
    """First block and length of one of ``parts`` parts, the longer ones first."""
    length, over = divmod(blocks, parts)
    return number * length + min(number, over), length + (number < over)


def fastest_cut(
    width: int, height: int, *, vaults: int, pes: int, block: int = 1
) -> tuple[int, int]:
    """Columns and rows of tiles with the shortest predicted time; among equals the one with more
    tiles, so that each vault stores less.

    Parameters:
        width, height: image size in pixels.
        vaults: of the machine. pes: engines per vault that work.
        block: side of a block in pixels (:mod:`microkernels.bp.tiles`).
    """

    def fastest(side: int, length: int) -> int:
        limit = min(vaults, -(-side // block))
        return min(range(limit, 0, -1), key=lambda n: sweep_time(side, length, n, pes, block))

    return fastest(width, height), fastest(height, width)


def sweep_time(side: int, length: int, parts: int, pes: int, block: int) -> float:
    """Message updates that depend on the number of ``parts`` of ``side``: of a sweep across them,
    along lines of ``length`` pixels of which each part has its share, and of the starts of a sweep
    along them."""
    lines = block * -(-side // (block * parts))
    share = -(-lines // pes)
    # Pairs are cut so that all engines finish together; two lines of an engine are a pair.
    per_pixel = TIME_ALONE / TIME if share == 1 else max(2.0, lines / pes)
    return length * per_pixel + parts * START_UPDATES
