"""Connects an engine to its vault: to all of it, or to its own window."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Value

from pe.core import Pe

from .config import VaultTileConfig


def join_engine(
    m: Module,
    config: VaultTileConfig,
    pe: Pe,
    slot: int,
    port: Any,
    *,
    vault: Value,
    first_pe: Value,
    pe_count: Value,
) -> None:
    """Connect memory port and identity of an engine. If the port's tags have more bits than the
    engine's, the additional bits are 0.

    With ``config.windows``, the engine's address 0 is ``slot`` windows of ``2 ** address_bits``
    bytes above the vault's, and its identity is PE 0 of 1. So each engine runs the same program on
    its window's data. An access beyond its address bits faults, so windows are isolated from each
    other.

    Parameters:
        m: the module whose submodules both are.
        config: of the tile.
        port (in, :class:`hdl.ports.MemoryPort`): of the memory.
        vault, first_pe, pe_count: see :class:`soc.tile.tile.VaultTile`.
    """
    m.d.comb += pe.identity.pe_count.eq(1 if config.windows else pe_count)
    address = pe.memory.request.payload.address
    if config.windows:
        bits = config.vault.request_address_bits - config.pe.address_bits
        address = Cat(address, Const(slot, bits))
    else:
        m.d.comb += [
            pe.identity.vault.eq(vault),
            pe.identity.slot.eq(slot),
            pe.identity.pe_index.eq(first_pe + slot),
        ]
    _join_streams(m, pe.memory.request, port.request, address=address)
    _join_streams(m, port.response, pe.memory.response)


def _join_streams(m: Module, source: Any, sink: Any, **other: Value) -> None:
    """Connect two streams with members of the same names, ``other`` instead of the source's."""
    m.d.comb += [
        sink.valid.eq(source.valid),
        source.ready.eq(sink.ready),
        *(
            sink.payload[name].eq(other.get(name, source.payload[name]))
            for name, _ in sink.payload.shape()
        ),
    ]
