"""A tile of a chip: a vault with its processing engines, its node of the network, its control."""

from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import MemoryPort
from noc.node.node import Node
from noc.ports import link_members
from noc.topology import directions
from pe.core import Pe
from soc.host.chain import HostChain
from soc.tile.control import TileControl
from soc.tile.engine_slot import join_engine
from soc.tile.vault_memory import VaultMemory, memory_member

from .config import ChipConfig
from .control_bus import INDEX_BITS, ControlLink


class ChipTile(Component):
    """Processing engines (PEs), their vault, and the connections of both to the other tiles
    (thesis 5.1, 5.2).

    Every tile of a chip is this module; inputs give its place. The requesters of its node, and of
    the vault's memory in the same order, are the PEs by slot and then the host; the accesses of
    other vaults are the memory's last requester.

    Parameters:
        config: of the chip.

    Members:
        x, y, and links to the neighbours: see :func:`noc.ports.link_members`. Without
            ``config.remote`` there is ``host_next`` instead.
        host_next (out, :class:`hdl.ports.MemoryPort`): the host's accesses to other vaults, for
            the next tile.
        control_input (in, :class:`soc.chip.control_bus.ControlLink`): from the previous tile.
        control_output (out, ControlLink): to the next tile.
        host (in, :class:`hdl.ports.MemoryPort` with addresses of the chip): from the host or the
            previous tile; all inputs are 0 where it is not connected.
        dram or axi: see :func:`soc.tile.vault_memory.memory_member`.
        vault (in, INDEX_BITS): index of this vault in the chip.
        first_pe (in, INDEX_BITS): index in the chip of the PE in slot 0, which the others follow.
        pe_count (in, INDEX_BITS): PEs of the chip.
    """

    def __init__(self, config: ChipConfig) -> None:
        self.config = config
        network = config.network
        port = MemoryPort(address_bits=network.chip_address_bits, tag_bits=network.tag_bits)
        links = link_members(network) if config.remote else {"host_next": Out(port)}
        super().__init__(
            {
                **links,
                "control_input": In(ControlLink()),
                "control_output": Out(ControlLink()),
                "host": In(port),
                **memory_member(config.tile.vault),
                "vault": In(INDEX_BITS),
                "first_pe": In(INDEX_BITS),
                "pe_count": In(INDEX_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        pes = config.tile.pes
        control = TileControl(pe=config.pe, pes=pes)
        memory = VaultMemory.of_tile(config.tile, beyond_node=config.remote)
        m.submodules.control = shared_instance(control, platform)
        m.submodules.memory = shared_instance(memory, platform)
        for name in memory_member(config.tile.vault):
            connect(m, flipped(getattr(self, name)), getattr(memory, name))
        connect(m, flipped(self.control_input), control.input)
        connect(m, control.output, flipped(self.control_output))
        m.d.comb += [
            control.vault.eq(self.vault),
            control.first_pe.eq(self.first_pe),
            memory.counter_index.eq(control.vault_counter_index),
            control.vault_counter_value.eq(memory.counter_value),
        ]
        if config.remote:
            node = self._node(m, platform)
            connect(m, flipped(self.host), node.ports[pes])
            for local, port in zip([*node.local, node.served], memory.ports, strict=True):
                connect(m, local, port)
            m.d.comb += [
                node.counter_index.eq(control.network_counter_index),
                control.network_counter_value.eq(node.counter_value),
            ]
        else:
            chain = HostChain(config.network)
            m.submodules.chain = shared_instance(chain, platform)
            m.d.comb += chain.vault.eq(self.vault)
            connect(m, flipped(self.host), chain.port)
            connect(m, chain.local, memory.ports[pes])
            connect(m, chain.following, flipped(self.host_next))
        ports = node.ports if config.remote else memory.ports
        for slot in range(pes):
            pe = Pe(config.pe)
            m.submodules[f"pe_{slot}"] = shared_instance(pe, platform)
            connect(m, control.control[slot], pe.control)
            join_engine(
                m,
                config.tile,
                pe,
                slot,
                ports[slot],
                vault=self.vault,
                first_pe=self.first_pe,
                pe_count=self.pe_count,
            )
        return m

    def _node(self, m: Module, platform: object) -> Node:
        """The tile's node in the torus."""
        node = Node(self.config.network, requesters=self.config.tile.pes + 1)
        m.submodules.node = shared_instance(node, platform)
        m.d.comb += [node.x.eq(self.x), node.y.eq(self.y)]
        for direction in directions(self.config.network):
            for link in (f"{direction}_out", f"{direction}_in"):
                connect(m, flipped(getattr(self, link)), getattr(node, link))
        return node
