"""The link between a router and its vault, at the vault."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import once
from hdl.round_robin import RoundRobin
from noc.config import CLASSES, NetworkConfig
from noc.ports import LinkPort, flit
from noc.router.channel_buffer import ChannelBuffer

__all__ = ["Ejector", "Injector"]


class Injector(Component):
    """Sends packets into the network, the classes in turns, flit by flit.

    Parameters:
        config: of the network.

    Members:
        packets (in, a stream of :func:`noc.ports.flit` for each class): packets to send.
        link (out, :class:`noc.ports.LinkPort`): to the router; a flit is on it in the cycle after
            it is accepted.
    """

    def __init__(self, config: NetworkConfig) -> None:
        self.config = config
        super().__init__(
            {
                "packets": In(stream.Signature(flit())).array(CLASSES),
                "link": Out(LinkPort(CLASSES)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        arbiter = RoundRobin(count=CLASSES)
        m.submodules["chooser"] = once(arbiter, platform)
        m.d.comb += arbiter.advance.eq(1)
        m.d.sync += self.link.valid.eq(arbiter.grant.any())
        for kind, packets in enumerate(self.packets):
            credits = Signal(
                range(self.config.buffer_flits + 1),
                init=self.config.buffer_flits,
                name=f"credits_{kind}",
            )
            goes = arbiter.grant[kind]
            m.d.comb += [
                arbiter.requests[kind].eq(packets.valid & (credits != 0)),
                packets.ready.eq(goes),
            ]
            m.d.sync += credits.eq(credits + self.link.credit[kind] - goes)
            with m.If(goes):
                m.d.sync += [self.link.channel.eq(kind), self.link.flit.eq(packets.payload)]
        return m


class Ejector(Component):
    """Buffers flits from the network, each class in a buffer of its own.

    Parameters:
        config: of the network.

    Members:
        link (in, :class:`noc.ports.LinkPort`): from the router.
        packets (out, a stream of :func:`noc.ports.flit` for each class): a flit is offered from
            the cycle after it was on the link.
        whole (out, one bit for each class): the first packet has arrived to its last flit.
    """

    def __init__(self, config: NetworkConfig) -> None:
        self.config = config
        super().__init__(
            {
                "link": In(LinkPort(CLASSES)),
                "packets": Out(stream.Signature(flit())).array(CLASSES),
                "whole": Out(CLASSES),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        for kind, packets in enumerate(self.packets):
            buffer = ChannelBuffer(
                channels=1, depth=config.buffer_flits, shape=flit(), kind=config.sram
            )
            m.submodules[f"buffer_{kind}"] = once(buffer, platform)
            arrives, leaves = Signal(name=f"arrives_{kind}"), Signal(name=f"leaves_{kind}")
            packets_held = Signal(range(config.buffer_flits + 1), name=f"packets_held_{kind}")
            m.d.comb += [
                arrives.eq(self.link.valid & (self.link.channel == kind)),
                buffer.write.eq(arrives),
                buffer.word.eq(self.link.flit),
                packets.valid.eq(buffer.valid[0]),
                packets.payload.eq(buffer.heads[0]),
                leaves.eq(packets.valid & packets.ready),
                buffer.pop.eq(leaves),
                self.whole[kind].eq(packets_held != 0),
            ]
            m.d.sync += [
                self.link.credit[kind].eq(leaves),
                packets_held.eq(
                    packets_held + (arrives & self.link.flit.last) - (leaves & packets.payload.last)
                ),
            ]
        return m
