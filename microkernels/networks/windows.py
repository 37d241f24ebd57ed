"""Layers of windows: convolutions, over all channels and depthwise, and pooling."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import inf
from typing import ClassVar

import numpy as np

from isa.program import Program
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import FeatureMap, round_up
from microkernels.common.fixed_point import (
    ELEMENT_BYTES,
    FRACTION_LIMIT,
    Elements,
    Reals,
    lowest_element,
    pack,
    packed,
    unpack,
)
from microkernels.common.memory import Writable
from microkernels.nn.conv_kernel import conv_program
from microkernels.nn.conv_layout import ConvLayout
from microkernels.nn.conv_plan import ConvPlan
from microkernels.nn.conv_search import filter_overflow, least_cycles, plan_conv
from microkernels.nn.depthwise import DepthwiseLayout
from microkernels.nn.depthwise_plan import DepthwiseShape, best_strip, depthwise
from microkernels.nn.line import line_program
from microkernels.nn.point import PointLayout, predict_point
from microkernels.nn.pool import PoolLayout, window_fits
from microkernels.nn.window_shape import (
    MOST_BYTE_FRACTION,
    ConvShape,
    PoolShape,
    convolve,
    pool,
    rounding_bias,
)
from microkernels.runtime.ring import ChipEngines

from .families import SumLayer, WeightLayer, WindowLayer, surrounded
from .layer import LANES, LAUNCH_CYCLES, ChipWork, Constructor, LayerPlan
from .maps import BYTE_BITS, MapSize, Size2, Windows, size2
from .parameters import Peaks, RealParameters, Weights

#: Maximum words of a program per column of a convolution's window.
_COLUMN_WORDS = 64
#: For estimates: an engine's cycles per output and per column of a window; bytes per cycle of its
#: vault's memory.
_OUTPUT_CYCLES, _COLUMN_CYCLES = 60, 22
_BUS_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class _Filter(WeightLayer, WindowLayer):
    """Common part of both kinds of convolutions."""

    window_name = "kernel"
    tuples: ClassVar[Mapping[str, Constructor]] = {
        **WindowLayer.tuples,
        "kernel": Size2,
        "dilation": Size2,
    }

    kernel: int | Size2 = 3
    dilation: int | Size2 = 1

    @property
    def gaps(self) -> Size2:
        return size2(self.dilation)

    def _real_sums(
        self, values: Reals, size: MapSize, parameters: RealParameters, *, inner: int | None
    ) -> Reals:
        """Sums of products over groups of ``inner`` channels; None: per channel."""
        real = parameters.real[self.name]
        shape = (len(values), size.height, size.width, size.channels)
        total = np.broadcast_to(real.bias.astype(values.dtype), shape).copy()
        for row, column, view in self.views(values, size, 0.0):
            weights = real.weights[:, row, column]
            if inner is None:
                total += view * weights
                continue
            groups = view.shape[-1] // inner
            # BLAS multiplies two contiguous matrices, not a strided stack of them.
            parts = zip(np.split(view, groups, axis=3), np.split(weights, groups), strict=True)
            products = [part.reshape(-1, inner) @ filters.T for part, filters in parts]
            total += np.concatenate(products, axis=1).reshape(shape)
        return np.maximum(total, 0) if self.relu else total


@dataclass(frozen=True, kw_only=True)
class Conv(SumLayer, _Filter):
    """A convolution (:mod:`microkernels.nn.window_shape`).

    Attributes:
        filters: number of filters, at least 1.
        kernel, stride: pixels, the same across and down, or a pair.
        dilation: pixels from one of a window's to the next, likewise.
        padding: pixels of zeros around the map, the same on all sides, or one number per side.
        inner: channels that a filter reads, for a convolution in groups; None: all.
        fraction, relu, narrow: as for :class:`microkernels.networks.families.SumLayer`.
    """

    filters: int
    inner: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inner is not None:
            CHECK.at_least("inner", self.inner, 1)

    @property
    def reads_bytes(self) -> bool:
        # Pairs of bytes are of one group.
        return self.inner is None or self.inner % packed(BYTE_BITS) == 0

    @property
    def byte_fraction(self) -> int:
        # More take instructions. Products of 16-bit elements need them.
        return MOST_BYTE_FRACTION if self.bits == BYTE_BITS else FRACTION_LIMIT

    @property
    def stripped(self) -> bool:
        """Whether its windows may be contiguous in memory."""
        return max(self.gaps) == 1

    @lru_cache(maxsize=1 << 12)  # noqa: B019
    def shape(self, size: MapSize) -> ConvShape:
        """Sizes of the layer for an input of ``size``, which includes the padding."""
        inner = None if self.inner is None else self.inner // packed(self.bits)
        return self.sized(ConvShape, size, filters=self.filters, inner=inner)

    def output_of(self, size: MapSize) -> MapSize:
        # Of numbers, while groups count elements.
        shape = replace(replace(self, inner=None).shape(size), inner=self.inner)
        return MapSize(shape.out_width, shape.out_height, self.filters)

    def weight_shape(self, source: MapSize) -> tuple[int, ...]:
        width, height = self.taps
        return (self.filters, height, width, self.inner or source.channels)

    def operations(self, plan: LayerPlan) -> int:
        return 2 * self.shape(plan.input).macs * packed(self.bits)

    def _divided(
        self,
        shape: ConvShape,
        depth: int,
        out_depth: int,
        engines: ChipEngines,
        *,
        strips: bool,
        images: int = 1,
    ) -> ConvPlan:
        """The kernel's plan for slices of ``depth`` and ``out_depth`` elements per pixel."""
        return plan_conv(
            shape,
            depth=depth,
            out_depth=min(round_up(shape.filters, self.packed), out_depth * self.packed),
            strips=strips,
            reuse=True,
            bits=self.bits,
            narrow=self.narrow,
            sharers=engines.pes,
            images=images,
            scratchpad_bytes=engines.scratchpad_bytes,
        )

    def slice_cycles(
        self, source: MapSize, depth: int, out_depth: int, engines: ChipEngines, *, first: bool
    ) -> float:
        shape = self.shape(source)
        try:
            plans = [
                self._divided(shape, depth, out_depth, engines, strips=strips)
                for strips in {False, first and self.stripped}
            ]
        except KernelError:
            return inf
        cycles = [plan.predicted_cycles(engines.pes) for plan in plans]
        return min(*cycles, self._point_cycles(shape, depth, out_depth, engines))

    def least_slice_cycles(
        self, source: MapSize, depth: int, out_depth: int, engines: ChipEngines
    ) -> float:
        shape = self.shape(source)
        if (depth, out_depth) == (shape.channels, shape.filters):
            # The kernel for single pixels may be faster.
            return 0.0
        together = min(round_up(shape.filters, self.packed), out_depth * self.packed)
        return least_cycles(shape, depth, together, engines.scratchpad_bytes) / engines.pes

    def _point_cycles(
        self, shape: ConvShape, depth: int, out_depth: int, engines: ChipEngines
    ) -> float:
        """Predicted cycles of the kernel for single pixels (:mod:`microkernels.nn.point`);
        infinite: the layer can't use it."""
        bytes_ = self.bits == BYTE_BITS or self.narrow is not None
        cut = (depth, out_depth) != (shape.channels, shape.filters)
        if bytes_ or cut or not shape.pointwise:
            return inf
        try:
            return predict_point(
                shape, sharers=engines.pes, scratchpad_bytes=engines.scratchpad_bytes
            )
        except KernelError:
            return inf

    def reads(self, size: MapSize, depth: int, scratchpad_bytes: int) -> bool:
        try:
            engines = ChipEngines(scratchpad_bytes=scratchpad_bytes)
            self._divided(self.shape(size), depth, 1, engines, strips=False)
        except KernelError:
            return False
        return True

    def unreadable(self, size: MapSize, depth: int, scratchpad_bytes: int) -> str:
        large = super().unreadable(size, depth, scratchpad_bytes)
        if large and depth == 1:
            raise filter_overflow(self.shape(size), scratchpad_bytes)
        return large

    def windows(self, inputs: Sequence[MapSize], output: MapSize) -> tuple[Windows, ...]:
        return self.windows_of(parted=False)

    def variants(self, plan: LayerPlan, work: ChipWork, *, first: bool) -> list[LayerPlan]:
        plans = super().variants(plan, work, first=first)
        if self.inner is not None:
            # A vault's filters read all groups.
            plans = [cut for cut in plans if cut.cut.parts == 1]
        if not first or not self.stripped:
            return plans
        return [replace(cut, strips=strips) for cut in plans for strips in (False, True)]

    def least_cycles(self, plan: LayerPlan, work: ChipWork) -> float:
        # Planning asks for tens of thousands; a shape takes longer.
        channels = plan.input.channels if self.inner is None else self.inner // self.packed
        width, height = self.taps
        products = width * height * channels * plan.tile.elements * self.packed
        return plan.rounds(work.batch) * products / (LANES * work.engines.pes) + LAUNCH_CYCLES

    def planned(self, plan: LayerPlan, work: ChipWork) -> LayerPlan:
        shape = replace(
            self.shape(plan.input),
            width=plan.region.width,
            height=plan.region.height,
            filters=plan.tile.channels * self.packed,
        )
        images, engines = plan.rounds(work.batch), work.engines
        part = self._divided(
            shape, plan.depth, plan.out_depth, engines, strips=plan.strips, images=images
        )
        cycles = part.predicted_cycles(engines.pes, images) / images
        point = self._point_cycles(shape, plan.depth, plan.out_depth, work.engines)
        if point < cycles and not plan.strips:
            return replace(plan, part=shape).timed(point, work)
        size = part.memory_bytes(engines.pes, images, engines.lines) if engines.lines else 0.0
        return replace(plan, part=part, bytes=size).timed(cycles, work)

    def tile_shape(self, plan: LayerPlan) -> ConvPlan | ConvShape:
        assert isinstance(plan.part, ConvPlan | ConvShape)
        return plan.part

    def layout(
        self,
        tile: ConvPlan | ConvShape,
        sources: Sequence[FeatureMap],
        target: FeatureMap,
        *,
        base: int,
        engines: ChipEngines,
    ) -> ConvLayout | PointLayout:
        make = (
            partial(ConvLayout, plan=tile)
            if isinstance(tile, ConvPlan)
            else partial(PointLayout, shape=tile, scratchpad_bytes=engines.scratchpad_bytes)
        )
        return make(
            source=sources[0],
            target=target,
            fraction=self.fraction,
            relu=self.relu,
            base=base,
            sharers=engines.pes,
        )

    def program(self, layout: ConvLayout | PointLayout, vault_bits: int) -> Program:
        if isinstance(layout, PointLayout):
            return line_program(layout, vault_bits=vault_bits)
        return conv_program(layout, vault_bits=vault_bits)

    def store(
        self, layout: ConvLayout | PointLayout, memory: Writable, weights: Weights | None
    ) -> None:
        assert weights is not None
        elements = pack(weights.weights, self.bits)
        bias = rounding_bias(weights.bias, len(weights.bias), self.narrow)
        layout.store(memory, elements, bias)

    def integer(
        self, plan: LayerPlan, sources: Sequence[Elements], weights: Weights | None
    ) -> Elements:
        assert weights is not None
        tile = self.tile_shape(plan)
        shape = replace(
            self.shape(plan.input), channels=sources[0].shape[-1], inner=weights.weights.shape[-1]
        )
        model = partial(
            convolve,
            shape,
            weights=weights.weights,
            bias=weights.bias,
            depth=tile.channels if isinstance(tile, ConvShape) else tile.depth,
            joined=isinstance(tile, ConvShape) or tile.joined,
            fraction=self.fraction,
            relu=self.relu,
            narrow=self.narrow,
            bits=self.bits,
        )
        return np.stack([model(image) for image in surrounded(sources[0], self.sides, 0)])

    def real(self, sources: Sequence[Reals], size: MapSize, parameters: RealParameters) -> Reals:
        inner = self.inner or sources[0].shape[-1]
        return self._real_sums(sources[0], size, parameters, inner=inner)

    @property
    def long_program(self) -> tuple[str, float]:
        width, height = self.taps
        return f"a window of {width} x {height} pixels", width * _COLUMN_WORDS


@dataclass(frozen=True, kw_only=True)
class Depthwise(_Filter):
    """A depthwise convolution (:mod:`microkernels.nn.depthwise`): one filter per channel.

    Attributes:
        kernel, stride, dilation, padding, fraction, relu: as for :class:`Conv`.
    """

    keeps_slices = True
    leaves_out = True
    reads_bytes = True
    layouts = DepthwiseLayout

    def shape(self, size: MapSize) -> DepthwiseShape:
        """Sizes of the layer for an input of ``size``, which includes the padding."""
        return self.sized(
            DepthwiseShape, size, fraction=self.fraction, relu=self.relu, bits=self.bits
        )

    def weight_shape(self, source: MapSize) -> tuple[int, ...]:
        width, height = self.taps
        return (source.channels, height, width)

    def operations(self, plan: LayerPlan) -> int:
        return 2 * plan.output.elements * self.packed * self.shape(plan.input).taps

    def reads(self, size: MapSize, depth: int, scratchpad_bytes: int) -> bool:
        try:
            best_strip(self.shape(size), depth, scratchpad_bytes=scratchpad_bytes)
        except KernelError:
            return False
        return True

    def slice_cycles(
        self, source: MapSize, depth: int, out_depth: int, engines: ChipEngines, *, first: bool
    ) -> float:
        try:
            strip = best_strip(
                self.shape(source),
                depth,
                sharers=engines.pes,
                scratchpad_bytes=engines.scratchpad_bytes,
            )
        except KernelError:
            return inf
        return strip.cycles(engines.pes)

    def windows(self, inputs: Sequence[MapSize], output: MapSize) -> tuple[Windows, ...]:
        return self.windows_of(parted=True)

    def planned(self, plan: LayerPlan, work: ChipWork) -> LayerPlan:
        strip = best_strip(
            self.tile_shape(plan),
            plan.depth,
            sharers=work.engines.pes,
            scratchpad_bytes=work.engines.scratchpad_bytes,
        )
        return plan.timed(strip.cycles(work.engines.pes), work)

    def store(self, layout: DepthwiseLayout, memory: Writable, weights: Weights | None) -> None:
        assert weights is not None
        layout.store(memory, *self._in_memory(weights))

    def _in_memory(self, weights: Weights) -> tuple[Elements, Elements]:
        """Weights and biases as elements."""
        by_channel = pack(weights.weights.transpose(1, 2, 0), self.bits)
        return by_channel.transpose(2, 0, 1), pack(weights.bias, self.bits)

    def integer(
        self, plan: LayerPlan, sources: Sequence[Elements], weights: Weights | None
    ) -> Elements:
        assert weights is not None
        shape, channels = self.shape(plan.input), sources[0].shape[-1]
        elements = self._in_memory(weights)
        images = surrounded(pack(sources[0], self.bits), self.sides, 0)
        outputs = np.stack([depthwise(shape, image, *elements) for image in images])
        return unpack(outputs, self.bits, channels)

    def real(self, sources: Sequence[Reals], size: MapSize, parameters: RealParameters) -> Reals:
        return self._real_sums(sources[0], size, parameters, inner=None)

    @property
    def long_program(self) -> tuple[str, float]:
        width, height = self.taps
        return f"a window of {width} x {height} pixels", inf


@dataclass(frozen=True, kw_only=True)
class Pool(WindowLayer):
    """Pooling (:mod:`microkernels.nn.window_shape`).

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
        return self.sized(PoolShape, size, mean=self.mean, bits=self.bits)

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
        images = surrounded(pack(sources[0], self.bits), self.sides, self._around)
        outputs = np.stack([pool(shape, image[np.newaxis]) for image in images])
        return unpack(outputs, self.bits, channels)

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
