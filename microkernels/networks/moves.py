"""Moves of memory so that every vault has the inputs of its next layer.

A vault reads from the owners (:mod:`microkernels.networks.maps`) and writes only to its own
memory, so the moves of one layer, on all vaults at once, do not race. A vault's engines share its
moves; each has a part of the parameter block.
"""

import heapq
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from isa.limits import RANGE_BYTES
from isa.program import Program
from microkernels.common.builder import (
    DEFAULT_SCRATCHPAD,
    WORD_BYTES,
    KernelBuilder,
    launch_registers,
)
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import FeatureMap, round_up
from microkernels.common.fixed_point import ELEMENT_BYTES
from microkernels.common.parameter_block import block_bytes

from .maps import MapRegion, StoredMaps

#: Maximum elements per piece.
PIECE_ELEMENTS = 128


class Move(NamedTuple):
    """Pieces of one length, at equal distances in memory.

    Attributes:
        source, target: chip addresses of the first piece.
        source_step, target_step: bytes from one piece to the next.
        elements: per piece, 1 to :data:`PIECE_ELEMENTS`.
        pieces: their number, at least 1.
    """

    source: int
    target: int
    source_step: int
    target_step: int
    elements: int
    pieces: int

    def halves(self) -> "tuple[Move, Move]":
        """Split the pieces, at least 2, into a first and a second half."""
        first = self.pieces // 2
        return self._part(0, first), self._part(first, self.pieces)

    def _part(self, first: int, end: int) -> "Move":
        return Move(
            source=self.source + first * self.source_step,
            target=self.target + first * self.target_step,
            source_step=self.source_step,
            target_step=self.target_step,
            elements=self.elements,
            pieces=end - first,
        )


def moves_of(
    source: int, target: int, source_step: int, target_step: int, elements: int, count: int
) -> Iterator[Move]:
    """Moves of ``count`` items of ``elements`` elements, which may exceed the maximum piece; the
    other parameters are those of :class:`Move`."""
    size = elements * ELEMENT_BYTES
    if source_step == target_step == size and count > 1:
        elements, count, size = elements * count, 1, size * count
    full, rest = divmod(elements, PIECE_ELEMENTS)
    step = PIECE_ELEMENTS * ELEMENT_BYTES
    lengths = [PIECE_ELEMENTS] * full + [rest] * (rest > 0)
    first = 0
    if count == 1 and full:
        # The full pieces of one item are one move.
        first = full
        yield Move(source, target, step, step, PIECE_ELEMENTS, full)
    for number, length in enumerate(lengths[first:], first):
        yield Move(
            source=source + number * step,
            target=target + number * step,
            source_step=source_step,
            target_step=target_step,
            elements=length,
            pieces=count,
        )


def map_moves(source: StoredMaps, target: StoredMaps, vault: int) -> list[Move]:
    """A vault's moves for the maps that it reads. The pixels around them are already in memory.

    Raises:
        KernelError: maps of different sizes, or slices of different depths.
    """
    if source.size != target.size or source.depth != target.depth:
        raise KernelError("a layer's maps must have the size and the slices of its source's")
    region = target.region(vault)
    if region is None:
        return []
    moves: list[tuple[int, Move]] = []
    # What the vault has written there need not move.
    inside = source.inside is target
    for round_ in range(target.rounds):
        number = target.image(vault, round_)
        if number is None:
            continue
        into = target.map(vault, round_)
        for holder, tile_round, owned in source.holders(number):
            common = region.common(owned)
            if common is None:
                continue
            tile, own_tile = source.tile(holder), source.tile(vault) if inside else None
            assert tile is not None
            pieces = [common] if own_tile is None else common.without(own_tile)
            for piece in pieces:
                copied = _copy(source.map(holder, tile_round), tile, into, region, piece)
                moves += ((holder, move) for move in copied)
    return from_all(moves, vault)


def from_all(moves: Sequence[tuple[int, Move]], vault: int) -> list[Move]:
    """``vault``'s moves, each with the vault that it reads from, beginning with the next vault: if
    all began with the same one, it would serve all of them."""
    first = next((at for at, (holder, _) in enumerate(moves) if holder > vault), 0)
    return [move for _, move in (*moves[first:], *moves[:first])]


def _copy(
    source: FeatureMap, tile: MapRegion, target: FeatureMap, region: MapRegion, piece: MapRegion
) -> Iterator[Move]:
    depth = source.depth

    def ends(column: int, channel: int) -> tuple[int, int]:
        return (
            source.address(column - tile.x, piece.y - tile.y, channel - tile.channel),
            target.address(column - region.x, piece.y - region.y, channel - region.channel),
        )

    channels = range(piece.channel, piece.channel + piece.channels, depth)
    columns = range(piece.x, piece.x + piece.width)
    elements = piece.height * depth
    if len(columns) >= len(channels):
        for channel in channels:
            at, to = ends(piece.x, channel)
            yield from moves_of(at, to, source.x_step, target.x_step, elements, piece.width)
        return
    steps = source.slice_step, target.slice_step
    for column in columns:
        at, to = ends(column, piece.channel)
        yield from moves_of(at, to, *steps, elements, len(channels))


#: Bytes per slot of the scratchpad.
SLOT_BYTES = PIECE_ELEMENTS * ELEMENT_BYTES
#: Maximum pieces in flight; the array range check has 20 entries.
_MOST_SLOTS = 14
_HEADER_WORDS = 3
_MOVE_WORDS = 4
#: Approximate cycles per piece, per element and per description; used only for sharing.
_PIECE_COST, _ELEMENT_COST, _MOVE_COST = 40, 0.5, 120
#: Moves are halved until each is at most this fraction of an engine's work.
_PARTS = 8


def move_slots(scratchpad_bytes: int = DEFAULT_SCRATCHPAD) -> int:
    """Maximum pieces in flight at a time.

    Raises:
        KernelError: two pieces don't fit the scratchpad.
    """
    slots = min(_MOST_SLOTS, scratchpad_bytes // round_up(SLOT_BYTES, RANGE_BYTES))
    if slots < 2:
        raise KernelError(
            f"moves need a scratchpad of {2 * SLOT_BYTES} bytes, not {scratchpad_bytes}"
        )
    return slots


def _cost(move: Move) -> float:
    return _cost_of(move.elements, move.pieces)


def _cost_of(elements: int, count: int) -> float:
    return _MOVE_COST + count * (_PIECE_COST + _ELEMENT_COST * elements)


def _most(moves: Sequence[Move], sharers: int) -> float:
    """Maximum cost of a move that is small relative to an engine's work."""
    return sum(map(_cost, moves)) / (sharers * _PARTS)


def _parts(elements: int, count: int, limit: float) -> int:
    """Number of small moves into which one is divided."""
    if count == 1 or _cost_of(elements, count) <= limit:
        return 1
    half = count // 2
    return _parts(elements, half, limit) + _parts(elements, count - half, limit)


def _cut(moves: Sequence[Move], sharers: int) -> list[Move]:
    """Divide moves until they are small relative to an engine's work."""
    limit = _most(moves, sharers)
    waiting, cut = list(moves), []
    while waiting:
        move = waiting.pop()
        if move.pieces > 1 and _cost(move) > limit:
            waiting += move.halves()
        else:
            cut.append(move)
    return cut


def _shares(moves: Sequence[Move], sharers: int) -> list[list[Move]]:
    """Each engine's moves, of about equal cost. Each begins elsewhere, so that they read from
    several vaults at a time."""
    cut = _cut(moves, sharers)
    shares: list[list[Move]] = [[] for _ in range(sharers)]
    costs = [(0.0, slot) for slot in range(sharers)]
    for move in sorted(cut, key=_cost, reverse=True):
        cost, slot = costs[0]
        shares[slot].append(move)
        heapq.heapreplace(costs, (cost + _cost(move), slot))
    firsts = [len(share) * slot // sharers for slot, share in enumerate(shares)]
    return [share[first:] + share[:first] for first, share in zip(firsts, shares, strict=True)]


def move_block_bytes(moves: Sequence[Move], sharers: int) -> int:
    """Bytes of :func:`move_block`, which takes longer to compute."""
    limit = _most(moves, sharers)
    parts = sum(_parts(move.elements, move.pieces, limit) for move in moves)
    tables = 2 * _MOVE_WORDS * parts
    return WORD_BYTES * (sharers * (1 + _HEADER_WORDS) + tables)


def move_block(base: int, moves: Sequence[Move], sharers: int) -> bytes:
    """A vault's parameter block at chip address ``base``.

    Parameters:
        moves: of the vault. sharers: engines per vault, at least 1.

    Raises:
        KernelError: ``sharers`` is less than 1.
    """
    CHECK.at_least("sharers", sharers, 1)
    parts = []
    start = base + sharers * WORD_BYTES
    for share in _shares(moves, sharers):
        table = _MOVE_WORDS * len(share)
        loads = start + _HEADER_WORDS * WORD_BYTES
        words = [sum(move.pieces for move in share), loads, loads + table * WORD_BYTES]
        for move in share:
            words += [move.source, move.source_step, move.elements, move.pieces]
        for move in share:
            words += [move.target, move.target_step, move.elements, move.pieces]
        parts.append(words)
        start += len(words) * WORD_BYTES
    return block_bytes(base, parts)


@CHECK.arguments
@lru_cache(maxsize=8)
def move_program(
    *, vault_bits: int | None = None, scratchpad_bytes: int = DEFAULT_SCRATCHPAD
) -> Program:
    """The program; :func:`microkernels.networks.moves.move_block` creates its parameter block.

    Parameters:
        vault_bits: address bits of a vault if the start register ``parameters`` is an address
            within it (:meth:`microkernels.common.builder.KernelBuilder.start`).
        scratchpad_bytes: size of the scratchpad.

    Raises:
        KernelError: the scratchpad is too small.
    """
    slots = move_slots(scratchpad_bytes)
    w = KernelBuilder(
        "Moves of pieces of memory.",
        "Generated by microkernels.networks.moves, which explains it.",
        "",
        f"Scratchpad: {slots} slots of {SLOT_BYTES} bytes",
        launch=launch_registers(vault_bits),
        scratchpad_bytes=scratchpad_bytes,
    )
    to_load = w.register("to_load", "pieces left to load")
    loads = w.register("loads", "address of the next description of pieces to load")
    stores = w.register("stores", "likewise, to store")
    described = w.register("described", "address of the part's words")
    to_store = w.register("to_store", "pieces left to store")
    load = _Side(w, "load", loads)
    store = _Side(w, "store", stores)
    missing = w.register("ahead", "loads left until the slots are full")
    end = w.constant("slots_end", slots * SLOT_BYTES, "end of the slots")
    w.start((to_load, loads, stores), described, vault_bits=vault_bits)
    w.op("beq", to_load, w.zero, "idle")
    w.op("mov", to_store, to_load)
    for side in (load, store):
        side.describe()
        w.op("mov", side.slot, w.zero)
    w.note("Fill the slots.")
    w.op("li", missing, slots)
    w.label("fill")
    _load(w, load, to_load, end)
    w.op("sub", missing, missing, 1)
    w.op("bne", missing, w.zero, "fill")
    w.note("Store a piece, load another one into its slot.")
    w.label("turn")
    w.store(store.memory, store.slot, store.elements)
    w.op("sub", to_store, to_store, 1)
    w.op("beq", to_store, w.zero, "idle")
    store.advance("stored", end)
    w.op("beq", to_load, w.zero, "turn")
    _load(w, load, to_load, end)
    w.op("jmp", "turn")
    w.label("idle")
    w.op("halt")
    return w.program("move.s")


def _load(w: KernelBuilder, side: "_Side", left: str, end: str) -> None:
    w.load(side.slot, side.memory, side.elements)
    w.op("sub", left, left, 1)
    w.op("beq", left, w.zero, "turn")
    side.advance(w.new_label("loaded"), end)


class _Side:
    def __init__(self, writer: KernelBuilder, name: str, table: str) -> None:
        self._writer = w = writer
        self._table = table
        self.memory = w.register(f"{name}_memory", "address of the next piece")
        self.step = w.register(f"{name}_step", "bytes to the one after")
        self.elements = w.register(f"{name}_elements", "elements of a piece")
        self.count = w.register(f"{name}_count", "pieces left of the move")
        self.slot = w.register(f"{name}_slot", "its place in the scratchpad")

    def describe(self) -> None:
        """Read the next move."""
        for word in (self.memory, self.step, self.elements, self.count):
            self._writer.read(word, self._table)

    def advance(self, label: str, end: str) -> None:
        """Advance to the next piece and slot."""
        w = self._writer
        w.op("add", self.memory, self.memory, self.step)
        w.op("sub", self.count, self.count, 1)
        w.op("bne", self.count, w.zero, label)
        self.describe()
        w.label(label)
        w.advance_ring(self.slot, SLOT_BYTES, w.zero, end)
