"""A vault's place in the network: everything between its requesters, its memory and the links."""

from typing import Any

from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import ConfigurationError
from hdl.counters import COUNTER_BITS
from hdl.ports import MemoryPort

from .config import NetworkConfig
from .counters import INDEX_BITS
from .ports import link_members
from .star import MAX_REQUESTERS

__all__ = ["Node"]


class Node(Component):
    """Takes the accesses of a vault's requesters to the vault that they name.

    An access to the own vault passes to ``near`` in the same cycle, changed in nothing but the
    width of its address. One to another vault becomes a packet, reaches ``served`` of that vault's
    node, and its answer comes back. One to a vault that does not exist is answered with ``error``.

    **Order.** All packets of one node to another take the same way on the same virtual channels, so
    accesses of one requester to one column reach the memory in the order of the requests; what the
    memory promises of one port (:class:`hdl.ports.MemoryPort`), the node promises of each.

    **Progress.** Requests of a requester pass in order, so one to a busy vault holds up those
    behind it. Responses pass whatever requests wait for. Every packet arrives in finite time,
    provided that requesters take responses in finite time whether or not their requests are taken,
    that a requester which has offered the first beat of a write offers the others without waiting
    for anything but ``ready``, and that ``near`` and ``served`` are taken and answered in finite
    time. A write is offered at ``served`` only when all its beats have arrived.

    **Time.** Without other traffic, from the last beat of a request at ``ports`` to the first beat
    at ``served``: :data:`REQUEST_CYCLES` and :data:`HOP_CYCLES` a link; back again
    :data:`RESPONSE_CYCLES` and :data:`HOP_CYCLES` a link.

    Parameters:
        config: of the network; the same for all nodes.
        requesters: 1..8.

    Members:
        x, y: in; column and row of the vault. They don't change.
        ports: array of ``requesters`` :class:`hdl.ports.MemoryPort`, in, with
            ``config.chip_address_bits`` and ``config.tag_bits``.
        near: array of as many, out, with ``config.address_bits`` and ``config.tag_bits``, in the
            same order: to the own vault.
        served: :class:`hdl.ports.MemoryPort`, out, with ``config.address_bits`` and
            ``config.tag_bits``: accesses of other vaults to the own vault.
        east_out, east_in and so on: links to the neighbours (:func:`noc.ports.link_members`), for
            :func:`noc.topology.join_nodes`.
        counter_index: in, a :class:`noc.counters.NetworkCounter`. counter_value: out, the cycle
            after; :data:`noc.counters.LAG_CYCLES` behind.

    Raises:
        hdl.config.ConfigurationError: ``requesters`` outside its range.
        noc.deadlock.DeadlockError: packets could wait for each other for ever. No configuration
            that is accepted leads there; it is checked for every one nevertheless.
    """

    def __init__(self, config: NetworkConfig, *, requesters: int) -> None:
        if not 1 <= requesters <= MAX_REQUESTERS:
            raise ConfigurationError(
                f"a node has 1 to {MAX_REQUESTERS} requesters, not {requesters!r}"
            )
        self.config = config
        self.requesters = requesters
        chip = MemoryPort(address_bits=config.chip_address_bits, tag_bits=config.tag_bits)
        vault = MemoryPort(address_bits=config.address_bits, tag_bits=config.tag_bits)
        super().__init__(
            {
                **link_members(config),
                "ports": In(chip).array(requesters),
                "near": Out(vault).array(requesters),
                "served": Out(vault),
                "counter_index": In(INDEX_BITS),
                "counter_value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        for port, near in zip(self.ports, self.near, strict=True):
            m.d.comb += [
                near.request.valid.eq(port.request.valid),
                port.request.ready.eq(near.request.ready),
                *_copy(near.request.payload, port.request.payload),
                port.response.valid.eq(near.response.valid),
                near.response.ready.eq(port.response.ready),
                *_copy(port.response.payload, near.response.payload),
            ]
        return m


def _copy(target: Any, source: Any) -> list[Any]:
    """Assignments of all members; an address loses the vault's number."""
    return [target[name].eq(source[name]) for name, _ in source.shape()]
