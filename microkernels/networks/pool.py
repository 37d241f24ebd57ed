"""Pooling."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from microkernels.common.feature_map import FeatureMap
from microkernels.common.fixed_point import ELEMENT_BYTES, Elements, Reals, lowest_element
from microkernels.nn.pool import PoolLayout, window_fits
from microkernels.nn.pool_shape import PoolShape, pool
from microkernels.runtime.ring import ChipEngines

from .families import WindowLayer, surrounded
from .layer import ChipWork, Constructor, LayerPlan
from .maps import MapSize, Size2, Windows, from_memory, in_memory
from .parameters import Peaks, RealParameters, Weights

#: For estimates: an engine's cycles per output and per column of a window; bytes per cycle of its
#: vault's memory.
_OUTPUT_CYCLES, _COLUMN_CYCLES = 60, 22
_BUS_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class Pool(WindowLayer):
    """Pooling (:mod:`microkernels.nn.pool_shape`).

    Attributes:
        window, stride: pixels, the same across and down, or a pair.
        padding: pixels around the map, the same on all sides, or one number per side. Their value
            is the lowest element for a maximum, and 0 for a mean, which includes them.
        mean: compute the mean instead of the maximum.
    """

    keeps_slices = True
    layouts = PoolLayout
    window_name = "window"
    tuples: ClassVar[Mapping[str, Constructor]] = {**WindowLayer.tuples, "window": Size2}

    window: int | Size2 = 2
    stride: int | Size2 = 2
    mean: bool = False

    @property
    def reads_bytes(self) -> bool:
        return not self.mean

    @property
    def _around(self) -> int:
        """Element of the padding."""
        return 0 if self.mean else lowest_element(self.bits)

    def shape(self, size: MapSize) -> PoolShape:
        """Sizes of the layer for an input of ``size``, which includes the padding."""
        across, down = self.window_size
        return self.sized(
            PoolShape, size, window=across, window_down=down, mean=self.mean, bits=self.bits
        )

    def operations(self, plan: LayerPlan) -> int:
        width, height = self.window_size
        return plan.output.elements * (width * height - 1)

    def reads(self, size: MapSize, depth: int, scratchpad_bytes: int) -> bool:
        return window_fits(self.shape(size), depth, scratchpad_bytes=scratchpad_bytes)

    def windows(self, inputs: Sequence[MapSize], output: MapSize) -> tuple[Windows, ...]:
        return self.windows_of(around=self._around, parted=True)

    def planned(self, plan: LayerPlan, work: ChipWork) -> LayerPlan:
        tile, pes = plan.tile, work.engines.pes
        width, height = self.window_size
        slices = -(-tile.channels // plan.out_depth)
        lines = -(-tile.height * slices // pes)
        read = width * height * plan.depth * ELEMENT_BYTES / _BUS_BYTES * pes
        cycles = lines * tile.width * max(_OUTPUT_CYCLES, read, width * _COLUMN_CYCLES)
        return plan.timed(cycles, work)

    def layout(
        self,
        tile: PoolShape,
        sources: Sequence[FeatureMap],
        target: FeatureMap,
        *,
        base: int,
        engines: ChipEngines,
    ) -> PoolLayout:
        layout: PoolLayout = super().layout(tile, sources, target, base=base, engines=engines)
        return replace(layout, instruction_words=engines.instruction_words)

    def integer(
        self, plan: LayerPlan, sources: Sequence[Elements], weights: Weights | None
    ) -> Elements:
        shape, channels = self.shape(plan.input), sources[0].shape[-1]
        images = surrounded(in_memory(sources[0], self.bits), self.sides, self._around)
        outputs = np.stack([pool(shape, image[np.newaxis]) for image in images])
        return from_memory(outputs, self.bits, channels)

    def real(self, sources: Sequence[Reals], size: MapSize, parameters: RealParameters) -> Reals:
        (values,) = sources
        if self.mean:
            width, height = self.window_size
            return self._sums(values, size) / (width * height)
        shape = (len(values), size.height, size.width, size.channels)
        largest = np.full(shape, -np.inf)
        for _, _, view in self.views(values, size, -np.inf):
            np.maximum(largest, view, out=largest)
        return largest

    def _sums(self, values: Reals, size: MapSize) -> Reals:
        total = np.zeros((len(values), size.height, size.width, size.channels))
        for _, _, view in self.views(values, size, 0.0):
            total += view
        return total

    @property
    def needs_source(self) -> bool:
        return self.mean

    def peaks(
        self, sources: Sequence[Reals], largest: float, size: MapSize, parameters: RealParameters
    ) -> Peaks:
        if not self.mean:
            return Peaks()
        return Peaks(inner=float(np.abs(self._sums(sources[0], size)).max()))
