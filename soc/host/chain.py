"""The path of host accesses to DRAM through a chip whose engines only access their own vaults."""

from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import MemoryPort, memory_request, memory_response
from hdl.stream_buffer import StreamBuffer
from noc.config import NetworkConfig
from noc.node.demux import Demux


class HostChain(Component):
    """A vault's place in a chain: extracts accesses to its own vault, and passes others on.

    A beat takes one cycle per place in each direction; one passes per cycle. Accesses to one vault
    keep their order. The requester must accept responses in finite time, whether or not its
    requests are accepted.

    Parameters:
        config: of the vaults: their number, and the widths of addresses and tags.

    Members:
        vault (in, vault_bits): number of the own vault.
        port (in, :class:`hdl.ports.MemoryPort` with ``chip_address_bits``): from the host or the
            previous place.
        local (out, MemoryPort with ``address_bits``): to the own vault.
        following (out, MemoryPort with ``chip_address_bits``): to the next place. The last one's is
            never used, because each answers accesses to vaults that do not exist with ``error``.
    """

    def __init__(self, config: NetworkConfig) -> None:
        self.config = config
        chip = MemoryPort(address_bits=config.chip_address_bits, tag_bits=config.tag_bits)
        local = MemoryPort(address_bits=config.address_bits, tag_bits=config.tag_bits)
        super().__init__(
            {
                "vault": In(config.vault_bits),
                "port": In(chip),
                "local": Out(local),
                "following": Out(chip),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        if config.vaults == 1:
            connect(m, flipped(self.port), flipped(self.local))
            return m
        demux = Demux(config)
        requests = StreamBuffer(shape=memory_request(config.chip_address_bits, config.tag_bits))
        responses = StreamBuffer(shape=memory_response(config.tag_bits))
        m.submodules["demux"] = shared_instance(demux, platform)
        m.submodules.requests = shared_instance(requests, platform)
        m.submodules.responses = shared_instance(responses, platform)
        m.d.comb += demux.vault.eq(self.vault)
        connect(m, flipped(self.port.request), requests.input)
        connect(m, requests.output, demux.port.request)
        connect(m, demux.port.response, responses.input)
        connect(m, responses.output, flipped(self.port.response))
        connect(m, demux.local, flipped(self.local))
        connect(m, demux.remote, flipped(self.following))
        return m
