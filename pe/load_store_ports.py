"""Layouts inside the load-store unit and between it and the issue stage."""

from amaranth.lib import data

from hdl.config import PeConfig
from hdl.ports import COLUMN_BYTES, WORD_BITS
from isa.table import WIDTH, Opcode, Width

from .arc import column_count_bits, entry_bits

__all__ = [
    "BYTE_BITS",
    "COLUMN_BITS",
    "load_store_command",
    "load_table_entry",
    "register_widths",
    "transfer_layout",
]

#: Bits of a byte's place in a 64-bit word.
BYTE_BITS = (WORD_BITS // 8 - 1).bit_length()
#: Bits of a byte's place in a DRAM column.
COLUMN_BITS = (COLUMN_BYTES - 1).bit_length()


def load_store_command(config: PeConfig) -> data.StructLayout:
    """A load or store with its operands, checked to lie in scratchpad and memory.

    Members:
        store, register: direction, and whether a register rather than the scratchpad is meant.
        width: encoding of the element width (used with ``register``).
        dram: first byte in memory. columns: DRAM columns touched, at least 1. last: place of the
            last byte within its column.
        scratchpad: first byte in the scratchpad. entry: the transfer's entry in the ARC.
        index: register to load. value: value to store from a register.
    """
    return data.StructLayout({**_transfer(config), "value": WORD_BITS})


def transfer_layout(config: PeConfig) -> data.StructLayout:
    """:func:`load_store_command` without its ``value``."""
    return data.StructLayout(_transfer(config))


def _transfer(config: PeConfig) -> dict[str, int]:
    return {
        "store": 1,
        "register": 1,
        "width": WIDTH.bits,
        "dram": config.address_bits,
        "columns": column_count_bits(config),
        "last": COLUMN_BITS,
        "scratchpad": config.scratchpad_bits,
        "entry": entry_bits(config),
        "index": config.register_bits,
    }


def load_table_entry(config: PeConfig) -> data.StructLayout:
    """What to do with the response to a tag.

    Members:
        store: nothing but to free the tag.
        register: load register ``index`` with an element of ``width``.
        scratchpad: where byte 0 of the first word belongs, even if that byte was not asked for.
        first: place of the first byte wanted within the first word.
        last: place of the last byte wanted within the last word.
        entry: the transfer's entry in the ARC.
    """
    return data.StructLayout(
        {
            "store": 1,
            "register": 1,
            "first": BYTE_BITS,
            "target": data.UnionLayout(
                {
                    "scratchpad": data.StructLayout(
                        {
                            "address": config.scratchpad_bits,
                            "last": BYTE_BITS,
                            "entry": entry_bits(config),
                        }
                    ),
                    "register": data.StructLayout(
                        {"index": config.register_bits, "width": WIDTH.bits}
                    ),
                }
            ),
        }
    )


def register_widths(config: PeConfig, opcode: Opcode) -> tuple[Width, ...]:
    """Widths in which ``config`` has ``ld.reg`` or ``st.reg``, whichever ``opcode`` says."""
    rows = (row for row in config.rows if row.opcode == opcode)
    return tuple(row.width for row in rows if row.width is not None)
