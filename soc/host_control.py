"""The host's control port: AXI4-Lite to the control bus."""

from amaranth.lib.wiring import In, Out

from hdl.axi import Axi4Lite
from hdl.component import Component

from .control_bus import ControlLink
from .host_config import HostConfig
from .register_map import MAP_ADDRESS_BITS

__all__ = ["HostControl"]


class HostControl(Component):
    """Subordinate of an AXI4-Lite bus that gives access to the registers of
    :mod:`soc.register_map`.

    Parameters:
        config: what to know of the chip.

    Members:
        axi: :class:`hdl.axi.Axi4Lite`, in.
        first: :class:`soc.control_bus.ControlLink`, out, to the first tile. Its summary is 0.
        last: :class:`soc.control_bus.ControlLink`, in, from the last tile; messages are always
            taken.
        interrupt: out; level, 1 while an enabled interrupt is pending.
    """

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        super().__init__(
            {
                "axi": In(Axi4Lite(address_bits=MAP_ADDRESS_BITS)),
                "first": Out(ControlLink()),
                "last": In(ControlLink()),
                "interrupt": Out(1),
            }
        )
