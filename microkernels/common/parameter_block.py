"""The parameter block of layers: one 64-bit word for each PE of the vault, the address of that PE's
part; what the part holds is the kernel's business."""

from collections.abc import Sequence

import numpy as np

from .builder import WORD_BYTES

__all__ = ["block_bytes", "block_size"]


def block_size(parts: Sequence[int]) -> int:
    """Bytes of a parameter block with parts of so many words."""
    return WORD_BYTES * (len(parts) + sum(parts))


def block_bytes(base: int, parts: Sequence[Sequence[int]]) -> bytes:
    """The parameter block at address ``base`` for PEs with these words, by slot."""
    starts = np.cumsum([0, *(len(part) for part in parts)])[:-1] + len(parts)
    table = [base + WORD_BYTES * int(start) for start in starts]
    return np.array([*table, *(word for part in parts for word in part)], "<i8").tobytes()
