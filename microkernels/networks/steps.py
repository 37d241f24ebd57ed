"""Steps of a network: what each vault holds for a layer, and the launches that execute it.

A step's data lie at the same offset in each vault. Each round of a layer has a parameter block of
its own; weights and biases are there once.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from isa.declared import Declared, Span
from isa.program import Program
from isa.run import Launch
from microkernels.common.builder import WORD_BYTES
from microkernels.common.feature_map import COLUMN_BYTES, FeatureMap, round_up
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import idle_block
from microkernels.runtime.ring import ChipEngines, VaultRing

from .moves import Move, move_block, move_block_bytes, move_program
from .parameters import Weights
from .stored import ALIGNMENT, InputMaps, OutputMaps

__all__ = ["LayerStep", "MapKernel", "MapStep", "MoveStep", "TileMaps", "VaultMaps"]


class TileMaps(Protocol):
    """What a kernel has in a vault's memory: constants, and parameter blocks."""

    @property
    def end(self) -> int:
        """First byte after the constants."""

    def block(self, base: int) -> bytes:
        """The parameter block at ``base``."""


class VaultMaps(NamedTuple):
    """What a kernel's layout is made of, in a vault.

    Attributes:
        sources, target: maps that it reads and writes.
        base: first address of its other data.
        engines: of the chip.
    """

    sources: Sequence[FeatureMap]
    target: FeatureMap
    base: int
    engines: ChipEngines


class MapKernel(Protocol):
    """A layer that computes maps from maps; ``tile`` is its kernel's shape or plan of a tile."""

    @property
    def name(self) -> str:
        """Name of the layer."""

    def layout(self, tile: Any, maps: VaultMaps) -> Any:
        """The layout of a vault."""

    def program(self, layout: Any, vault_bits: int) -> Program:
        """The program of all vaults."""

    def store(self, layout: Any, memory: Writable, weights: Weights | None) -> None:
        """Put what is constant, but for parameter blocks, into a vault's ``memory``."""


@dataclass(frozen=True, kw_only=True)
class LayerStep(ABC):
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

    @abstractmethod
    def write(self, memory: Writable, offset: int, weights: Weights | None) -> None:
        """Put parameter blocks and constants of all vaults into ``memory``.

        Parameters:
            weights: of the layer; None: it has none.
        """

    def _launch(self, program: Program, parameters: int, round_: int = 0) -> Launch:
        name = f"{self.name} {round_ + 1}" if round_ else self.name
        return Launch(name=name, program=program, parameters=parameters)


@dataclass(frozen=True, kw_only=True)
class MoveStep(LayerStep):
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

    def write(self, memory: Writable, offset: int, weights: Weights | None) -> None:
        for vault, moves in enumerate(self.moves):
            base = self.ring.address(vault, offset)
            memory.write(base, move_block(base, moves, self.pes))


@dataclass(frozen=True, kw_only=True)
class MapStep(LayerStep):
    """A step from maps to maps.

    Attributes:
        kernel: the layer. tile: what its kernel must know of a tile.
        sources: maps that it reads. target: maps that it writes.
    """

    kernel: MapKernel
    tile: Any
    sources: Sequence[InputMaps | OutputMaps]
    target: OutputMaps

    def layout(self, vault: int, round_: int, offset: int) -> TileMaps:
        """The layout of a vault."""
        maps = VaultMaps(
            sources=[source.map(vault, round_) for source in self.sources],
            target=self.target.map(vault, round_),
            base=self.ring.address(vault, offset),
            engines=self.engines,
        )
        layout: TileMaps = self.kernel.layout(self.tile, maps)
        return layout

    def launches(self, offset: int) -> tuple[Launch, ...]:
        program = self.kernel.program(self.layout(0, 0, offset), self.ring.address_bits)
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

    def write(self, memory: Writable, offset: int, weights: Weights | None) -> None:
        for vault in range(self.ring.vaults):
            for round_ in range(self.target.rounds):
                at = self.ring.address(vault, self._parameters(offset, round_))
                works = self.target.tile(vault) is not None
                if works and self.target.image(vault, round_) is not None:
                    block = self.layout(vault, round_, offset).block(at)
                else:
                    block = idle_block(at, self.pes)
                memory.write(at, block)
        for vault in range(self.ring.vaults):
            if self.target.tile(vault) is not None:
                layout = self.layout(vault, 0, offset)
                self.kernel.store(layout, memory, self._part(weights, vault))

    def _part(self, weights: Weights | None, vault: int) -> Weights | None:
        """Weights of a vault's channels, with zeros for channels that it lacks."""
        tile = self.target.tile(vault)
        if weights is None or tile is None:
            return None
        part = slice(tile.channel, tile.channel + tile.channels)
        lacking = (0, self.target.whole_tile.channels - tile.channels)
        inner = [(0, 0)] * (weights.weights.ndim - 1)
        return Weights(
            weights=np.pad(weights.weights[part], (lacking, *inner)),
            bias=np.pad(weights.bias[part], lacking),
        )
