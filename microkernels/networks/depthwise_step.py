"""The step of a depthwise convolution."""

from dataclasses import dataclass

import numpy as np

from isa.program import Program
from microkernels.common.fixed_point import Elements
from microkernels.common.memory import Writable
from microkernels.nn.depthwise import DepthwiseLayout, DepthwiseShape
from microkernels.nn.line import line_program

from .network import Depthwise
from .steps import MapStep
from .stored import InputMaps

__all__ = ["DepthwiseStep"]


@dataclass(frozen=True, kw_only=True)
class DepthwiseStep(MapStep):
    """A depthwise convolution.

    Attributes:
        source: maps that it reads.
        layer: of the network. shape: of a tile.
    """

    source: InputMaps
    layer: Depthwise
    shape: DepthwiseShape

    def layout(self, vault: int, round_: int, offset: int) -> DepthwiseLayout:
        return DepthwiseLayout(
            shape=self.shape,
            source=self.source.map(vault, round_),
            target=self.target.map(vault, round_),
            base=self.ring.address(vault, offset),
            sharers=self.pes,
            scratchpad_bytes=self.engines.scratchpad_bytes,
        )

    def _program(self, offset: int) -> Program:
        return line_program(self.layout(0, 0, offset), vault_bits=self.ring.address_bits)

    def write(self, memory: Writable, offset: int, weights: Elements, bias: Elements) -> None:
        """Put parameter blocks, weights and biases of all vaults into ``memory``."""
        self._write_blocks(memory, offset)
        for vault in range(self.ring.vaults):
            tile = self.target.tile(vault)
            if tile is None:
                continue
            part = slice(tile.channel, tile.channel + tile.channels)
            more = (0, self.shape.channels - tile.channels)
            self.layout(vault, 0, offset).store(
                memory,
                np.pad(weights[part], (more, (0, 0), (0, 0))),
                np.pad(bias[part], more),
            )
