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

    part: the words of each run (LevelRun), then 0, which ends the list, as its second word

In construct the engines of a vault take the rows of blocks of its tiles in turns. So rows that are
processed at the same time are neighbours, and their pixels lie in different banks
(:mod:`microkernels.bp.record`). In copy one engine takes all rows: one engine keeps the memory
busy, and several engines that access the same bank would close each other's DRAM rows between the
four columns of a pixel.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from isa.declared import Declared, Span
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import round_up
from microkernels.common.parameter_block import block_bytes
from microkernels.runtime.ring import VaultRing

from .layout import BpLayout
from .levels import BLOCK
from .problem import BpProblem
from .record import COST_PLACE
from .shifts.base import Shifts
from .tiles import Tile, TileCut, TileGrid

__all__ = ["COLUMNS_BITS", "LEVEL_RUN_WORDS", "MOST_COLUMNS", "LevelRun", "LevelsLayout"]

#: Width in bits of the columns in a run's second word; the rows are in the bits above.
COLUMNS_BITS = 13
MOST_COLUMNS = (1 << COLUMNS_BITS) - 1
LEVEL_RUN_WORDS = 3
_HEADER_WORDS = 4
#: Engines of a vault that copy.
_COPY_SHARERS = 1
_ALIGNMENT = 4096


@dataclass(frozen=True, kw_only=True)
class LevelRun:
    """Rows of blocks of a tile that an engine works on.

    Attributes:
        source: address of the first input of the first block.
        columns: blocks of a row, 1..:data:`MOST_COLUMNS`.
        rows: of blocks, at least 1.
        target: address of the first result.
    """

    source: int
    columns: int
    rows: int
    target: int

    def words(self) -> list[int]:
        """The words in the parameter block."""
        return [self.source, self.rows << COLUMNS_BITS | self.columns, self.target]


@dataclass(frozen=True, kw_only=True)
class LevelsLayout:
    """Addresses of both levels; see the module's text.

    Attributes:
        problem: the fine problem.
        sharers: engines of a vault that work; at least 1.
        ring: of the vaults.
        coarse_symmetric: the coarse problem's smoothness costs are their own transpose.
        shifts, coarse_shifts: the kernels by shifts of the two levels; None: by a matrix.
        cut: of the tiles of both levels; None: as many columns and rows as vaults.
        damping: of both levels, as of :func:`microkernels.bp.golden.iterate`.

    Raises:
        KernelError: a value outside its range, or levels that don't fit their vault.
    """

    problem: BpProblem
    sharers: int = 1
    ring: VaultRing = field(default_factory=VaultRing)
    coarse_symmetric: bool = False
    shifts: Shifts | None = None
    coarse_shifts: Shifts | None = None
    cut: TileCut | None = None
    damping: int = 0

    def __post_init__(self) -> None:
        CHECK.fields(self)
        columns = self.fine.grid.tile_width // BLOCK
        if columns > MOST_COLUMNS:
            raise KernelError(
                f"tiles of {columns} blocks in a row; construct and copy take up to {MOST_COLUMNS}"
            )
        # Raises KernelError if the levels do not fit.
        _ = self.coarse

    @cached_property
    def fine(self) -> BpLayout:
        """The fine level."""
        return BpLayout.of(
            self.problem,
            sharers=self.sharers,
            ring=self.ring,
            block=BLOCK,
            shifts=self.shifts,
            cut=self.cut,
            damping=self.damping,
        )

    @property
    def construct_parameters(self) -> int:
        """Offset of construct's parameter block."""
        return round_up(self.fine.end, _ALIGNMENT)

    @property
    def copy_parameters(self) -> int:
        """Offset of copy's parameter block."""
        # An engine has at most one run in a tile, and one run that ends its list.
        runs = (self.fine.grid.columns + 1) * self.sharers
        words = _HEADER_WORDS + self.sharers + runs * LEVEL_RUN_WORDS
        return self.construct_parameters + round_up(8 * words, _ALIGNMENT)

    @cached_property
    def coarse(self) -> BpLayout:
        """The coarse level."""
        grid = TileGrid(
            width=self.fine.grid.blocks(self.problem.width),
            height=self.fine.grid.blocks(self.problem.height),
            ring=self.ring,
            cut=self.cut,
        )
        return BpLayout(
            grid=grid,
            labels=self.problem.labels,
            bits=self.problem.bits,
            base=2 * self.copy_parameters - self.construct_parameters,
            sharers=self.sharers,
            symmetric=self.coarse_symmetric,
            shifts=self.coarse_shifts,
            variant=self.fine.variant,
        )

    @cached_property
    def declared(self) -> Declared:
        """The memory that is fixed with the problem: all parameter blocks, and flags."""
        levels = [self.fine.declared, self.coarse.declared]
        blocks = [
            Span(address, len(data))
            for vault in range(self.ring.vaults)
            for address, data in self.parameters(vault)
        ]
        return Declared(
            constants=(*blocks, *(span for level in levels for span in level.constants)),
            numbers=tuple(numbers for level in levels for numbers in level.numbers),
            slots=self.sharers,
        )

    def parameters(self, vault: int) -> Iterator[tuple[int, bytes]]:
        """Chip addresses and contents of the parameter blocks of construct and copy."""
        costs = COST_PLACE * self.fine.vector_bytes
        for offset, source, target, place, sharers in (
            (self.construct_parameters, self.fine, self.coarse, costs, self.sharers),
            (self.copy_parameters, self.coarse, self.fine, 0, _COPY_SHARERS),
        ):
            shares = [self._rows(vault, member, sharers) for member in range(sharers)]
            base = self.ring.address(vault, offset)
            across = [level.grid.block * level.pitch * sharers for level in (source, target)]
            parts = []
            for share in shares:
                runs = [
                    LevelRun(
                        source=rows.begin(source) + place,
                        columns=rows.coarse.width,
                        rows=rows.count,
                        target=rows.begin(target) + place,
                    ).words()
                    for rows in share
                ]
                parts.append([*chain.from_iterable(runs), *[0] * LEVEL_RUN_WORDS])
            header = (sharers, self.fine.pitch, *across)
            yield base, block_bytes(base, parts, header=header)

    def _rows(self, vault: int, member: int, sharers: int) -> list["_Rows"]:
        """The rows of blocks of ``member``'s share, tile by tile: every ``sharers``-th of all."""
        before = 0
        result = []
        for pair in zip(self.fine.grid.tiles(vault), self.coarse.grid.tiles(vault), strict=True):
            rows = range((member - before) % sharers, pair[1].height, sharers)
            if rows:
                result.append(_Rows(*pair, rows.start, len(rows)))
            before += pair[1].height
        return result


@dataclass(frozen=True)
class _Rows:
    """``count`` rows of blocks of one tile, from ``first`` on."""

    fine: Tile
    coarse: Tile
    first: int
    count: int

    def begin(self, level: BpLayout) -> int:
        """Address of the record of their first pixel at a level."""
        tile = self.fine if level.grid.block == BLOCK else self.coarse
        return level.record(tile, 0, level.grid.block * self.first)
