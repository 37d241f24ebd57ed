"""Layers of networks that work on rows: the channels of a pixel."""

from dataclasses import dataclass

from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import check_fraction
from microkernels.nn.product import ProductShape
from microkernels.nn.rows_shape import NormalizeShape

from .layers import MapSize, Named

__all__ = ["Normalize", "Product"]


@dataclass(frozen=True, kw_only=True)
class Normalize(Named):
    """Softmax or a normalisation of the channels of each pixel (:mod:`microkernels.nn.rows_shape`).

    Attributes:
        operation, factor, fraction, epsilon: as of
            :class:`microkernels.nn.rows_shape.NormalizeShape`.
        bits: of softmax, fraction bits of the source, else 0.
    """

    operation: str
    bits: int = 0
    factor: int = 0
    fraction: int | None = None
    epsilon: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.shape(MapSize(1, 1, 1))

    def shape(self, size: MapSize) -> NormalizeShape:
        """Operation and sizes of the layer for an input of ``size``."""
        return NormalizeShape(
            **size._asdict(),
            operation=self.operation,
            source=self.bits,
            factor=self.factor,
            fraction=self.fraction,
            epsilon=self.epsilon,
        )


@dataclass(frozen=True, kw_only=True)
class Product(Named):
    """The product of two maps, column by column of pixels (:mod:`microkernels.nn.product`).

    Attributes:
        other: name of the second layer whose output it takes; otherwise as ``source``.
        fraction: bits by which sums of products are shifted right, 0..15.
    """

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
            KernelError: they do not fit each other.
        """
        groups = max(first.width, second.width)
        if first.channels != second.channels or {first.width, second.width} - {1, groups}:
            raise KernelError(
                f"maps of {first} and {second} (width, height, channels) have no product: they "
                "need as many channels, and as many columns or one"
            )
        return ProductShape(
            groups=groups,
            rows=first.height,
            columns=second.height,
            inner=first.channels,
            fraction=self.fraction,
            shared=(first.width < groups, second.width < groups),
        )
