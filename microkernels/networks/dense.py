"""Fully connected layers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from isa.declared import Declared
from isa.run import Launch
from microkernels.common.errors import CHECK
from microkernels.common.feature_map import COLUMN_BYTES, round_up
from microkernels.common.fixed_point import ELEMENT_BYTES, Elements
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import idle_block
from microkernels.nn.dense_kernel import dense_program
from microkernels.nn.dense_layout import DenseLayout, Vectors
from microkernels.nn.dense_plan import DenseShape, dense, partial_sums, plan_dense

from .families import WeightLayer, same_size
from .layer import (
    LANES,
    LAUNCH_CYCLES,
    MEMORY_BYTES,
    ChipWork,
    DensePart,
    LayerMaps,
    LayerPlan,
    LayerStep,
)
from .moves import Move, flat_moves, flat_order
from .parameters import RealParameters, Reals, Weights
from .sizes import MapSize
from .stored import OutputMaps

__all__ = ["Dense"]


@dataclass(frozen=True, kw_only=True)
class Dense(WeightLayer):
    """A fully connected layer (:mod:`microkernels.nn.dense_plan`).

    A map given as input is flattened channel by channel, each row by row, like ONNX's Flatten.

    Attributes:
        outputs: number of outputs, at least 1.
        fraction: bits by which sums of products are shifted right, 0..15.
        relu: negative outputs become 0.
    """

    reads_regions = False
    holds_inputs = True
    has_tiles = False
    mixes_channels = True
    input_refused = (
        "a fully connected layer can't take the network's input; use a convolution of the input's "
        "size"
    )

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
        return 2 * plan.input.elements * plan.output.channels

    def output_depth(self, vaults: int) -> int:
        return -(-self.outputs // vaults)

    def variants(self, plan: LayerPlan, work: ChipWork, *, first: bool) -> list[LayerPlan]:
        # A vault has whole slices; all vaults have about as many.
        slices = plan.cut.slices
        parts = -(-slices // -(-slices // work.engines.ring.vaults))
        return [replace(plan, cut=replace(plan.cut, parts=parts))]

    def planned(self, plan: LayerPlan, work: ChipWork) -> LayerPlan:
        weights = plan.input.elements * -(-plan.output.channels // plan.cut.parts)
        products = weights * work.batch / (LANES * work.engines.pes)
        cycles = max(weights * ELEMENT_BYTES / MEMORY_BYTES, products) + LAUNCH_CYCLES
        return replace(plan, cycles=cycles)

    def moved_elements(
        self, before: LayerPlan, plan: LayerPlan, work: ChipWork, inputs: int
    ) -> float:
        return plan.input.elements * work.batch

    def placed(
        self, plan: LayerPlan, sources: Sequence[OutputMaps | None], work: ChipWork
    ) -> LayerPlan:
        (source,) = sources
        assert source is not None
        order = flat_order(source)
        part = plan_dense(
            DenseShape(inputs=len(order), outputs=plan.tile.channels, batch=work.batch),
            sharers=work.engines.pes,
            scratchpad_bytes=work.engines.scratchpad_bytes,
        )
        return replace(plan, part=DensePart(order, part))

    def step(self, maps: LayerMaps) -> LayerStep:
        assert isinstance(maps.plan.part, DensePart)
        return _DenseStep(maps=maps, layer=self, part=maps.plan.part)

    def moves(self, maps: LayerMaps, vault: int, step: LayerStep | None) -> list[Move]:
        if maps.target.tile(vault) is None:
            return []
        (source,) = maps.sources
        assert source is not None
        assert isinstance(step, _DenseStep)
        return flat_moves(source, step.layout(vault).inputs)

    def integer(
        self, plan: LayerPlan, sources: Sequence[Elements], weights: Weights | None
    ) -> Elements:
        assert weights is not None
        assert isinstance(plan.part, DensePart)
        order, part = plan.part
        flat = sources[0].transpose(0, 3, 1, 2).reshape(len(sources[0]), -1)
        inputs = np.where(order < 0, 0, flat[:, order])
        ordered = np.where(order < 0, 0, weights.weights[:, order])
        vectors = DenseShape(inputs=len(order), outputs=self.outputs, batch=len(flat))
        sums = partial_sums(vectors, part.chunk, inputs, ordered, fraction=self.fraction)
        return dense(sums[np.newaxis], weights.bias, relu=self.relu)

    def real(self, sources: Sequence[Reals], size: MapSize, parameters: RealParameters) -> Reals:
        real = parameters.real[self.name]
        flat = sources[0].transpose(0, 3, 1, 2).reshape(len(sources[0]), -1)
        sums: Reals = (flat @ real.weights.T + real.bias).reshape(-1, 1, 1, self.outputs)
        return np.maximum(sums, 0) if self.relu else sums


@dataclass(frozen=True, kw_only=True)
class _DenseStep(LayerStep):
    """A step of a fully connected layer; each vault computes some of the outputs.

    Attributes:
        layer: of the network. part: a vault's part.
    """

    layer: Dense
    part: DensePart

    def layout(self, vault: int) -> DenseLayout:
        """The layout in a vault."""
        offsets = self.maps.target.offsets
        return DenseLayout(
            plan=self.part.plan,
            target=Vectors(
                base=self.ring.address(vault, offsets[0]),
                length=self.part.plan.shape.outputs,
                batch=len(offsets),
                pitch=self.maps.target.bytes,
            ),
            base=self.ring.address(vault, self.offset),
        )

    @property
    def bytes(self) -> int:
        return round_up(self.layout(0).end - self.offset, COLUMN_BYTES)

    @property
    def launches(self) -> tuple[Launch, ...]:
        program = dense_program(
            self.layout(0),
            fraction=self.layer.fraction,
            vault_bits=self.ring.address_bits,
        )
        return (self._launch(program, self.offset),)

    def declared(self, launch: Launch) -> Declared:
        return self.layout(0).declared

    def write(self, memory: Writable, weights: Weights | None) -> None:
        assert weights is not None
        order = self.part.order
        ordered = replace(weights, weights=np.where(order < 0, 0, weights.weights[:, order]))
        for vault in range(self.ring.vaults):
            base = self.ring.address(vault, self.offset)
            if self.maps.target.tile(vault) is None:
                memory.write(base, idle_block(base, self.pes))
                continue
            part = self._part(ordered, vault)
            self.layout(vault).store(memory, part.weights, part.bias, relu=self.layer.relu)
