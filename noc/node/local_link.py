"""The link between a router and its vault, at the vault."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.round_robin import RoundRobin
from noc.config import CLASSES, NetworkConfig
from noc.ports import LinkPort, flit
from noc.router.channel_buffer import ChannelBuffer


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
        m.submodules["arbiter"] = shared_instance(arbiter, platform)
        m.d.comb += arbiter.advance.eq(1)
        m.d.sync += self.link.valid.eq(arbiter.grant.any())
        for kind, packets in enumerate(self.packets):
            credits = Signal(
                range(self.config.buffer_flits + 1),
                init=self.config.buffer_flits,
                name=f"credits_{kind}",
            )
            fire = arbiter.grant[kind]
            m.d.comb += [
                arbiter.requests[kind].eq(packets.valid & (credits != 0)),
                packets.ready.eq(fire),
            ]
            m.d.sync += credits.eq(credits + self.link.credit[kind] - fire)
            with m.If(fire):
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
        packet_complete (out, one bit for each class): the first packet has arrived to its last
            flit.
    """

    def __init__(self, config: NetworkConfig) -> None:
        self.config = config
        super().__init__(
            {
                "link": In(LinkPort(CLASSES)),
                "packets": Out(stream.Signature(flit())).array(CLASSES),
                "packet_complete": Out(CLASSES),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        for kind, packets in enumerate(self.packets):
            buffer = ChannelBuffer(
                channels=1, depth=config.buffer_flits, shape=flit(), kind=config.sram
            )
            m.submodules[f"buffer_{kind}"] = shared_instance(buffer, platform)
            push, pop = Signal(name=f"push_{kind}"), Signal(name=f"pop_{kind}")
            packets_stored = Signal(range(config.buffer_flits + 1), name=f"packets_stored_{kind}")
            m.d.comb += [
                push.eq(self.link.valid & (self.link.channel == kind)),
                buffer.write.eq(push),
                buffer.word.eq(self.link.flit),
                packets.valid.eq(buffer.valid[0]),
                packets.payload.eq(buffer.heads[0]),
                pop.eq(packets.valid & packets.ready),
                buffer.pop.eq(pop),
                self.packet_complete[kind].eq(packets_stored != 0),
            ]
            m.d.sync += [
                self.link.credit[kind].eq(pop),
                packets_stored.eq(
                    packets_stored + (push & self.link.flit.last) - (pop & packets.payload.last)
                ),
            ]
        return m
