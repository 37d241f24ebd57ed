"""Layers of networks, each with the names of the layers whose output it takes."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import check_fraction
from microkernels.nn.conv_shape import ConvShape
from microkernels.nn.curves import Curve
from microkernels.nn.depthwise import DepthwiseShape
from microkernels.nn.element_shape import FUNCTIONS, ElementShape
from microkernels.nn.pool_shape import PoolShape
from support.checks import shown

from .pairs import Pads, Pair, pads, pair

__all__ = [
    "INPUT",
    "Activation",
    "Add",
    "Combine",
    "Conv",
    "Dense",
    "Depthwise",
    "ElementWise",
    "MapSize",
    "Multiply",
    "Named",
    "Pool",
    "Rearrange",
    "Source",
]

#: Name of a network's input, where the name of a layer is expected.
INPUT = "input"


class MapSize(NamedTuple):
    """Sizes of a feature map; a vector is one pixel of so many channels."""

    width: int
    height: int
    channels: int

    @property
    def elements(self) -> int:
        """Elements in all."""
        return self.width * self.height * self.channels

    def __str__(self) -> str:
        return " x ".join(map(str, self))


@dataclass(frozen=True, kw_only=True)
class Named:
    """What all layers have.

    Attributes:
        name: not empty, without white space, and of one layer alone.
        source: name of the layer whose output it takes, or :data:`INPUT`; "": the layer before.
    """

    name: str
    source: str = ""

    def __post_init__(self) -> None:
        CHECK.fields(self)
        # Launches have names of their own, which are a layer's name and a word.
        if self.name.split() != [self.name] or self.name == INPUT:
            raise KernelError(
                f"a layer can't have the name {shown(self.name)}: a name is not empty, has no "
                f"white space, and is not {INPUT!r}"
            )

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the layers whose output it takes, as they are given."""
        return (self.source,)


def _check_window(name: str, size: int | Pair, stride: int | Pair, padding: int | Pads) -> None:
    for what, value in ((name, size), ("stride", stride)):
        for number in pair(value):
            CHECK.at_least(what, number, 1)
    for number in pads(padding):
        CHECK.at_least("padding", number, 0)


@dataclass(frozen=True, kw_only=True)
class Conv(Named):
    """A convolution (:mod:`microkernels.nn.conv_shape`).

    Attributes:
        filters: at least 1.
        kernel, stride: pixels, the same across and down, or a pair.
        padding: pixels of zeros around the map, the same on all sides, or a number for each.
        fraction: bits by which sums of products are shifted right, 0..15.
        relu: negative outputs become 0.
    """

    filters: int
    kernel: int | Pair = 3
    stride: int | Pair = 1
    padding: int | Pads = 0
    fraction: int
    relu: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_window("kernel", self.kernel, self.stride, self.padding)
        check_fraction(self.fraction)

    def shape(self, size: MapSize) -> ConvShape:
        """Sizes of the layer for an input of ``size`` with the pixels around it."""
        kernel, stride, around = pair(self.kernel), pair(self.stride), pads(self.padding)
        return ConvShape(
            width=size.width + around.left + around.right,
            height=size.height + around.top + around.bottom,
            channels=size.channels,
            filters=self.filters,
            kernel=kernel.across,
            stride=stride.across,
            kernel_down=kernel.other,
            stride_down=stride.other,
        )


@dataclass(frozen=True, kw_only=True)
class Depthwise(Named):
    """A depthwise convolution (:mod:`microkernels.nn.depthwise`): a filter for each channel.

    Attributes:
        kernel, stride, padding, fraction, relu: as of :class:`Conv`.
    """

    kernel: int | Pair = 3
    stride: int | Pair = 1
    padding: int | Pads = 0
    fraction: int
    relu: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_window("kernel", self.kernel, self.stride, self.padding)
        check_fraction(self.fraction)

    def shape(self, size: MapSize) -> DepthwiseShape:
        """Sizes of the layer for an input of ``size`` with the pixels around it."""
        kernel, stride, around = pair(self.kernel), pair(self.stride), pads(self.padding)
        return DepthwiseShape(
            width=size.width + around.left + around.right,
            height=size.height + around.top + around.bottom,
            channels=size.channels,
            across=kernel.across,
            down=kernel.down,
            stride_across=stride.across,
            stride_down=stride.down,
            fraction=self.fraction,
            relu=self.relu,
        )


@dataclass(frozen=True, kw_only=True)
class Pool(Named):
    """Pooling (:mod:`microkernels.nn.pool_shape`).

    Attributes:
        window, stride: pixels, the same across and down, or a pair.
        padding: pixels around the map, the same on all sides, or a number for each. Their value is
            the lowest element for a maximum, and 0 for a mean, which includes them.
        mean: combine by mean instead of maximum.
    """

    window: int | Pair = 2
    stride: int | Pair = 2
    padding: int | Pads = 0
    mean: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_window("window", self.window, self.stride, self.padding)

    def shape(self, size: MapSize) -> PoolShape:
        """Sizes of the layer for an input of ``size`` with the pixels around it."""
        window, stride, around = pair(self.window), pair(self.stride), pads(self.padding)
        return PoolShape(
            width=size.width + around.left + around.right,
            height=size.height + around.top + around.bottom,
            channels=size.channels,
            window=window.across,
            stride=stride.across,
            window_down=window.other,
            stride_down=stride.other,
            mean=self.mean,
        )


@dataclass(frozen=True, kw_only=True)
class Dense(Named):
    """A fully connected layer (:mod:`microkernels.nn.dense_plan`).

    A map as its input is flattened channel by channel, each row by row, as ONNX's Flatten does.

    Attributes:
        outputs: at least 1.
        fraction: bits by which sums of products are shifted right, 0..15.
        relu: negative outputs become 0.
    """

    outputs: int
    fraction: int
    relu: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction(self.fraction)
        CHECK.at_least("outputs", self.outputs, 1)


@dataclass(frozen=True, kw_only=True)
class ElementWise(Named, ABC):
    """A layer whose inputs and output have one size (:mod:`microkernels.nn.element_shape`)."""

    @abstractmethod
    def shape(self, size: MapSize) -> ElementShape:
        """Operation and sizes of the layer for inputs of ``size``."""


@dataclass(frozen=True, kw_only=True)
class _OfTwo(ElementWise):
    """What element-wise layers of two maps have.

    Attributes:
        other: name of the second layer whose output it takes; otherwise as ``source``.
    """

    other: str

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source, self.other)


@dataclass(frozen=True, kw_only=True)
class Add(_OfTwo):
    """The sum of two maps, as of a residual connection.

    Attributes:
        relu: negative sums become 0.
    """

    relu: bool = False

    def shape(self, size: MapSize) -> ElementShape:
        return ElementShape(**size._asdict(), operation="add", relu=self.relu)


@dataclass(frozen=True, kw_only=True)
class Multiply(_OfTwo):
    """The product of two maps, element by element.

    Attributes:
        fraction: bits by which products are shifted right, 0..15.
    """

    fraction: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction(self.fraction)

    def shape(self, size: MapSize) -> ElementShape:
        return ElementShape(**size._asdict(), operation="multiply", fraction=self.fraction)


@dataclass(frozen=True, kw_only=True)
class Combine(_OfTwo):
    """Two maps combined element by element.

    Attributes:
        operation: ``subtract`` (the second from the first), ``maximum`` or ``minimum``.
    """

    operation: str

    def __post_init__(self) -> None:
        super().__post_init__()
        CHECK.one_of("operation", self.operation, ("subtract", "maximum", "minimum"))

    def shape(self, size: MapSize) -> ElementShape:
        return ElementShape(**size._asdict(), operation=self.operation)


@dataclass(frozen=True, kw_only=True)
class Activation(ElementWise):
    """A function of each element.

    Attributes:
        function: one of :data:`microkernels.nn.element_shape.FUNCTIONS`. ``tanh`` and ``sigmoid``
            need engines with the logistic unit.
        fraction, low, high, slope, factor, offset, curve: what the function needs, else None; see
            :class:`microkernels.nn.element_shape.ElementShape`.
    """

    function: str
    fraction: int | None = None
    low: int | None = None
    high: int | None = None
    slope: int | None = None
    factor: int | None = None
    offset: int | None = None
    curve: Curve | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        CHECK.one_of("function", self.function, FUNCTIONS)
        self.shape(MapSize(1, 1, 1))

    def shape(self, size: MapSize) -> ElementShape:
        return ElementShape(
            **size._asdict(),
            operation=self.function,
            fraction=self.fraction,
            low=self.low,
            high=self.high,
            slope=self.slope,
            factor=self.factor,
            offset=self.offset,
            curve=self.curve,
        )


@dataclass(frozen=True, kw_only=True)
class Source(Named):
    """A further map that the host puts into memory: another input, or a constant.

    Attributes:
        size: of the map.
    """

    size: MapSize

    @property
    def sources(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, kw_only=True)
class Rearrange(Named):
    """A map of elements of other maps in any order (:mod:`microkernels.networks.rearrange`).

    Attributes:
        inputs: names of the layers whose outputs it takes, at least one; ``source`` stays empty.
        size: of the map.
        order: for each of its elements, by row, column and channel, the index in all inputs, one
            after the other, or -1 for the constant 0, -2 for the lowest element.
    """

    inputs: tuple[str, ...]
    size: MapSize
    order: tuple[int, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        return self.inputs

    @cached_property
    def index(self) -> NDArray[np.int64]:
        """The order as an array."""
        return np.asarray(self.order, np.int64)

    def check(self, sizes: Sequence[MapSize]) -> None:
        """Check the order for inputs of these sizes.

        Raises:
            KernelError: too few or too many elements, or an index outside the inputs.
        """
        if len(self.order) != self.size.elements:
            raise KernelError(f"order must have {self.size.elements} items, not {len(self.order)}")
        last = sum(size.elements for size in sizes) - 1
        if not -2 <= self.index.min() <= self.index.max() <= last:
            raise KernelError(f"order must have numbers from -2 to {last}")
