"""Packet routes: a single description from which routers and deadlock check are built.

The routing is dimension ordered: first along the row to the destination's column, then along the
column, each on the shorter side of the ring. Route and virtual channels depend only on the two
ends, so packets of one class between two vaults can't overtake each other.
"""

from functools import cache
from typing import NamedTuple

from .config import NetworkConfig
from .topology import Direction, neighbour, position

#: Port of a router to its own vault.
LOCAL = "local"


class RingStep(NamedTuple):
    """A step along a ring.

    Attributes:
        forward: towards higher numbers (east, south); otherwise towards lower ones.
        vc: number of the virtual channel of the link within the packet's class.
    """

    forward: bool
    vc: int


class Channel(NamedTuple):
    """A virtual channel of the link that leaves ``vault`` in ``direction``.

    Its number within ``message_class`` is ``vc``.
    """

    vault: int
    direction: Direction
    message_class: int
    vc: int


class PortChannel(NamedTuple):
    """A virtual channel of one class at a router.

    Attributes:
        port: a :class:`noc.topology.Direction`, or :data:`LOCAL`.
        vc: number of the virtual channel, 0..``virtual_channels - 1``; 0 at the local port.
    """

    port: str
    vc: int


class Turn(NamedTuple):
    """A turn of a packet in a router: from an input channel to an output channel."""

    source: PortChannel
    target: PortChannel


def ring_step(size: int, position: int, destination: int, virtual_channels: int) -> RingStep:
    """The step from ``position`` to ``destination`` on a ring.

    If both ways are equally long, even places go forward and odd ones back, which loads all links
    evenly. With two virtual channels, a packet uses channel 1 until it has passed from the last
    place to the first (or back), and channel 0 after that. Channel 1 is then never used after that
    point and channel 0 never across it, so neither forms a cycle.

    Parameters:
        size: places of the ring, at least 2.
        position, destination: different places, 0..``size - 1``.
        virtual_channels: number for each class, 1 or 2.
    """
    distance = (destination - position) % size
    forward = position % 2 == 0 if 2 * distance == size else 2 * distance < size
    passes_end = destination < position if forward else destination > position
    return RingStep(forward, int(passes_end) if virtual_channels > 1 else 0)


def route(
    config: NetworkConfig, source: int, target: int, message_class: int, virtual_channels: int
) -> list[Channel]:
    """The virtual channels of a packet's route, in order; empty from a vault to itself.

    Parameters:
        config: of the network.
        source, target: vaults, 0..``config.vaults - 1``.
        message_class: 0..``noc.config.CLASSES - 1``.
        virtual_channels: number for each class: ``config.virtual_channels``, or another one for a
            comparison.
    """
    channels = []
    vault = source
    while vault != target:
        x, y = position(config, vault)
        to_x, to_y = position(config, target)
        if x != to_x:
            forward, vc = ring_step(config.columns, x, to_x, virtual_channels)
            direction = Direction.EAST if forward else Direction.WEST
        else:
            forward, vc = ring_step(config.rows, y, to_y, virtual_channels)
            direction = Direction.SOUTH if forward else Direction.NORTH
        channels.append(Channel(vault, direction, message_class, vc))
        vault = neighbour(config, vault, direction)
    return channels


@cache
def turns(config: NetworkConfig) -> frozenset[Turn]:
    """The turns a router must support: all that some packet takes at some vault."""
    used = set()
    for source in range(config.vaults):
        for target in range(config.vaults):
            entered = PortChannel(LOCAL, 0)
            for channel in route(config, source, target, 0, config.virtual_channels):
                used.add(Turn(entered, PortChannel(channel.direction, channel.vc)))
                entered = PortChannel(channel.direction.opposite, channel.vc)
            if entered.port != LOCAL:
                used.add(Turn(entered, PortChannel(LOCAL, 0)))
    return frozenset(used)
