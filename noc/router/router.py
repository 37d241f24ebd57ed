"""The router of a vault: passes flits between the links to its neighbours and its vault."""

from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.lines import cover
from hdl.round_robin import RoundRobin
from noc.config import CLASSES, NetworkConfig
from noc.deadlock import check_deadlock_free
from noc.ports import LinkPort, link_members
from noc.routing import LOCAL, PortChannel, turns
from noc.topology import directions

from .link_input import LinkInput
from .output_channel import OutputChannel
from .route_computation import targets

#: Cycles from a flit on an input link of a router to the same flit on an output link, without
#: competing flits.
HOP_CYCLES = 2


class _Source(NamedTuple):
    """A virtual channel of an input link of the router."""

    port: str
    channel: int


class _Candidate(NamedTuple):
    """A flit of ``source`` that may leave on channel ``channel`` of the link ``port``.

    Attributes:
        eligible: 1 if it may leave in this cycle.
        fire: 1 if it leaves in this cycle.
    """

    source: _Source
    port: str
    channel: int
    eligible: Value
    fire: Value


class Router(Component):
    """Passes packets on, one flit a cycle on each link, by wormhole with virtual channels.

    A flit that arrives is buffered by channel, with the direction of its packet. It leaves in the
    next cycle if no other flit competes. Two arbitrations happen in a cycle. Each input link
    selects, round robin, one of its channels whose flit could leave (the output channel has room,
    and is free if a packet begins). Then each output link selects, round robin, one of the input
    links. A packet keeps its output channel from header to last flit; packets of other channels
    pass between.

    No packet waits forever: the arbiters of channels are fair to packets
    (:class:`noc.router.arbiter.PacketArbiter`), those of links to flits. Requests and responses
    share links, but neither buffers nor channels.

    Parameters:
        config: of the network, of at least two vaults.

    Members:
        x, y, and links to the neighbours: :func:`noc.ports.link_members`.
        local_in (in, :class:`noc.ports.LinkPort` with a channel for each class): from the vault. A
            packet must be for another vault.
        local_out (out, :class:`noc.ports.LinkPort` with a channel for each class): to the vault.

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
        arbiters = {}
        for port, link_in in inputs.items():
            arbiters[port] = RoundRobin(count=link_in.channels)
            m.submodules[f"{port}_input_arbiter"] = shared_instance(arbiters[port], platform)
        candidates = [
            candidate
            for code, target in enumerate(targets(self.config))
            for kind in range(CLASSES)
            for candidate in self._output_channel(m, code, target, kind, inputs, platform)
        ]
        for port in ports:
            leaving = [candidate for candidate in candidates if candidate.port == port]
            self._output(m, port, leaving, inputs, arbiters, platform)
        for port, link_in in inputs.items():
            arbiter = arbiters[port]
            for channel in range(link_in.channels):
                mine = [
                    candidate
                    for candidate in candidates
                    if candidate.source == _Source(port, channel)
                ]
                m.d.comb += [
                    arbiter.requests[channel].eq(
                        Cat(candidate.eligible for candidate in mine).any()
                    ),
                    link_in.pop[channel].eq(Cat(candidate.fire for candidate in mine).any()),
                ]
            m.d.comb += arbiter.advance.eq(link_in.pop.any())
        return m

    def _channel(self, place: PortChannel, kind: int) -> int:
        """Number, on its link, of the channel ``place`` of the class ``kind``."""
        return kind if place.port == LOCAL else kind * self.config.virtual_channels + place.vc

    def _input(self, m: Module, port: str, platform: object) -> LinkInput:
        """The input link at ``port``."""
        channels = CLASSES if port == LOCAL else self.config.channels
        link_in = LinkInput(self.config, channels=channels)
        m.submodules[f"{port}_input"] = shared_instance(link_in, platform)
        m.d.comb += [link_in.x.eq(self.x), link_in.y.eq(self.y)]
        connect(m, flipped(getattr(self, f"{port}_in")), link_in.link)
        return link_in

    def _output_channel(
        self,
        m: Module,
        code: int,
        target: PortChannel,
        kind: int,
        inputs: dict[str, LinkInput],
        platform: object,
    ) -> list[_Candidate]:
        """The candidates for the channel of class ``kind`` at ``target``, whose index in
        :func:`noc.router.route_computation.targets` is ``code``.
        """
        sources = [
            _Source(turn.source.port, self._channel(turn.source, kind))
            for turn in sorted(turns(self.config))
            if turn.target == target
        ]
        channel = self._channel(target, kind)
        unit = OutputChannel(sources=len(sources), credits=self.config.buffer_flits)
        m.submodules[f"{target.port}_channel_{channel}"] = shared_instance(unit, platform)
        candidates = []
        lasts = []
        for number, source in enumerate(sources):
            head: Any = inputs[source.port].heads[source.channel]
            requests_output = inputs[source.port].valid[source.channel] & (head.target == code)
            m.d.comb += [
                unit.header_valid[number].eq(requests_output & head.is_header),
                unit.body_valid[number].eq(requests_output & ~head.is_header),
            ]
            lasts.append(unit.fire[number] & head.flit.last)
            candidates.append(
                _Candidate(source, target.port, channel, unit.eligible[number], unit.fire[number])
            )
        m.d.comb += [
            unit.last.eq(Cat(lasts).any()),
            unit.credit.eq(getattr(self, f"{target.port}_out").credit[channel]),
        ]
        return candidates

    def _output(
        self,
        m: Module,
        port: str,
        candidates: list[_Candidate],
        inputs: dict[str, LinkInput],
        arbiters: dict[str, RoundRobin],
        platform: object,
    ) -> None:
        """The output link at ``port``, with the flits that compete for it."""
        link = getattr(self, f"{port}_out")
        sources = sorted({candidate.source.port for candidate in candidates})
        arbiter = RoundRobin(count=len(sources))
        m.submodules[f"{port}_output_arbiter"] = shared_instance(arbiter, platform)
        requests: dict[str, list[Value]] = {source: [] for source in sources}
        channel = Signal.like(link.channel, name=f"{port}_channel")
        for candidate in candidates:
            request = Signal(
                name=f"{candidate.source.port}_{candidate.source.channel}_requests_{port}_{candidate.channel}"
            )
            grant = arbiter.grant[sources.index(candidate.source.port)]
            m.d.comb += [
                request.eq(
                    candidate.eligible
                    & arbiters[candidate.source.port].grant[candidate.source.channel]
                ),
                candidate.fire.eq(request & grant),
            ]
            with m.If(candidate.fire):
                m.d.comb += channel.eq(candidate.channel)
            requests[candidate.source.port].append(request)
            begin = candidate.source
            others = Cat(one.eligible for one in candidates if one.source != begin).any()
            turn = f"turn {begin.port} {begin.channel} to {port} {candidate.channel}"
            cover(m, f"{turn} alone", candidate.fire & ~others)
            if len({one.source for one in candidates}) > 1:
                cover(m, f"{turn} competing", candidate.fire & others)
        flit: Value = Const(0)
        for number, source in enumerate(sources):
            m.d.comb += arbiter.requests[number].eq(Cat(requests[source]).any())
            selected = _selected(inputs[source], arbiters[source].grant)
            flit = flit | Mux(arbiter.grant[number], selected, 0)
        fire = arbiter.requests.any()
        m.d.comb += arbiter.advance.eq(fire)
        m.d.sync += [link.valid.eq(fire), link.channel.eq(channel), link.flit.eq(flit)]


def _selected(link_in: LinkInput, grant: Value) -> Value:
    """The first flit of the granted channel of ``link_in``."""
    flit: Value = Const(0)
    for channel, head in enumerate(link_in.heads):
        flit = flit | Mux(grant[channel], head.flit.as_value(), 0)
    return flit
