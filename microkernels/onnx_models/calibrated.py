"""A model with its fraction bits, and what its maps are on the calibration data."""

from collections.abc import Mapping
from dataclasses import dataclass

from microkernels.common.fixed_point import Elements
from microkernels.networks.golden import Weights
from microkernels.networks.network import Network

from .formats import Formats
from .model import Model

__all__ = ["Calibrated", "MapReport"]


@dataclass(frozen=True, kw_only=True)
class MapReport:
    """A map on the calibration data.

    Attributes:
        layer: that makes it. node: of the model.
        fraction: bits. weight_fraction: of the layer's weights; None: it has none.
        largest: magnitude of the real numbers.
        error: what the elements cost: beside the mapped layers in floating point, root of the mean
            squared error over that of the mean square.
        saturated: values limited on the way, of ``elements``.
        beyond: arguments of a function outside the range that they have in floating point, where it
            has its value at the end.
    """

    layer: str
    node: str
    fraction: int
    weight_fraction: int | None
    largest: float
    error: float
    saturated: int
    elements: int
    beyond: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibrated:
    """A model with its fraction bits.

    Attributes:
        model: as mapped.
        network, weights, constants: for the kernels; constants have the images of a batch.
        formats: of all maps.
        maps: reports, by layer in order.
        images: numbers of the images that the reports are of.
        outputs: elements of the model's outputs for these images, by layer.
    """

    model: Model
    network: Network
    weights: Mapping[str, Weights]
    constants: Mapping[str, Elements]
    formats: Formats
    maps: tuple[MapReport, ...]
    images: tuple[int, ...]
    outputs: Mapping[str, Elements]

    @property
    def saturated(self) -> int:
        """Values limited on the calibration data."""
        return sum(each.saturated for each in self.maps)
