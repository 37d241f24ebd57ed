"""Parameters, layouts and counters of the line buffer."""

from enum import IntEnum

from amaranth.lib import data

from hdl.config import ConfigurationError
from hdl.ports import COLUMN_WORDS
from support.checks import Checks

_FEWEST_LINES = 8
#: Each line has a comparator.
MOST_LINES = 128
_MOST_MERGES = 16
_WORD_BITS = (COLUMN_WORDS - 1).bit_length()
_COLUMN_ADDRESS_BITS = 5


class LineCounter(IntEnum):
    """Counters of the line buffer, at numbers that
    :class:`memory.controller.counters.VaultCounter` leaves free.

    They count from reset on; without a line buffer they read 0.
    """

    #: Reads answered from a line.
    LINE_HITS = 11
    #: Reads of a column that was being fetched.
    LINE_MERGED = 12
    #: Columns fetched into a line.
    LINE_FILLS = 13
    #: Lines removed by a write.
    LINE_KILLED = 14
    #: Reads that bypassed the lines: none was free, or too many reads waited.
    LINE_PASSED = 15


def check_lines(lines: int, merges: int) -> None:
    """Check the parameters of a line buffer.

    Parameters:
        lines: 0 (there is none), or a power of two, 8..:data:`MOST_LINES`.
        merges: reads that wait for one column at most, besides the one that fetches it; a power of
            two, 2..16.

    Raises:
        ConfigurationError: a value is outside its range.
    """
    check = Checks(ConfigurationError)
    if type(lines) is not int or lines != 0:
        check.power_of_two("line_buffer", lines, _FEWEST_LINES, MOST_LINES)
    check.power_of_two("line_merges", merges, 2, _MOST_MERGES)


def column_bits(address_bits: int) -> int:
    """Bits of the number of a column."""
    return address_bits - _COLUMN_ADDRESS_BITS


def line_note(lines: int) -> data.StructLayout:
    """The buffer's record of a request in flight.

    Members:
        fill (1): it fetches a column into ``line``.
        line: number of the line.
        direct (1): its requester gets the words as they arrive, from ``first`` to the last.
        first (2): first word that was asked for.
    """
    return data.StructLayout(
        {"fill": 1, "line": (lines - 1).bit_length(), "direct": 1, "first": _WORD_BITS}
    )


def line_answer(lines: int, tag_bits: int) -> data.StructLayout:
    """A read that a line answers.

    Members:
        tag (tag_bits): of the read.
        line: number of the line.
        first, last (2 each): words that were asked for.
        failed (1): the fetch failed; the answer has ``error``.
    """
    return data.StructLayout(
        {
            "tag": tag_bits,
            "line": (lines - 1).bit_length(),
            "first": _WORD_BITS,
            "last": _WORD_BITS,
            "failed": 1,
        }
    )
