"""The router of a vault: passes flits between the links to its neighbours and its vault."""

from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component
from hdl.emission import once
from hdl.round_robin import RoundRobin
from noc.config import CLASSES, NetworkConfig
from noc.deadlock import check_deadlock_free
from noc.ports import LinkPort, link_members
from noc.routing import LOCAL, PortLane, passages
from noc.topology import directions

from .link_input import LinkInput
from .output_channel import OutputChannel
from .route_computation import targets

__all__ = ["HOP_CYCLES", "Router"]

#: Cycles from a flit on a link into a router to the same flit on the link out of it, when nothing
#: else wants the way.
HOP_CYCLES = 2


class _Source(NamedTuple):
    """A virtual channel of a link into the router."""

    port: str
    channel: int


class _Way(NamedTuple):
    """A flit of ``source`` may go: ``may`` says so, ``goes`` that it does, on the link ``port``,
    channel ``channel``."""

    source: _Source
    port: str
    channel: int
    may: Value
    goes: Value


class Router(Component):
    """Passes packets on, one flit a cycle on each link, by wormhole with virtual channels.

    A flit that arrives is kept in the buffer of its channel, beside the direction of its packet. In
    the next cycle, if nothing else wants the way, it leaves. Two choices are made in a cycle: each
    link in chooses, in turns, among its channels those that could go on (the channel out has room,
    and is free if a packet begins); then each link out chooses, in turns, among the links in. A
    packet keeps its channel out from header to last flit; packets of other channels pass between.

    Nothing waits for ever: packets have turns on each channel (:class:`noc.router.arbiter.Turns`),
    and flits on each link. Requests and responses share links, but neither buffers nor channels.

    Parameters:
        config: of the network, of at least two vaults.

    Members:
        x, y, and links to the neighbours: :func:`noc.ports.link_members`.
        local_in: :class:`noc.ports.LinkPort` with a channel for each class, in: from the vault. A
            packet must be for another vault.
        local_out: the same to the vault, out.

    Raises:
        noc.deadlock.DeadlockError: see :func:`noc.deadlock.check_deadlock_free`.
    """

    def __init__(self, config: NetworkConfig) -> None:
        check_deadlock_free(config)
        self.config = config
        local = LinkPort(CLASSES)
        super().__init__({**link_members(config), "local_in": In(local), "local_out": Out(local)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        ports = [*directions(self.config), LOCAL]
        inputs = {port: self._input(m, port, platform) for port in ports}
        choosers = {}
        for port, link_in in inputs.items():
            choosers[port] = RoundRobin(count=link_in.channels)
            m.submodules[f"choose_{port}_in"] = once(choosers[port], platform)
        ways = [
            way
            for code, target in enumerate(targets(self.config))
            for kind in range(CLASSES)
            for way in self._output_channel(m, code, target, kind, inputs, platform)
        ]
        for port in ports:
            leaving = [way for way in ways if way.port == port]
            self._output(m, port, leaving, inputs, choosers, platform)
        for port, link_in in inputs.items():
            chooser = choosers[port]
            for channel in range(link_in.channels):
                mine = [way for way in ways if way.source == _Source(port, channel)]
                m.d.comb += [
                    chooser.requests[channel].eq(Cat(way.may for way in mine).any()),
                    link_in.pop[channel].eq(Cat(way.goes for way in mine).any()),
                ]
            m.d.comb += chooser.advance.eq(link_in.pop.any())
        return m

    def _channel(self, place: PortLane, kind: int) -> int:
        """Number of the channel of the class ``kind`` at ``place``, on the link that it is on."""
        return kind if place.port == LOCAL else kind * self.config.lanes + place.lane

    def _input(self, m: Module, port: str, platform: object) -> LinkInput:
        """The end of the link that comes in at ``port``."""
        channels = CLASSES if port == LOCAL else self.config.channels
        link_in = LinkInput(self.config, channels=channels)
        m.submodules[f"{port}_input"] = once(link_in, platform)
        m.d.comb += [link_in.x.eq(self.x), link_in.y.eq(self.y)]
        connect(m, flipped(getattr(self, f"{port}_in")), link_in.link)
        return link_in

    def _output_channel(
        self,
        m: Module,
        code: int,
        target: PortLane,
        kind: int,
        inputs: dict[str, LinkInput],
        platform: object,
    ) -> list[_Way]:
        """The ways to the channel of class ``kind`` at ``target``, whose place in
        :func:`noc.router.route_computation.targets` is ``code``."""
        sources = [
            _Source(passage.source.port, self._channel(passage.source, kind))
            for passage in sorted(passages(self.config))
            if passage.target == target
        ]
        channel = self._channel(target, kind)
        unit = OutputChannel(sources=len(sources), credits=self.config.buffer_flits)
        m.submodules[f"{target.port}_channel_{channel}"] = once(unit, platform)
        ways = []
        lasts = []
        for number, source in enumerate(sources):
            head: Any = inputs[source.port].heads[source.channel]
            here = inputs[source.port].valid[source.channel] & (head.target == code)
            m.d.comb += [
                unit.begins[number].eq(here & head.begins),
                unit.continues[number].eq(here & ~head.begins),
            ]
            lasts.append(unit.goes[number] & head.flit.last)
            ways.append(_Way(source, target.port, channel, unit.may[number], unit.goes[number]))
        m.d.comb += [
            unit.last.eq(Cat(lasts).any()),
            unit.credit.eq(getattr(self, f"{target.port}_out").credit[channel]),
        ]
        return ways

    def _output(
        self,
        m: Module,
        port: str,
        ways: list[_Way],
        inputs: dict[str, LinkInput],
        choosers: dict[str, RoundRobin],
        platform: object,
    ) -> None:
        """The link that goes out at ``port``, to which ``ways`` lead."""
        link = getattr(self, f"{port}_out")
        sources = sorted({way.source.port for way in ways})
        chooser = RoundRobin(count=len(sources))
        m.submodules[f"choose_{port}_out"] = once(chooser, platform)
        asks: dict[str, list[Value]] = {source: [] for source in sources}
        channel = Signal.like(link.channel, name=f"{port}_channel")
        for way in ways:
            ask = Signal(name=f"{way.source.port}_{way.source.channel}_asks_{port}_{way.channel}")
            granted = chooser.grant[sources.index(way.source.port)]
            m.d.comb += [
                ask.eq(way.may & choosers[way.source.port].grant[way.source.channel]),
                way.goes.eq(ask & granted),
            ]
            with m.If(way.goes):
                m.d.comb += channel.eq(way.channel)
            asks[way.source.port].append(ask)
        flit: Value = Const(0)
        for number, source in enumerate(sources):
            m.d.comb += chooser.requests[number].eq(Cat(asks[source]).any())
            offered = _chosen(inputs[source], choosers[source].grant)
            flit = flit | Mux(chooser.grant[number], offered, 0)
        goes = chooser.requests.any()
        m.d.comb += chooser.advance.eq(goes)
        m.d.sync += [link.valid.eq(goes), link.channel.eq(channel), link.flit.eq(flit)]


def _chosen(link_in: LinkInput, grant: Value) -> Value:
    """The first flit of the channel of ``link_in`` whose bit is set in ``grant``."""
    flit: Value = Const(0)
    for channel, head in enumerate(link_in.heads):
        flit = flit | Mux(grant[channel], head.flit.as_value(), 0)
    return flit
