"""Signatures, layouts and bundles between the units of a processing engine."""

from typing import Any

from amaranth.hdl import Cat, Value, ValueLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.bundle import Bundle
from hdl.ports import BYTE_BITS, COLUMN_BITS
from isa.table import MAX_FX

from .capabilities import Capabilities
from .config import PeConfig
from .extensions.units import extension_members

#: ``error``: the memory answered with an error; ``overflow``: a value loaded is too large for its
#: register, which does not get it.
FAILURE = Bundle(error=1, overflow=1)


class ScratchpadReadPort(wiring.Signature):
    """Read port of the scratchpad, seen from the user.

    Members:
        enable: out; 1 reads the eight bytes from ``address`` on (any alignment; wraps at the end).
        address: out, byte address.
        data: in, byte ``address`` in bits 7:0; valid in the cycle after ``enable`` or one later for
            vector operands (:func:`pe.vector.stages.read_cycles`), and held as long after the next
            one. Of a store, byte ``address`` modulo 8 is in bits 7:0 of the byte of that number
            instead. A byte written in the same cycle as it is read, or the one before, is
            undefined.
        ready: in, only with shared ports (:attr:`pe.config.PeConfig.shared_ports`); the word is
            read in a cycle with it. Of two vector operands, both are or none.
    """

    def __init__(self, config: PeConfig) -> None:
        ready = {"ready": In(1)} if config.shared_ports else {}
        super().__init__(
            {"enable": Out(1), "address": Out(config.scratchpad_bits), "data": In(64), **ready}
        )


class ScratchpadWritePort(wiring.Signature):
    """Write port of the scratchpad, seen from the user.

    Members (out): ``address`` (byte address, any alignment, wraps at the end), ``data`` (its first
    byte in bits 7:0) and ``strobe``, the bytes to write (0: none). Written at the end of the cycle,
    or of the next one. With shared ports also ``rows``, the rows that it asks for, as of
    :func:`rows_between`, at least those with a byte to write (0: none), and ``ready`` (in): a load
    is written in a cycle with it; 1 for results, and with no rows.
    """

    def __init__(self, config: PeConfig) -> None:
        shared = {"rows": Out(2), "ready": In(1)} if config.shared_ports else {}
        super().__init__(
            {"address": Out(config.scratchpad_bits), "data": Out(64), "strobe": Out(8), **shared}
        )


def rows_between(address: Value, first: ValueLike, last: ValueLike) -> Value:
    """Kinds of rows of eight bytes in which the bytes ``first`` to ``last`` (0..7) behind
    ``address`` lie: bit 0 even rows, bit 1 odd ones."""
    one, other = ((address[: BYTE_BITS + 1] + place)[BYTE_BITS] for place in (first, last))
    return Cat(~(one & other), one | other)


def vector_command(config: PeConfig) -> data.StructLayout:
    """A vector instruction with its operands, as issued; all addresses lie in the scratchpad.

    Members:
        kind (operand form), vertical, reduction, pairs, width: :data:`pe.capabilities.OPERATION`.
        result, first, second: scratchpad byte addresses of A, B and C (C unused with ``nop``).
        vl: elements, 1..256. mr: rows, 1..256 (used with a reduction only). fx: 0..63.

    Fields are encoded as :class:`pe.capabilities.Capabilities` of the vector instructions says;
    those that none of them uses have no bits.
    """
    caps = Capabilities.of(config).vector
    address = config.scratchpad_bits if caps else 0
    return data.StructLayout(
        {
            **caps.operation_members,
            "result": address,
            "first": address,
            "second": address if caps.binary else 0,
            "vl": config.vl_bits if caps else 0,
            "mr": config.mr_bits if caps.reduced else 0,
            "fx": MAX_FX.bit_length() if caps.fractions else 0,
        }
    )


def load_store_command(config: PeConfig) -> data.StructLayout:
    """A load or store with its operands, checked to lie in scratchpad and memory.

    Members:
        store, register: direction, and whether it uses a register rather than the scratchpad.
        width: encoding of the element width (used with ``register``).
        dram: first byte in memory. columns: DRAM columns touched, at least 1. last: place of the
            last byte within its column.
        scratchpad: first byte in the scratchpad. entry: the transfer's entry in the ARC.
        index: register to load. value: value to store from a register.

    Members that no instruction of ``config`` needs have no bits. Extensions have further ones.
    """
    value = config.register_width if Capabilities.of(config).registers.stores else 0
    members = {**_transfer(config), "value": value, **extension_members(config, "command")}
    return data.StructLayout(members)


def transfer_layout(config: PeConfig) -> data.StructLayout:
    """:func:`load_store_command` without its ``value`` and the members that extensions have beside
    a transfer."""
    return data.StructLayout(_transfer(config))


def _transfer(config: PeConfig) -> dict[str, Any]:
    caps = Capabilities.of(config)
    memory, transfers = int(bool(caps.memory)), int(bool(caps.transfers))
    return {
        "store": int(bool(caps.loads and caps.stores)),
        "register": int(bool(caps.transfers and caps.registers)),
        "width": caps.registers.width.shape,
        "dram": config.address_bits * memory,
        "columns": config.column_count_bits * transfers,
        "last": COLUMN_BITS * memory,
        "scratchpad": config.scratchpad_bits * transfers,
        "entry": config.entry_bits * transfers,
        "index": config.register_bits if caps.registers.loads else 0,
        **extension_members(config, "transfer"),
    }


def loaded_register(config: PeConfig) -> Bundle:
    """``result_valid``: register ``result_index`` is to become ``result``."""
    return Bundle(result_valid=1, result_index=config.register_bits, result=config.register_width)


def arrival(config: PeConfig) -> Bundle:
    """``arrived``: a column of the load with the ARC's entry ``arrived_entry`` is in the
    scratchpad."""
    return Bundle(arrived=1, arrived_entry=config.entry_bits)


def release(config: PeConfig) -> Bundle:
    """``released``: the store with the ARC's entry ``released_entry`` has read its whole source."""
    return Bundle(released=1, released_entry=config.entry_bits)
