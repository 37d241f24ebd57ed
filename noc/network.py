"""The bare torus of routers, for any devices at the vaults."""

from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component
from hdl.config import ConfigurationError
from hdl.emission import shared_instance
from noc.router.router import Router

from .config import CLASSES, NetworkConfig
from .ports import LinkPort
from .topology import join_nodes


class Network(Component):
    """Routers of all vaults, connected.

    Parameters:
        config: of the network, of at least two vaults.

    Members:
        local_in (in, ``vaults`` :class:`noc.ports.LinkPort`): from each vault: see
            :class:`noc.router.router.Router`.
        local_out (out, ``vaults`` :class:`noc.ports.LinkPort`): to each vault.

    Raises:
        hdl.config.ConfigurationError: a single vault, which has no network.
        noc.deadlock.DeadlockError: see :func:`noc.deadlock.check_deadlock_free`.
    """

    def __init__(self, config: NetworkConfig) -> None:
        if config.vaults < 2:
            raise ConfigurationError("a network has at least two vaults: columns * rows >= 2")
        self.config = config
        local = LinkPort(CLASSES)
        super().__init__(
            {
                "local_in": In(local).array(config.vaults),
                "local_out": Out(local).array(config.vaults),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        routers = [Router(self.config) for _ in range(self.config.vaults)]
        for vault, router in enumerate(routers):
            m.submodules[f"router_{vault}"] = shared_instance(router, platform)
            connect(m, flipped(self.local_in[vault]), router.local_in)
            connect(m, router.local_out, flipped(self.local_out[vault]))
        join_nodes(m, self.config, routers)
        return m
