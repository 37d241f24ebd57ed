"""Where both levels of hierarchical BP-M lie in DRAM, and what each PE does between them.

Each vault holds the coarse pixels of the blocks that it holds: the coarse image is cut like the
fine one, whose tiles are cut between blocks only (:mod:`kernels.bp_tiles`). So construct and copy
touch the own vault only, and PEs need not wait for each other. Behind the fine level (from offset 0
on) come the coarse one and the parameter blocks of construct and copy, 64-bit little-endian words::

    0  PEs that work
    1  bytes from a row of the fine problem to the next
    2  for each slot, the address of its PE's part

    part: runs, then those of each run (LevelRun)

The PEs of a vault take the rows of blocks of its tiles in turns. So those that are worked on at the
same time are neighbours, whose pixels lie in different banks (:mod:`kernels.bp_record`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np

from .bp_layout import BpLayout
from .bp_levels import BLOCK
from .bp_problem import BpProblem
from .bp_record import COST_PLACE, round_up
from .bp_tiles import Tile
from .vault_ring import VaultRing

__all__ = ["LevelRun", "LevelsLayout"]

_HEADER_WORDS = 2
_ALIGNMENT = 4096


@dataclass(frozen=True, kw_only=True)
class LevelRun:
    """Rows of blocks that a PE works on without a stop. The attributes are the words, in order.

    Attributes:
        source: address of the first input of the first block.
        target: address of its first result.
        columns, rows: blocks, at least 1 each.
        source_step, target_step: bytes from a block to the next of its row.
        source_turn, target_turn: bytes from behind the last block of a row to the first of the
            next.
    """

    source: int
    target: int
    columns: int
    rows: int
    source_step: int
    target_step: int
    source_turn: int
    target_turn: int


@dataclass(frozen=True, kw_only=True)
class LevelsLayout:
    """Addresses of both levels; see the module's text.

    Attributes:
        problem: the fine problem.
        sharers: PEs of a vault that work; at least 1.
        ring: of the vaults.
        coarse_symmetric: the coarse problem's smoothness costs are their own transpose.

    Raises:
        KernelError: a value outside its range, or levels that don't fit their vault.
    """

    problem: BpProblem
    sharers: int = 1
    ring: VaultRing = field(default_factory=VaultRing)
    coarse_symmetric: bool = False

    def __post_init__(self) -> None:
        # Refuses what does not fit.
        _ = self.coarse

    @cached_property
    def fine(self) -> BpLayout:
        """The fine level."""
        return BpLayout.of(self.problem, sharers=self.sharers, ring=self.ring, block=BLOCK)

    @property
    def construct_parameters(self) -> int:
        """Offset of construct's parameter block."""
        return round_up(self.fine.end, _ALIGNMENT)

    @property
    def copy_parameters(self) -> int:
        """Offset of copy's parameter block."""
        # A PE has one run in a tile at most.
        runs = self.fine.grid.columns * self.sharers
        words = _HEADER_WORDS + 2 * self.sharers + runs * len(fields(LevelRun))
        return self.construct_parameters + round_up(8 * words, _ALIGNMENT)

    @cached_property
    def coarse(self) -> BpLayout:
        """The coarse level."""
        return BpLayout(
            width=self.fine.grid.blocks(self.problem.width),
            height=self.fine.grid.blocks(self.problem.height),
            labels=self.problem.labels,
            bits=self.problem.bits,
            base=2 * self.copy_parameters - self.construct_parameters,
            sharers=self.sharers,
            ring=self.ring,
            symmetric=self.coarse_symmetric,
        )

    def parameters(self, vault: int) -> Iterator[tuple[int, bytes]]:
        """Chip addresses and contents of the parameter blocks of construct and copy."""
        shares = [self._rows(vault, member) for member in range(self.sharers)]
        for offset, run in (
            (self.construct_parameters, self._construct_run),
            (self.copy_parameters, self._copy_run),
        ):
            base = self.ring.address(vault, offset)
            yield base, self._block(base, [[run(piece) for piece in share] for share in shares])

    def _rows(self, vault: int, member: int) -> list["_Rows"]:
        """The rows of blocks of ``member``'s share, tile by tile: every ``sharers``-th of all."""
        before = 0
        found = []
        for pair in zip(self.fine.grid.tiles(vault), self.coarse.grid.tiles(vault), strict=True):
            rows = range((member - before) % self.sharers, pair[1].height, self.sharers)
            if rows:
                found.append(_Rows(*pair, rows.start, len(rows)))
            before += pair[1].height
        return found

    def _construct_run(self, rows: "_Rows") -> LevelRun:
        costs = COST_PLACE * self.fine.vector_bytes
        return self._run(
            (self.fine, self.fine.record(rows.fine, 0, BLOCK * rows.first) + costs),
            (self.coarse, self.coarse.record(rows.coarse, 0, rows.first) + costs),
            rows,
        )

    def _copy_run(self, rows: "_Rows") -> LevelRun:
        return self._run(
            (self.coarse, self.coarse.record(rows.coarse, 0, rows.first)),
            (self.fine, self.fine.record(rows.fine, 0, BLOCK * rows.first)),
            rows,
        )

    def _run(
        self, source: tuple[BpLayout, int], target: tuple[BpLayout, int], rows: "_Rows"
    ) -> LevelRun:
        columns = rows.coarse.width
        steps = [layout.block * layout.record_bytes for layout, _ in (source, target)]
        pitches = [self.sharers * layout.block * layout.pitch for layout, _ in (source, target)]
        return LevelRun(
            source=source[1],
            target=target[1],
            columns=columns,
            rows=rows.count,
            source_step=steps[0],
            target_step=steps[1],
            source_turn=pitches[0] - columns * steps[0],
            target_turn=pitches[1] - columns * steps[1],
        )

    def _block(self, base: int, plans: list[list[LevelRun]]) -> bytes:
        words = [self.sharers, self.fine.pitch]
        parts: list[int] = []
        for plan in plans:
            words.append(base + 8 * (_HEADER_WORDS + self.sharers + len(parts)))
            parts.append(len(plan))
            for run in plan:
                parts += [getattr(run, word.name) for word in fields(run)]
        return np.array(words + parts, "<i8").tobytes()


@dataclass(frozen=True)
class _Rows:
    """``count`` rows of blocks of one tile, from ``first`` on."""

    fine: Tile
    coarse: Tile
    first: int
    count: int
