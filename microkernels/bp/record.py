"""How a pixel of belief propagation, and a tile of them, lie in DRAM.

The data of a pixel are one *record* of five vectors of labels, in this order::

    up | down | data cost | left | right        (messages named as in bp_problem.Direction)

A sweep along rows reads the first three, a sweep along columns the last three, so one load of three
vectors fetches all inputs of an update except the message that the previous update produced; the
update then writes one vector of the next record. Vectors of up to 32 bytes are padded to a power of
two of at least 8 bytes and never cross a 32-byte DRAM column; longer ones are padded to a multiple
of 8. Records are padded to a power of two that divides a 256-byte DRAM row, or to a multiple of
rows. For 16 labels of 16 bits a record is one row (160 of 256 bytes used), and each update opens
one row.

Rows of pixels follow each other at a *pitch* of :data:`BANK_SKEW` DRAM rows more than a multiple of
all banks. Neighbouring lines, which are processed at the same time, then lie in different banks in
both directions: eight rows at one column take the banks 0 9 2 11 4 13 6 15, eight columns at one
row the banks 0 to 7 and, one row on, 9 to 16.
"""

from microkernels.common.feature_map import COLUMN_BYTES, ROW_BYTES, round_up

from .problem import Direction, element_type

__all__ = [
    "BANKS",
    "BANK_SKEW",
    "COST_PLACE",
    "LOADED_VECTORS",
    "PLACE",
    "RECORD_VECTORS",
    "record_stride",
    "row_stride",
    "vector_stride",
]

#: Banks of a vault (thesis, section 5.2).
BANKS = 16
#: DRAM rows by which the pitch exceeds a multiple of all banks.
BANK_SKEW = 9
#: Vectors in a record, and how many of them an update loads at once.
RECORD_VECTORS = 5
LOADED_VECTORS = 3

#: Place of each vector in a record.
PLACE = {Direction.UP: 0, Direction.DOWN: 1, Direction.LEFT: 3, Direction.RIGHT: 4}
COST_PLACE = 2


def vector_stride(labels: int, bits: int) -> int:
    """Bytes from a vector of ``labels`` elements of ``bits`` bits to the next one of its record."""
    used = labels * element_type(bits).itemsize
    if used > COLUMN_BYTES:
        return round_up(used, 8)
    return max(8, 1 << (used - 1).bit_length())


def record_stride(labels: int, bits: int) -> int:
    """Bytes from a pixel's record to the next one of its row."""
    used = RECORD_VECTORS * vector_stride(labels, bits)
    return round_up(used, ROW_BYTES) if used > ROW_BYTES else 1 << (used - 1).bit_length()


def row_stride(used: int) -> int:
    """Bytes from a row of pixels with ``used`` bytes of records to the next: the pitch."""
    skew = BANK_SKEW * ROW_BYTES
    return round_up(max(0, used - skew), BANKS * ROW_BYTES) + skew
