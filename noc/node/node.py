"""A vault's node in the network, between its requesters, its memory and the links."""

from typing import Any

from amaranth.hdl import Const, Elaboratable, Module, Signal, Value
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component
from hdl.config import ConfigurationError
from hdl.counter_bank import COUNTER_BITS
from hdl.emission import shared_instance
from hdl.ports import MemoryPort
from noc.config import NetworkConfig
from noc.crossbar import MAX_REQUESTERS, Crossbar
from noc.deadlock import check_deadlock_free
from noc.ports import link_members
from noc.router.router import Router
from noc.topology import directions

from .client import Client
from .counters import INDEX_BITS, NetworkCounter, NetworkCounters
from .demux import Demux
from .local_link import Ejector, Injector
from .server import Server

#: Cycles in addition to those on links: see :class:`Node`.
REQUEST_CYCLES = 6
RESPONSE_CYCLES = 6


class Node(Component):
    """Passes the accesses of a vault's requesters to the vault of their address.

    An access to the own vault passes to ``local`` in the same cycle, changed only in the width of
    its address. An access to another vault becomes a packet, reaches ``served`` of that vault's
    node, and its response returns. An access to a vault that does not exist is answered with
    ``error``.

    **Order.** All packets of one node to another take the same route on the same virtual channels,
    so accesses of one requester to one column reach the memory in the order of the requests. Each
    requester has the guarantees of a port of the memory (:class:`hdl.ports.MemoryPort`).

    **Progress.** Requests of a requester pass in order, so a request to a busy vault delays those
    after it. Responses never wait for requests. Every packet arrives in finite time, provided that
    requesters accept responses in finite time whether or not their requests are accepted,
    that a requester which has offered the first beat of a write offers the others without waiting
    for anything but ``ready``, and that ``local`` and ``served`` are accepted and answered in
    finite time. A write is offered at ``served`` only when all its beats have arrived.

    **Time.** Without other traffic, from the last beat of a read at ``ports`` to its beat at
    ``served``: :data:`REQUEST_CYCLES`, and :data:`noc.router.router.HOP_CYCLES` a link. A write
    takes a cycle more for its header, one for each word, and two for a mask. From the first beat of
    a write's response at ``served`` to that at ``ports``: :data:`RESPONSE_CYCLES`, and again
    :data:`noc.router.router.HOP_CYCLES` a link; a read's takes a cycle more.

    Parameters:
        config: of the network; the same for all nodes.
        requesters: 1..16.

    Members:
        x (in, x_bits): column of the vault; constant.
        y (in, y_bits): row of the vault; constant.
        ports (in, ``requesters`` :class:`hdl.ports.MemoryPort` with ``chip_address_bits`` and
            ``tag_bits``): from the requesters.
        local (out, as many with ``address_bits`` and ``tag_bits``): to the own vault, in the same
            order.
        served (out, :class:`hdl.ports.MemoryPort` with ``address_bits`` and ``tag_bits``):
            accesses of other vaults to the own vault.
        east_out, east_in and so on: links to the neighbours (:func:`noc.ports.link_members`), for
            :func:`noc.topology.join_nodes`.
        counter_index (in, INDEX_BITS): :class:`noc.node.counters.NetworkCounter` to read.
        counter_value (out, COUNTER_BITS): its value one cycle later, without the last
            :data:`noc.node.counters.LAG_CYCLES`.

    Raises:
        hdl.config.ConfigurationError: ``requesters`` outside its range.
        noc.deadlock.DeadlockError: packets could wait for each other forever. No accepted
            configuration allows that; every one is checked nevertheless.
    """

    def __init__(self, config: NetworkConfig, *, requesters: int) -> None:
        if not 1 <= requesters <= MAX_REQUESTERS:
            raise ConfigurationError(
                f"a node has 1 to {MAX_REQUESTERS} requesters, not {requesters!r}"
            )
        check_deadlock_free(config)
        self.config = config
        self.requesters = requesters
        chip = MemoryPort(address_bits=config.chip_address_bits, tag_bits=config.tag_bits)
        vault = MemoryPort(address_bits=config.address_bits, tag_bits=config.tag_bits)
        super().__init__(
            {
                **link_members(config),
                "ports": In(chip).array(requesters),
                "local": Out(vault).array(requesters),
                "served": Out(vault),
                "counter_index": In(INDEX_BITS),
                "counter_value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        steps: dict[NetworkCounter, Value] = {NetworkCounter.CYCLES: Const(1, 1)}
        if config.vaults == 1:
            for port, local in zip(self.ports, self.local, strict=True):
                connect(m, flipped(port), flipped(local))
        else:
            crossbar = Crossbar(
                requesters=self.requesters,
                address_bits=config.chip_address_bits,
                tag_bits=config.tag_bits,
            )
            m.submodules["crossbar"] = shared_instance(crossbar, platform)
            self._demuxes(m, crossbar, platform)
            steps |= self._packets(m, crossbar, platform)
            steps[NetworkCounter.REMOTE_REQUESTS] = _ends(crossbar.memory.request)
            steps[NetworkCounter.SERVED_REQUESTS] = _ends(self.served.request)
        local_requests = Signal(range(self.requesters + 1))
        m.d.comb += local_requests.eq(sum(_ends(local.request) for local in self.local))
        steps[NetworkCounter.LOCAL_REQUESTS] = local_requests
        self._counters(m, steps, platform)
        return m

    def _demuxes(self, m: Module, crossbar: Crossbar, platform: object) -> None:
        """Demux the accesses of each requester: to the own vault, or to the crossbar."""
        vault = Signal(self.config.vault_bits)
        m.d.comb += vault.eq(self.y * self.config.columns + self.x)
        for number in range(self.requesters):
            demux = Demux(self.config)
            m.submodules[f"demux_{number}"] = shared_instance(demux, platform)
            m.d.comb += demux.vault.eq(vault)
            connect(m, flipped(self.ports[number]), demux.port)
            connect(m, demux.local, flipped(self.local[number]))
            connect(m, demux.remote, crossbar.ports[number])

    def _packets(
        self, m: Module, crossbar: Crossbar, platform: object
    ) -> dict[NetworkCounter, Value]:
        """Turn accesses into packets and packets into accesses; returns the flits to count."""
        config = self.config
        client = Client(config, tag_bits=crossbar.memory_tag_bits)
        server = Server(config, tag_bits=crossbar.memory_tag_bits)
        injector = Injector(config)
        ejector = Ejector(config)
        router = Router(config)
        for name, part in (
            ("client", client),
            ("server", server),
            ("injector", injector),
            ("ejector", ejector),
            ("router", router),
        ):
            m.submodules[name] = shared_instance(part, platform)
        connect(m, crossbar.memory, client.port)
        connect(m, server.port, flipped(self.served))
        for kind, (sends, takes) in enumerate(
            ((client.requests, server.packets), (server.responses, client.responses))
        ):
            connect(m, sends, injector.packets[kind])
            connect(m, ejector.packets[kind], takes)
        connect(m, injector.link, router.local_in)
        connect(m, router.local_out, ejector.link)
        m.d.comb += [
            server.packet_complete.eq(ejector.packet_complete[0]),
            client.x.eq(self.x),
            client.y.eq(self.y),
            router.x.eq(self.x),
            router.y.eq(self.y),
        ]
        steps: dict[NetworkCounter, Value] = {
            NetworkCounter.SENT_FLITS: injector.link.valid,
            NetworkCounter.RECEIVED_FLITS: router.local_out.valid,
        }
        for direction in directions(config):
            link_in, link_out = f"{direction}_in", f"{direction}_out"
            connect(m, flipped(getattr(self, link_in)), getattr(router, link_in))
            connect(m, getattr(router, link_out), flipped(getattr(self, link_out)))
            steps[NetworkCounter[f"{direction.name}_FLITS"]] = getattr(router, link_out).valid
        return steps

    def _counters(self, m: Module, steps: dict[NetworkCounter, Value], platform: object) -> None:
        """Connect the counters to ``steps``."""
        max_steps = tuple(
            (1 << len(steps[counter])) - 1 if counter in steps else 0 for counter in NetworkCounter
        )
        counters = NetworkCounters(self.config, max_steps=max_steps)
        m.submodules.counters = shared_instance(counters, platform)
        m.d.comb += [
            getattr(counters, f"step_{counter.value}").eq(step) for counter, step in steps.items()
        ]
        m.d.comb += [
            counters.index.eq(self.counter_index),
            self.counter_value.eq(counters.value),
        ]


def _ends(request: Any) -> Value:
    """Whether the last beat of a request is accepted."""
    ends: Value = request.valid & request.ready & request.payload.last
    return ends
