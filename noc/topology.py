"""The torus: positions of the vaults, and their links."""

from enum import StrEnum
from typing import Any, NamedTuple

from amaranth.hdl import Module
from amaranth.lib.wiring import connect

from .config import NetworkConfig


class Direction(StrEnum):
    """Direction of a link: east to the next column, south to the next row, cyclically."""

    EAST = "east"
    WEST = "west"
    NORTH = "north"
    SOUTH = "south"

    @property
    def opposite(self) -> "Direction":
        """The direction back."""
        return _OPPOSITE[self]


_OPPOSITE = {
    Direction.EAST: Direction.WEST,
    Direction.WEST: Direction.EAST,
    Direction.NORTH: Direction.SOUTH,
    Direction.SOUTH: Direction.NORTH,
}
_STEP = {
    Direction.EAST: (1, 0),
    Direction.WEST: (-1, 0),
    Direction.NORTH: (0, -1),
    Direction.SOUTH: (0, 1),
}


class Link(NamedTuple):
    """A link of the torus, from the vault ``source`` in ``direction`` to the vault ``target``."""

    source: int
    direction: Direction
    target: int


def directions(config: NetworkConfig) -> tuple[Direction, ...]:
    """The directions in which links leave each vault; none along a ring of one."""
    horizontal = (Direction.EAST, Direction.WEST) if config.columns > 1 else ()
    vertical = (Direction.NORTH, Direction.SOUTH) if config.rows > 1 else ()
    return horizontal + vertical


def position(config: NetworkConfig, vault: int) -> tuple[int, int]:
    """Column and row of ``vault``, 0..``config.vaults - 1``."""
    return vault % config.columns, vault // config.columns


def neighbour(config: NetworkConfig, vault: int, direction: Direction) -> int:
    """The vault at the other end of the link of ``vault`` in ``direction``."""
    x, y = position(config, vault)
    step_x, step_y = _STEP[direction]
    return (x + step_x) % config.columns + (y + step_y) % config.rows * config.columns


def links(config: NetworkConfig) -> tuple[Link, ...]:
    """All links, by vault. In a ring of two, two links lead from each vault to the other."""
    return tuple(
        Link(vault, direction, neighbour(config, vault, direction))
        for vault in range(config.vaults)
        for direction in directions(config)
    )


def join_nodes(m: Module, config: NetworkConfig, nodes: list[Any]) -> None:
    """Connect nodes to a torus and give each its place.

    Parameters:
        m: the module whose submodules the nodes are.
        config: of the network.
        nodes: by vault, components with the members ``x``, ``y`` and those of
            :func:`noc.ports.link_members`.
    """
    for vault, node in enumerate(nodes):
        x, y = position(config, vault)
        m.d.comb += [node.x.eq(x), node.y.eq(y)]
    for link in links(config):
        sender = getattr(nodes[link.source], f"{link.direction}_out")
        receiver = getattr(nodes[link.target], f"{link.direction.opposite}_in")
        connect(m, sender, receiver)
