"""A part of a vault's memory behind a crossbar, between random requesters and a random memory."""

from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import MemoryPort
from noc.crossbar import Crossbar
from tests.memory.port_play import play_memory, play_requester


class BehindCrossbar(Component):
    """A crossbar, and a part with a ``port`` towards it and one called ``memory``.

    Parameters:
        make: makes the part for the width of the memory's tags.
    """

    def __init__(self, requesters, make, *, address_bits, tag_bits):
        self.crossbar = Crossbar(
            requesters=requesters, address_bits=address_bits, tag_bits=tag_bits
        )
        memory_tag_bits = self.crossbar.memory_tag_bits
        self.part = make(memory_tag_bits)
        port = MemoryPort(address_bits=address_bits, tag_bits=tag_bits)
        memory = MemoryPort(address_bits=address_bits, tag_bits=memory_tag_bits)
        super().__init__({"ports": In(port).array(requesters), "memory": Out(memory)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.crossbar = shared_instance(self.crossbar, platform)
        m.submodules.part = shared_instance(self.part, platform)
        for mine, theirs in zip(self.ports, self.crossbar.ports, strict=True):
            connect(m, flipped(mine), theirs)
        connect(m, self.crossbar.memory, self.part.port)
        connect(m, self.part.memory, flipped(self.memory))
        return m


def run(simulate, vault, memory, requesters):
    """Play ``memory`` and ``requesters`` on a :class:`BehindCrossbar` until all are done."""
    pairs = zip(requesters, vault.ports, strict=True)
    benches = [play_requester(requester, port) for requester, port in pairs]
    simulate(vault, play_memory(memory, vault.memory, requesters), *benches)
