"""Feature maps stored in a chip's vaults, each vault's tile at the same offset, and the allocation
of these offsets."""

from bisect import insort
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from microkernels.common.errors import CHECK
from microkernels.common.feature_map import FeatureMap, PartMap, StripMap, round_up
from microkernels.common.fixed_point import ELEMENT, LOWEST, Elements, unpack
from microkernels.common.memory import Readable, Writable
from microkernels.nn.conv_shape import pair_bytes
from microkernels.runtime.ring import VaultRing

from .sizes import MapCut, MapRegion, MapSize, Size2

#: A time after all others.
ALWAYS = 1 << 30
BYTE_BITS = 8


def in_memory(numbers: Elements, bits: int) -> Elements:
    """Numbers of maps, ... x channels, as elements."""
    return numbers if bits > BYTE_BITS else pair_bytes(numbers)


def from_memory(elements: Elements, bits: int, channels: int) -> Elements:
    """The reverse of :func:`in_memory`."""
    return unpack(elements, bits)[..., :channels]


class Places:
    """Allocates offsets within a vault, each the lowest that is free throughout its lifetime.

    Parameters:
        alignment: of offsets, in bytes.

    Attributes:
        end: first byte after everything allocated.
    """

    def __init__(self, alignment: int) -> None:
        self._alignment = alignment
        #: First byte and end of each place, and the first and last time of its use.
        self._taken: list[tuple[int, int, int, int]] = []
        self.end = 0

    def take(self, size: int, *, start: int = 0, last: int = ALWAYS) -> int:
        """Allocate ``size`` bytes (0 or more) that are in use from time ``start`` to ``last``, both
        included. Returns the offset.

        Raises:
            KernelError: a value out of range.
        """
        CHECK.at_least("size", size, 0)
        CHECK.at_least("last", last, start)
        at = 0
        for first, end, since, until in self._taken:
            if since <= last and start <= until:
                if at + size <= first:
                    break
                at = max(at, round_up(end, self._alignment))
        insort(self._taken, (at, at + size, start, last))
        self.end = max(self.end, at + size)
        return at


@dataclass(frozen=True, kw_only=True)
class Windows:
    """The pixels of its input that a layer reads for an output: windows as for a convolution.

    Attributes:
        kernel, stride: of the layer.
        left, top: pixels before the map's first ones; below 0: pixels that are left out.
        around: value of the pixels around the map.
        parted: a vault reads only the channels that it writes, otherwise all.
    """

    kernel: Size2
    stride: Size2
    left: int = 0
    top: int = 0
    around: int = 0
    parted: bool = False

    def region_size(self, tile: MapSize, channels: int) -> MapSize:
        """Size of the region read for the outputs in a tile.

        Parameters:
            channels: of the map being read.
        """
        return MapSize(
            (tile.width - 1) * self.stride.width + self.kernel.width,
            (tile.height - 1) * self.stride.height + self.kernel.height,
            tile.channels if self.parted else channels,
        )

    def region(self, tile: MapRegion, channels: int) -> MapRegion:
        """The region read for the outputs in ``tile``; parameters as for :meth:`region_size`."""
        size = MapSize(tile.width, tile.height, tile.channels)
        return MapRegion(
            tile.x * self.stride.width - self.left,
            tile.y * self.stride.height - self.top,
            tile.channel if self.parted else 0,
            *self.region_size(size, channels),
        )


#: For a layer whose maps have the same size.
PIXELS = Windows(kernel=Size2(1, 1), stride=Size2(1, 1), parted=True)


@lru_cache(maxsize=1 << 16)
def inside(cut: MapCut, reader: MapCut, windows: Windows, vaults: int) -> bool:
    """Whether each vault's tile is inside the region that it reads for its tile of another map.

    Parameters:
        cut: of the map being read. reader: of the other map. windows: read by the latter.
    """
    for vault in range(vaults):
        tile, read = cut.tile(vault), reader.tile(vault)
        if (tile is None) != (read is None):
            return False
        if tile is None or read is None:
            continue
        region = windows.region(read, cut.size.channels)
        place, other_place = cut.place(vault), reader.place(vault)
        assert place is not None
        assert other_place is not None
        # All vaults write as many channels as the first.
        written = tile._replace(channels=cut.tile_size.channels)
        if place.image != other_place.image or region.common(written) != written:
            return False
    return True


@lru_cache(maxsize=1 << 16)
def within(cut: MapCut, reader: MapCut, windows: Windows) -> bool:
    """Whether the region that each vault reads for its tile of another map is inside its own tile;
    parameters as for :func:`inside`."""
    if cut.images != reader.images:
        return False
    for vault in range(reader.vaults):
        tile, read = cut.tile(vault), reader.tile(vault)
        if read is None:
            continue
        region = windows.region(read, cut.size.channels)
        if tile is None or cut.place(vault)[0] != reader.place(vault)[0]:  # type: ignore[index]
            return False
        if region.common(tile) != region or region.channels != tile.channels:
            return False
    return True


@dataclass(frozen=True, kw_only=True)
class StoredMaps:
    """Maps that a layer reads: the windows of each vault's tile, with the pixels around them; or
    that it writes: the tiles.

    Attributes:
        ring: of the vaults.
        size: of the map. batch: number of images.
        cut: of the output of the layer that reads or writes the map.
        depth: channels per slice of this map.
        offsets: within each vault, of each round's tile: the first ``cut.images`` images, the next
            ones, and so on.
        windows: that the layer reads; of what it writes :data:`PIXELS`.
        strips: the maps are :class:`microkernels.common.feature_map.StripMap`.
        inside: of what a layer writes, the maps of its only user if tiles are within its vaults'
            regions; there are then no ``offsets``.
    """

    ring: VaultRing
    size: MapSize
    batch: int
    cut: MapCut
    depth: int
    offsets: tuple[int, ...]
    windows: Windows = PIXELS
    strips: bool = False
    inside: "StoredMaps | None" = None

    @property
    def rounds(self) -> int:
        """Rounds in which the vaults process the batch."""
        return -(-self.batch // self.cut.images)

    def image(self, vault: int, round_: int) -> int | None:
        """A vault's image in a round; None: it has none."""
        place = self.cut.place(vault)
        number = None if place is None else round_ * self.cut.images + place.image
        return None if number is None or number >= self.batch else number

    def tile(self, vault: int) -> MapRegion | None:
        """Region of the output that the vault computes; None: it has no work."""
        return self.cut.tile(vault)

    def region(self, vault: int) -> MapRegion | None:
        """Region of the map that the vault stores; None: it has no work."""
        tile = self.tile(vault)
        return None if tile is None else self.windows.region(tile, self.size.channels)

    @cached_property
    def whole(self) -> MapSize:
        """Size of the regions in the vaults with the most channels."""
        return self.windows.region_size(self.cut.tile_size, self.size.channels)

    @cached_property
    def _maps(self) -> dict[tuple[int, int], FeatureMap]:
        return {}

    def map(self, vault: int, round_: int) -> FeatureMap:
        """A vault's map, without padding: the pixels around that a layer reads are part of it."""
        place = (vault, round_)
        if place not in self._maps:
            self._maps[place] = self._map(vault, round_)
        return self._maps[place]

    def _map(self, vault: int, round_: int) -> FeatureMap:
        """Cached part of :meth:`map`."""
        if self.inside is not None:
            tile, region = self.tile(vault), self.inside.region(vault)
            left = top = first = 0
            if tile is not None and region is not None:
                left, top = tile.x - region.x, tile.y - region.y
                first = tile.channel - region.channel
            return PartMap.of(
                self.inside.map(vault, round_),
                left=left,
                top=top,
                first=first,
                **self.whole._asdict(),
            )
        base = self.ring.address(vault, self.offsets[round_])
        place = {"base": base, "depth": self.depth, **self.whole._asdict()}
        if self.strips:
            return StripMap(
                **place, rows=self.windows.kernel.height, stride=self.windows.stride.height
            )
        return FeatureMap(**place)

    @property
    def bytes(self) -> int:
        """Bytes of a map that has its own place."""
        first = self.map(0, 0)
        return first.end - first.base

    def _outside(self, vault: int) -> bool:
        """Whether a vault stores pixels around the map."""
        region, size = self.region(vault), self.size
        return region is not None and (
            min(region.x, region.y) < 0
            or region.x + region.width > size.width
            or region.y + region.height > size.height
        )

    @property
    def surrounded(self) -> bool:
        """Whether pixels around the map are stored."""
        return any(self._outside(vault) for vault in range(self.ring.vaults))

    def surround(self, memory: Writable) -> None:
        """Write the pixels around the map, and the same into the map, to the vaults that store
        some."""
        around = np.full(
            (self.whole.height, self.whole.width, self.whole.channels), self.windows.around, ELEMENT
        )
        for vault in range(self.ring.vaults):
            if self._outside(vault):
                for round_ in range(self.rounds):
                    self.map(vault, round_).store(memory, around)

    def store(self, memory: Writable, images: Elements) -> None:
        """Write batch x height x width x channels elements to all vaults, each with its region."""
        windows, size = self.windows, self.size
        tiles = ((vault, self.region(vault)) for vault in range(self.ring.vaults))
        regions = {vault: region for vault, region in tiles if region is not None}
        # Where windows leave pixels out on one side, they reach farther beyond the other.
        below = max(0, *(region.y + region.height - size.height for region in regions.values()))
        after = max(0, *(region.x + region.width - size.width for region in regions.values()))
        above, before = max(windows.top, 0), max(windows.left, 0)
        sides = ((above, below), (before, after))
        padded = np.pad(images, ((0, 0), *sides, (0, 0)), constant_values=windows.around)
        for vault, region in regions.items():
            top, left = region.y + above, region.x + before
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

    def owned(self, vault: int) -> MapRegion | None:
        """Region that others read from this vault; None: it owns nothing."""
        return self.cut.owned(vault)

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
