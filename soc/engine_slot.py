"""How an engine is joined to its vault: with all of it, or with a window of its own."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Value
from amaranth.lib.wiring import connect

from pe.core import Pe

from .config import VaultTileConfig

__all__ = ["join_engine"]


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
    """Connect memory port and identity of an engine.

    With ``config.windows``, the engine's address 0 is ``slot`` windows of ``2 ** address_bits``
    bytes above the vault's, and it is told that it is alone: PE 0 of 1. So each engine runs the
    same program on what its window holds. An engine stops with a fault rather than access what is
    beyond its address bits, so windows are safe from each other.

    Parameters:
        m: the module whose submodules both are. config: of the tile.
        port: :class:`hdl.ports.MemoryPort`, in.
        vault, first_pe, pe_count: see :class:`soc.vault_tile.VaultTile`.
    """
    m.d.comb += pe.identity.pe_count.eq(1 if config.windows else pe_count)
    if not config.windows:
        connect(m, pe.memory, port)
        m.d.comb += [
            pe.identity.vault.eq(vault),
            pe.identity.slot.eq(slot),
            pe.identity.pe_index.eq(first_pe + slot),
        ]
        return
    request, source = port.request, pe.memory.request
    window = Const(slot, config.vault.request_address_bits - config.pe.address_bits)
    m.d.comb += [
        request.valid.eq(source.valid),
        source.ready.eq(request.ready),
        request.payload.address.eq(Cat(source.payload.address, window)),
        *(
            request.payload[name].eq(source.payload[name])
            for name, _ in request.payload.shape()
            if name != "address"
        ),
    ]
    connect(m, pe.memory.response, port.response)
