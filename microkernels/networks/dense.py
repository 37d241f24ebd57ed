"""Fully connected layers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isa.program import Program
from microkernels.common.errors import CHECK
from microkernels.common.feature_map import COLUMN_BYTES, FeatureMap, round_up, vectors
from microkernels.common.fixed_point import ELEMENT_BYTES, Elements, Reals, pack, packed
from microkernels.common.memory import Writable
from microkernels.nn.dense import DenseLayout, dense_program
from microkernels.nn.dense_plan import dense, partial_sums, plan_dense
from microkernels.nn.window_shape import rounding_bias
from microkernels.runtime.ring import ChipEngines

from .families import KernelLayer, KernelStep, SumLayer, same_size
from .layer import (
    LANES,
    LAUNCH_CYCLES,
    MEMORY_BYTES,
    ChipWork,
    DensePart,
    LayerPlan,
    LayerStep,
)
from .maps import MapSize, StoredMaps
from .moves import Move, from_all, moves_of
from .parameters import RealParameters, Weights


def in_order(vectors: Elements, order: NDArray[np.int64]) -> Elements:
    """Vectors with the elements of these indices; 0 where the index is -1 or beyond them."""
    outside = (order < 0) | (order >= vectors.shape[1])
    return np.where(outside, 0, vectors[:, np.where(outside, 0, order)])


#: Weights converted at a time.
_CONVERTED = 1 << 20


def _in_place(source: LayerPlan | StoredMaps, plan: LayerPlan) -> bool:
    """Whether a layer reads a map where it is: the only vault with a part of it has whole images,
    and computes all outputs."""
    return source.cut.vaults == plan.cut.vaults == 1


def _flat_order(source: StoredMaps, *, in_place: bool) -> NDArray[np.int64]:
    """The order in which :func:`_flat_moves` stores an image's elements: for each place in the
    vector the index of its element, channel by channel and row by row; -1: empty.

    Parameters:
        in_place: the order in which the only vault with a part of the map has written it.
    """
    size = source.size
    index = np.arange(size.elements).reshape(size.channels, size.height, size.width)
    index = index.transpose(1, 2, 0)
    order: list[NDArray[np.int64]] = []
    for _, _, owned in source.holders(0):
        of_owner = index[owned.slices()]
        for channel in range(0, owned.channels, source.depth):
            part = of_owner[..., channel : channel + source.depth]
            fill = source.depth - part.shape[-1]
            part = np.pad(part, ((0, 0), (0, 0), (0, fill)), constant_values=-1)
            if in_place and order:
                gap = -len(order[-1]) % (COLUMN_BYTES // ELEMENT_BYTES)
                order.append(np.full(gap, -1))
            order.append(part.transpose(1, 0, 2).ravel())
    return np.concatenate(order)


def _flat_moves(source: StoredMaps, target: FeatureMap, vault: int) -> list[Move]:
    """A vault's moves for the vectors that it multiplies: all elements of each image, in the order
    of :func:`_flat_order`.

    Parameters:
        target: chip addresses in ``vault``.
    """
    moves: list[tuple[int, Move]] = []
    for image in range(source.batch):
        to = target.address(image, 0)
        for holder, round_, owned in source.holders(image):
            tile = source.tile(holder)
            assert tile is not None
            tile_map = source.map(holder, round_)
            for channel in range(owned.channel, owned.channel + owned.channels, source.depth):
                at = tile_map.address(owned.x - tile.x, owned.y - tile.y, channel - tile.channel)
                column = owned.height * source.depth
                step = column * ELEMENT_BYTES
                pieces = moves_of(at, to, tile_map.x_step, step, column, owned.width)
                moves += ((holder, move) for move in pieces)
                to += owned.width * step
    return from_all(moves, vault)


@dataclass(frozen=True, kw_only=True)
class Dense(SumLayer, KernelLayer):
    """A fully connected layer (:mod:`microkernels.nn.dense_plan`).

    A map given as input is flattened channel by channel, each row by row, like ONNX's Flatten.

    Attributes:
        outputs: number of outputs, at least 1.
        fraction, relu, narrow: as for :class:`microkernels.networks.families.SumLayer`.
    """

    reads_regions = False
    holds_inputs = True

    outputs: int

    def __post_init__(self) -> None:
        super().__post_init__()
        CHECK.at_least("outputs", self.outputs, 1)

    def output(self, sources: Sequence[tuple[str, MapSize]]) -> MapSize:
        same_size(sources)
        return MapSize(1, 1, self.outputs)

    def weight_shape(self, source: MapSize) -> tuple[int, ...]:
        return (self.outputs, source.elements)

    def operations(self, plan: LayerPlan) -> int:
        return 2 * plan.input.elements * packed(self.bits) * self.outputs

    def output_depth(self, vaults: int) -> int:
        return -(-self.outputs // (vaults * self.packed))

    def slice_cycles(
        self, source: MapSize, depth: int, out_depth: int, engines: ChipEngines, *, first: bool
    ) -> float:
        # Weights of channels that fill a slice are read, too.
        elements = source.width * source.height * round_up(source.channels, depth)
        return elements * self.outputs * ELEMENT_BYTES / MEMORY_BYTES / engines.vaults

    def variants(self, plan: LayerPlan, work: ChipWork, *, first: bool) -> list[LayerPlan]:
        # A vault has whole slices; all vaults have about as many.
        slices = plan.cut.slices
        parts = -(-slices // -(-slices // work.engines.vaults))
        return [replace(plan, cut=replace(plan.cut, parts=parts))]

    def planned(self, plan: LayerPlan, work: ChipWork) -> LayerPlan:
        weights = plan.input.elements * -(-self.outputs // plan.cut.parts)
        products = weights * work.batch / (LANES * work.engines.pes)
        cycles = max(weights * ELEMENT_BYTES / MEMORY_BYTES, products) + LAUNCH_CYCLES
        return replace(plan, cycles=cycles)

    def reads_in_place(self, before: LayerPlan, plan: LayerPlan) -> bool:
        return _in_place(before, plan)

    def moved_elements(
        self, before: LayerPlan, plan: LayerPlan, work: ChipWork, inputs: int
    ) -> float:
        return plan.input.elements * work.batch

    def placed(
        self, plan: LayerPlan, sources: Sequence[StoredMaps | None], work: ChipWork
    ) -> LayerPlan:
        (source,) = sources
        if source is None:
            order = np.arange(plan.input.elements)
        else:
            order = _flat_order(source, in_place=_in_place(source, plan))
        part = plan_dense(
            inputs=len(order),
            outputs=plan.tile.channels * self.packed,
            batch=work.batch,
            sharers=work.engines.pes,
            bits=self.bits,
            narrow=self.narrow,
            scratchpad_bytes=work.engines.scratchpad_bytes,
        )
        return replace(plan, part=DensePart(self._numbers(order, plan.input), part))

    # The step.

    def vault_layout(self, step: KernelStep, vault: int) -> DenseLayout | None:
        if step.target.tile(vault) is None:
            return None
        assert isinstance(step.plan.part, DensePart)
        plan, offsets = step.plan.part.plan, step.target.offsets
        (written,), source = step.sources, None
        if written is not None and _in_place(written, step.plan):
            source = vectors(
                step.engines.address(vault, written.offsets[0]),
                plan.inputs,
                len(written.offsets),
                round_up(written.bytes, COLUMN_BYTES),
            )
        return DenseLayout(
            plan=plan,
            target=vectors(
                step.engines.address(vault, offsets[0]),
                plan.output_elements,
                len(offsets),
                step.target.bytes,
            ),
            fraction=self.fraction,
            relu=self.relu,
            base=step.engines.address(vault, step.offset),
            source=source,
        )

    def program(self, layout: DenseLayout, vault_bits: int) -> Program:
        return dense_program(layout, vault_bits=vault_bits)

    def vault_weights(self, step: KernelStep, weights: Weights, vault: int) -> Weights:
        assert isinstance(step.plan.part, DensePart)
        part = step.part(weights, vault)
        return replace(part, weights=in_order(part.weights, step.plan.part.order))

    def store(self, layout: DenseLayout, memory: Writable, weights: Weights | None) -> None:
        assert weights is not None
        elements = pack(weights.weights, self.bits)
        bias = rounding_bias(weights.bias, len(weights.bias), self.narrow)
        layout.store(memory, elements, bias)

    def store_input(self, step: LayerStep, memory: Writable, images: Elements) -> None:
        assert isinstance(step, KernelStep)
        flat = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
        for layout in filter(None, map(step.layout, range(step.engines.vaults))):
            layout.inputs.store(memory, flat[np.newaxis])

    def _numbers(self, order: NDArray[np.int64], size: MapSize) -> NDArray[np.int64]:
        """Indices of the numbers of elements with these indices, each at its place.

        Parameters:
            size: of the source in elements.
        """
        area = size.width * size.height
        channel, pixel = np.divmod(order, area)
        parts = np.arange(packed(self.bits))
        numbers = (channel[:, np.newaxis] * len(parts) + parts) * area + pixel[:, np.newaxis]
        return np.where(order[:, np.newaxis] < 0, -1, numbers).ravel()

    def moves(self, step: LayerStep, vault: int) -> list[Move]:
        (source,) = step.sources
        assert isinstance(step, KernelStep)
        layout = step.layout(vault)
        if source is None or layout is None or _in_place(source, step.plan):
            return []
        return _flat_moves(source, layout.inputs, vault)

    def integer(
        self, plan: LayerPlan, sources: Sequence[Elements], weights: Weights | None
    ) -> Elements:
        assert weights is not None
        assert isinstance(plan.part, DensePart)
        order, part = plan.part
        flat = sources[0].transpose(0, 3, 1, 2).reshape(len(sources[0]), -1)
        inputs, ordered = in_order(flat, order), in_order(weights.weights, order)
        chunk = part.chunk * packed(self.bits)
        sums = partial_sums(chunk, inputs, ordered, fraction=self.fraction)
        return dense(sums[np.newaxis], weights.bias, relu=self.relu, narrow=self.narrow)

    def real(self, sources: Sequence[Reals], size: MapSize, parameters: RealParameters) -> Reals:
        real = parameters.real[self.name]
        flat = sources[0].transpose(0, 3, 1, 2).reshape(len(sources[0]), -1)
        # Millions of weights of another type are converted in small parts.
        parts = np.array_split(real.weights, -(-real.weights.size // _CONVERTED))
        products = np.concatenate([flat @ part.astype(flat.dtype).T for part in parts], axis=1)
        sums: Reals = (products + real.bias).reshape(-1, 1, 1, self.outputs)
        return np.maximum(sums, 0) if self.relu else sums
