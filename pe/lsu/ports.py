"""Layouts inside the load-store unit and between it and the issue stage."""

from typing import Any

from amaranth.hdl import Const, Value
from amaranth.lib import data

from hdl.bundle import Bundle
from hdl.ports import COLUMN_BYTES, WORD_BITS
from isa.table import Opcode, Width
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.frontend.arc import column_count_bits, entry_bits

__all__ = [
    "BYTE_BITS",
    "COLUMN_BITS",
    "FAILURE",
    "FENCED",
    "HISTORY_EVENTS",
    "column_record",
    "fill_beat",
    "is_register",
    "is_store",
    "load_store_command",
    "load_table_entry",
    "loaded_register",
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

    Members that no instruction of ``config`` needs have no bits. With a workspace there are also
    ``lowered``: it is a load from the window; ``final``: of its pieces, it is the last; and
    ``bytes``: its length. With a load history there is also ``recorded``: it is a load of the
    declared image.
    """
    value = config.register_width if Capabilities.of(config).registers.stores else 0
    members = {**_transfer(config), "value": value}
    if config.workspace:
        members["bytes"] = config.scratchpad_bits + 1
    return data.StructLayout(members)


def transfer_layout(config: PeConfig) -> data.StructLayout:
    """:func:`load_store_command` without its ``value`` and its ``bytes``."""
    return data.StructLayout(_transfer(config))


def _transfer(config: PeConfig) -> dict[str, Any]:
    caps = Capabilities.of(config)
    memory, transfers = int(bool(caps.memory)), int(bool(caps.transfers))
    lowered = {"lowered": 1, "final": 1} if config.workspace else {}
    return {
        "store": int(bool(caps.loads and caps.stores)),
        "register": int(bool(caps.transfers and caps.registers)),
        "width": caps.registers.width.shape,
        "dram": config.address_bits * memory,
        "columns": column_count_bits(config) * transfers,
        "last": COLUMN_BITS * memory,
        "scratchpad": config.scratchpad_bits * transfers,
        "entry": entry_bits(config) * transfers,
        "index": config.register_bits if caps.registers.loads else 0,
        **lowered,
        **({"recorded": 1} if config.load_history else {}),
    }


def fill_beat(config: PeConfig) -> data.StructLayout:
    """Zeros for the scratchpad.

    Members:
        address: of the first byte. last: number of bytes less one.
        entry: the load's entry in the ARC. final: nothing of the load follows.

    With a load history also ``data``, the bytes themselves.
    """
    history = {"data": WORD_BITS} if config.load_history else {}
    return data.StructLayout(
        {
            "address": config.scratchpad_bits,
            "last": BYTE_BITS,
            "entry": entry_bits(config),
            "final": 1,
            **history,
        }
    )


def load_table_entry(config: PeConfig) -> data.StructLayout:
    """Entry of the table for the response to a tag.

    Members:
        store: the response only frees the tag.
        register: load register ``index`` with an element of ``width``.
        scratchpad: where byte 0 of the first word belongs, even if that byte was not asked for.
        first: place of the first byte wanted within the first word.
        last: place of the last byte wanted within the last word.
        entry: the transfer's entry in the ARC.

    Members that no instruction of ``config`` needs have no bits. With a load history there are also
    ``recorded``: it is a load of the declared image; ``column``: the number of its column; and
    ``begin``, ``end``: words of the column that hold the first and the last byte wanted.
    """
    caps = Capabilities.of(config)
    word = COLUMN_BITS - BYTE_BITS
    column = {"column": config.address_bits - COLUMN_BITS, "begin": word, "end": word}
    scratchpad = data.StructLayout(
        {"address": config.scratchpad_bits, "last": BYTE_BITS, "entry": entry_bits(config)}
    )
    register = data.StructLayout(
        {"index": config.register_bits, "width": caps.registers.width.shape}
    )
    return data.StructLayout(
        {
            "store": int(bool(caps.loads and caps.stores)),
            "register": int(bool(caps.transfers.loads and caps.registers.loads)),
            "first": BYTE_BITS if caps.loads else 0,
            "target": data.UnionLayout(
                {
                    "scratchpad": scratchpad if caps.transfers.loads else 0,
                    "register": register if caps.registers.loads else 0,
                }
            ),
            **({"recorded": 1, **column} if config.load_history else {}),
        }
    )


def column_record(config: PeConfig) -> Bundle:
    """``record``: of the DRAM column ``column``, the bytes ``first`` to ``last`` are in the
    scratchpad at the end of this cycle; byte 0 belongs to ``place``, even if it is not there."""
    return Bundle(
        record=1,
        column=config.address_bits - COLUMN_BITS,
        place=config.scratchpad_bits,
        first=COLUMN_BITS,
        last=COLUMN_BITS,
    )


#: ``fenced``: ``memfence`` executes; no access is under way.
FENCED = Bundle(fenced=1)
#: ``probed``: a column of the declared image is looked for. ``copied``, ``asked``: that column is
#: copied within the scratchpad, or memory is asked for it.
HISTORY_EVENTS = Bundle(probed=1, copied=1, asked=1)
#: ``error``: the memory answered with an error; ``overflow``: a value loaded is too large for its
#: register, which does not get it.
FAILURE = Bundle(error=1, overflow=1)


def loaded_register(config: PeConfig) -> Bundle:
    """``result_valid``: register ``result_index`` is to become ``result``."""
    return Bundle(result_valid=1, result_index=config.register_bits, result=config.register_width)


def is_store(config: PeConfig, transfer: Any) -> Value:
    """Whether ``transfer``, of one of these layouts, is a store; constant if there is no choice."""
    caps = Capabilities.of(config)
    if caps.loads and caps.stores:
        return Value.cast(transfer.store)
    return Const(int(bool(caps.stores)), 1)


def is_register(config: PeConfig, transfer: Any) -> Value:
    """Whether ``transfer``, of the first two of these layouts, moves a register; likewise."""
    caps = Capabilities.of(config)
    if caps.transfers and caps.registers:
        return Value.cast(transfer.register)
    return Const(int(bool(caps.registers)), 1)


def register_widths(config: PeConfig, opcode: Opcode) -> tuple[Width, ...]:
    """Widths in which ``config`` has ``ld.reg`` or ``st.reg``, whichever ``opcode`` says."""
    rows = (row for row in config.rows if row.opcode == opcode)
    return tuple(row.width for row in rows if row.width is not None)
