"""What the parts of the controller hand to each other: a request without its data."""

from amaranth.lib import data

from hdl.ports import COLUMN_WORDS

from .config import VaultConfig

__all__ = ["ARRIVAL_BITS", "STAMP_BITS", "bank_entry", "slot_bits", "transaction", "word_range"]

#: Bits of a stamp. A request must leave before half of this many later ones have come, which
#: :func:`memory.scheduler.starvation_bound` promises.
STAMP_BITS = 24
#: Requests carry the time of their arrival in units of four cycles, modulo 2**14, for the counters.
ARRIVAL_BITS = 14

_WORD_BITS = (COLUMN_WORDS - 1).bit_length()


def slot_bits(config: VaultConfig) -> int:
    """Bits of a number of a write slot."""
    return (config.write_slots - 1).bit_length()


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
        arrival: time of arrival (:class:`memory.counters.VaultCounters`); no bits without counters.
    """
    return data.StructLayout(
        {
            "row": config.row_bits,
            "column": config.column_bits,
            "write": 1,
            "tag": config.tag_bits,
            "words": word_range(),
            "slot": slot_bits(config),
            "stamp": STAMP_BITS,
            "arrival": ARRIVAL_BITS if config.counters else 0,
        }
    )


def transaction(config: VaultConfig) -> data.StructLayout:
    """A request: its ``bank`` and the :func:`bank_entry` for that."""
    return data.StructLayout({"bank": config.bank_bits, "entry": bank_entry(config)})
