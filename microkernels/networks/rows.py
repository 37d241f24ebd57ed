"""Layers that work on rows: the channels of a pixel."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements, Reals, check_fraction
from microkernels.nn.product import (
    ProductLayout,
    ProductShape,
    plan_product,
    product,
)
from microkernels.nn.rows import RowsLayout, plan_rows
from microkernels.nn.rows_shape import NormalizeShape, normalize

from .families import MapLayer, PixelLayer
from .layer import ChipWork, Layer, LayerPlan
from .maps import MapSize, Size2, Windows
from .parameters import Fractions, Peaks, RealParameters, Weights

#: Fraction bits of softmax's operands; of other normalisations' operands and their rows' factors;
#: of results.
_SOFTMAX_BITS = (-3, 30)
NORMAL_BITS = (-20, 20)
_RESULT_BITS = (0, 28)


@dataclass(frozen=True, kw_only=True)
class Normalize(PixelLayer):
    """Softmax or normalisation of each pixel's channels (:mod:`microkernels.nn.rows_shape`).

    Attributes:
        operation, factor, fraction, epsilon: as for
            :class:`microkernels.nn.rows_shape.NormalizeShape`.
        source_fraction: for softmax, fraction bits of the source, otherwise 0.
    """

    one_slice = True
    scales = True
    output_limits = _RESULT_BITS
    needs_source = True
    layouts = RowsLayout
    golden = staticmethod(normalize)

    operation: str
    source_fraction: int = 0
    factor: int = 0
    fraction: int | None = None
    epsilon: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.shape(MapSize(1, 1, 1))

    def shape(self, size: MapSize) -> NormalizeShape:
        return NormalizeShape(
            **size._asdict(),
            operation=self.operation,
            source=self.source_fraction,
            factor=self.factor,
            fraction=self.fraction,
            epsilon=self.epsilon,
        )

    def planned(self, plan: LayerPlan, work: ChipWork) -> LayerPlan:
        cycles, _, _ = plan_rows(
            self.tile_shape(plan),
            sharers=work.engines.pes,
            scratchpad_bytes=work.engines.scratchpad_bytes,
        )
        return plan.timed(cycles, work)

    def real(self, sources: Sequence[Reals], size: MapSize, parameters: RealParameters) -> Reals:
        centred = self._centred(sources[0])
        if self.operation == "softmax":
            powers = np.exp(centred)
            return np.asarray(powers / powers.sum(axis=3, keepdims=True))
        return np.asarray(centred * self._factors(centred, parameters))

    def _centred(self, values: Reals) -> Reals:
        """The values multiplied by the rows' factors; for softmax, the differences from the largest
        elements, whose exponentials are multiplied."""
        if self.operation == "rms":
            return values
        of = np.max if self.operation == "softmax" else np.mean
        return np.asarray(values - of(values, axis=3, keepdims=True))

    def _factors(self, centred: Reals, parameters: RealParameters) -> Reals:
        """The rows' factors, for operations other than softmax; 0 where there is none."""
        squares = np.mean(np.square(centred), axis=3, keepdims=True)
        with np.errstate(divide="ignore"):
            factors = np.asarray(1 / np.sqrt(squares + parameters.epsilons[self.name]))
        return np.where(np.isfinite(factors), factors, 0.0)

    @property
    def shifts(self) -> bool:
        return self.operation != "softmax"

    @property
    def source_limits(self) -> tuple[int, int]:
        return _SOFTMAX_BITS if self.operation == "softmax" else NORMAL_BITS

    def peaks(
        self, sources: Sequence[Reals], largest: float, size: MapSize, parameters: RealParameters
    ) -> Peaks:
        centred = self._centred(sources[0])
        peak = float(np.abs(centred).max())
        if self.operation == "softmax":
            return Peaks(source=peak)
        return Peaks(source=peak, factor=float(self._factors(centred, parameters).max()))

    def scaled(
        self, fractions: Fractions, parameters: RealParameters
    ) -> tuple[Layer, Weights | None]:
        (bits,) = fractions.sources
        if self.operation == "softmax":
            return replace(self, source_fraction=bits, factor=fractions.output), None
        epsilon = round(parameters.epsilons[self.name] * 4.0**bits)
        factor = bits + fractions.weights
        return replace(self, factor=factor, fraction=self.shift(fractions), epsilon=epsilon), None


@dataclass(frozen=True, kw_only=True)
class Product(MapLayer):
    """The product of two maps, column by column of pixels (:mod:`microkernels.nn.product`).

    Attributes:
        other: name of the second layer whose output it takes; otherwise like ``source``.
        fraction: bits by which sums of products are shifted right, 0..15.
    """

    one_slice = True
    shifts = True
    layouts = ProductLayout

    other: str
    fraction: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction(self.fraction)

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source, self.other)

    def shape(self, first: MapSize, second: MapSize) -> ProductShape:
        """Sizes of the layer for inputs of these sizes.

        Raises:
            KernelError: the sizes do not fit each other.
        """
        groups = max(first.width, second.width)
        if first.channels != second.channels or {first.width, second.width} - {1, groups}:
            raise KernelError(
                f"maps of {first} and {second} (width, height, channels) can't be multiplied: they "
                "need equal channels, and equal columns or one column"
            )
        return ProductShape(
            groups=groups,
            rows=first.height,
            columns=second.height,
            inner=first.channels,
            fraction=self.fraction,
            shared=(first.width < groups, second.width < groups),
        )

    def output(self, sources: Sequence[tuple[str, MapSize]]) -> MapSize:
        shape = self.shape(*(size for _, size in sources))
        return MapSize(shape.groups, shape.rows, shape.columns)

    def operations(self, plan: LayerPlan) -> int:
        return self.shape(*plan.inputs).operations

    def windows(self, inputs: Sequence[MapSize], output: MapSize) -> tuple[Windows, ...]:
        # Whole columns of the second map.
        pixels = (1, inputs[1].height)
        return tuple(
            Windows(
                kernel=Size2(1, height),
                stride=Size2(int(size.width == output.width), int(number == 0)),
            )
            for number, (size, height) in enumerate(zip(inputs, pixels, strict=True))
        )

    def planned(self, plan: LayerPlan, work: ChipWork) -> LayerPlan:
        cycles, _, _ = plan_product(
            self.tile_shape(plan),
            sharers=work.engines.pes,
            scratchpad_bytes=work.engines.scratchpad_bytes,
        )
        return plan.timed(cycles, work)

    def reads_in_place(self, before: LayerPlan, plan: LayerPlan) -> bool:
        # A vault has whole images.
        return before.cut.sharers == plan.cut.sharers == 1 and before.cut.images == plan.cut.images

    def covers(self, before: LayerPlan, plan: LayerPlan, vaults: int) -> bool:
        return False

    def tile_shape(self, plan: LayerPlan) -> ProductShape:
        return replace(self.shape(*plan.inputs), groups=plan.tile.width, rows=plan.tile.height)

    def integer(
        self, plan: LayerPlan, sources: Sequence[Elements], weights: Weights | None
    ) -> Elements:
        shape = self.shape(*plan.inputs)
        return np.stack([product(shape, *maps) for maps in zip(*sources, strict=True)])

    def real(self, sources: Sequence[Reals], size: MapSize, parameters: RealParameters) -> Reals:
        first, second = sources[0].transpose(0, 2, 1, 3), sources[1].transpose(0, 2, 3, 1)
        return np.asarray((first @ second).transpose(0, 2, 1, 3))

    def scaled(
        self, fractions: Fractions, parameters: RealParameters
    ) -> tuple[Layer, Weights | None]:
        return replace(self, fraction=self.shift(fractions)), None
