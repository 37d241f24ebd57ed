"""Decoder of accesses to the host's control registers, from the register map."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hdl.axi import AxiResponse
from hdl.component import Component
from isa.table import ISA_VERSION
from soc.chip.control_bus import (
    INDEX_BITS,
    ControlBitmap,
    ControlCommand,
    ControlSpace,
    control_message,
    register_index,
    register_match,
)

from .config import BASE_BITS, PAGE_BYTES, HostConfig
from .register_map import (
    BLOCKS,
    CHIP,
    GROUP_PES,
    IDENTITY,
    MAP_ADDRESS_BITS,
    MAP_VERSION,
    PE,
    VAULT,
)
from .register_types import WORD_BYTES, Block, Register

_DATA_BITS = WORD_BYTES * 8
_BYTE_BITS = (WORD_BYTES - 1).bit_length()
_INTERRUPT_BITS = len(CHIP.register("INTERRUPT_STATUS").fields)

#: Registers of the chip's page that are forwarded to PEs, and their commands.
_COMMANDS = {
    "PROGRAM": ControlCommand.LOAD,
    "PARAMETERS_LOW": ControlCommand.PARAMETERS_LOW,
    "PARAMETERS_HIGH": ControlCommand.PARAMETERS_HIGH,
    "START": ControlCommand.START,
    "STOP": ControlCommand.STOP,
    "SELECT_ALL": ControlCommand.SELECT_ALL,
}
_BITMAPS = {kind.name: kind for kind in ControlBitmap}
_BASES = ("BASE_LOW", "BASE_HIGH")
_BASE_MEMBERS = {
    "base_vault": Out(INDEX_BITS),
    "base": In(BASE_BITS),
    "base_write": Out(len(_BASES)),
}


class HostDecode(Component):
    """Turns an access into a message of the control bus, all in the same cycle.

    A refused access becomes a message without an addressee, with its response.

    Members:
        write (in, 1): 1 for a write.
        address (in, MAP_ADDRESS_BITS): byte address.
        data (in, 32): word to write.
        all_bytes (in, 1): all bytes of ``data`` are to be written.
        fire (in, 1): the access is performed at the end of this cycle.
        message (out, :func:`soc.chip.control_bus.control_message`): the message.
        running (in, 1): for the register ``STATE``.
        faulted (in, 1): for the register ``STATE``.
        interrupt_status (in, one bit for each interrupt): value of the register.
        interrupt_enabled (in, one bit for each interrupt): value of the register.
        interrupt_clear (out, one bit for each interrupt): interrupts to clear.
        interrupt_enable (out, 1): store ``data`` as the enabled interrupts.

    With ``bases`` also ``base_vault`` (out, INDEX_BITS): vault whose base is accessed; ``base``
    (in, 64): its value; ``base_write`` (out, 2): store ``data`` as its low and its high word.
    """

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        super().__init__(
            {
                "write": In(1),
                "address": In(MAP_ADDRESS_BITS),
                "data": In(_DATA_BITS),
                "all_bytes": In(1),
                "fire": In(1),
                "message": Out(control_message()),
                "running": In(1),
                "faulted": In(1),
                "interrupt_status": In(_INTERRUPT_BITS),
                "interrupt_enabled": In(_INTERRUPT_BITS),
                "interrupt_clear": Out(_INTERRUPT_BITS),
                "interrupt_enable": Out(1),
                **(_BASE_MEMBERS if config.bases else {}),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        message: Any = self.message
        response = Signal(AxiResponse, init=AxiResponse.DECERR)
        space = Signal(ControlSpace)
        hits = {}
        for block in BLOCKS:
            inside = Signal(name=f"in_{block.name.lower()}")
            word, page = self._inside(m, block, inside)
            for register in block.registers:
                if register.name in _BASES and not self.config.bases:
                    continue
                name = f"{block.name}_{register.name}".lower()
                hit = Signal(name=f"hit_{name}")
                allowed = Signal(name=f"allowed_{name}")
                index = register_index(register, word)
                m.d.comb += [
                    hit.eq(
                        inside
                        & register_match(register, word)
                        & (index < register_count(self.config, block, register))
                    ),
                    allowed.eq(
                        Mux(
                            self.write,
                            register.access.writable
                            & self.all_bytes
                            & ~self._illegal(block, register, index),
                            register.access.readable,
                        )
                    ),
                ]
                hits[block.name, register.name] = hit & allowed
                with m.If(hit):
                    m.d.comb += response.eq(Mux(allowed, AxiResponse.OKAY, AxiResponse.SLVERR))
                    self._route(m, block, register, space=space, word=word, page=page, index=index)

        m.d.comb += [
            message.write.eq(self.write),
            message.response.eq(response),
            message.space.eq(space),
            message.addressed.eq(space == ControlSpace.CHIP),
        ]
        with m.If(response != AxiResponse.OKAY):
            m.d.comb += [space.eq(ControlSpace.CHIP), message.data.eq(0)]
        with m.If(self.fire & self.write):
            with m.If(hits["CHIP", "INTERRUPT_STATUS"]):
                m.d.comb += self.interrupt_clear.eq(self.data)
            m.d.comb += self.interrupt_enable.eq(hits["CHIP", "INTERRUPT_ENABLE"])
            if self.config.bases:
                m.d.comb += self.base_write.eq(Cat(hits["CHIP", name] for name in _BASES))
        return m

    def _inside(self, m: Module, block: Block, inside: Signal) -> tuple[Value, Value]:
        """Word offset in a page of ``block``, and the page; sets ``inside``."""
        page_bits = (block.page_bytes - 1).bit_length()
        block_bits = page_bits + (block.pages - 1).bit_length()
        page = self.address[page_bits:block_bits]
        pages = {PE: self.config.pe_count, VAULT: self.config.vaults}.get(block, 1)
        m.d.comb += inside.eq(
            (self.address[block_bits:] == block.base >> block_bits) & (page < pages)
        )
        return self.address[_BYTE_BITS:page_bits], page

    def _illegal(self, block: Block, register: Register, index: Value) -> Value:
        """Whether ``data`` can't be written, although the register can."""
        config = self.config
        address_bits = config.pe.address_bits
        data: Value = self.data
        if register.name == "PARAMETERS_LOW":
            return data[min(address_bits, _DATA_BITS) :].any()
        if register.name == "PARAMETERS_HIGH":
            return data[max(address_bits - _DATA_BITS, 0) :].any()
        if register.name == "BASE_LOW":
            return data[: (PAGE_BYTES - 1).bit_length()].any()
        if block is CHIP and register.name == "PROGRAM":
            return index >= config.pe.instruction_words
        if block is CHIP and register.name == "START":
            # More than a power of two: without a chain of carries.
            bit = config.pe.instruction_words.bit_length() - 1
            return ~data.any() | data[bit + 1 :].any() | (data[bit] & data[:bit].any())
        if block is CHIP and register.name == "SELECT":
            last = config.pe_count % GROUP_PES
            if last:
                return (index == config.groups - 1) & data[last:].any()
        return Const(0, 1)

    def _route(
        self,
        m: Module,
        block: Block,
        register: Register,
        *,
        space: Any,
        word: Value,
        page: Value,
        index: Value,
    ) -> None:
        """The message of an access to ``register``."""
        message: Any = self.message
        m.d.comb += message.data.eq(Mux(self.write, self.data, 0))
        if block is not CHIP:
            m.d.comb += [
                space.eq(ControlSpace.PE if block is PE else ControlSpace.VAULT),
                message.index.eq(page),
                message.register.eq(word),
            ]
        elif register.name in _COMMANDS:
            m.d.comb += [
                space.eq(ControlSpace.COMMAND),
                message.index.eq(index),
                message.register.eq(_COMMANDS[register.name]),
            ]
        elif register.name in _BITMAPS:
            m.d.comb += [
                space.eq(ControlSpace.GROUP),
                message.index.eq(index),
                message.register.eq(_BITMAPS[register.name]),
            ]
        else:
            m.d.comb += message.data.eq(self._values()[register.name])
        if register.name in _BASES:
            m.d.comb += self.base_vault.eq(index)

    def _values(self) -> dict[str, Value]:
        """The chip's own registers."""
        running, faulted = CHIP.register("STATE").fields
        bases: dict[str, Value] = {}
        if self.config.bases:
            bases = {
                name: self.base.word_select(half, _DATA_BITS) for half, name in enumerate(_BASES)
            }
        return {
            **{name: Const(value, _DATA_BITS) for name, value in fixed_values(self.config).items()},
            "STATE": (self.running << running.low) | (self.faulted << faulted.low),
            "INTERRUPT_STATUS": self.interrupt_status,
            "INTERRUPT_ENABLE": self.interrupt_enabled,
            **bases,
        }


def register_count(config: HostConfig, block: Block, register: Register) -> int:
    """Registers of an array that a chip has.

    Parameters:
        config: of the host port. block, register: of the register map.
    """
    if block is CHIP and register.name in _BITMAPS:
        return config.groups
    if block is VAULT and register.name.startswith("NETWORK"):
        return config.network_counters
    if register.name in _BASES:
        return config.vaults if config.bases else 0
    return register.count


def fixed_values(config: HostConfig) -> dict[str, int]:
    """The chip's own registers that never change: name -> word of 32 bits.

    Parameters:
        config: of the host port.
    """
    return {
        "IDENTITY": IDENTITY,
        "INSTRUCTION_WORDS": config.pe.instruction_words,
        "SCRATCHPAD_BYTES": config.pe.scratchpad_bytes,
        "VERSION": _word("VERSION", map=MAP_VERSION, isa=ISA_VERSION),
        "GRID": _word("GRID", columns=config.columns, rows=config.rows),
        "PES": _word("PES", total=config.pe_count, per_vault=config.pes),
        "MEMORY": _word(
            "MEMORY", vault_bits=config.vault_address_bits, address_bits=config.address_bits
        ),
        "COUNTERS": _word(
            "COUNTERS",
            pe=config.pe.counters,
            vault=config.vault_counters,
            network=config.network_counters,
        ),
    }


def _word(name: str, **values: int) -> int:
    """The value of a chip register from its fields' values."""
    register = CHIP.register(name)
    return sum(register.field(field).place(value) for field, value in values.items())
