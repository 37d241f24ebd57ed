"""Traces of the accesses that an engine makes to its vault's memory, which requesters replay."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import sim_tb
from hdl.ports import COLUMN_BYTES

__all__ = ["TRACE_WORD", "WORD_BYTES", "TracedAccess", "joined", "parted", "trace_end"]

#: The same in C++.
TRACE_WORD = Path(sim_tb.__file__).parent / "models" / "trace_word.h"
#: Bytes of an access in a trace.
WORD_BYTES = 8

_WORDS, _WRITE, _GAP, _ADDRESS = 1, 3, 4, 24
_LONGEST = (1 << (_ADDRESS - _GAP)) - 1


@dataclass(frozen=True, kw_only=True)
class TracedAccess:
    """An access.

    Attributes:
        address: byte address of its first word.
        gap: cycles from the last beat of the access before, as it was taken, to the first offer of
            this one, beyond the first that is possible; 0..1048575, longer ones count as that.
        words: 1..4, of 8 bytes, in one column.
        write: it writes them all.
    """

    address: int
    gap: int
    words: int
    write: bool

    @property
    def word(self) -> int:
        """The access as a number of 64 bits."""
        gap = min(self.gap, _LONGEST) << _GAP
        return self.address << _ADDRESS | gap | self.write << _WRITE | self.words - 1 << _WORDS | 1


def joined(accesses: Sequence[TracedAccess]) -> bytes:
    """A trace, as :attr:`sim_tb.harness.traffic.Pattern.trace` is."""
    return b"".join(access.word.to_bytes(WORD_BYTES, "little") for access in accesses)


def parted(trace: bytes) -> list[TracedAccess]:
    """The accesses of ``trace``, which :func:`joined` has made."""
    words = [
        int.from_bytes(trace[place : place + WORD_BYTES], "little")
        for place in range(0, len(trace), WORD_BYTES)
    ]
    return [
        TracedAccess(
            address=word >> _ADDRESS,
            gap=word >> _GAP & _LONGEST,
            words=(word >> _WORDS & 3) + 1,
            write=bool(word >> _WRITE & 1),
        )
        for word in words
    ]


def trace_end(trace: bytes) -> int:
    """The byte behind the last column that ``trace`` accesses."""
    addresses = np.frombuffer(trace, dtype="<u8") >> _ADDRESS
    return int(addresses.max()) // COLUMN_BYTES * COLUMN_BYTES + COLUMN_BYTES
