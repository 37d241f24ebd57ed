"""Fraction bits of the maps and weights of a mapped model.

Layers that only choose, add or limit elements have one fraction for all their maps; such maps are a
*group*. A convolution shifts its sums right by the fraction of its input plus that of its weights
minus that of its output, which must be 0 to 15.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from microkernels.common.fixed_point import FRACTION_LIMIT, HIGHEST
from microkernels.networks.network import Layer, Network
from microkernels.networks.parameters import Fractions, Weights

from .errors import ModelError
from .model import Model

__all__ = ["MOST_MAGNITUDE", "Formats", "fraction_for", "groups", "with_fractions"]

#: Fractions of maps: beyond these, numbers are too small or too large for any scale.
_LEAST, _MOST = -64, 64
#: The largest magnitude of a map's numbers.
MOST_MAGNITUDE = (HIGHEST + 0.5) * 2.0**-_LEAST


def fraction_for(magnitude: float) -> int:
    """The most fraction bits with which numbers of this magnitude are elements."""
    if magnitude == 0:
        return FRACTION_LIMIT
    if not np.isfinite(magnitude):
        raise ModelError("a map has infinite numbers on the calibration data")
    # 32767.5 is limited by half a unit, as if it were rounded.
    return int(np.clip(np.floor(np.log2((HIGHEST + 0.5) / magnitude)), _LEAST, _MOST))


def groups(network: Network) -> Mapping[str, str]:
    """Name of each map -> the same name for all whose fraction must be the same."""
    group = {name: name for name in network.sizes}
    for layer in network.layers:
        if not layer.scales:
            same = {group[source] for source in network.sources[layer.name]}
            same.add(group[layer.name])
            into = group[layer.name]
            group = {name: into if of in same else of for name, of in group.items()}
    return group


@dataclass(frozen=True, kw_only=True)
class Formats:
    """Fraction bits of a model.

    Attributes:
        maps: of each map, by the name of its layer or
            :data:`microkernels.networks.network.INPUT`.
        weights: of the weights of each layer that has some, of the factor of each affine one, and
            of the factors of the rows of each that normalises them, but for softmax.
        ranges: least and greatest argument of each layer that is a curve.
    """

    maps: Mapping[str, int]
    weights: Mapping[str, int]
    ranges: Mapping[str, tuple[float, float]]

    def of(self, network: Network, layer: Layer) -> Fractions:
        """Fraction bits of a layer."""
        return Fractions(
            sources=tuple(self.maps[source] for source in network.sources[layer.name]),
            output=self.maps[layer.name],
            weights=self.weights.get(layer.name, 0),
            ends=self.ranges.get(layer.name, (0.0, 0.0)),
        )


def with_fractions(model: Model, formats: Formats, layer: Layer) -> tuple[Layer, Weights | None]:
    """A layer with its fraction bits and constants, and its weights as elements.

    Raises:
        ModelError: products would have to be shifted by more bits than an engine can.
    """
    fractions = formats.of(model.network, layer)
    if layer.shifts and not 0 <= fractions.shift <= FRACTION_LIMIT:
        raise ModelError(f"{layer.name}: products can't be shifted right by {fractions.shift} bits")
    return layer.scaled(fractions, model)
