"""The simulator of the network, with the vaults' ends in C++."""

from functools import cache
from typing import Any

from amaranth.hdl import Module

from hdl.emission import emit
from noc.config import NetworkConfig
from noc.network import Network
from sim_tb.harness.network import NETWORK, VAULT
from sim_tb.runner.build import Design

from .top import Top, join, surrounded


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


@cache
def network_design(config: NetworkConfig) -> Design:
    """The design of a network's simulator.

    Raises:
        hdl.config.ConfigurationError: a single vault.
    """
    verilog = "".join(emit(Network(config), "network").modules.values())
    return surrounded(NetworkTop(config), {"network.v": verilog}, blocks=("router",))
