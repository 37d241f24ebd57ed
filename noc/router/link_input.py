"""The end of a link at a router."""

from typing import Any

from amaranth.hdl import Array, Elaboratable, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import shared_instance
from noc.config import NetworkConfig
from noc.packet import destination
from noc.ports import LinkPort, flit

from .channel_buffer import ChannelBuffer
from .route_computation import RouteComputation, targets


def waiting_flit(config: NetworkConfig) -> data.StructLayout:
    """A flit in a router.

    Members:
        flit (:func:`noc.ports.flit`): the flit.
        is_header (1): it is the header of its packet.
        target: output of its packet: index in :func:`noc.router.route_computation.targets`.
    """
    return data.StructLayout(
        {"flit": flit(), "is_header": 1, "target": (len(targets(config)) - 1).bit_length()}
    )


class LinkInput(Component):
    """Buffers the flits of each channel in order, and computes their outputs.

    Parameters:
        config: of the network.
        channels: of the link.

    Members:
        x (in, x_bits): column of the router.
        y (in, y_bits): row of the router.
        link (in, :class:`noc.ports.LinkPort`): from the neighbour or the vault.
        valid (out, channels): channels that hold a flit, from the cycle after it was on the link.
        heads (out, channels x :func:`waiting_flit`): the first flit of each channel.
        pop (in, channels): at most one bit, of a channel that holds a flit: the first leaves. Its
            credit is on the link in the next cycle.
    """

    def __init__(self, config: NetworkConfig, *, channels: int) -> None:
        self.config = config
        self.channels = channels
        super().__init__(
            {
                "x": In(config.x_bits),
                "y": In(config.y_bits),
                "link": In(LinkPort(channels)),
                "valid": Out(channels),
                "heads": Out(waiting_flit(config)).array(channels),
                "pop": In(channels),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        layout = waiting_flit(config)
        buffer = ChannelBuffer(
            channels=self.channels, depth=config.buffer_flits, shape=layout, kind=config.sram
        )
        route = RouteComputation(config)
        m.submodules.buffer = shared_instance(buffer, platform)
        m.submodules["route_computation"] = shared_instance(route, platform)

        header: Any = data.View(
            destination(config), self.link.flit.data[: destination(config).size]
        )
        m.d.comb += [
            route.x.eq(self.x),
            route.y.eq(self.y),
            route.to_x.eq(header.to_x),
            route.to_y.eq(header.to_y),
        ]
        # For each channel, whether the next flit belongs to a packet that has begun, and where
        # that goes.
        in_packet = Signal(self.channels)
        packet_target = [
            Signal(layout.members["target"], name=f"packet_target_{n}")
            for n in range(self.channels)
        ]
        is_body = Signal()
        word: Any = Signal(layout)
        m.d.comb += [
            is_body.eq(Array(in_packet)[self.link.channel]),
            word.flit.eq(self.link.flit),
            word.is_header.eq(~is_body),
            word.target.eq(Mux(is_body, Array(packet_target)[self.link.channel], route.target)),
            buffer.write.eq(self.link.valid),
            buffer.channel.eq(self.link.channel),
            buffer.word.eq(word),
            self.valid.eq(buffer.valid),
            buffer.pop.eq(self.pop),
        ]
        m.d.comb += [output.eq(head) for output, head in zip(self.heads, buffer.heads, strict=True)]
        for number in range(self.channels):
            with m.If(self.link.valid & (self.link.channel == number)):
                m.d.sync += [
                    in_packet[number].eq(~self.link.flit.last),
                    packet_target[number].eq(word.target),
                ]
        m.d.sync += self.link.credit.eq(self.pop)
        return m
