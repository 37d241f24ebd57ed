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

*Blocks*, for short vectors. A 16-byte vector fills half a 32-byte column, so the vectors of two
lines, or of two pixels of a line, share a column. A sweep along rows reads vectors of two rows and
writes messages of two rows, a sweep along columns those of two columns. A *block* of 2 x 2 pixels
suits both: its vectors of one kind are read together, and its messages are written two at a time,
each pair into one column::

    up | down | data cost | spare || data cost | left | right | spare

Each part has :data:`PART` bytes, the vectors of the four pixels; four parts are a DRAM row. A sweep
along rows reads the first three parts, a sweep along columns the three after the bars; the data
costs are stored twice. In the first row a part's pixels are in the order ``(x, y), (x + 1, y), (x,
y + 1), (x + 1, y + 1)``; in the second, row and column are exchanged. Either sweep thus finds the
vectors of a line one after the other, and messages that it computes together are neighbours.
Messages that leave the image go to a spare part.
"""

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
#: Bytes per vector, per part (the vectors of a block's pixels), and per block.
_VECTOR = COLUMN_BYTES // 2
PART = BLOCK * BLOCK * _VECTOR
BLOCK_BYTES = 2 * ROW_BYTES
#: First byte of each part in a block. Sweeps along rows take the data costs from the first one.
_COSTS = (2 * PART, ROW_BYTES)
_MESSAGES = {
    MessageDirection.UP: 0,
    MessageDirection.DOWN: PART,
    MessageDirection.LEFT: ROW_BYTES + PART,
    MessageDirection.RIGHT: ROW_BYTES + 2 * PART,
}
_SPARE = 3 * PART
#: First byte in a block of the messages along rows, which are two parts.
ROW_MESSAGES = _MESSAGES[MessageDirection.LEFT]


def block_fit(width: int, height: int, labels: int, bits: int) -> bool:
    """Whether blocks suit an image: 9 to 16 labels of 8 bits, an even number of pixels per side."""
    even = width % BLOCK == 0 and height % BLOCK == 0
    return bits == 8 and vector_stride(labels, bits) == _VECTOR and even


def loaded(direction: MessageDirection) -> int:
    """Offset in a block of the three parts that a sweep reads."""
    return 0 if direction.horizontal else ROW_BYTES


def _place(part: int, x: int, y: int) -> int:
    along_rows = part < ROW_BYTES
    first, second = (y, x) if along_rows else (x, y)
    return part + (BLOCK * first + second) * _VECTOR


def pixel_place(place: MessageDirection | None, x: int, y: int) -> int:
    """Offset in a block of a vector of its pixel (x, y), each 0 or 1.

    Parameters:
        place: of the message that moves in this direction; None: the data costs for sweeps along
            rows.
    """
    part = _COSTS[0] if place is None else _MESSAGES[place]
    return _place(part, x, y)


def loaded_place(number: int, x: int, y: int) -> int:
    """Offset of a vector of pixel (x, y) among the three parts for sweeps along rows and then
    :data:`ROW_MESSAGES`; ``number`` counts parts."""
    along_rows = number < ROW_BYTES // PART - 1
    return _place(0 if along_rows else ROW_BYTES, x, y) % ROW_BYTES + number * PART


def message_place(direction: MessageDirection) -> int:
    """Offset in a block of the two adjacent messages that arrive at the first two pixels that a
    sweep reaches; those of the other two are one column later, or earlier if the sweep is
    reverse."""
    return _MESSAGES[direction] + (COLUMN_BYTES if direction.reverse else 0)


def spare(direction: MessageDirection) -> int:
    """Offset in a block of two messages that nobody reads."""
    return (
        loaded(MessageDirection.DOWN if direction.horizontal else MessageDirection.RIGHT) + _SPARE
    )


def _views(blocks: NDArray[np.uint8], part: int, size: int) -> NDArray[np.uint8]:
    """View ``[y, block, x, byte]`` of a part's vectors, ``size`` bytes each."""
    shape = (len(blocks), BLOCK, BLOCK, _VECTOR)
    vectors = blocks[:, part : part + PART].reshape(shape)[..., :size]
    return vectors.transpose((1, 0, 2, 3) if part < ROW_BYTES else (2, 0, 1, 3))


def fill_blocks(
    data: NDArray[np.uint8], place: MessageDirection | None, rows: NDArray[np.uint8]
) -> None:
    """Put vectors into a row of blocks.

    Parameters:
        data: the blocks' bytes. place: as for :func:`pixel_place`; data costs go to both places.
        rows: ``[y, x, byte]``, the vectors of two rows of pixels.
    """
    blocks = data.reshape(-1, BLOCK_BYTES)
    parts = _COSTS if place is None else (_MESSAGES[place],)
    vectors = rows.reshape(BLOCK, len(blocks), BLOCK, -1)
    for part in parts:
        _views(blocks, part, vectors.shape[-1])[...] = vectors


def read_blocks(
    data: NDArray[np.uint8], place: MessageDirection | None, size: int
) -> NDArray[np.uint8]:
    """The vectors ``[y, x, byte]``, of ``size`` bytes each, of a row of blocks; parameters as for
    :func:`fill_blocks`."""
    blocks = data.reshape(-1, BLOCK_BYTES)
    part = _COSTS[0] if place is None else _MESSAGES[place]
    return np.ascontiguousarray(_views(blocks, part, size)).reshape(BLOCK, -1, size)
