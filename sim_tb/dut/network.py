"""Simulators of the network with the vaults' ends in C++, and of a torus of nodes with requesters
and memories in C++."""

from functools import cache
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal

from hdl.emission import emit
from noc.config import NetworkConfig
from noc.network import Network
from noc.node.counters import INDEX_BITS
from noc.node.node import Node
from noc.topology import join_nodes
from sim_tb.harness.memory import MEMORY
from sim_tb.harness.models import ARRAYS, MEMORIES
from sim_tb.harness.network import NETWORK, VAULT
from sim_tb.harness.traffic import REQUESTER, TRAFFIC
from sim_tb.runner.build import Design

from .top import Top, join, surrounded

#: The first nodes, whose counters are read.
COUNTED_NODES = 4


class NetworkTop(Top):
    """A network between the ends of its vaults."""

    name = "vip_network_top"
    models = (NETWORK, VAULT)

    def __init__(self, config: NetworkConfig) -> None:
        self.config = config
        super().__init__()

    def surround(self, m: Module) -> Any:
        network = self.design(m, Network(self.config), "network")
        host = self.model(NETWORK)
        for number in range(self.config.vaults):
            vault = self.model(VAULT, number)
            join(m, network.local_in[number], vault, "in_")
            join(m, network.local_out[number], vault, "out_")
        m.d.comb += self.idle.eq(host.idle)
        return host.reset


class NodesTop(Top):
    """Nodes in a torus, between requesters and memories."""

    name = "vip_nodes_top"
    models = (TRAFFIC, REQUESTER, MEMORY)

    def __init__(self, config: NetworkConfig, requesters: int) -> None:
        self.config = config
        self.requesters = requesters
        super().__init__()

    def surround(self, m: Module) -> Any:
        config = self.config
        host = self.model(TRAFFIC)
        nodes = []
        failed = []
        for vault in range(config.vaults):
            node = self.design(m, Node(config, requesters=self.requesters), "node", f"node_{vault}")
            nodes.append(node)
            for number, port in enumerate(node.ports):
                requester = self.model(REQUESTER, vault * self.requesters + number)
                join(m, port, requester)
                m.d.comb += [
                    requester.reset.eq(host.reset),
                    requester.tags.eq(1 << config.tag_bits),
                ]
            for number, port in enumerate([*node.local, node.served]):
                memory = self.model(MEMORY, vault * (self.requesters + 1) + number)
                join(m, port, memory)
                failed.append(memory.failed)
                # The vault's number above the address selects its part of the common image.
                address = Cat(port.request.payload.address, Const(vault, config.vault_bits))
                m.d.comb += [
                    memory.reset.eq(host.reset),
                    memory.request_address.eq(address),
                ]
            m.d.comb += node.counter_index.eq(host.counter_index)
        join_nodes(m, config, nodes)
        counted = Signal(COUNTED_NODES.bit_length() - 1, reset_less=True)
        m.d.sync += counted.eq(host.counter_index >> INDEX_BITS)
        with m.Switch(counted):
            for number, node in enumerate(nodes[:COUNTED_NODES]):
                with m.Case(number):
                    m.d.comb += host.counter_value.eq(node.counter_value)
        m.d.comb += [host.failed.eq(Cat(failed).any()), self.idle.eq(host.idle)]
        return host.reset


@cache
def network_design(config: NetworkConfig) -> Design:
    """The design of a network's simulator.

    Raises:
        hdl.config.ConfigurationError: a single vault.
    """
    verilog = "".join(emit(Network(config), "network").modules.values())
    return surrounded(NetworkTop(config), {"network.v": verilog}, blocks=("router",))


def nodes_design(config: NetworkConfig, requesters: int) -> Design:
    """The design of the simulator of a torus of ``config`` with ``requesters`` at each node.

    All memories share one image, with a part for each vault.

    Raises:
        hdl.config.ConfigurationError: ``requesters`` outside its range.
    """
    verilog = "".join(emit(Node(config, requesters=requesters), "node").modules.values())
    top = NodesTop(config, requesters)
    return surrounded(top, {"node.v": verilog}, support=(ARRAYS,), control=MEMORIES)
