"""Which pieces of memory go where so that every vault has the inputs of its next layer.

A vault reads from the owners (:mod:`microkernels.networks.cut`), and writes into its own memory
alone. So the moves of one layer, on all vaults at once, do not race.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import KernelError
from microkernels.common.feature_map import FeatureMap
from microkernels.common.fixed_point import ELEMENT_BYTES
from microkernels.nn.dense_layout import Vectors

from .cut import Region
from .stored import InputMaps, OutputMaps

__all__ = ["PIECE_ELEMENTS", "Move", "flat_moves", "flat_order", "map_moves"]

#: Elements of a piece at most.
PIECE_ELEMENTS = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """Pieces of one length, at equal distances in memory.

    Attributes:
        source, target: chip addresses of the first piece.
        source_step, target_step: bytes from a piece to the next one.
        elements: of a piece, 1 to :data:`PIECE_ELEMENTS`.
        count: pieces, at least 1.
    """

    source: int
    target: int
    source_step: int
    target_step: int
    elements: int
    count: int

    def halves(self) -> "tuple[Move, Move]":
        """The first and the second half of the pieces, of at least 2."""
        first = self.count // 2
        return self._part(0, first), self._part(first, self.count)

    def _part(self, first: int, end: int) -> "Move":
        return Move(
            source=self.source + first * self.source_step,
            target=self.target + first * self.target_step,
            source_step=self.source_step,
            target_step=self.target_step,
            elements=self.elements,
            count=end - first,
        )


def _moves(
    source: int, target: int, source_step: int, target_step: int, elements: int, count: int
) -> Iterator[Move]:
    """Moves of ``count`` pieces, which may be longer than a piece."""
    size = elements * ELEMENT_BYTES
    if source_step == target_step == size and count > 1:
        elements, count, size = elements * count, 1, size * count
    whole, rest = divmod(elements, PIECE_ELEMENTS)
    step = PIECE_ELEMENTS * ELEMENT_BYTES
    if count == 1 and whole:
        yield Move(
            source=source,
            target=target,
            source_step=step,
            target_step=step,
            elements=PIECE_ELEMENTS,
            count=whole,
        )
    elif whole:
        for number in range(whole):
            yield Move(
                source=source + number * step,
                target=target + number * step,
                source_step=source_step,
                target_step=target_step,
                elements=PIECE_ELEMENTS,
                count=count,
            )
    if rest:
        yield Move(
            source=source + whole * step,
            target=target + whole * step,
            source_step=source_step,
            target_step=target_step,
            elements=rest,
            count=count,
        )


def map_moves(source: OutputMaps, target: InputMaps, vault: int, constants: int) -> list[Move]:
    """Moves of one vault for the maps that it reads.

    Parameters:
        constants: chip address, in the vault, of :data:`PIECE_ELEMENTS` elements of the value
            around the map.

    Raises:
        KernelError: maps of different sizes, or slices of different depth.
    """
    if source.size != target.size or source.depth != target.depth:
        raise KernelError("a layer's maps must have the size and the slices of its source's")
    region = target.region(vault)
    if region is None:
        return []
    found: list[Move] = []
    size = target.size
    image_region = Region(
        x=0,
        y=0,
        channel=region.channel,
        width=size.width,
        height=size.height,
        channels=region.channels,
    )
    inside = source.inside is not None
    for round_ in range(target.rounds):
        number = target.image(vault, round_)
        if number is None:
            continue
        into = target.map(vault, round_)
        for around in region.without(image_region):
            found += _fill(into, region, around, constants)
        for holder, held, owned in source.holders(number):
            common = region.common(owned)
            if common is None:
                continue
            tile, own = source.tile(holder), source.tile(vault) if inside else None
            assert tile is not None
            pieces = [common] if own is None else common.without(own)
            for piece in pieces:
                found += _copy(source.map(holder, held), tile, into, region, piece)
    return found


def _slices(first: int, channels: int, depth: int) -> range:
    """First channel of each slice of a tile's channels, counted in the map."""
    return range(first, first + channels, depth)


def _copy(
    source: FeatureMap, tile: Region, target: FeatureMap, region: Region, piece: Region
) -> Iterator[Move]:
    depth = source.depth
    for channel in _slices(piece.channel, piece.channels, depth):
        at = source.address(piece.x - tile.x, piece.y - tile.y, channel - tile.channel)
        to = target.address(piece.x - region.x, piece.y - region.y, channel - region.channel)
        yield from _moves(at, to, source.x_step, target.x_step, piece.height * depth, piece.width)


def _fill(target: FeatureMap, region: Region, piece: Region, constants: int) -> Iterator[Move]:
    depth = target.depth
    for channel in _slices(piece.channel, piece.channels, depth):
        at = target.address(piece.x - region.x, piece.y - region.y, channel - region.channel)
        for move in _moves(at, at, target.x_step, target.x_step, piece.height * depth, piece.width):
            yield replace(move, source=constants, source_step=0)


def flat_order(source: OutputMaps) -> NDArray[np.int64]:
    """The order in which :func:`flat_moves` puts the elements of an image: for each place in the
    vector the index of its element, channel by channel and row by row; -1: it holds no element.
    """
    size = source.size
    index = np.arange(size.elements).reshape(size.channels, size.height, size.width)
    index = index.transpose(1, 2, 0)
    found = []
    for _, _, owned in source.holders(0):
        for channel in _slices(owned.channel, owned.channels, source.depth):
            last = min(channel + source.depth, owned.channel + owned.channels)
            part = index[
                owned.y : owned.y + owned.height, owned.x : owned.x + owned.width, channel:last
            ]
            fill = source.depth - (last - channel)
            part = np.pad(part, ((0, 0), (0, 0), (0, fill)), constant_values=-1)
            found.append(part.transpose(1, 0, 2).ravel())
    return np.concatenate(found)


def flat_moves(source: OutputMaps, target: Vectors) -> list[Move]:
    """Moves of one vault for the vectors that it multiplies: all elements of each image, in the
    order of :func:`flat_order`.

    Parameters:
        target: chip addresses in the vault.
    """
    found: list[Move] = []
    for image in range(source.batch):
        to = target.base + image * target.pitch
        for holder, round_, owned in source.holders(image):
            tile = source.tile(holder)
            assert tile is not None
            held = source.map(holder, round_)
            for channel in _slices(owned.channel, owned.channels, source.depth):
                at = held.address(owned.x - tile.x, owned.y - tile.y, channel - tile.channel)
                column = owned.height * source.depth
                step = column * ELEMENT_BYTES
                found += _moves(at, to, held.x_step, step, column, owned.width)
                to += owned.width * step
    return found
