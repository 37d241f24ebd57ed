"""Maps that are not computed: sources, and maps of other maps' elements in any order.

Each vault reads its tile's elements from their owners. Elements that are consecutive in both
memories form one piece, and pieces of one length at equal distances form one move, so whole columns
of pixels move fast and single elements slowly.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import KernelError
from microkernels.common.feature_map import FeatureMap
from microkernels.common.fixed_point import ELEMENT_BYTES, LOWEST, Elements, Reals

from .layer import ChipWork, Constructor, Layer, LayerPlan, LayerStep
from .maps import MapSize, StoredMaps
from .moves import PIECE_ELEMENTS, Move
from .parameters import RealParameters, Weights

#: Used instead of an element's index: the constant 0, and the lowest element.
ZERO, LOWEST_ELEMENT = -1, -2
#: Relative time of an element that moves alone, for estimates.
_SCATTERED = 8

_Addresses = NDArray[np.int64]


def _order(*numbers: int) -> Sequence[int]:
    """Numbers as :attr:`Rearrange.order` has them, in the form that takes the least time."""
    return array("q", numbers)


@dataclass(frozen=True, kw_only=True)
class Source(Layer):
    """Another map that the host writes to memory: another input, or a constant.

    Attributes:
        size: of the map.
    """

    computed = False
    reads_regions = False
    sources = ()
    tuples: ClassVar[Mapping[str, Constructor]] = {"size": MapSize}

    size: MapSize

    def __post_init__(self) -> None:
        super().__post_init__()
        self.size.check(self.name)

    def output(self, sources: Sequence[tuple[str, MapSize]]) -> MapSize:
        return self.size

    def integer(
        self, plan: LayerPlan, sources: Sequence[Elements], weights: Weights | None
    ) -> Elements:
        raise AssertionError(f"{self.name}: no layer that is computed")

    def real(self, sources: Sequence[Reals], size: MapSize, parameters: RealParameters) -> Reals:
        raise AssertionError(f"{self.name}: no layer that is computed")


@dataclass(frozen=True, kw_only=True)
class Rearrange(Layer):
    """A map of other maps' elements in any order.

    Attributes:
        inputs: names of the layers whose outputs it takes, at least one; ``source`` stays empty.
        size: of the map.
        order: for each of its elements, by row, column and channel, the index in the concatenated
            inputs, or -1 for the constant 0, -2 for the lowest element.
    """

    reads_regions = False
    copies = True
    tuples: ClassVar[Mapping[str, Constructor]] = {"size": MapSize, "order": _order}
    input_refused = (
        "elements of the network's input can't be rearranged; use a layer that copies them, or "
        "a source"
    )

    inputs: tuple[str, ...]
    size: MapSize
    order: Sequence[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.size.check(self.name)

    @property
    def sources(self) -> tuple[str, ...]:
        return self.inputs

    @cached_property
    def index(self) -> NDArray[np.int64]:
        """The order as an array, without a copy of one of 64-bit integers."""
        return np.asarray(self.order, np.int64)

    def output(self, sources: Sequence[tuple[str, MapSize]]) -> MapSize:
        if len(self.order) != self.size.elements:
            raise KernelError(f"order must have {self.size.elements} items, not {len(self.order)}")
        last = sum(size.elements for _, size in sources) - 1
        if not -2 <= self.index.min() <= self.index.max() <= last:
            raise KernelError(f"order must have numbers from -2 to {last}")
        return self.size

    def moved_elements(
        self, before: LayerPlan, plan: LayerPlan, work: ChipWork, inputs: int
    ) -> float:
        # The complete tile, from all sources together; single elements take as long as pieces.
        return _SCATTERED * plan.tile.elements * plan.rounds(work.batch) // inputs

    def moves(self, step: LayerStep, vault: int) -> list[Move]:
        sources = tuple(source for source in step.sources if source is not None)
        constants = [step.constant(value, vault) for value in (0, LOWEST)]
        return _rearrange_moves(self.index, sources, step.target, vault, constants)

    def integer(
        self, plan: LayerPlan, sources: Sequence[Elements], weights: Weights | None
    ) -> Elements:
        flat = np.concatenate([values.reshape(len(values), -1) for values in sources], axis=1)
        chosen = np.where(self.index < 0, 0, flat[:, np.maximum(self.index, 0)])
        return np.where(self.index == LOWEST_ELEMENT, LOWEST, chosen).astype(flat.dtype)

    def real(self, sources: Sequence[Reals], size: MapSize, parameters: RealParameters) -> Reals:
        flat = np.concatenate([values.reshape(len(values), -1) for values in sources], axis=1)
        chosen = np.where(self.index < 0, 0.0, flat[:, np.maximum(self.index, 0)])
        # The lowest element is chosen only below a maximum.
        chosen[:, self.index == LOWEST_ELEMENT] = -np.abs(flat).max(initial=0.0)
        return chosen.reshape(-1, size.height, size.width, size.channels)


def _addresses(feature_map: FeatureMap) -> _Addresses:
    """Address of each of a map's elements: height x width x channels."""
    slices, inside = np.divmod(np.arange(feature_map.channels), feature_map.depth)
    channels = slices * feature_map.slice_step + inside * ELEMENT_BYTES
    rows = np.arange(feature_map.height) * feature_map.y_step
    columns = np.arange(feature_map.width) * feature_map.x_step
    first = feature_map.address(0, 0)
    addresses: _Addresses = first + rows[:, None, None] + columns[:, None] + channels
    return addresses


@lru_cache(maxsize=16)
def owned_addresses(source: StoredMaps, image: int) -> _Addresses:
    """Address of each of an image's elements in its owner's memory: height x width x channels."""
    size = source.size
    addresses = np.zeros((size.height, size.width, size.channels), np.int64)
    for holder, round_, owned in source.holders(image):
        tile = source.tile(holder)
        assert tile is not None
        in_tile = _addresses(source.map(holder, round_))
        addresses[owned.slices()] = in_tile[owned.slices(*tile[:3])]
    return addresses


# All vaults ask for those of one layer.
@lru_cache(maxsize=1)
def _all_addresses(sources: tuple[StoredMaps, ...], image: int) -> _Addresses:
    """Those of :func:`owned_addresses` of several maps, one after the other."""
    return np.concatenate([owned_addresses(source, image).ravel() for source in sources])


def _rearrange_moves(
    index: NDArray[np.int64],
    sources: tuple[StoredMaps, ...],
    target: StoredMaps,
    vault: int,
    constants: Sequence[int],
) -> list[Move]:
    """A vault's moves.

    Parameters:
        index: as for :attr:`Rearrange.index`.
        constants: chip addresses, in the vault, of :data:`PIECE_ELEMENTS` zeros, and of the same
            number of lowest elements.
    """
    tile = target.tile(vault)
    moves: list[Move] = []
    if tile is None:
        return moves
    size = target.size
    chosen = index.reshape(size.height, size.width, size.channels)[tile.slices()].ravel()
    for round_ in range(target.rounds):
        image = target.image(vault, round_)
        if image is None:
            continue
        ends = _addresses(target.map(vault, round_))[:, :, : tile.channels].ravel()
        by_target = np.argsort(ends, kind="stable")
        into, indices = ends[by_target], chosen[by_target]
        owned = _all_addresses(sources, image)
        place = np.arange(len(indices)) % PIECE_ELEMENTS * ELEMENT_BYTES
        out_of = owned[np.maximum(indices, 0)]
        out_of = np.where(indices == ZERO, constants[0] + place, out_of)
        out_of = np.where(indices == LOWEST_ELEMENT, constants[1] + place, out_of)
        moves += moves_between(out_of, into)
    return moves


def moves_between(source: _Addresses, target: _Addresses) -> list[Move]:
    """Moves of the elements at these addresses; those of ``target`` ascend."""
    together = (np.diff(source) == ELEMENT_BYTES) & (np.diff(target) == ELEMENT_BYTES)
    first = np.flatnonzero(np.concatenate([[True], ~together]))
    length = np.diff(np.append(first, len(source)))
    # Pieces of at most the maximum length.
    pieces = -(-length // PIECE_ELEMENTS)
    number = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    first = np.repeat(first, pieces) + number * PIECE_ELEMENTS
    length = np.minimum(np.repeat(length, pieces) - number * PIECE_ELEMENTS, PIECE_ELEMENTS)
    starts, ends, sizes = (values.tolist() for values in (source[first], target[first], length))
    # Distances from each piece to the next, and the last piece that is as far from the one before.
    apart = np.stack([np.diff(source[first]), np.diff(target[first])])
    same = np.diff(length) == 0
    changes = np.flatnonzero((np.diff(apart) != 0).any(axis=0) | (np.diff(same) != 0))
    lasts = np.append(changes + 1, len(same))
    last_of = np.repeat(lasts, np.diff(lasts, prepend=0)).tolist()
    (by_of, gap_of), equal = apart.tolist(), same.tolist()
    moves: list[Move] = []
    at = 0
    while at < len(starts):
        count, by, gap = 1, 0, 0
        if at < len(equal) and equal[at]:
            count, by, gap = last_of[at] - at + 1, by_of[at], gap_of[at]
        moves.append(
            Move(
                source=starts[at],
                target=ends[at],
                source_step=by,
                target_step=gap,
                elements=sizes[at],
                pieces=count,
            )
        )
        at += count
    return moves
