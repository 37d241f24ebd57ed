"""Layouts inside the load-store unit."""

from typing import Any

from amaranth.hdl import Const, Value
from amaranth.lib import data

from hdl.ports import BYTE_BITS
from isa.table import Opcode, Width
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.extensions.units import extension_members


def fill_beat(config: PeConfig) -> data.StructLayout:
    """Bytes for the scratchpad that don't come from a response; empty without an extension.
    :data:`pe.extensions.workspace.WORKSPACE` lists the members."""
    return data.StructLayout(extension_members(config, "fill"))


def load_table_entry(config: PeConfig) -> data.StructLayout:
    """Entry of the table for the response to a tag.

    Members:
        store: the response only frees the tag.
        register: load register ``index`` with an element of ``width``.
        scratchpad: where byte 0 of the first word belongs, even if that byte was not asked for.
        first: place of the first byte wanted within the first word.
        last: place of the last byte wanted within the last word.
        rows, crosses: with shared ports, which know what the next access asks for early: rows of
            the first word (:func:`pe.ports.rows_between`), and whether the last one, if it follows
            another, lies in both kinds.
        entry: the transfer's entry in the ARC.

    Members that no instruction of ``config`` needs have no bits. Extensions have further ones.
    """
    caps = Capabilities.of(config)
    shared = {"rows": 2, "crosses": 1} if config.shared_ports else {}
    scratchpad = data.StructLayout(
        {"address": config.scratchpad_bits, "last": BYTE_BITS, "entry": config.entry_bits, **shared}
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
            **extension_members(config, "entry"),
        }
    )


def is_store(config: PeConfig, transfer: Any) -> Value:
    """Whether ``transfer``, of one of these layouts, is a store; constant if there is no choice."""
    caps = Capabilities.of(config)
    if caps.loads and caps.stores:
        return Value.cast(transfer.store)
    return Const(int(bool(caps.stores)), 1)


def is_register(config: PeConfig, transfer: Any) -> Value:
    """Whether ``transfer`` moves a register; constant if there is no choice."""
    caps = Capabilities.of(config)
    if caps.transfers and caps.registers:
        return Value.cast(transfer.register)
    return Const(int(bool(caps.registers)), 1)


def register_widths(config: PeConfig, opcode: Opcode) -> tuple[Width, ...]:
    """Widths in which ``config`` has ``ld.reg`` or ``st.reg``, whichever ``opcode`` says."""
    rows = (row for row in config.rows if row.opcode == opcode)
    return tuple(row.width for row in rows if row.width is not None)
