"""What the parts of the controller hand to each other: a request without its data."""

from amaranth.lib import data

from hdl.ports import COLUMN_WORDS
from memory.config import VaultConfig

from .starvation import starvation_bound

__all__ = ["ARRIVAL_BITS", "bank_entry", "slot_bits", "stamp_bits", "transaction", "word_range"]

#: Requests carry the time of their arrival in units of four cycles, modulo 2**14, for the counters.
ARRIVAL_BITS = 14

_WORD_BITS = (COLUMN_WORDS - 1).bit_length()


def slot_bits(config: VaultConfig) -> int:
    """Bits of a number of a write slot."""
    return (config.write_slots - 1).bit_length()


def stamp_bits(config: VaultConfig) -> int:
    """Bits of a stamp. Stamps wrap, but no request waits while so many others come that an older
    one could be taken for a younger."""
    return (2 * starvation_bound(config)).bit_length()


def word_range() -> data.StructLayout:
    """The words of a column that a request is for: ``first`` to ``last``, both included."""
    return data.StructLayout({"first": _WORD_BITS, "last": _WORD_BITS})


def bank_entry(config: VaultConfig) -> data.StructLayout:
    """A request for one bank.

    Members:
        row, column: of the DRAM.
        write: 1 for a write.
        tag: of the request.
        words: :func:`word_range` to be read or written.
        slot: of a write: where its data is.
        stamp: number of the request in the order of arrival, wrapping.
        arrival: time of arrival (:class:`memory.controller.counters.VaultCounters`); no bits
            without counters.
    """
    return data.StructLayout(
        {
            "row": config.row_bits,
            "column": config.column_bits,
            "write": 1,
            "tag": config.tag_bits,
            "words": word_range(),
            "slot": slot_bits(config),
            "stamp": stamp_bits(config),
            "arrival": ARRIVAL_BITS if config.counters else 0,
        }
    )


def transaction(config: VaultConfig) -> data.StructLayout:
    """A request: its ``bank`` and the :func:`bank_entry` for that."""
    return data.StructLayout({"bank": config.bank_bits, "entry": bank_entry(config)})
