"""DRAM layout of belief propagation: each vault's tiles and its program's data.

From ``base`` on, every vault contains the parameter block (:mod:`microkernels.bp.runs`), the flags
(:mod:`microkernels.runtime.barrier`), the smoothness costs and their transpose, and the tiles; the
tile of column ``c`` (:mod:`microkernels.bp.tiles`) is in place ``c``. All tiles have the pitch and
size of the largest. A single vault has one tile, the complete image.

A record is one pixel (:mod:`microkernels.bp.record`) or, with a kernel on blocks, 2 x 2 pixels. In
the latter case tiles are cut between blocks, and a run's lines, pairs of lines and updates are
those of blocks.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from isa.declared import Declared, Numbers, Span
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES, ROW_BYTES, round_up
from microkernels.runtime.barrier import FlagTable
from microkernels.runtime.ring import VaultRing

from .problem import USUAL, BpProblem, MessageDirection, UpdateVariant, element_type
from .record import (
    BANKS,
    BLOCK,
    BLOCK_BYTES,
    COST_PLACE,
    LOADED_VECTORS,
    PART,
    PLACE,
    loaded,
    message_place,
    pixel_place,
    record_stride,
    row_stride,
    spare,
    vector_stride,
)
from .runs import (
    PAIR,
    TIME,
    TIME_ALONE,
    Piece,
    SweepRun,
    block_bytes,
    end_words,
    most_runs,
    most_words,
    share_sweep,
    step_runs,
    sweep_team,
)
from .shifts.base import Shifts
from .tiles import Tile, TileCut, TileGrid

__all__ = ["BpLayout"]

_ALIGNMENT = BANKS * ROW_BYTES


def _unit(shifts: Shifts | None) -> int:
    """Side of a record in pixels."""
    return BLOCK if shifts is not None and shifts.in_blocks else 1


@dataclass(frozen=True, kw_only=True)
class BpLayout:
    """Addresses of a problem; see the module's text.

    Offsets are addresses within a vault; all others are chip addresses. With one vault the two are
    the same.

    Attributes:
        grid: of tiles, cut between records.
        labels: at least 1.
        bits: element width (:data:`microkernels.bp.problem.BP_WIDTHS`).
        base: first offset; a multiple of 4096 (one row in every bank).
        sharers: engines per vault that share its tiles; at least 1.
        symmetric: the smoothness costs are their own transpose, so engines load them once.
        shifts: the kernel by shifts, whose constants replace the smoothness costs; None: the kernel
            by a matrix.
        variant: of the updates.

    Raises:
        KernelError: a value out of range, or tiles that don't fit their vault.
    """

    grid: TileGrid
    labels: int
    bits: int = 16
    base: int = 0
    sharers: int = 1
    symmetric: bool = False
    shifts: Shifts | None = None
    variant: UpdateVariant = USUAL

    def __post_init__(self) -> None:
        CHECK.fields(self)
        element_type(self.bits)
        for name in ("labels", "sharers"):
            CHECK.at_least(name, getattr(self, name), 1)
        if self.grid.block % self.unit:
            raise KernelError(f"tiles must be cut between blocks of {self.unit} pixels a side")
        if self.base < 0 or self.base % _ALIGNMENT:
            raise KernelError(f"base must be a multiple of {_ALIGNMENT}, not {self.base}")
        if self.end > 1 << self.ring.address_bits:
            raise KernelError(
                f"a vault's tiles end at byte {self.end}, but the vault has "
                f"{1 << self.ring.address_bits} bytes"
            )

    @classmethod
    def of(
        cls,
        problem: BpProblem,
        *,
        base: int = 0,
        sharers: int = 1,
        ring: VaultRing | None = None,
        block: int = 1,
        shifts: Shifts | None = None,
        cut: TileCut | None = None,
        damping: int = 0,
    ) -> "BpLayout":
        """The layout of ``problem``; errors as for the class.

        Parameters:
            ring, cut: of the vaults, of the tiles.
            block: side in pixels of the blocks between which tiles are cut, those of a kernel on
                blocks if it is one. Pixels that fill up the last block of a row or column have
                records too.
        """
        grid = TileGrid(
            width=problem.width,
            height=problem.height,
            ring=ring or VaultRing(),
            block=max(block, _unit(shifts)),
            cut=cut,
        )
        return cls(
            grid=grid,
            labels=problem.labels,
            bits=problem.bits,
            base=base,
            sharers=sharers,
            symmetric=problem.symmetric,
            shifts=shifts,
            variant=UpdateVariant(problem.weights is not None, damping),
        )

    @property
    def ring(self) -> VaultRing:
        return self.grid.ring

    @property
    def in_blocks(self) -> bool:
        """Whether a record is a block."""
        return self.unit > 1

    @property
    def unit(self) -> int:
        """Side of a record in pixels."""
        return _unit(self.shifts)

    @property
    def vector_bytes(self) -> int:
        """Bytes from one vector of a record to the next."""
        return vector_stride(self.labels + self.variant.tail, self.bits)

    @property
    def record_bytes(self) -> int:
        """Bytes from a record to its right neighbour in the tile."""
        if self.in_blocks:
            return BLOCK_BYTES
        return record_stride(self.labels + self.variant.tail, self.bits)

    @property
    def pitch(self) -> int:
        """Bytes from a record to the one below it in the tile."""
        return row_stride(self.grid.tile_width // self.unit * self.record_bytes)

    @cached_property
    def flags(self) -> FlagTable:
        """The flags of a vault, at their offset."""
        # After the parameter block, so never at address 0, which means no flag.
        steps = sum(self.grid.steps(direction) for direction in MessageDirection)
        block = 8 * most_words(self.sharers, most_runs(self.lanes) * steps)
        base = self.base + round_up(block, COLUMN_BYTES)
        team = len(sweep_team(MessageDirection.RIGHT, self.sharers))
        return FlagTable(base, self.sharers, ring=self.ring.vaults > 1, team=team)

    @property
    def lanes(self) -> int:
        """Maximum number of lines that the kernel interleaves."""
        if self.shifts is not None:
            return self.shifts.lanes // self.unit
        return PAIR if self.variant.usual else 1

    @property
    def matrix(self) -> int:
        """Offset of the smoothness costs (rows contiguous), followed by the damping if there is
        any; or of the shifts' constants."""
        return self.flags.end

    @property
    def transposed(self) -> int:
        """Offset of the transposed smoothness costs."""
        used = (self.labels**2 + self.variant.damped) * self.bits // 8
        if self.shifts is not None:
            used = self.shifts.constant_bytes
        return self.matrix + round_up(used, COLUMN_BYTES)

    @property
    def parameters(self) -> int:
        """Offset of the parameter block, for the launch."""
        return self.base

    @cached_property
    def tile(self) -> int:
        """Offset of the first record of the first tile."""
        return round_up(2 * self.transposed - self.matrix, _ALIGNMENT)

    @cached_property
    def tile_bytes(self) -> int:
        """Bytes from one of a vault's tiles to the next."""
        return round_up(self.grid.tile_height // self.unit * self.pitch, _ALIGNMENT)

    @property
    def end(self) -> int:
        """First offset after all data."""
        return (
            self.tile
            + (self.grid.columns - 1) * self.tile_bytes
            + self.grid.tile_height // self.unit * self.pitch
        )

    def message(self, direction: MessageDirection, x: int, y: int) -> int:
        """Address of the message that arrives at pixel (x, y) moving in ``direction``."""
        return self._vector(direction, x, y)

    def data_cost(self, x: int, y: int) -> int:
        """Address of the data costs of pixel (x, y)."""
        return self._vector(None, x, y)

    def _vector(self, direction: MessageDirection | None, x: int, y: int) -> int:
        record = self.record_at(x, y)
        if self.in_blocks:
            return record + pixel_place(direction, x % BLOCK, y % BLOCK)
        place = COST_PLACE if direction is None else PLACE[direction]
        return record + place * self.vector_bytes

    def record_at(self, x: int, y: int) -> int:
        """Address of the record of pixel (x, y) of the image."""
        tile = self.grid.tile_of(x, y)
        return self.record(tile, x - tile.x, y - tile.y)

    def row_bytes(self, tile: Tile) -> int:
        """Bytes of a row of records of ``tile``, with the last block filled up."""
        return self.grid.block * self.grid.blocks(tile.width) // self.unit * self.record_bytes

    def record(self, tile: Tile, x: int, y: int) -> int:
        """Address of the record of pixel (x, y) of ``tile``."""
        column, row = x // self.unit, y // self.unit
        offset = self.tile + tile.column * self.tile_bytes
        offset += row * self.pitch + column * self.record_bytes
        return self.ring.address(tile.vault, offset)

    def sweep(self, direction: MessageDirection, tile: Tile) -> SweepRun[int]:
        """The words common to all runs of a sweep of ``tile``: those of line 0 and its neighbours.
        A tile with one pixel per line may have no updates."""
        along, across = self.record_bytes, self.pitch
        pixels, first_place = tile.width, PLACE[MessageDirection.UP]
        if not direction.horizontal:
            along, across = across, along
            pixels, first_place = tile.height, COST_PLACE
        load, message = first_place * self.vector_bytes, PLACE[direction] * self.vector_bytes
        updates = pixels - 1
        if self.in_blocks:
            # Both pixels of a block are updated; at the edge of the image the last message is lost.
            load, message = loaded(direction), message_place(direction)
            updates = pixels // BLOCK
        step = -along if direction.reverse else along
        first = self._border(tile, direction, leaving=False)
        following = self.grid.following(direction, tile)
        exit_pitch = spare(direction) - message if self.in_blocks else step
        if following is not None:
            last = self._border(tile, direction, leaving=True)
            exit_pitch = self._border(following, direction, leaving=False) - last
            updates = pixels // self.unit
        costs = self.transposed if direction.reverse and not self.symmetric else self.matrix
        return SweepRun[int](
            load_start=first + load,
            first_message=first + message,
            pixel_pitch=step,
            last_pitch=exit_pitch,
            line_pitch=across,
            updates=updates,
            costs=self.ring.address(tile.vault, costs),
        )

    def _border(self, tile: Tile, direction: MessageDirection, *, leaving: bool) -> int:
        """The record of the first or last pixel of line 0."""
        far = direction.reverse != leaving
        if direction.horizontal:
            return self.record(tile, tile.width - 1 if far else 0, 0)
        return self.record(tile, 0, tile.height - 1 if far else 0)

    def runs(self, member: int, vault: int = 0) -> list[SweepRun[int]]:
        """One iteration's runs of the engine in slot ``member`` (0..sharers - 1) of ``vault``."""
        runs = []
        costs = 0
        for direction in MessageDirection:
            if member not in sweep_team(direction, self.sharers):
                continue
            for run in self._sweep_runs(direction, vault, member):
                # The previous run's smoothness costs are still in the scratchpad.
                runs.append(replace(run, costs=0) if run.costs == costs else run)
                costs = run.costs or costs
        return runs

    def _flags_of(self, vault: int) -> FlagTable:
        flags = self.flags
        return replace(flags, base=self.ring.address(vault, flags.base))

    def _sweep_runs(
        self, direction: MessageDirection, vault: int, member: int
    ) -> Iterator[SweepRun[int]]:
        steps, team = self.grid.steps(direction), sweep_team(direction, self.sharers)
        flags = self._flags_of(vault)
        for step in range(steps):
            tile = self.grid.step(direction, vault, step)
            words, share = None, list[Piece]()
            if tile is not None:
                words = self.sweep(direction, tile)
                alone = PAIR * TIME if self.in_blocks else TIME_ALONE
                lines = self._lines(direction, tile)
                share = share_sweep(lines, words.updates, len(team), alone)[team.index(member)]
            end = self.end_of_step(direction, vault, member, last=step == steps - 1)
            yield from step_runs(words, share, flags, member, end, self.lanes)

    def _lines(self, direction: MessageDirection, tile: Tile) -> int:
        return (tile.height if direction.horizontal else tile.width) // self.unit

    def end_of_step(
        self, direction: MessageDirection, vault: int, member: int, *, last: bool
    ) -> dict[str, int]:
        """The words of a step's last run that say how it ends.

        Parameters:
            direction: of the sweep. last: it is the sweep's last step.
            vault, member: of the engine.
        """
        flags, team = self._flags_of(vault), sweep_team(direction, self.sharers)
        before, after = (self._flags_of(self.ring.next(vault, step)) for step in (-1, 1))
        # An engine whose team sweeps in one direction only has finished its part; the only team of
        # an odd number of engines sweeps the reverse direction next.
        if last and (direction.reverse or len(team) < flags.members):
            signals = [flags.arrival(member)]
            if flags.ring:
                signals += [before.from_after(member), after.from_before(member)]
            return end_words(signals, flags.everyone)
        if last or not flags.ring:
            return end_words([], (flags.base, flags.base))
        number = team.index(member)
        if direction.reverse:
            return end_words([before.step_from_after(number)], flags.steps_after)
        return end_words([after.step_from_before(number)], flags.steps_before)

    @cached_property
    def declared(self) -> Declared:
        """The memory that is fixed by the problem: each vault's parameter blocks and flags."""
        blocks: list[Span] = []
        numbers: list[Numbers] = []
        for vault in range(self.ring.vaults):
            start = self.ring.address(vault, self.parameters)
            blocks.append(Span(start, len(self.parameter_block(0, vault))))
            numbers += self._flags_of(vault).numbers
        return Declared(constants=tuple(blocks), numbers=tuple(numbers), slots=self.sharers)

    def parameter_block(self, iterations: int, vault: int = 0) -> bytes:
        """The parameter block of ``vault`` for ``iterations`` (0 or more) iterations.

        Raises:
            KernelError: a negative number of iterations.
        """
        members = range(self.sharers)
        flags = self._flags_of(vault)
        return block_bytes(
            self.ring.address(vault, self.parameters),
            iterations,
            [flags.arrival(member) for member in members],
            [self.runs(member, vault) for member in members],
        )

    def sweep_bytes(self, direction: MessageDirection) -> int:
        """Bytes that the engines read and write per sweep: data costs and messages, without flags,
        parameters or smoothness costs.

        Each update reads three vectors and writes one, and a line begins with one more read. With
        blocks, an update has four times and a line twice as many vectors, whose messages move in
        pairs; short vectors are read together with the bytes after them.
        """
        message = self._message_bytes
        read = LOADED_VECTORS * (PART if self.in_blocks else message)
        total = 0
        for vault in range(self.ring.vaults):
            for tile in self.grid.tiles(vault):
                if updates := self.sweep(direction, tile).updates:
                    line = updates * (read + self.unit * message) + message
                    total += self._lines(direction, tile) * line
        return total

    def remote_bytes(self, direction: MessageDirection) -> int:
        """The part of :meth:`sweep_bytes` that goes to another vault, one link away: a line's last
        write goes to the following tile, if there is one (thesis 6.1)."""
        return self._message_bytes * sum(
            self._lines(direction, tile)
            for vault in range(self.ring.vaults)
            for tile in self.grid.tiles(vault)
            if self.grid.following(direction, tile) is not None
        )

    @property
    def _message_bytes(self) -> int:
        """Bytes of the messages that begin a line of pixels or blocks."""
        return COLUMN_BYTES if self.in_blocks else self.labels * element_type(self.bits).itemsize

    @property
    def remote_share(self) -> float:
        """Fraction of an iteration's bytes that goes to another vault; 0 if there is none."""
        total = sum(map(self.sweep_bytes, MessageDirection))
        return sum(map(self.remote_bytes, MessageDirection)) / total if total else 0.0
