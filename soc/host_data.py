"""The host's data port: AXI4 to a memory port."""

from amaranth.lib.wiring import In, Out

from hdl.axi import Axi4
from hdl.component import Component
from hdl.ports import WORD_BITS, MemoryPort

from .host_config import HOST_ADDRESS_BITS, HostConfig

__all__ = ["HostData"]


class HostData(Component):
    """Subordinate of an AXI4 bus that gives access to all of the chip's DRAM.

    Parameters:
        config: what to know of the chip.

    Members:
        axi: :class:`hdl.axi.Axi4`, in; 64 data bits, as the memory port moves no more a cycle.
        port: :class:`hdl.ports.MemoryPort`, out; ``config.address_bits`` and ``config.tag_bits``.
            Responses are always taken.
    """

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        super().__init__(
            {
                "axi": In(
                    Axi4(
                        address_bits=HOST_ADDRESS_BITS,
                        data_bits=WORD_BITS,
                        id_bits=config.id_bits,
                    )
                ),
                "port": Out(MemoryPort(address_bits=config.address_bits, tag_bits=config.tag_bits)),
            }
        )
