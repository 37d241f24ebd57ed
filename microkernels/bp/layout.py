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
from functools import cached_property, partial

from isa.program import Declared, Numbers, Program, Span
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES, ROW_BYTES, round_up
from microkernels.runtime.barrier import FlagTable
from microkernels.runtime.ring import ONE_ENGINE, ChipEngines

from .plan import Plan
from .problem import BpProblem, MessageDirection
from .record import (
    BANKS,
    BLOCK,
    BLOCK_VECTORS,
    COST_PLACE,
    LOADED_VECTORS,
    PART,
    PLACE,
    RECORD_VECTORS,
    SPARE_PLACE,
    SUM_PLACE,
    Kind,
    loaded,
    message_place,
    record_stride,
    row_stride,
    spare,
    sums_made,
    vector_stride,
)
from .runs import (
    PAIR,
    SUM_LANES,
    TIME,
    TIME_ALONE,
    SweepRun,
    block_bytes,
    end_words,
    most_runs,
    most_words,
    part,
    share_sweep,
    step_runs,
    sweep_team,
)
from .tiles import Tile, TileGrid

_ALIGNMENT = BANKS * ROW_BYTES


@dataclass(frozen=True, kw_only=True)
class BpLayout:
    """Addresses of a problem; see the module's text.

    Offsets are addresses within a vault; all others are chip addresses. With one vault the two are
    the same.

    Attributes:
        grid: of tiles, cut between records.
        plan: the kernel.
        base: first offset; a multiple of 4096 (one row in every bank).
        symmetric: the smoothness costs are their own transpose, so engines load them once.

    Raises:
        KernelError: a value out of range, or tiles that don't fit their vault.
    """

    grid: TileGrid
    plan: Plan
    base: int = 0
    symmetric: bool = False

    def __post_init__(self) -> None:
        CHECK.fields(self)
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
        plan: Plan,
        *,
        base: int = 0,
        engines: ChipEngines = ONE_ENGINE,
        block: int = 1,
        cut: tuple[int, int] | None = None,
    ) -> "BpLayout":
        """The layout of ``problem``; errors as for the class.

        Parameters:
            plan: of the kernel, for the shape of the problem.
            engines: that share it.
            cut: of the tiles.
            block: side in pixels of the blocks between which tiles are cut, those of a kernel on
                blocks if it is one. Pixels that fill up the last block of a row or column have
                records too.
        """
        grid = TileGrid(
            width=problem.width,
            height=problem.height,
            ring=engines,
            block=max(block, BLOCK if plan.in_blocks else 1),
            cut=cut,
        )
        return cls(grid=grid, plan=plan, base=base, symmetric=problem.symmetric)

    @property
    def ring(self) -> ChipEngines:
        return self.grid.ring

    @property
    def sharers(self) -> int:
        """Engines per vault, which share its tiles."""
        return self.ring.pes

    @property
    def unit(self) -> int:
        """Side of a record in pixels."""
        return BLOCK if self.plan.in_blocks else 1

    @property
    def tail(self) -> int:
        """Elements after a vector's labels."""
        return self.plan.variant.tail

    @property
    def vector_bytes(self) -> int:
        """Bytes from one vector of a record to the next."""
        return vector_stride(self.plan.labels + self.tail, self.plan.bits)

    @property
    def record_bytes(self) -> int:
        """Bytes from a record to its right neighbour in the tile."""
        if self.plan.in_blocks:
            return BLOCK_VECTORS * self.vector_bytes
        vectors = SPARE_PLACE + 1 if self.plan.sums else RECORD_VECTORS
        return record_stride(self.plan.labels + self.tail, self.plan.bits, vectors)

    @property
    def pitch(self) -> int:
        """Bytes from a record to the one below it in the tile."""
        return row_stride(self.grid.tile_width // self.unit * self.record_bytes)

    @cached_property
    def flags(self) -> FlagTable:
        """The flags of a vault, at their offset."""
        # After the parameter block, so never at address 0, which means no flag.
        # The step in which second visits begin has the runs of two.
        steps = sum(self.grid.steps(direction) + self.plan.sums for direction in MessageDirection)
        runs = most_runs(self.lanes) * steps * (1 + self.plan.sums)
        block = 8 * most_words(self.sharers, runs)
        base = self.base + round_up(block, COLUMN_BYTES)
        team = len(sweep_team(MessageDirection.RIGHT, self.sharers))
        return FlagTable(base, self.sharers, ring=self.ring.vaults > 1, team=team)

    @property
    def lanes(self) -> int:
        """Maximum number of lines of records that the kernel interleaves."""
        return self.plan.lines // self.unit

    @property
    def program(self) -> Program:
        """The kernel's program for all engines.

        Raises:
            KernelError: it does not fit an engine.
        """
        return self.plan.program(self.ring.vault_bits)

    @property
    def matrix(self) -> int:
        """Offset of what a run begins with (:meth:`microkernels.bp.plan.Plan.costs`)."""
        return self.flags.end

    @property
    def transposed(self) -> int:
        """Offset of what it loads for the sweeps left and up, if that differs."""
        return self.matrix + round_up(self.plan.cost_bytes, COLUMN_BYTES)

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

    def place(self, kind: Kind) -> int:
        """Position in a record of one pixel of a vector."""
        if kind == "sums":
            return SUM_PLACE
        place = COST_PLACE if kind == "costs" else PLACE[kind]
        return place + (self.plan.sums and place > COST_PLACE)

    def row_bytes(self, tile: Tile) -> int:
        """Bytes of a row of records of ``tile``, with the last block filled up."""
        return self.grid.block * self.grid.blocks(tile.width) // self.unit * self.record_bytes

    @property
    def most_areas(self) -> int:
        """Maximum number of a vault's areas."""
        return self.grid.columns

    def areas(self, vault: int) -> list[tuple[int, int, int]]:
        """Address of the first record, columns and rows of pixels of each tile of ``vault``."""
        tiles = self.grid.tiles(vault)
        return [(self.record(tile, 0, 0), tile.width, tile.height) for tile in tiles]

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
        load, message = first_place * self.vector_bytes, self.place(direction) * self.vector_bytes
        updates = pixels - 1
        if self.plan.in_blocks:
            # Both pixels of a block are updated; at the edge of the image the last message is lost.
            load = loaded(direction, self.vector_bytes)
            message = message_place(direction, self.vector_bytes)
            updates = pixels // BLOCK
        step = -along if direction.reverse else along
        first = self._border(tile, direction, leaving=False)
        following = self.grid.following(direction, tile)
        exit_pitch = spare(direction, self.vector_bytes) - message if self.plan.in_blocks else step
        if self.plan.sums and self.plan.in_blocks:
            # The sums have the place of messages that leave the image: these are not stored.
            _, load, _ = sums_made(direction, self.vector_bytes)
            exit_pitch = 0
        elif self.plan.sums:
            # The image's last pixel is updated for the sake of its sum.
            load = COST_PLACE * self.vector_bytes
            updates = pixels
            exit_pitch = SPARE_PLACE * self.vector_bytes - message
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

    def runs(self, member: int, vault: int = 0, *, last: bool = False) -> list[SweepRun[int]]:
        """One iteration's runs of the engine in slot ``member`` (0..sharers - 1) of ``vault``.

        Parameters:
            last: of the last iteration, which with sums makes none for the next one.
        """
        runs = []
        costs = 0
        for direction in MessageDirection:
            if member not in sweep_team(direction, self.sharers):
                continue
            seconds = self.plan.sums and (direction.horizontal or not last)
            for run in self._sweep_runs(direction, vault, member, seconds=seconds):
                # The previous run's smoothness costs are still in the scratchpad.
                runs.append(replace(run, costs=0) if run.costs == costs else run)
                costs = run.costs or costs
        return runs

    def _flags_of(self, vault: int) -> FlagTable:
        flags = self.flags
        return replace(flags, base=self.ring.address(vault, flags.base))

    def _sweep_runs(
        self, direction: MessageDirection, vault: int, member: int, *, seconds: bool
    ) -> Iterator[SweepRun[int]]:
        steps, flags = self.grid.steps(direction), self._flags_of(vault)
        turn = self._turn(direction) if seconds else steps
        for step in range(steps):
            tile = self.grid.step(direction, vault, step)
            words, lines, first = SweepRun[int](), 1, 0
            if tile is not None:
                words, lines = self.sweep(direction, tile), self._lines(direction, tile)
                first = self._first_visits(direction, tile, step - turn)
            share = partial(self._share, direction, lines, member, flags)
            end = self.end_of_step(direction, vault, member, last=step == steps - 1)
            if step < turn:
                yield from share(part(words, 0, first), end)
                continue
            if step == turn and self.sharers > 1:
                # Messages of first visits are in memory before any second visit.
                meeting = end_words([flags.arrival(member)], flags.vault)
                yield from share(part(words, 0, first), meeting)
            yield from share(part(words, first, words.updates - first), end, second=True)

    def _share(
        self,
        direction: MessageDirection,
        lines: int,
        member: int,
        flags: FlagTable,
        words: SweepRun[int],
        end: dict[str, int],
        *,
        second: bool = False,
    ) -> list[SweepRun[int]]:
        """The runs of ``member`` for its share of ``lines`` lines; ``second``: second visits."""
        team = sweep_team(direction, self.sharers)
        alone = PAIR * TIME if self.plan.in_blocks or self.plan.sums else TIME_ALONE
        share = share_sweep(words, lines, team, flags, alone)[team.index(member)]
        runs = step_runs(share, end, PAIR if second else self.lanes)
        if not self.plan.sums:
            return runs
        vector = self.vector_bytes
        lanes = (self.place(direction.opposite) - COST_PLACE) * vector if second else PAIR
        load = (SUM_PLACE - COST_PLACE) * vector
        if self.plan.in_blocks:
            sums, begin, result = sums_made(direction, vector)
            lanes, load = (result - begin, 0) if second else (PAIR, sums - begin)
            runs = [replace(run, load_start=run.load_start + load) for run in runs]
        return [
            replace(run, load_start=run.load_start + load)
            if run.lanes == SUM_LANES
            # A lone line is a pair of itself.
            else replace(
                run, lanes=run.lanes and lanes, line_pitch=run.line_pitch * (run.lanes > 1)
            )
            for run in runs
        ]

    def _turn(self, direction: MessageDirection) -> int:
        """The first step of a sweep with second visits. Two teams meet in the middle of the image;
        a team that makes both sweeps visits all pixels in the first one."""
        steps = self.grid.steps(direction)
        if self.sharers % 2 == 0:
            return steps // 2
        return 0 if direction.reverse else steps

    def _first_visits(self, direction: MessageDirection, tile: Tile, after: int) -> int:
        """Number of updates of each line of ``tile`` that are first visits, in step ``after`` from
        the first one with second visits."""
        pixels = self.sweep(direction, tile).updates
        if not self.plan.sums:
            return pixels
        if after < 0:
            lost = not self.plan.in_blocks and self.grid.following(direction, tile) is None
            return pixels - lost
        if after or self.sharers % 2 or self.grid.steps(direction) % 2 == 0:
            return 0
        half = pixels // 2
        return pixels - half if direction.reverse else half

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
        plans = [[self.runs(member, vault)] for member in members]
        if self.plan.sums:
            for member, plan in zip(members, plans, strict=True):
                plan.append(self.runs(member, vault, last=True))
                longest = max(map(len, plan))
                plan[:] = [[SweepRun[int]()] * (longest - len(runs)) + runs for runs in plan]
                if iterations == 1:
                    plan[0] = plan[1]
        return block_bytes(
            self.ring.address(vault, self.parameters),
            iterations,
            [flags.arrival(member) for member in members],
            plans,
        )

    def sweep_bytes(self, direction: MessageDirection) -> int:
        """Bytes that the engines read and write per sweep: data costs and messages, without flags,
        parameters or smoothness costs.

        Each update reads three vectors and writes one, and a line begins with one more read. With
        blocks, an update has four times and a line twice as many vectors, whose messages move in
        pairs; short vectors are read together with the bytes after them.
        """
        message = self._message_bytes
        read = LOADED_VECTORS * (PART * self.vector_bytes if self.plan.in_blocks else message)
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
        plan = self.plan
        return BLOCK * self.vector_bytes if plan.in_blocks else plan.labels * plan.size

    @property
    def remote_share(self) -> float:
        """Fraction of an iteration's bytes that goes to another vault; 0 if there is none."""
        total = sum(map(self.sweep_bytes, MessageDirection))
        return sum(map(self.remote_bytes, MessageDirection)) / total if total else 0.0
