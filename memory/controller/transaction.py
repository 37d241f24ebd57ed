"""Layouts inside the controller: requests without data."""

from amaranth.lib import data

from hdl.ports import COLUMN_WORDS
from memory.config import VaultConfig

from .starvation import starvation_bound

#: Requests carry the time of their arrival in units of four cycles, modulo 2**14, for the counters.
ARRIVAL_BITS = 14

_WORD_BITS = (COLUMN_WORDS - 1).bit_length()


def slot_bits(config: VaultConfig) -> int:
    """Bits of the number of a write slot."""
    return (config.write_slots - 1).bit_length()


def stamp_bits(config: VaultConfig) -> int:
    """Bits of a stamp. Stamps wrap; they are wide enough that no waiting request is mistaken for a
    younger one (:func:`memory.controller.starvation.starvation_bound`).
    """
    return (2 * starvation_bound(config)).bit_length()


def word_range() -> data.StructLayout:
    """The words of a request within its column.

    Members:
        first (2): first word.
        last (2): last word, included.
    """
    return data.StructLayout({"first": _WORD_BITS, "last": _WORD_BITS})


def bank_entry(config: VaultConfig) -> data.StructLayout:
    """A request for one bank.

    Members:
        row (row_bits): row of the DRAM.
        column (column_bits): column of the row.
        write (1): 1 for a write.
        tag (tag_bits): tag of the request.
        words (:func:`word_range`): words to be read or written.
        slot (slot_bits): place of a write's data in the store.
        stamp (stamp_bits): number of the request in the order of arrival, wrapping.
        arrival (ARRIVAL_BITS): time of arrival (:class:`memory.controller.counters.VaultCounters`);
            no bits without counters.
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
    """A request.

    Members:
        bank (bank_bits): its bank.
        entry (:func:`bank_entry`): the request for the bank.
    """
    return data.StructLayout({"bank": config.bank_bits, "entry": bank_entry(config)})
