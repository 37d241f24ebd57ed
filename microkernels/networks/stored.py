"""Feature maps that lie in the vaults of a chip, each vault's tile at the same offset, and the
allocation of these offsets."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from microkernels.common.errors import CHECK
from microkernels.common.feature_map import ROW_BYTES, FeatureMap, PartMap, StripMap, round_up
from microkernels.common.fixed_point import ELEMENT, LOWEST, Elements
from microkernels.common.memory import Readable, Writable
from microkernels.runtime.ring import VaultRing

from .sizes import MapCut, MapRegion, MapSize, Size2

__all__ = ["ALIGNMENT", "ALWAYS", "InputMaps", "OutputMaps", "Places", "Tiles", "Windows", "inside"]

#: A time after all others.
ALWAYS = 1 << 30
#: Alignment of places: bytes of a row in each of the 16 banks of a vault (thesis, section 5.2).
ALIGNMENT = 16 * ROW_BYTES


@dataclass(frozen=True)
class _Taken:
    first: int
    end: int
    start: int
    last: int


class Places:
    """Allocates offsets within a vault: each at the lowest that is free throughout its lifetime.

    Attributes:
        end: first byte after all that was allocated.
    """

    def __init__(self) -> None:
        self._taken: list[_Taken] = []
        self.end = 0

    def take(self, size: int, *, start: int = 0, last: int = ALWAYS) -> int:
        """Offset, a multiple of :data:`ALIGNMENT`, of ``size`` bytes (0 or more) that are in use
        from time ``start`` to ``last``, both included.

        Raises:
            KernelError: a value outside its range.
        """
        CHECK.at_least("size", size, 0)
        CHECK.at_least("last", last, start)
        at = 0
        for neighbour in sorted(self._taken, key=lambda place: place.first):
            if neighbour.start <= last and start <= neighbour.last:
                if at + size <= neighbour.first:
                    break
                at = max(at, round_up(neighbour.end, ALIGNMENT))
        self._taken.append(_Taken(at, at + size, start, last))
        self.end = max(self.end, at + size)
        return at


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Which pixels of its input a layer reads for an output: windows as of a convolution.

    Attributes:
        kernel, stride: of the layer.
        left, top: pixels around the map before its first ones.
        around: value of the pixels around the map.
        parted: a vault reads the channels that it writes, else all.
    """

    kernel: Size2
    stride: Size2
    left: int = 0
    top: int = 0
    around: int = 0
    parted: bool = False

    def region(self, tile: MapRegion, channels: int) -> MapRegion:
        """The region that is read for the outputs in ``tile``."""
        return MapRegion(
            x=tile.x * self.stride.width - self.left,
            y=tile.y * self.stride.height - self.top,
            channel=tile.channel if self.parted else 0,
            width=(tile.width - 1) * self.stride.width + self.kernel.width,
            height=(tile.height - 1) * self.stride.height + self.kernel.height,
            channels=tile.channels if self.parted else channels,
        )


class Tiles(NamedTuple):
    """The tiles of a map: how it is cut, its size, and the channels in a slice of it."""

    cut: MapCut
    size: MapSize
    depth: int


@lru_cache(maxsize=1 << 16)
def inside(tiles: Tiles, outputs: Tiles, windows: Windows, channels: int, vaults: int) -> bool:
    """Whether each vault's tile lies in the region that it reads for its tile of ``outputs``.

    Parameters:
        windows: that are read. channels: of the map that is read.
    """
    for vault in range(vaults):
        tile = tiles.cut.tile(tiles.size, tiles.depth, vault)
        read = outputs.cut.tile(outputs.size, outputs.depth, vault)
        if (tile is None) != (read is None):
            return False
        if tile is None or read is None:
            continue
        region = windows.region(read, channels)
        place, other_place = tiles.cut.place(vault), outputs.cut.place(vault)
        assert place is not None
        assert other_place is not None
        if place.image != other_place.image or region.common(tile) != tile:
            return False
        if (region.channel, region.channels) != (tile.channel, tile.channels):
            return False
    return True


@dataclass(frozen=True, kw_only=True)
class _Maps(ABC):
    """Common part of the maps of a layer's input and output.

    Attributes:
        ring: of the vaults.
        size: of the map. batch: images.
        cut, cut_size, cut_depth: of the output of the layer that reads or writes the map, its size,
            and the channels in a slice of it.
        depth: channels in a slice of this map.
        offsets: within each vault, of the tile of each round: of the first ``cut.images`` images,
            of the next ones, and so on.
    """

    ring: VaultRing
    size: MapSize
    batch: int
    cut: MapCut
    cut_size: MapSize
    cut_depth: int
    depth: int
    offsets: tuple[int, ...]

    @property
    def rounds(self) -> int:
        """Rounds in which the vaults go through the batch."""
        return -(-self.batch // self.cut.images)

    def image(self, vault: int, round_: int) -> int | None:
        """The image of a vault in a round; None: it has none."""
        place = self.cut.place(vault)
        number = None if place is None else round_ * self.cut.images + place.image
        return None if number is None or number >= self.batch else number

    def tile(self, vault: int) -> MapRegion | None:
        """Region of the output that the vault computes; None: it has no work."""
        return self.cut.tile(self.cut_size, self.cut_depth, vault)

    @cached_property
    def whole_tile(self) -> MapSize:
        """Size of the tiles of the output, in the vaults with most channels."""
        return self.cut.tile_size(self.cut_size, self.cut_depth)

    @cached_property
    def _maps(self) -> dict[tuple[int, int], FeatureMap]:
        return {}

    def map(self, vault: int, round_: int) -> FeatureMap:
        """The map of a vault, without pixels around it: those that a layer reads are in it."""
        place = (vault, round_)
        if place not in self._maps:
            self._maps[place] = self._map(vault, round_)
        return self._maps[place]

    @abstractmethod
    def _map(self, vault: int, round_: int) -> FeatureMap:
        """:meth:`map`, which keeps it."""


@dataclass(frozen=True, kw_only=True)
class InputMaps(_Maps):
    """Maps that a layer reads: the windows of each vault's tile, with all that is around them.

    Attributes:
        windows: of the layer.
        strips: the maps are :class:`microkernels.common.feature_map.StripMap`.
    """

    windows: Windows
    strips: bool = False

    def region(self, vault: int) -> MapRegion | None:
        """Region of the map that the vault reads; None: it has no work."""
        tile = self.tile(vault)
        return None if tile is None else self.windows.region(tile, self.size.channels)

    @cached_property
    def whole(self) -> MapSize:
        """Size of the region that a vault reads."""
        tile = self.whole_tile
        first = MapRegion(
            x=0, y=0, channel=0, width=tile.width, height=tile.height, channels=tile.channels
        )
        region = self.windows.region(first, self.size.channels)
        return MapSize(region.width, region.height, region.channels)

    def _map(self, vault: int, round_: int) -> FeatureMap:
        place = {
            "base": self.ring.address(vault, self.offsets[round_]),
            "width": self.whole.width,
            "height": self.whole.height,
            "channels": self.whole.channels,
            "depth": self.depth,
        }
        if self.strips:
            return StripMap(
                **place, rows=self.windows.kernel.height, stride=self.windows.stride.height
            )
        return FeatureMap(**place)

    @property
    def bytes(self) -> int:
        """Bytes of a map."""
        first = self.map(0, 0)
        return first.end - first.base

    def store(self, memory: Writable, images: Elements) -> None:
        """Put batch x height x width x channels elements into all vaults, each with its region."""
        windows = self.windows
        # Regions of the last tiles end as far below and to the right as a window does.
        full = self.whole
        sides = ((windows.top, full.height), (windows.left, full.width))
        padded = np.pad(images, ((0, 0), *sides, (0, 0)), constant_values=windows.around)
        for vault in range(self.ring.vaults):
            region = self.region(vault)
            if region is None:
                continue
            top, left = region.y + windows.top, region.x + windows.left
            for round_ in range(self.rounds):
                number = self.image(vault, round_)
                if number is None:
                    continue
                values = padded[
                    number,
                    top : top + region.height,
                    left : left + region.width,
                    region.channel : region.channel + region.channels,
                ]
                fill = self.whole.channels - region.channels
                values = np.pad(values, ((0, 0), (0, 0), (0, fill)))
                self.map(vault, round_).store(memory, values)


@dataclass(frozen=True, kw_only=True)
class OutputMaps(_Maps):
    """Maps that a layer writes: each vault's tile.

    Attributes:
        inside: the maps of the layer's only user, if tiles lie within its vaults' regions; then
            there are no ``offsets``.
    """

    inside: InputMaps | None = None

    def _map(self, vault: int, round_: int) -> FeatureMap:
        full = self.whole_tile
        if self.inside is not None:
            tile, region = self.tile(vault), self.inside.region(vault)
            left = top = 0
            if tile is not None and region is not None:
                left, top = tile.x - region.x, tile.y - region.y
            return PartMap.of(
                self.inside.map(vault, round_),
                left=left,
                top=top,
                width=full.width,
                height=full.height,
            )
        return FeatureMap(
            base=self.ring.address(vault, self.offsets[round_]),
            width=full.width,
            height=full.height,
            channels=full.channels,
            depth=self.depth,
        )

    @property
    def bytes(self) -> int:
        """Bytes of a map that has its own place."""
        first = self.map(0, 0)
        return first.end - first.base

    def owned(self, vault: int) -> MapRegion | None:
        """Region that others read from this vault; None: it has none."""
        return self.cut.owned(self.size, self.depth, vault)

    @cached_property
    def _holders(self) -> dict[int, list[tuple[int, int, MapRegion]]]:
        return {}

    def holders(self, image: int) -> list[tuple[int, int, MapRegion]]:
        """Vault, round and region of all owners of parts of an image."""
        if image not in self._holders:
            round_, place = divmod(image, self.cut.images)
            vaults = range(place * self.cut.sharers, (place + 1) * self.cut.sharers)
            every = ((vault, self.owned(vault)) for vault in vaults)
            self._holders[image] = [(vault, round_, region) for vault, region in every if region]
        return self._holders[image]

    def store(self, memory: Writable, images: Elements) -> None:
        """Put batch x height x width x channels elements into all vaults, each with its tile."""
        for vault in range(self.ring.vaults):
            tile = self.tile(vault)
            for round_ in range(self.rounds):
                number = self.image(vault, round_)
                if tile is None or number is None:
                    continue
                values = images[
                    number,
                    tile.y : tile.y + tile.height,
                    tile.x : tile.x + tile.width,
                    tile.channel : tile.channel + tile.channels,
                ]
                fill = self.whole_tile.channels - tile.channels
                values = np.pad(values, ((0, 0), (0, 0), (0, fill)))
                self.map(vault, round_).store(memory, values)

    def load(self, memory: Readable) -> Elements:
        """The batch x height x width x channels elements in ``memory``, from their owners."""
        size = self.size
        values = np.full((self.batch, size.height, size.width, size.channels), LOWEST, ELEMENT)
        for image in range(self.batch):
            for vault, round_, owned in self.holders(image):
                tile = self.tile(vault)
                assert tile is not None
                elements = self.map(vault, round_).load(memory)
                top, left = owned.y - tile.y, owned.x - tile.x
                values[
                    image,
                    owned.y : owned.y + owned.height,
                    owned.x : owned.x + owned.width,
                    owned.channel : owned.channel + owned.channels,
                ] = elements[top : top + owned.height, left : left + owned.width, : owned.channels]
        return values
