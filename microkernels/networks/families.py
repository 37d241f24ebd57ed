"""Families of layers: with weights, of maps, of pixels, of windows."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from isa.program import Declared, Program, Span
from isa.run import Launch
from microkernels.common.builder import WORD_BYTES
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES, FeatureMap, round_up
from microkernels.common.fixed_point import (
    FRACTION_LIMIT,
    HIGHEST,
    Elements,
    Reals,
    as_elements,
    check_fraction,
    pack,
    unpack,
)
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import idle_block
from microkernels.nn.line import line_program
from microkernels.nn.window_shape import MOST_NARROW, StridedShape
from microkernels.runtime.ring import ChipEngines

from .layer import ChipWork, Constructor, Layer, LayerPlan, LayerStep
from .maps import (
    BYTE_BITS,
    PIXELS,
    MapSize,
    Pads,
    Size2,
    Windows,
    inside,
    pads,
    size2,
    within,
)
from .moves import Move, map_moves
from .parameters import Fractions, Peaks, RealParameters, Weights

ShapeT = TypeVar("ShapeT", bound=StridedShape)


@dataclass(frozen=True, kw_only=True)
class WeightLayer(Layer):
    """A layer with weights.

    Attributes:
        fraction: bits by which sums of products are shifted right, 0..15.
        relu: negative outputs become 0.
    """

    has_weights = True
    shifts = True

    fraction: int
    relu: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction(self.fraction)

    def peaks(
        self, sources: Sequence[Reals], largest: float, size: MapSize, parameters: RealParameters
    ) -> Peaks:
        return Peaks(inner=float(np.abs(parameters.real[self.name].bias).max()))

    def scaled(
        self, fractions: Fractions, parameters: RealParameters
    ) -> tuple[Layer, Weights | None]:
        real = parameters.real[self.name]
        weights = Weights(
            weights=as_elements(real.weights, fractions.weights, self.bits),
            bias=as_elements(real.bias, fractions.output, self.output_bits),
        )
        return replace(self, fraction=self.shift(fractions)), weights

    def with_relu(self) -> Layer | None:
        return None if self.relu else replace(self, relu=True)


@dataclass(frozen=True, kw_only=True)
class SumLayer(WeightLayer):
    """A layer whose outputs are sums of products over all channels.

    Attributes:
        narrow: bits by which sums are shifted further right to become bytes, 0..8; None: the
            outputs are the sums.
    """

    mixes_channels = True
    narrow: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.narrow is not None:
            CHECK.within("narrow", self.narrow, 0, MOST_NARROW)

    @property
    def byte_fraction(self) -> int:
        """Most fraction bits with outputs of bytes."""
        return FRACTION_LIMIT

    @property
    def reads_bytes(self) -> bool:
        return True

    def of_bits(self, bits: int, output: int) -> Layer:
        if output > BYTE_BITS:
            return replace(self, bits=bits, narrow=None)
        fraction = min(self.fraction, self.byte_fraction)
        return replace(self, bits=bits, narrow=0, fraction=fraction)

    @property
    def output_bits(self) -> int:
        return 16 if self.narrow is None else BYTE_BITS

    def peaks(
        self, sources: Sequence[Reals], largest: float, size: MapSize, parameters: RealParameters
    ) -> Peaks:
        # Sums, to which the bias is added, have more bits than outputs of bytes.
        if self.narrow is not None:
            return Peaks()
        return super().peaks(sources, largest, size, parameters)

    @property
    def most_shift(self) -> int:
        return super().most_shift if self.narrow is None else self.byte_fraction + MOST_NARROW

    def scaled(
        self, fractions: Fractions, parameters: RealParameters
    ) -> tuple[Layer, Weights | None]:
        if self.narrow is None:
            return super().scaled(fractions, parameters)
        # Eight bits need no instruction that shifts sums, which must hold the biases.
        real = parameters.real[self.name]
        largest, out = float(np.abs(real.bias).max(initial=0.0)), fractions.output
        narrow = min(self.shift(fractions), MOST_NARROW)
        while narrow > max(0, self.shift(fractions) - self.byte_fraction) and (
            np.ldexp(largest, out + narrow) > HIGHEST / 2
        ):
            narrow -= 1
        sums = fractions._replace(output=out + narrow)
        half = 1 << narrow >> 1
        weights = Weights(
            weights=as_elements(real.weights, fractions.weights, self.bits),
            bias=np.minimum(as_elements(real.bias, sums.output), HIGHEST - half),
        )
        return replace(self, fraction=self.shift(sums), narrow=narrow), weights


class KernelStep(LayerStep):
    """A step of a layer with a kernel, which runs in each vault."""

    @property
    def layer(self) -> "KernelLayer":
        """The layer."""
        return cast(KernelLayer, self.plan.layer)

    def layout(self, vault: int) -> Any:
        """The layout in a vault; None: it has no work."""
        return self.layer.vault_layout(self, vault)

    @cached_property
    def _first(self) -> int:
        """Bytes of a vault's data, with room for a parameter block."""
        return round_up(self.layout(0).end - self.offset, COLUMN_BYTES)

    @cached_property
    def _block(self) -> int:
        """Bytes of the block after them; 0: the data have their own."""
        if not self.layer.block_last:
            return 0
        size = max(len(self.layout(0).block(0)), len(idle_block(0, self.pes)))
        return round_up(size, COLUMN_BYTES)

    @property
    def _parameters(self) -> int:
        """Offset of the parameter block."""
        return self.offset + (self._first if self._block else 0)

    @property
    def bytes(self) -> int:
        return self._first + self._block + (self._gap if self._block else 0)

    @property
    def _gap(self) -> int:
        """Bytes before the next place, where places can begin at any column."""
        return COLUMN_BYTES if self.engines.alignment == COLUMN_BYTES else 0

    @property
    def launch(self) -> Launch:
        program = self.layer.program(self.layout(0), self.engines.address_bits)
        return self._launch(program, self._parameters)

    @property
    def declared(self) -> Declared:
        if not self._block:
            declared: Declared = self.layout(0).declared
            return declared
        # A program may read one word past its part of a block: between this step's data and the
        # next place, which nothing writes.
        past = WORD_BYTES if self._gap or self.bytes % self.engines.alignment else 0
        block = Span(self._parameters, self._block + past)
        return Declared(constants=(block,), slots=self.pes)

    def write(self, memory: Writable, weights: Weights | None) -> None:
        for vault in range(self.engines.vaults):
            at = self.engines.address(vault, self._parameters)
            layout = self.layout(vault)
            if layout is None:
                memory.write(at, idle_block(at, self.pes))
                continue
            part = None if weights is None else self.layer.vault_weights(self, weights, vault)
            self.layer.store(layout, memory, part)
            if self._block:
                memory.write(at, layout.block(at))


class KernelLayer(Layer):
    """A layer that a kernel computes, in each vault a part."""

    step = KernelStep
    #: The parameter block follows the kernel's data, as vaults have different numbers of images.
    block_last: ClassVar[bool] = False

    @abstractmethod
    def vault_layout(self, step: KernelStep, vault: int) -> Any:
        """The layout in a vault; None: it has no work."""

    @abstractmethod
    def program(self, layout: Any, vault_bits: int) -> Program:
        """The program of all vaults."""

    @abstractmethod
    def store(self, layout: Any, memory: Writable, weights: Weights | None) -> None:
        """Write the constant data, except blocks that follow them, to a vault's ``memory``."""

    def vault_weights(self, step: KernelStep, weights: Weights, vault: int) -> Weights:
        """The weights that a vault needs."""
        return step.part(weights, vault)


@dataclass(frozen=True, kw_only=True)
class MapLayer(KernelLayer):
    """A layer that computes a map from regions of maps of the same slices."""

    block_last = True
    #: Creates the layouts of the layer's kernel.
    layouts: ClassVar[Callable[..., Any]]

    def covers(self, before: LayerPlan, plan: LayerPlan, vaults: int) -> bool:
        if (
            before.layer.holds_inputs
            or before.cut.images != plan.cut.images
            or before.out_depth != plan.depth
        ):
            return False
        return inside(before.cut, plan.cut, plan.windows[0], vaults)

    def moved_elements(
        self, before: LayerPlan, plan: LayerPlan, work: ChipWork, inputs: int
    ) -> float:
        region, size = plan.region, plan.input
        # Pixels around the map do not move.
        width, height = min(region.width, size.width), min(region.height, size.height)
        elements = width * height * region.channels
        if self.covers(before, plan, work.engines.vaults):
            elements -= before.tile.elements
        return elements * plan.rounds(work.batch)

    def reads_in_place(self, before: LayerPlan, plan: LayerPlan) -> bool:
        return not plan.strips and within(before.cut, plan.cut, plan.windows[0])

    def moves(self, step: LayerStep, vault: int) -> list[Move]:
        return [
            move
            for source, target in zip(step.sources, step.inputs, strict=True)
            if source is not None and target is not None
            for move in map_moves(source, target, vault)
        ]

    @abstractmethod
    def tile_shape(self, plan: LayerPlan) -> Any:
        """The shape or plan of the kernel for a vault's tile."""

    def vault_layout(self, step: KernelStep, vault: int) -> Any:
        target = step.target
        if target.tile(vault) is None or target.image(vault, 0) is None:
            return None
        first, *further = [
            self.layout(
                self.tile_shape(step.plan),
                step.read(vault, round_),
                target.map(vault, round_),
                base=step.engines.address(vault, step.offset),
                engines=step.engines,
            )
            for round_ in range(target.rounds)
            if target.image(vault, round_) is not None
        ]
        return first.on_images(further)

    def layout(
        self,
        tile: Any,
        sources: Sequence[FeatureMap],
        target: FeatureMap,
        *,
        base: int,
        engines: ChipEngines,
    ) -> Any:
        """The layout in a vault.

        Parameters:
            tile: as for :meth:`tile_shape`.
            sources, target: maps that it reads and writes.
            base: first address of the remaining data.
            engines: of the chip.
        """
        source, *second = sources
        return type(self).layouts(
            shape=tile,
            source=source,
            target=target,
            base=base,
            sharers=engines.pes,
            scratchpad_bytes=engines.scratchpad_bytes,
            **({"other": second[0]} if second else {}),
        )

    def program(self, layout: Any, vault_bits: int) -> Program:
        return line_program(layout, vault_bits=vault_bits)

    def store(self, layout: Any, memory: Writable, weights: Weights | None) -> None:
        layout.store(memory)


@dataclass(frozen=True, kw_only=True)
class PixelLayer(MapLayer):
    """A layer that computes each output pixel from the pixels at the same place in its sources."""

    keeps_slices = True
    #: Its kernel's golden model, for a shape and one image per source.
    golden: ClassVar[Callable[..., Elements]]

    @abstractmethod
    def shape(self, size: MapSize) -> Any:
        """Operation of the layer, and its sizes if they matter, for inputs of ``size``."""

    def tile_shape(self, plan: LayerPlan) -> Any:
        return self.shape(plan.tile)

    def operations(self, plan: LayerPlan) -> int:
        operations: int = self.shape(plan.input).per_number
        return plan.output.elements * operations

    def integer(
        self, plan: LayerPlan, sources: Sequence[Elements], weights: Weights | None
    ) -> Elements:
        shape, channels = self.shape(plan.input), sources[0].shape[-1]
        stored = [pack(maps, self.bits) for maps in sources]
        outputs = [type(self).golden(shape, *maps) for maps in zip(*stored, strict=True)]
        return unpack(np.stack(outputs), self.bits, channels)

    def output(self, sources: Sequence[tuple[str, MapSize]]) -> MapSize:
        return same_size(sources)

    def windows(self, inputs: Sequence[MapSize], output: MapSize) -> tuple[Windows, ...]:
        return (PIXELS,) * len(inputs)


@dataclass(frozen=True, kw_only=True)
class WindowLayer(MapLayer):
    """A layer that computes each output pixel from a window of its source.

    Attributes:
        stride: pixels from one window to the next, the same across and down, or a pair.
        padding: pixels around the map, the same on all sides, or one number per side; below 0, for
            layers that leave out pixels: as many of the map's outer ones.
    """

    #: Its windows may leave out outer pixels of the map.
    leaves_out: ClassVar[bool] = False

    #: The attribute with the size of a window.
    window_name: ClassVar[str]
    tuples: ClassVar[Mapping[str, Constructor]] = {"stride": Size2, "padding": Pads}

    stride: int | Size2 = 1
    padding: int | Pads = 0

    @property
    def taps(self) -> Size2:
        """Pixels of a window across and down."""
        return size2(getattr(self, self.window_name))

    @property
    def gaps(self) -> Size2:
        """Pixels from one of a window's to the next."""
        return Size2(1, 1)

    @property
    def window_size(self) -> Size2:
        """Size of a window in pixels, including those between its own."""
        (across, down), gaps = self.taps, self.gaps
        return Size2((across - 1) * gaps.width + 1, (down - 1) * gaps.height + 1)

    @property
    def steps(self) -> Size2:
        """Pixels from one window to the next."""
        return size2(self.stride)

    @property
    def sides(self) -> Pads:
        """Padding on each side."""
        return pads(self.padding)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, values in (
            (self.window_name, self.taps),
            ("stride", self.steps),
            ("dilation", self.gaps),
        ):
            for value in values:
                CHECK.at_least(name, value, 1)
        for value in self.sides:
            CHECK.whole("padding", value)
            if not self.leaves_out:
                CHECK.at_least("padding", value, 0)

    def output(self, sources: Sequence[tuple[str, MapSize]]) -> MapSize:
        return self.output_of(same_size(sources))

    @abstractmethod
    def shape(self, size: MapSize) -> StridedShape:
        """Sizes of the layer for an input of ``size``, which includes the padding."""

    def sized(self, kind: Callable[..., ShapeT], size: MapSize, **attributes: Any) -> ShapeT:
        """Like :meth:`shape`: a shape of this class with the layer's map and steps."""
        window: dict[str, Any] = self.around(size)._asdict()
        for name, (across, down) in (
            ("kernel", self.taps),
            ("stride", self.steps),
            ("dilation", self.gaps),
        ):
            window |= {name: across, f"{name}_down": down}
        return kind(**window, **attributes)

    def tile_shape(self, plan: LayerPlan) -> Any:
        return replace(self.shape(plan.input), **plan.region._asdict())

    def output_of(self, size: MapSize) -> MapSize:
        """Size of the output for a source of ``size``."""
        shape = self.shape(size)
        return MapSize(shape.out_width, shape.out_height, size.channels)

    def unreadable(self, size: MapSize, depth: int, scratchpad_bytes: int) -> str:
        if self.reads(size, depth, scratchpad_bytes):
            return ""
        width, height = self.window_size
        return f"a window of {width} x {height} pixels"

    @abstractmethod
    def reads(self, size: MapSize, depth: int, scratchpad_bytes: int) -> bool:
        """Whether an engine can read slices of ``depth`` channels of a map of ``size``."""

    def around(self, size: MapSize) -> MapSize:
        """Size of a map including its padding."""
        left, top, right, bottom = self.sides
        return MapSize(size.width + left + right, size.height + top + bottom, size.channels)

    def windows_of(self, *, around: int = 0, parted: bool) -> tuple[Windows, ...]:
        """The layer's windows; parameters as for :class:`microkernels.networks.maps.Windows`."""
        left, top, _, _ = self.sides
        return (
            Windows(
                kernel=self.window_size,
                stride=self.steps,
                left=left,
                top=top,
                around=around,
                parted=parted,
            ),
        )

    def views(self, values: Reals, size: MapSize, around: float) -> "list[tuple[int, int, Reals]]":
        """Each pixel of the windows: its row, its column, and its values in all windows."""
        padded = surrounded(values, self.sides, around)
        (width, height), (across, down), gaps = self.taps, self.steps, self.gaps
        below, right = (size.height - 1) * down + 1, (size.width - 1) * across + 1
        return [
            (row, column, padded[:, top : top + below : down, left : left + right : across])
            for row, top in enumerate(range(0, height * gaps.height, gaps.height))
            for column, left in enumerate(range(0, width * gaps.width, gaps.width))
        ]


def same_size(sources: Sequence[tuple[str, MapSize]]) -> MapSize:
    """The common size of all these.

    Raises:
        KernelError: they differ.
    """
    (first, size), *further = sources
    for name, other in further:
        if other != size:
            raise KernelError(
                f"the maps must have the same size, but {first} has {size} (width, height, "
                f"channels), {name} {other}"
            )
    return size


def surrounded(images: NDArray[Any], sides: Pads, around: float) -> NDArray[Any]:
    """Images x height x width x channels including the padding."""
    widths = ((0, 0), (sides.top, sides.bottom), (sides.left, sides.right), (0, 0))
    outside = [(max(first, 0), max(last, 0)) for first, last in widths]
    cut = tuple(slice(max(-first, 0), -max(-last, 0) or None) for first, last in widths)
    return np.pad(images, outside, constant_values=around)[cut]
