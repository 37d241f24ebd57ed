"""The parameter block of moves: each engine's share of a vault's.

An engine's part of the parameter block::

    0  pieces in all; 0: nothing to do
    1  address of the first description of pieces to load, 2 of pieces to store
    3  for each move: address of the first piece to load, bytes to the next, elements, pieces; one
       description more
       then the same of the pieces to store
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from isa.timing import RANGE_BYTES
from microkernels.common.builder import DEFAULT_SCRATCHPAD, WORD_BYTES
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import round_up
from microkernels.common.fixed_point import ELEMENT_BYTES
from microkernels.common.parameter_block import block_bytes

from .moves import PIECE_ELEMENTS, Move

__all__ = ["SLOT_BYTES", "move_block", "move_block_bytes", "move_slots"]

#: Bytes of a slot of the scratchpad.
SLOT_BYTES = PIECE_ELEMENTS * ELEMENT_BYTES
#: Pieces in flight at most; the array range check has 20 entries.
_MOST_SLOTS = 14
_HEADER_WORDS = 3
_MOVE_WORDS = 4
#: Cycles of a piece, of an element and of a description, about: for sharing alone.
_PIECE_COST, _ELEMENT_COST, _MOVE_COST = 40, 0.5, 120
#: Moves are halved until each is at most one of so many parts of an engine's work.
_PARTS = 8


def move_slots(scratchpad_bytes: int = DEFAULT_SCRATCHPAD) -> int:
    """Pieces in flight at a time.

    Raises:
        KernelError: the scratchpad holds no two pieces.
    """
    slots = min(_MOST_SLOTS, scratchpad_bytes // round_up(SLOT_BYTES, RANGE_BYTES))
    if slots < 2:
        raise KernelError(
            f"moves need a scratchpad of {2 * SLOT_BYTES} bytes, not {scratchpad_bytes}"
        )
    return slots


@dataclass(order=True)
class _Share:
    cost: float
    slot: int
    moves: list[Move]


def _cost(move: Move) -> float:
    return _cost_of(move.elements, move.count)


def _cost_of(elements: int, count: int) -> float:
    return _MOVE_COST + count * (_PIECE_COST + _ELEMENT_COST * elements)


def _most(moves: Sequence[Move], sharers: int) -> float:
    """Cost of a move that is small beside an engine's work."""
    return sum(map(_cost, moves)) / (sharers * _PARTS)


def _parts(elements: int, count: int, most: float) -> int:
    """Small moves into which one is cut."""
    if count == 1 or _cost_of(elements, count) <= most:
        return 1
    half = count // 2
    return _parts(elements, half, most) + _parts(elements, count - half, most)


def _cut(moves: Sequence[Move], sharers: int) -> list[Move]:
    """Moves that are small beside an engine's work."""
    most = _most(moves, sharers)
    waiting, cut = list(moves), []
    while waiting:
        move = waiting.pop()
        if move.count > 1 and _cost(move) > most:
            waiting += move.halves()
        else:
            cut.append(move)
    return cut


def _shares(moves: Sequence[Move], sharers: int) -> list[list[Move]]:
    """Moves of each engine, of about equal cost."""
    cut = _cut(moves, sharers)
    shares = [_Share(0.0, slot, []) for slot in range(sharers)]
    for move in sorted(cut, key=_cost, reverse=True):
        least = heapq.heappop(shares)
        least.moves.append(move)
        least.cost += _cost(move)
        heapq.heappush(shares, least)
    return [share.moves for share in sorted(shares, key=lambda share: share.slot)]


def move_block_bytes(moves: Sequence[Move], sharers: int) -> int:
    """Bytes of :func:`move_block`, which takes longer."""
    most = _most(moves, sharers)
    parts = sum(_parts(move.elements, move.count, most) for move in moves)
    tables = 2 * _MOVE_WORDS * (parts + sharers)
    return WORD_BYTES * (sharers * (1 + _HEADER_WORDS) + tables)


def move_block(base: int, moves: Sequence[Move], sharers: int) -> bytes:
    """The parameter block of a vault at chip address ``base``.

    Parameters:
        moves: of the vault. sharers: engines of the vault, at least 1.

    Raises:
        KernelError: ``sharers`` is less than 1.
    """
    CHECK.at_least("sharers", sharers, 1)
    parts = []
    start = base + sharers * WORD_BYTES
    for share in _shares(moves, sharers):
        table = _MOVE_WORDS * (len(share) + 1)
        loads = start + _HEADER_WORDS * WORD_BYTES
        words = [sum(move.count for move in share), loads, loads + table * WORD_BYTES]
        for move in share:
            words += [move.source, move.source_step, move.elements, move.count]
        words += [0] * _MOVE_WORDS
        for move in share:
            words += [move.target, move.target_step, move.elements, move.count]
        words += [0] * _MOVE_WORDS
        parts.append(words)
        start += len(words) * WORD_BYTES
    return block_bytes(base, parts)
