"""The chip: tiles in a torus, and the host port."""

from itertools import pairwise
from typing import Any

from amaranth.hdl import Elaboratable, Module, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import Axi4, Axi4Lite
from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import WORD_BITS
from memory.axi.layout import AxiConfig
from noc.topology import join_nodes
from soc.board.serial_host import SerialHost
from soc.host.config import BASE_BITS, HOST_ADDRESS_BITS
from soc.host.control import HostControl
from soc.host.data import HostData
from soc.host.register_map import MAP_ADDRESS_BITS
from soc.tile.vault_memory import memory_member

from .config import ChipConfig
from .tile import ChipTile


class Chip(Component):
    """Vaults with processing engines (PEs) in a torus, driven by a host over AXI (thesis 5.1).

    Vault ``v`` is in column ``v % columns`` and row ``v // columns`` and serves the addresses
    with ``v`` above the address within a vault. PE ``p`` is in vault ``p // pes``. The ring of
    control messages passes the vaults in that order; the host's accesses to DRAM enter at vault 0.

    Parameters:
        config: of the chip.

    Members:
        control (in, :class:`hdl.axi.Axi4Lite`): registers and commands (docs/registers.md of VIP).
        data (in, :class:`hdl.axi.Axi4`): all of the DRAM, from address 0 on (docs/host.md of VIP);
            only with ``host_data`` "axi".
        received (in), sent (out, streams of bytes): from the host and to it
            (:mod:`soc.board.frame`); with "serial", instead of ``control`` and ``data``.
        host_interrupt (out, 1): level, 1 while an enabled interrupt is pending.
        dram or axi (out, by vault, :func:`soc.tile.vault_memory.memory_member`): to each memory
            outside; with "none", the addresses of ``axi`` have BASE_BITS and begin at the vault's
            base.

    Raises:
        noc.deadlock.DeadlockError: at elaboration; see :class:`noc.node.node.Node`.
    """

    def __init__(self, config: ChipConfig) -> None:
        self.config = config
        vault = config.tile.vault
        memory = memory_member(vault)
        if config.host_data == "none":
            assert isinstance(vault, AxiConfig)
            bus = Axi4(address_bits=BASE_BITS, data_bits=vault.data_bits, id_bits=vault.id_bits)
            memory = {"axi": Out(bus)}
        data = Axi4(address_bits=HOST_ADDRESS_BITS, data_bits=WORD_BITS, id_bits=config.axi_id_bits)
        serial = {"received": In(stream.Signature(8)), "sent": Out(stream.Signature(8))}
        control = {"control": In(Axi4Lite(address_bits=MAP_ADDRESS_BITS))}
        ways = {"axi": control | {"data": In(data)}, "serial": serial, "none": control}
        super().__init__(
            {
                **ways[config.host_data],
                "host_interrupt": Out(1),
                **{name: member.array(config.vaults) for name, member in memory.items()},
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        tiles = []
        for vault in range(config.vaults):
            tile = ChipTile(config)
            m.submodules[f"tile_{vault}"] = shared_instance(tile, platform)
            for name in memory_member(config.tile.vault):
                outer, inner = getattr(self, name)[vault], getattr(tile, name)
                if config.host_data != "none":
                    connect(m, flipped(outer), inner)
            m.d.comb += [
                tile.vault.eq(vault),
                tile.first_pe.eq(vault * config.tile.pes),
                tile.pe_count.eq(config.pes),
            ]
            tiles.append(tile)
        if config.remote:
            join_nodes(m, config.network, tiles)
        else:
            for tile, following in pairwise(tiles):
                connect(m, tile.host_next, following.host)

        control: SerialHost | HostControl
        if config.host_data == "serial":
            control = SerialHost(config.host, digest=config.digest)
            m.submodules["serial_host"] = shared_instance(control, platform)
            connect(m, flipped(self.received), control.received)
            connect(m, control.sent, flipped(self.sent))
            connect(m, control.port, tiles[0].host)
        else:
            control = HostControl(config.host)
            m.submodules.host_control = shared_instance(control, platform)
            connect(m, flipped(self.control), control.axi)
        if config.host_data == "none":
            for tile, outer, base in zip(tiles, self.axi, control.bases, strict=True):
                _join_from(m, base, tile.axi, outer)
        if config.host_data == "axi":
            data = HostData(config.host)
            m.submodules.host_data = shared_instance(data, platform)
            connect(m, flipped(self.data), data.axi)
            connect(m, data.port, tiles[0].host)
        m.d.comb += self.host_interrupt.eq(control.host_interrupt)
        ring = [control.first, *(tile.control_output for tile in tiles)]
        ends = [*(tile.control_input for tile in tiles), control.last]
        for start, end in zip(ring, ends, strict=True):
            connect(m, start, end)
        return m


def _join_from(m: Module, base: Value, inner: Any, outer: Any) -> None:
    """Join the bus of a vault, ``inner``, to the chip's, ``outer``, with addresses from ``base``
    on. The base changes only while nothing is in flight, so it may be of another clock."""
    for name, member in inner.signature.members.items():
        mine, theirs = getattr(inner, name), getattr(outer, name)
        if member.flow == In:
            m.d.comb += mine.eq(theirs)
        else:
            m.d.comb += theirs.eq(base + mine if name.endswith("addr") else mine)
