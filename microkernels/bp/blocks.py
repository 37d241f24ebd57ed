"""Layout of pixels with short vectors: blocks of 2 x 2 pixels, which fill columns of DRAM.

A vector of 16 bytes fills half a column of 32. So the vectors of two lines, or of two pixels of a
line, share a column. A sweep along rows reads vectors of two rows and writes messages of two rows,
a sweep along columns those of two columns. A *block* of 2 x 2 pixels suits both: its vectors of a
kind are read at once, and its messages are written two at a time, each pair into one column::

    up | down | data cost | spare || data cost | left | right | spare

Each part has :data:`PART` bytes, the vectors of the four pixels; four parts are a DRAM row. A sweep
along rows reads the first three parts, a sweep along columns the three after the bars; the data
costs are there twice. In the first row the pixels of a part are in the order
``(x, y), (x + 1, y), (x, y + 1), (x + 1, y + 1)``, in the second one row and column are exchanged:
so a sweep finds those of a line one after the other in both, and messages that it makes at a time
are neighbours. Messages that leave the image go to a spare part.
"""

import numpy as np
from numpy.typing import NDArray

from microkernels.common.feature_map import COLUMN_BYTES, ROW_BYTES

from .problem import Direction
from .record import vector_stride

__all__ = [
    "BLOCK",
    "BLOCK_BYTES",
    "PART",
    "ROW_MESSAGES",
    "block_fit",
    "fill_blocks",
    "loaded",
    "loaded_place",
    "message_place",
    "pixel_place",
    "read_blocks",
    "spare",
]

#: Pixels of a side of a block.
BLOCK = 2
#: Bytes of a vector, of the vectors of a block's pixels, and of a block.
_VECTOR = COLUMN_BYTES // 2
PART = BLOCK * BLOCK * _VECTOR
BLOCK_BYTES = 2 * ROW_BYTES
#: First byte of each part in a block. Sweeps along rows take the data costs from the first place.
_COSTS = (2 * PART, ROW_BYTES)
_MESSAGES = {
    Direction.UP: 0,
    Direction.DOWN: PART,
    Direction.LEFT: ROW_BYTES + PART,
    Direction.RIGHT: ROW_BYTES + 2 * PART,
}
_SPARE = 3 * PART
#: First byte in a block of the messages along rows, which are two parts.
ROW_MESSAGES = _MESSAGES[Direction.LEFT]


def block_fit(width: int, height: int, labels: int, bits: int) -> bool:
    """Whether blocks suit an image: 9 to 16 labels of 8 bits, an even number of pixels a side."""
    even = width % BLOCK == 0 and height % BLOCK == 0
    return bits == 8 and vector_stride(labels, bits) == _VECTOR and even


def loaded(direction: Direction) -> int:
    """Offset in a block of the three parts that a sweep reads."""
    return 0 if direction.horizontal else ROW_BYTES


def _place(part: int, x: int, y: int) -> int:
    along_rows = part < ROW_BYTES
    first, second = (y, x) if along_rows else (x, y)
    return part + (BLOCK * first + second) * _VECTOR


def pixel_place(place: Direction | None, x: int, y: int) -> int:
    """Offset in a block of a vector of its pixel (x, y), each 0 or 1.

    Parameters:
        place: of the message that moves so; None: of the data costs, for sweeps along rows.
    """
    part = _COSTS[0] if place is None else _MESSAGES[place]
    return _place(part, x, y)


def loaded_place(number: int, x: int, y: int) -> int:
    """Offset of a vector of pixel (x, y) among the three parts for sweeps along rows and then
    :data:`ROW_MESSAGES`; ``number`` counts parts."""
    along_rows = number < ROW_BYTES // PART - 1
    return _place(0 if along_rows else ROW_BYTES, x, y) % ROW_BYTES + number * PART


def message_place(direction: Direction) -> int:
    """Offset in a block of the two messages, side by side, that arrive at the first two pixels that
    a sweep comes to; those of the other two lie a column after it, or before if it is reverse."""
    return _MESSAGES[direction] + (COLUMN_BYTES if direction.reverse else 0)


def spare(direction: Direction) -> int:
    """Offset in a block of two messages that nobody reads."""
    return loaded(Direction.DOWN if direction.horizontal else Direction.RIGHT) + _SPARE


def _views(blocks: NDArray[np.uint8], part: int, size: int) -> NDArray[np.uint8]:
    """View ``[y, block, x, byte]`` of the vectors of a part, of ``size`` bytes each."""
    shape = (len(blocks), BLOCK, BLOCK, _VECTOR)
    found = blocks[:, part : part + PART].reshape(shape)[..., :size]
    return found.transpose((1, 0, 2, 3) if part < ROW_BYTES else (2, 0, 1, 3))


def fill_blocks(data: NDArray[np.uint8], place: Direction | None, rows: NDArray[np.uint8]) -> None:
    """Put vectors into a row of blocks.

    Parameters:
        data: bytes of the blocks. place: as of :func:`pixel_place`; data costs go to both places.
        rows: ``[y, x, byte]``, the vectors of two rows of pixels.
    """
    blocks = data.reshape(-1, BLOCK_BYTES)
    parts = _COSTS if place is None else (_MESSAGES[place],)
    vectors = rows.reshape(BLOCK, len(blocks), BLOCK, -1)
    for part in parts:
        _views(blocks, part, vectors.shape[-1])[...] = vectors


def read_blocks(data: NDArray[np.uint8], place: Direction | None, size: int) -> NDArray[np.uint8]:
    """The vectors ``[y, x, byte]``, of ``size`` bytes each, of a row of blocks; parameters as of
    :func:`fill_blocks`."""
    blocks = data.reshape(-1, BLOCK_BYTES)
    part = _COSTS[0] if place is None else _MESSAGES[place]
    return np.ascontiguousarray(_views(blocks, part, size)).reshape(BLOCK, -1, size)
