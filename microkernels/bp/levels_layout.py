"""DRAM layout of both levels of hierarchical BP-M, and the partition of construct and copy over
engines.

Each vault holds the coarse pixels of the blocks that it holds: the coarse image is cut like the
fine one, whose tiles are cut between blocks only (:mod:`microkernels.bp.tiles`). So construct and
copy touch the own vault only, and engines need not wait for each other. After the fine level (from
offset 0 on) come the coarse one and the parameter blocks of construct and copy, 64-bit
little-endian words::

    0  engines that work
    1  bytes from a row of the fine problem to the next
    2  bytes from an engine's row of blocks to its next, where it loads
    3  the same where it stores
    4  for each slot, the address of its engine's part

    part: three words of each run, then as many of 0, which end the list: the address of the first
        input of the first block; rows of blocks, and in the COLUMNS_BITS bits below blocks of a
        row; the address of the first result

In construct the engines of a vault take the rows of blocks of its tiles in turns. So rows that are
processed at the same time are neighbours, and their pixels lie in different banks
(:mod:`microkernels.bp.record`). In copy one engine takes all rows: one engine keeps the memory
busy, and several engines that access the same bank would close each other's DRAM rows between the
four columns of a pixel.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from isa.declared import Declared, Span
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import round_up
from microkernels.common.parameter_block import block_bytes

from .golden import BLOCK
from .layout import BpLayout
from .record import COST_PLACE
from .shifts.base import Shifts
from .tiles import TileGrid

__all__ = ["COLUMNS_BITS", "LEVEL_RUN_WORDS", "MOST_COLUMNS", "LevelsLayout"]

#: Width in bits of the columns in a run's second word; the rows are in the bits above.
COLUMNS_BITS = 13
MOST_COLUMNS = (1 << COLUMNS_BITS) - 1
LEVEL_RUN_WORDS = 3
_HEADER_WORDS = 4
#: Engines of a vault that copy.
_COPY_SHARERS = 1
_ALIGNMENT = 4096


@dataclass(frozen=True, kw_only=True)
class LevelsLayout:
    """Addresses of both levels; see the module's text.

    Attributes:
        fine: the fine level, whose tiles are cut between blocks. Both levels have its engines, cut
            and variant of the updates.
        coarse_symmetric: the coarse problem's smoothness costs are their own transpose.
        coarse_shifts: the kernel by shifts of the coarse level; None: by a matrix.

    Raises:
        KernelError: a value outside its range, or levels that don't fit their vault.
    """

    fine: BpLayout
    coarse_symmetric: bool = False
    coarse_shifts: Shifts | None = None

    def __post_init__(self) -> None:
        CHECK.fields(self)
        columns = self.fine.grid.tile_width // BLOCK
        if columns > MOST_COLUMNS:
            raise KernelError(
                f"tiles of {columns} blocks in a row; construct and copy take up to {MOST_COLUMNS}"
            )
        # Raises KernelError if the levels do not fit.
        _ = self.coarse

    @property
    def construct_parameters(self) -> int:
        """Offset of construct's parameter block."""
        return round_up(self.fine.end, _ALIGNMENT)

    @property
    def copy_parameters(self) -> int:
        """Offset of copy's parameter block."""
        # An engine has at most one run in a tile, and one run that ends its list.
        sharers = self.fine.sharers
        runs = (self.fine.grid.columns + 1) * sharers
        words = _HEADER_WORDS + sharers + runs * LEVEL_RUN_WORDS
        return self.construct_parameters + round_up(8 * words, _ALIGNMENT)

    @cached_property
    def coarse(self) -> BpLayout:
        """The coarse level."""
        fine = self.fine
        grid = TileGrid(
            width=fine.grid.blocks(fine.grid.width),
            height=fine.grid.blocks(fine.grid.height),
            ring=fine.ring,
            cut=fine.grid.cut,
        )
        return replace(
            fine,
            grid=grid,
            base=2 * self.copy_parameters - self.construct_parameters,
            symmetric=self.coarse_symmetric,
            shifts=self.coarse_shifts,
        )

    @cached_property
    def declared(self) -> Declared:
        """The memory that is fixed with the problem: all parameter blocks, and flags."""
        levels = [self.fine.declared, self.coarse.declared]
        blocks = [
            Span(address, len(data))
            for vault in range(self.fine.ring.vaults)
            for address, data in self.parameters(vault)
        ]
        return Declared(
            constants=(*blocks, *(span for level in levels for span in level.constants)),
            numbers=tuple(numbers for level in levels for numbers in level.numbers),
            slots=self.fine.sharers,
        )

    def parameters(self, vault: int) -> Iterator[tuple[int, bytes]]:
        """Chip addresses and contents of the parameter blocks of construct and copy."""
        for offset, levels, sharers in (
            (self.construct_parameters, (self.fine, self.coarse), self.fine.sharers),
            (self.copy_parameters, (self.coarse, self.fine), _COPY_SHARERS),
        ):
            base = self.fine.ring.address(vault, offset)
            across = [level.grid.block * level.pitch * sharers for level in levels]
            parts = []
            for member in range(sharers):
                runs = self._runs(vault, member, sharers, construct=levels[0] is self.fine)
                parts.append([*runs, *[0] * LEVEL_RUN_WORDS])
            yield base, block_bytes(base, parts, header=(sharers, self.fine.pitch, *across))

    def _runs(self, vault: int, member: int, sharers: int, *, construct: bool) -> Iterator[int]:
        """The words of the runs of ``member``: every ``sharers``-th row of blocks of the vault,
        tile by tile."""
        vector = COST_PLACE * self.fine.vector_bytes if construct else 0
        before = 0
        for tiles in zip(self.fine.grid.tiles(vault), self.coarse.grid.tiles(vault), strict=True):
            rows = range((member - before) % sharers, tiles[1].height, sharers)
            if rows:
                source, target = (
                    level.record(tile, 0, level.grid.block * rows.start) + vector
                    for level, tile in zip((self.fine, self.coarse), tiles, strict=True)
                )
                if not construct:
                    source, target = target, source
                yield from (source, len(rows) << COLUMNS_BITS | tiles[1].width, target)
            before += tiles[1].height
