"""A vault's memory with all its requesters: star and controller."""

from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component
from hdl.config import ConfigurationError
from hdl.counters import COUNTER_BITS
from hdl.emission import once
from hdl.ports import MemoryPort
from memory.config import VaultConfig
from memory.controller import Controller
from memory.counters import INDEX_BITS
from memory.dram_port import DramPort
from noc.star import MAX_REQUESTERS, Star

__all__ = ["VaultMemory"]


class VaultMemory(Component):
    """Serves several requesters from one vault's DRAM (thesis 5.2).

    What a requester may rely on stands in :class:`noc.star.Star` and
    :class:`memory.controller.Controller`. The star adds two cycles to the latency of the latter.

    Parameters:
        config: of the vault; its ``tag_bits`` are those of the controller: a requester's and those
            that number the requesters.
        requesters: 1..8.

    Members:
        ports: array of ``requesters`` :class:`hdl.ports.MemoryPort`, in, with ``tag_bits``.
        dram: :class:`memory.dram_port.DramPort`, out.
        counter_index: in; which :class:`memory.counters.VaultCounter` to read.
        counter_value: out, one cycle after ``counter_index``.

    Attributes:
        tag_bits: tag width of each requester.

    Raises:
        ConfigurationError: ``requesters`` outside its range, or the tags of ``config`` too narrow
            to number them.
    """

    def __init__(self, *, config: VaultConfig, requesters: int) -> None:
        if not 1 <= requesters <= MAX_REQUESTERS:
            raise ConfigurationError(
                f"a vault has 1 to {MAX_REQUESTERS} requesters, not {requesters!r}"
            )
        self.config = config
        self.requesters = requesters
        self.tag_bits = config.tag_bits - (requesters - 1).bit_length()
        if self.tag_bits < 1:
            raise ConfigurationError(
                f"tag_bits must be at least {(requesters - 1).bit_length() + 1} for {requesters} "
                f"requesters, not {config.tag_bits}"
            )
        port = MemoryPort(address_bits=config.request_address_bits, tag_bits=self.tag_bits)
        super().__init__(
            {
                "ports": In(port).array(requesters),
                "dram": Out(DramPort(config)),
                "counter_index": In(INDEX_BITS),
                "counter_value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        star = Star(
            requesters=self.requesters,
            address_bits=self.config.request_address_bits,
            tag_bits=self.tag_bits,
        )
        controller = Controller(self.config)
        m.submodules.star = once(star, platform)
        m.submodules.controller = once(controller, platform)
        connect(m, star.memory, controller.port)
        connect(m, flipped(self.dram), controller.dram)
        for mine, theirs in zip(self.ports, star.ports, strict=True):
            connect(m, flipped(mine), theirs)
        m.d.comb += [
            controller.counter_index.eq(self.counter_index),
            self.counter_value.eq(controller.counter_value),
        ]
        return m
