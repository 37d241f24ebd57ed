"""A vault with its processing engines."""

from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component
from hdl.counter_bank import COUNTER_BITS
from hdl.emission import shared_instance
from hdl.ports import MemoryPort
from memory.controller.counters import INDEX_BITS
from pe.core import Pe
from pe.interface import ControlPort

from .config import VaultTileConfig
from .engine_slot import join_engine
from .vault_memory import VaultMemory, memory_counters, memory_member

#: Width of the numbers that identify engines (:class:`pe.interface.IdentityPort`).
IDENTITY_BITS = 16


class VaultTile(Component):
    """Processing engines and their memory, joined by a crossbar (thesis 5.2).

    Engine ``n`` is requester ``n`` of the memory and has the slot ``n``; the extra ports are the
    requesters after the engines. Requesters have the guarantees of
    :class:`soc.tile.vault_memory.VaultMemory`.

    Parameters:
        config: of the tile.

    Members:
        control (out, ``pes`` :class:`pe.interface.ControlPort`): of each engine.
        ports (in, ``extra_ports`` :class:`hdl.ports.MemoryPort`): for the network and the host;
            absent without extra ports. An unused one has all inputs 0.
        dram or axi (out, :func:`soc.tile.vault_memory.memory_member`): to the memory.
        vault (in, IDENTITY_BITS): index of this vault in the chip; 0 if it is alone.
        first_pe (in, IDENTITY_BITS): index in the chip of the engine in slot 0, which the others
            follow; 0 if the vault is alone.
        pe_count (in, IDENTITY_BITS): engines in the chip; those of the vault if it is alone.
        counter_index (in, :class:`memory.controller.counters.VaultCounter`): counter to read.
        counter_value (out, COUNTER_BITS): its value, one cycle after ``counter_index``.

    Attributes:
        counted: the counters that exist.
    """

    def __init__(self, config: VaultTileConfig) -> None:
        self.config = config
        self.counted = memory_counters(config.vault, line_buffer=config.line_buffer)
        port = MemoryPort(
            address_bits=config.vault.request_address_bits, tag_bits=config.port_tag_bits
        )
        extra = {"ports": In(port).array(config.extra_ports)} if config.extra_ports else {}
        super().__init__(
            {
                "control": Out(ControlPort(config.pe)).array(config.pes),
                **extra,
                **memory_member(config.vault),
                "vault": In(IDENTITY_BITS),
                "first_pe": In(IDENTITY_BITS),
                "pe_count": In(IDENTITY_BITS),
                "counter_index": In(INDEX_BITS),
                "counter_value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        memory = VaultMemory.of_tile(config)
        m.submodules.memory = shared_instance(memory, platform)
        for slot in range(config.pes):
            pe = Pe(config.pe)
            m.submodules[f"pe_{slot}"] = shared_instance(pe, platform)
            connect(m, flipped(self.control[slot]), pe.control)
            join_engine(
                m,
                config,
                pe,
                slot,
                memory.ports[slot],
                vault=self.vault,
                first_pe=self.first_pe,
                pe_count=self.pe_count,
            )
        for number in range(config.extra_ports):
            connect(m, flipped(self.ports[number]), memory.ports[config.pes + number])
        for name in memory_member(config.vault):
            connect(m, flipped(getattr(self, name)), getattr(memory, name))
        m.d.comb += [
            memory.counter_index.eq(self.counter_index),
            self.counter_value.eq(memory.counter_value),
        ]
        return m
