"""Steps of a network: what each vault holds for a layer, and the launches that execute it.

A step's data lie at the same offset in each vault. Each round of a layer has a parameter block of
its own; weights and biases are there once.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from isa.declared import Declared, Span
from isa.program import Program
from isa.run import Launch
from microkernels.common.builder import WORD_BYTES
from microkernels.common.feature_map import COLUMN_BYTES, round_up
from microkernels.common.fixed_point import Elements
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import idle_block
from microkernels.nn.conv_kernel import conv_program
from microkernels.nn.conv_layout import ConvLayout
from microkernels.nn.conv_plan import ConvPlan
from microkernels.nn.dense_kernel import dense_program
from microkernels.nn.dense_layout import DenseLayout, Vectors
from microkernels.nn.dense_plan import DensePlan
from microkernels.nn.depthwise.layout import DepthwiseLayout
from microkernels.nn.depthwise.shape import DepthwiseShape
from microkernels.nn.element_kernel import element_program
from microkernels.nn.element_layout import ElementLayout
from microkernels.nn.element_shape import ElementShape
from microkernels.nn.pool_kernel import pool_program
from microkernels.nn.pool_layout import PoolLayout
from microkernels.nn.pool_shape import PoolShape
from microkernels.nn.product.layout import ProductLayout
from microkernels.nn.rows.layout import RowsLayout
from microkernels.runtime.ring import VaultRing

from .engines import ChipEngines
from .move_kernel import move_program
from .move_layout import move_block, move_block_bytes
from .moves import Move
from .network import Conv, Dense
from .places import ALIGNMENT
from .stored import InputMaps, OutputMaps

ShapeT = TypeVar("ShapeT", PoolShape, DepthwiseShape)
BareLayout = PoolLayout | ElementLayout | ProductLayout | RowsLayout
MapLayout = ConvLayout | DepthwiseLayout | BareLayout

__all__ = [
    "BareStep",
    "ConvStep",
    "DenseStep",
    "ElementStep",
    "MapStep",
    "MoveStep",
    "PoolStep",
    "Step",
    "tile_shape",
]


@dataclass(frozen=True, kw_only=True)
class Step(ABC):
    """A step on all vaults.

    Attributes:
        layer_name: of the layer.
        engines: of the chip.
    """

    layer_name: str
    engines: ChipEngines

    @property
    def ring(self) -> VaultRing:
        """The vaults."""
        return self.engines.ring

    @property
    def pes(self) -> int:
        """Engines of a vault."""
        return self.engines.pes

    @property
    def name(self) -> str:
        """Name of the first launch; those of further rounds have a number."""
        return self.layer_name

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Bytes that the step needs in each vault."""

    @abstractmethod
    def launches(self, offset: int) -> tuple[Launch, ...]:
        """The launches of the step whose data lie at ``offset`` in each vault."""

    @abstractmethod
    def declared(self, launch: Launch, offset: int) -> Declared:
        """What is fixed with the network in the first vault when ``launch``, one of the step's,
        runs: its parameter block, and flags."""

    def _launch(self, program: Program, parameters: int, round_: int = 0) -> Launch:
        name = f"{self.name} {round_ + 1}" if round_ else self.name
        return Launch(name=name, program=program, parameters=parameters)


@dataclass(frozen=True, kw_only=True)
class MoveStep(Step):
    """Moves of a layer's input.

    Attributes:
        moves: of each vault.
    """

    moves: Sequence[Sequence[Move]]

    @property
    def name(self) -> str:
        return f"{self.layer_name} inputs"

    @cached_property
    def _sizes(self) -> list[int]:
        return [move_block_bytes(moves, self.pes) for moves in self.moves]

    @property
    def bytes(self) -> int:
        return round_up(max(self._sizes), COLUMN_BYTES)

    def launches(self, offset: int) -> tuple[Launch, ...]:
        program = move_program(
            vault_bits=self.ring.address_bits, scratchpad_bytes=self.engines.scratchpad_bytes
        )
        return (self._launch(program, offset),)

    def declared(self, launch: Launch, offset: int) -> Declared:
        return Declared(constants=(Span(offset, self.bytes),), slots=self.pes)

    def write(self, memory: Writable, offset: int) -> None:
        """Put the parameter blocks into ``memory``."""
        for vault, moves in enumerate(self.moves):
            base = self.ring.address(vault, offset)
            memory.write(base, move_block(base, moves, self.pes))


@dataclass(frozen=True, kw_only=True)
class MapStep(Step):
    """A step from maps to maps.

    Attributes:
        target: maps that it writes.
    """

    target: OutputMaps

    @abstractmethod
    def layout(self, vault: int, round_: int, offset: int) -> MapLayout:
        """The layout of a vault."""

    @abstractmethod
    def _program(self, offset: int) -> Program:
        """The program of all rounds."""

    def launches(self, offset: int) -> tuple[Launch, ...]:
        program = self._program(offset)
        return tuple(
            self._launch(program, self._parameters(offset, round_), round_)
            for round_ in range(self.target.rounds)
        )

    @cached_property
    def _first(self) -> int:
        """Bytes of a vault's data with the parameter block of the first round."""
        return round_up(self.layout(0, 0, 0).end, COLUMN_BYTES)

    @cached_property
    def _block(self) -> int:
        """Bytes of a parameter block."""
        size = max(len(self.layout(0, 0, 0).block(0)), len(idle_block(0, self.pes)))
        return round_up(size, COLUMN_BYTES)

    @property
    def bytes(self) -> int:
        return self._first + self.target.rounds * self._block

    def declared(self, launch: Launch, offset: int) -> Declared:
        # A program may read a word past its part of a block: the next round's block, or what is
        # between this step's data and the next place, which nothing writes.
        last = launch.parameters + self._block == offset + self.bytes
        past = WORD_BYTES if not last or self.bytes % ALIGNMENT else 0
        block = Span(launch.parameters, self._block + past)
        return Declared(constants=(block,), slots=self.pes)

    def _parameters(self, offset: int, round_: int) -> int:
        return offset + self._first + round_ * self._block

    def _write_blocks(self, memory: Writable, offset: int) -> None:
        for vault in range(self.ring.vaults):
            for round_ in range(self.target.rounds):
                at = self.ring.address(vault, self._parameters(offset, round_))
                works = self.target.tile(vault) is not None
                if works and self.target.image(vault, round_) is not None:
                    block = self.layout(vault, round_, offset).block(at)
                else:
                    block = idle_block(at, self.pes)
                memory.write(at, block)


@dataclass(frozen=True, kw_only=True)
class ConvStep(MapStep):
    """A convolution.

    Attributes:
        source: maps that it reads.
        layer: of the network. plan: of a tile.
    """

    source: InputMaps
    layer: Conv
    plan: ConvPlan

    def layout(self, vault: int, round_: int, offset: int) -> ConvLayout:
        return ConvLayout(
            plan=self.plan,
            source=self.source.map(vault, round_),
            target=self.target.map(vault, round_),
            base=self.ring.address(vault, offset),
            sharers=self.pes,
        )

    def _program(self, offset: int) -> Program:
        return conv_program(
            self.layout(0, 0, offset),
            fraction=self.layer.fraction,
            vault_bits=self.ring.address_bits,
        )

    def write(self, memory: Writable, offset: int, weights: Elements, bias: Elements) -> None:
        """Put parameter blocks, weights and biases of all vaults into ``memory``."""
        self._write_blocks(memory, offset)
        filters = self.plan.shape.filters
        for vault in range(self.ring.vaults):
            tile = self.target.tile(vault)
            if tile is None:
                continue
            part = slice(tile.channel, tile.channel + tile.channels)
            more = filters - tile.channels
            self.layout(vault, 0, offset).store(
                memory,
                np.pad(weights[part], ((0, more), (0, 0), (0, 0), (0, 0))),
                np.pad(bias[part], (0, more)),
                relu=self.layer.relu,
            )


@dataclass(frozen=True, kw_only=True)
class BareStep(MapStep):
    """A step from maps to maps without weights."""

    @abstractmethod
    def layout(self, vault: int, round_: int, offset: int) -> BareLayout:
        """The layout of a vault."""

    def write(self, memory: Writable, offset: int) -> None:
        """Put parameter blocks and constants of all vaults into ``memory``."""
        self._write_blocks(memory, offset)
        for vault in range(self.ring.vaults):
            if self.target.tile(vault) is not None:
                self.layout(vault, 0, offset).store(memory)


@dataclass(frozen=True, kw_only=True)
class PoolStep(BareStep):
    """Pooling.

    Attributes:
        source: maps that it reads.
        shape: of a tile.
    """

    source: InputMaps
    shape: PoolShape

    def layout(self, vault: int, round_: int, offset: int) -> PoolLayout:
        return PoolLayout(
            shape=self.shape,
            source=self.source.map(vault, round_),
            target=self.target.map(vault, round_),
            base=self.ring.address(vault, offset),
            sharers=self.pes,
            scratchpad_bytes=self.engines.scratchpad_bytes,
            instruction_words=self.engines.instruction_words,
        )

    def _program(self, offset: int) -> Program:
        return pool_program(self.layout(0, 0, offset), vault_bits=self.ring.address_bits)


@dataclass(frozen=True, kw_only=True)
class ElementStep(BareStep):
    """An element-wise layer.

    Attributes:
        sources: maps that it reads, of the layer's inputs in order.
        shape: of a tile.
    """

    sources: Sequence[InputMaps | OutputMaps]
    shape: ElementShape

    def layout(self, vault: int, round_: int, offset: int) -> ElementLayout:
        source, *others = (maps.map(vault, round_) for maps in self.sources)
        return ElementLayout(
            shape=self.shape,
            source=source,
            other=others[0] if others else None,
            target=self.target.map(vault, round_),
            base=self.ring.address(vault, offset),
            sharers=self.pes,
            scratchpad_bytes=self.engines.scratchpad_bytes,
        )

    def _program(self, offset: int) -> Program:
        return element_program(self.layout(0, 0, offset), vault_bits=self.ring.address_bits)


@dataclass(frozen=True, kw_only=True)
class DenseStep(Step):
    """A fully connected layer; each vault has some of the outputs.

    Attributes:
        layer: of the network. plan: of a vault's part.
        target: the outputs.
        order: index of the input element at each place of the vectors; -1: none.
    """

    layer: Dense
    plan: DensePlan
    target: OutputMaps
    order: NDArray[np.int64]

    def layout(self, vault: int, offset: int) -> DenseLayout:
        """The layout of a vault."""
        offsets = self.target.offsets
        return DenseLayout(
            plan=self.plan,
            source=None,
            target=Vectors(
                base=self.ring.address(vault, offsets[0]),
                length=self.plan.shape.outputs,
                batch=len(offsets),
                pitch=self.target.bytes,
            ),
            base=self.ring.address(vault, offset),
        )

    @property
    def bytes(self) -> int:
        return round_up(self.layout(0, 0).end, COLUMN_BYTES)

    def launches(self, offset: int) -> tuple[Launch, ...]:
        program = dense_program(
            self.layout(0, offset),
            fraction=self.layer.fraction,
            vault_bits=self.ring.address_bits,
        )
        return (self._launch(program, offset),)

    def declared(self, launch: Launch, offset: int) -> Declared:
        return self.layout(0, offset).declared

    def write(self, memory: Writable, offset: int, weights: Elements, bias: Elements) -> None:
        """Put parameter blocks, weights and biases of all vaults into ``memory``."""
        held = np.where(self.order < 0, 0, weights[:, self.order])
        outputs = self.plan.shape.outputs
        for vault in range(self.ring.vaults):
            base = self.ring.address(vault, offset)
            tile = self.target.tile(vault)
            if tile is None:
                memory.write(base, idle_block(base, self.pes))
                continue
            part = slice(tile.channel, tile.channel + tile.channels)
            more = (0, outputs - tile.channels)
            self.layout(vault, offset).store(
                memory,
                np.pad(held[part], (more, (0, 0))),
                np.pad(bias[part], more),
                relu=self.layer.relu,
            )


def tile_shape(shape: ShapeT, source: InputMaps) -> ShapeT:
    """Sizes of a layer that keeps its channels apart, on a vault's maps."""
    whole = source.whole
    return replace(shape, width=whole.width, height=whole.height, channels=whole.channels)
