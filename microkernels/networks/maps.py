"""Maps in a chip's vaults: sizes, regions, division over the vaults, and each vault's tile, at the
same offset in all of them.

A map is divided into tiles of one size, and its channels into parts. If tiles do not divide a map
evenly, the last tile overlaps the previous one, so that all vaults run the same program; the
earlier vault is the *owner* of the pixels in two tiles, from which others read them.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from microkernels.common.errors import CHECK
from microkernels.common.feature_map import FeatureMap, PartMap
from microkernels.common.fixed_point import ELEMENT, LOWEST, Elements, packed
from microkernels.common.memory import Readable, Writable
from microkernels.runtime.ring import ChipEngines

#: Bits of the numbers in maps of bytes.
BYTE_BITS = 8


class MapSize(NamedTuple):
    """Size of a feature map; a vector is one pixel with that many channels."""

    width: int
    height: int
    channels: int

    @property
    def elements(self) -> int:
        """Total number of elements."""
        return self.width * self.height * self.channels

    def stored(self, bits: int) -> "MapSize":
        """Size in elements of a map of numbers of this many bits, as it is in memory."""
        return self._replace(channels=-(-self.channels // packed(bits)))

    def __str__(self) -> str:
        return " x ".join(map(str, self))

    def check(self, name: str) -> None:
        """Reject a size below 1.

        Parameters:
            name: of the map, for the message.

        Raises:
            KernelError: a size is below 1.
        """
        for axis, value in self._asdict().items():
            CHECK.at_least(f"{axis} of {name}", value, 1)


class Size2(NamedTuple):
    """Pixels across and down."""

    width: int
    height: int


class Pads(NamedTuple):
    """Pixels on each side of a map."""

    left: int
    top: int
    right: int
    bottom: int


def size2(value: int | Size2) -> Size2:
    """``value`` as pixels across and down."""
    return value if isinstance(value, Size2) else Size2(value, value)


def pads(value: int | Pads) -> Pads:
    """``value`` as pixels on each side."""
    return value if isinstance(value, Pads) else Pads(value, value, value, value)


class Place(NamedTuple):
    """Position of a vault in a cut: the number of its image, tile and part."""

    image: int
    column: int
    row: int
    part: int


class MapRegion(NamedTuple):
    """Pixels and channels of a map; ``x`` and ``y`` may be outside it.

    Attributes:
        x, y, channel: the first pixel and channel.
        width, height, channels: the size.
    """

    x: int
    y: int
    channel: int
    width: int
    height: int
    channels: int

    def slices(self, x: int = 0, y: int = 0, channel: int = 0) -> tuple[slice, slice, slice]:
        """Where the region is in an array of rows, columns and channels whose first element is the
        map's at ``x``, ``y``, ``channel``."""
        top, left, first = self.y - y, self.x - x, self.channel - channel
        return (
            slice(top, top + self.height),
            slice(left, left + self.width),
            slice(first, first + self.channels),
        )

    def common(self, other: "MapRegion") -> "MapRegion | None":
        """The intersection of both; None: empty."""
        if not (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
            and self.channel < other.channel + other.channels
            and other.channel < self.channel + self.channels
        ):
            return None
        x, y, channel = max(self.x, other.x), max(self.y, other.y), max(self.channel, other.channel)
        width = min(self.x + self.width, other.x + other.width) - x
        height = min(self.y + self.height, other.y + other.height) - y
        channels = min(self.channel + self.channels, other.channel + other.channels) - channel
        return MapRegion(x, y, channel, width, height, channels)

    def without(self, other: "MapRegion") -> "list[MapRegion]":
        """Rectangles with the pixels of this region outside ``other``, each pixel once, with all
        channels of this region, of which ``other`` has all or none."""
        same = self.common(other)
        if same is None:
            return [self]
        right, below = same.x + same.width, same.y + same.height
        pieces = [
            (self.x, self.y, same.x - self.x, self.height),
            (right, self.y, self.x + self.width - right, self.height),
            (same.x, self.y, same.width, same.y - self.y),
            (same.x, below, same.width, self.y + self.height - below),
        ]
        return [
            MapRegion(
                x=x,
                y=y,
                channel=self.channel,
                width=width,
                height=height,
                channels=self.channels,
            )
            for x, y, width, height in pieces
            if width > 0 and height > 0
        ]


def _pieces(length: int, count: int, number: int) -> tuple[int, int]:
    """First and end of piece ``number``. Pieces have the same length; the last ones may be shorter,
    or empty."""
    size = -(-length // count)
    return min(number * size, length), min((number + 1) * size, length)


@dataclass(frozen=True, kw_only=True)
class MapCut:
    """How a chip's vaults share a map, the output of a layer. Each value is at least 1.

    Attributes:
        size: of the map.
        depth: channels per slice.
        images: processed at a time.
        columns, rows: of tiles per image.
        parts: of the channels, in whole slices.

    Raises:
        KernelError: a value out of range.
    """

    size: MapSize
    depth: int
    images: int = 1
    columns: int = 1
    rows: int = 1
    parts: int = 1

    def __post_init__(self) -> None:
        CHECK.fields(self)
        self.size.check("a map")
        for name in ("depth", "images", "columns", "rows", "parts"):
            CHECK.at_least(name, getattr(self, name), 1)

    @property
    def sharers(self) -> int:
        """Vaults that share an image."""
        return self.columns * self.rows * self.parts

    @property
    def vaults(self) -> int:
        """Vaults that have work; later ones have none."""
        return self.images * self.sharers

    def place(self, vault: int) -> Place | None:
        """Position of a vault; None: it has no work."""
        if vault >= self.vaults:
            return None
        image, rest = divmod(vault, self.sharers)
        row, rest = divmod(rest, self.columns * self.parts)
        column, part = divmod(rest, self.parts)
        return Place(image, column, row, part)

    @property
    def slices(self) -> int:
        """Slices of the map."""
        return -(-self.size.channels // self.depth)

    @cached_property
    def tile_size(self) -> MapSize:
        """Size of a tile; the last part may have fewer channels."""
        width, height, channels = self.size
        return MapSize(
            -(-width // self.columns),
            -(-height // self.rows),
            min(-(-self.slices // self.parts) * self.depth, channels),
        )

    def owned(self, vault: int) -> MapRegion | None:
        """The region that a vault owns; None: it owns nothing."""
        return _owned(self, vault)

    def tile(self, vault: int) -> MapRegion | None:
        """The region that a vault computes, of :attr:`tile_size`; None: it has no work."""
        return _tile(self, vault)


@lru_cache(maxsize=1 << 14)
def _owned(cut: MapCut, vault: int) -> MapRegion | None:
    place = cut.place(vault)
    if place is None:
        return None
    x, right = _pieces(cut.size.width, cut.columns, place.column)
    y, below = _pieces(cut.size.height, cut.rows, place.row)
    first, last = (cut.depth * end for end in _pieces(cut.slices, cut.parts, place.part))
    last = min(last, cut.size.channels)
    if x == right or y == below or first >= last:
        return None
    return MapRegion(
        x=x, y=y, channel=first, width=right - x, height=below - y, channels=last - first
    )


@lru_cache(maxsize=1 << 14)
def _tile(cut: MapCut, vault: int) -> MapRegion | None:
    owned = _owned(cut, vault)
    if owned is None:
        return None
    full = cut.tile_size
    return MapRegion(
        x=min(owned.x, cut.size.width - full.width),
        y=min(owned.y, cut.size.height - full.height),
        channel=owned.channel,
        width=full.width,
        height=full.height,
        channels=owned.channels,
    )


@lru_cache(maxsize=1024)
def cuts(uncut: MapCut, vaults: int, batch: int) -> tuple[MapCut, ...]:
    """All cuts of a map over at most ``vaults`` vaults, with at most as many tiles across and down
    as pixels, parts as slices, and images at a time as there are. A vault gets nothing if fewer
    tiles or parts of the same size cover the map.

    Parameters:
        uncut: the map in one tile.
    """
    width, height, _ = uncut.size
    return tuple(
        replace(uncut, images=images, columns=columns, rows=rows, parts=parts)
        for images in range(1, min(vaults, batch) + 1)
        for columns in range(1, min(vaults // images, width) + 1)
        for rows in range(1, min(vaults // images // columns, height) + 1)
        for parts in range(1, min(vaults // images // columns // rows, uncut.slices) + 1)
    )


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
        engines: of the chip.
        size: of the map. batch: number of images.
        cut: of the output of the layer that reads or writes the map.
        depth: channels per slice of this map.
        offsets: within each vault, of each round's tile: the first ``cut.images`` images, the next
            ones, and so on.
        windows: that the layer reads; of what it writes :data:`PIXELS`.
        strips: the maps are in strips (:mod:`microkernels.common.feature_map`).
        inside: of what a layer writes, the maps of its only user if tiles are within its vaults'
            regions; there are then no ``offsets``.
    """

    engines: ChipEngines
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
        base = self.engines.address(vault, self.offsets[round_])
        place = {"base": base, "depth": self.depth, **self.whole._asdict()}
        if self.strips:
            kernel, stride = self.windows.kernel, self.windows.stride
            place |= {"strip_rows": kernel.height, "strip_pitch": stride.height}
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
        return any(self._outside(vault) for vault in range(self.engines.vaults))

    def surround(self, memory: Writable) -> None:
        """Write the pixels around the map, and the same into the map, to the vaults that store
        some."""
        around = np.full(
            (self.whole.height, self.whole.width, self.whole.channels), self.windows.around, ELEMENT
        )
        for vault in range(self.engines.vaults):
            if self._outside(vault):
                for round_ in range(self.rounds):
                    self.map(vault, round_).store(memory, around)

    def store(self, memory: Writable, images: Elements) -> None:
        """Write batch x height x width x channels elements to all vaults, each with its region."""
        windows, size = self.windows, self.size
        tiles = ((vault, self.region(vault)) for vault in range(self.engines.vaults))
        regions = {vault: region for vault, region in tiles if region is not None}
        # Where windows leave pixels out on one side, they reach farther beyond the other.
        below = max(0, *(region.y + region.height - size.height for region in regions.values()))
        after = max(0, *(region.x + region.width - size.width for region in regions.values()))
        above, before = max(windows.top, 0), max(windows.left, 0)
        sides = ((above, below), (before, after))
        padded = np.pad(images, ((0, 0), *sides, (0, 0)), constant_values=windows.around)
        for vault, region in regions.items():
            for round_ in range(self.rounds):
                number = self.image(vault, round_)
                if number is None:
                    continue
                values = padded[number][region.slices(-before, -above)]
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
                values[image][owned.slices()] = elements[owned.slices(*tile[:3])]
        return values
