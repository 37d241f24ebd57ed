"""How belief propagation stores a pixel, and a tile of pixels, in DRAM.

A pixel's data is one *record* of five vectors of labels, in this order::

    up | down | data cost | left | right        (messages named as in bp_problem.MessageDirection)

A sweep along rows reads the first three vectors, a sweep along columns the last three, so one load
of three vectors fetches all inputs of an update except the message that the previous update
produced; the update then writes one vector of the next record. Vectors of up to 32 bytes are padded
to a power of two of at least 8 bytes and never cross a 32-byte DRAM column; longer ones are padded
to a multiple of 8. Records are padded to a power of two that divides a 256-byte DRAM row, or to a
multiple of rows. For 16 labels of 16 bits a record is one row (160 of 256 bytes used), and each
update opens one row.

Rows of pixels are spaced at a *pitch* of :data:`BANK_SKEW` DRAM rows more than a multiple of all
banks. Neighbouring lines, which are processed at the same time, are then in different banks in both
directions: eight rows at one column use banks 0 9 2 11 4 13 6 15; eight columns use banks 0 to 7 at
one row and 9 to 16 at the next.

*Blocks*, for short vectors. A 16-byte vector fills half a 32-byte column and one of 8 bytes a
quarter, so vectors of two lines, or of two pixels of a line, share a column. A sweep along rows
reads vectors of two rows and writes messages of two rows, a sweep along columns those of two
columns. A *block* of 2 x 2 pixels suits both: its vectors of one kind are read together, and its
messages are written two at a time, each pair into one column::

    up | down | data cost | spare || data cost | left | right | spare

Each part contains the vectors of the four pixels; a block of 16-byte vectors is two DRAM rows, one
of 8-byte vectors one row. A sweep along rows reads the first three parts, a sweep along columns the
three after the bars; the data costs are stored twice. In the first half a part's pixels are in the
order ``(x, y), (x + 1, y), (x, y + 1), (x + 1, y + 1)``; in the second, row and column are
exchanged. Either sweep thus finds the vectors of a line one after the other, and messages that it
computes together are neighbours. Messages that leave the image go to a spare part. With sums
(:mod:`microkernels.bp.sums`) these parts contain them, the first half those for sweeps along
columns, the second those for sweeps along rows: a sweep makes them from a half's three other parts,
and reads and writes its messages in the same half. Their pixels are in the order of the other half,
in which they are made. Functions of blocks take the bytes of a vector as ``vector``.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from microkernels.common.feature_map import COLUMN_BYTES, ROW_BYTES, round_up

from .problem import MessageDirection, element_type

#: Banks of a vault (thesis, section 5.2).
BANKS = 16
#: DRAM rows by which the pitch exceeds a multiple of all banks.
BANK_SKEW = 9
#: Vectors per record, and number of vectors that an update loads at once.
RECORD_VECTORS = 5
LOADED_VECTORS = 3

#: What a vector of a record is: the message that moves in a direction, data costs, or the sums for
#: sweeps along rows (:mod:`microkernels.bp.sums`).
Kind = MessageDirection | Literal["costs", "sums"]

#: Position of each vector in a record.
PLACE = {
    MessageDirection.UP: 0,
    MessageDirection.DOWN: 1,
    MessageDirection.LEFT: 3,
    MessageDirection.RIGHT: 4,
}
COST_PLACE = 2
#: The same in a record with a sum (:mod:`microkernels.bp.sums`), which follows the data cost, and
#: with a spare vector for messages and sums that nobody reads; the last two messages are one later.
SUM_PLACE = 3
SPARE_PLACE = 6


def vector_stride(labels: int, bits: int) -> int:
    """Bytes from one vector of ``labels`` elements of ``bits`` bits to the next in its record."""
    used = labels * element_type(bits).itemsize
    if used > COLUMN_BYTES:
        return round_up(used, 8)
    return max(8, 1 << (used - 1).bit_length())


def record_stride(labels: int, bits: int, vectors: int = RECORD_VECTORS) -> int:
    """Bytes from one pixel's record of ``vectors`` vectors to the next in its row."""
    used = vectors * vector_stride(labels, bits)
    return round_up(used, ROW_BYTES) if used > ROW_BYTES else 1 << (used - 1).bit_length()


def row_stride(used: int) -> int:
    """Pitch: bytes from a row of pixels with ``used`` bytes of records to the next."""
    skew = BANK_SKEW * ROW_BYTES
    return round_up(max(0, used - skew), BANKS * ROW_BYTES) + skew


#: Side of a block in pixels.
BLOCK = 2
#: Vectors per part (those of a block's pixels), per half of a block, and per block.
PART = BLOCK * BLOCK
_HALF = 4 * PART
BLOCK_VECTORS = 2 * _HALF
#: First vector of each part in a block. Sweeps along rows take the data costs from the first one.
_COSTS = (2 * PART, _HALF)
_MESSAGES = {
    MessageDirection.UP: 0,
    MessageDirection.DOWN: PART,
    MessageDirection.LEFT: _HALF + PART,
    MessageDirection.RIGHT: _HALF + 2 * PART,
}
_SPARE = 3 * PART
#: First vector of the sums for sweeps along rows.
_SUMS = _HALF + _SPARE
#: First vector in a block of the messages along rows, which are two parts.
ROW_MESSAGES = _MESSAGES[MessageDirection.LEFT]


def block_fit(width: int, height: int, labels: int, bits: int) -> bool:
    """Whether blocks suit an image: vectors of at most half a column, an even number of pixels per
    side."""
    even = width % BLOCK == 0 and height % BLOCK == 0
    return even and BLOCK * vector_stride(labels, bits) <= COLUMN_BYTES


def loaded(direction: MessageDirection, vector: int) -> int:
    """Offset in a block of the three parts that a sweep reads."""
    return 0 if direction.horizontal else _HALF * vector


def _place(part: int, x: int, y: int) -> int:
    first, second = (y, x) if part < _HALF else (x, y)
    return part + BLOCK * first + second


def loaded_place(number: int, x: int, y: int, vector: int) -> int:
    """Offset of a vector of pixel (x, y) among the three parts for sweeps along rows and then
    :data:`ROW_MESSAGES`; ``number`` counts parts."""
    along_rows = number < LOADED_VECTORS
    return (_place(0 if along_rows else _HALF, x, y) % _HALF + number * PART) * vector


def message_place(direction: MessageDirection, vector: int) -> int:
    """Offset in a block of the two adjacent messages that arrive at the first two pixels that a
    sweep reaches; those of the other two follow, or precede them if the sweep is reverse."""
    return (_MESSAGES[direction] + (BLOCK if direction.reverse else 0)) * vector


def spare(direction: MessageDirection, vector: int) -> int:
    """Offset in a block of two messages that nobody reads."""
    other = MessageDirection.DOWN if direction.horizontal else MessageDirection.RIGHT
    return loaded(other, vector) + _SPARE * vector


def sums_made(direction: MessageDirection, vector: int) -> tuple[int, int, int]:
    """Offsets in a block for a sweep with sums one axis ahead: of the sums that it reads, of what
    it makes sums from, except messages that moved up in a sweep up, and of the first two sums that
    it makes."""
    half = _HALF if direction.horizontal else 0
    begin = half + (PART if direction is MessageDirection.UP else 0)
    result = _HALF - half + _SPARE + (BLOCK if direction.reverse else 0)
    return (half + _SPARE) * vector, begin * vector, result * vector


def block_views(
    data: NDArray[np.uint8], kind: Kind, size: int, vector: int
) -> list[NDArray[np.uint8]]:
    """Views ``[y, block, x, byte]`` of the vectors of one kind, ``size`` bytes each, in a row of
    blocks; those of data costs are in two places."""
    parts = _COSTS if kind == "costs" else (_SUMS if kind == "sums" else _MESSAGES[kind],)
    blocks = data.reshape(-1, BLOCK_VECTORS, vector)
    views = []
    for part in parts:
        pixels = blocks[:, part : part + PART, :size].reshape(-1, BLOCK, BLOCK, size)
        # Sums have the order of the other half.
        by_rows = (part < _HALF) != (part == _SUMS)
        views.append(pixels.transpose((1, 0, 2, 3) if by_rows else (2, 0, 1, 3)))
    return views
