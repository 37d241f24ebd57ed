"""Sizes, regions of maps, and division of a map over a chip's vaults.

A map is divided into tiles of one size, and its channels into parts. If tiles do not divide a map
evenly, the last tile overlaps the previous one, so that all vaults run the same program; the
earlier vault is the *owner* of the pixels in two tiles, from which others read them.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

from microkernels.common.errors import CHECK
from microkernels.common.fixed_point import packed


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
