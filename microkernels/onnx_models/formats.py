"""Fraction bits of the maps and weights of a mapped model.

A map's element is its real number times two to the power of the map's *fraction*, which may be
negative, or more than 15. Layers that only choose, add or limit elements have one fraction for all
their maps; such maps are a *group*. A convolution shifts its sums right by the fraction of its
input plus that of its weights minus that of its output, which must be 0 to 15.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from microkernels.common.fixed_point import (
    ELEMENT,
    FRACTION_LIMIT,
    HIGHEST,
    LOWEST,
    Elements,
)
from microkernels.networks.golden import Weights
from microkernels.networks.network import (
    Activation,
    Conv,
    Dense,
    Depthwise,
    Layer,
    Multiply,
    Network,
    Normalize,
    Product,
)

from .curves import fitted
from .errors import ModelError
from .model import Model, Reals

__all__ = [
    "MOST_MAGNITUDE",
    "Formats",
    "as_elements",
    "fraction_for",
    "groups",
    "real_of",
    "with_fractions",
]

#: Fractions of maps: beyond these, numbers are too small or too large for any scale.
_LEAST, _MOST = -64, 64
#: The largest magnitude of a map's numbers.
MOST_MAGNITUDE = (HIGHEST + 0.5) * 2.0**-_LEAST


def as_elements(values: Reals, fraction: int) -> Elements:
    """Real numbers as elements with so many fraction bits, rounded to nearest, halves up, and
    limited."""
    scaled = np.floor(np.ldexp(np.asarray(values, np.float64), fraction) + 0.5)
    return np.clip(scaled, LOWEST, HIGHEST).astype(ELEMENT)


def real_of(values: Elements, fraction: int) -> Reals:
    """Elements with so many fraction bits as real numbers."""
    return np.ldexp(values.astype(np.float64), -fraction)


def fraction_for(most: float) -> int:
    """The most fraction bits with which numbers of this magnitude are elements."""
    if most == 0:
        return FRACTION_LIMIT
    if not np.isfinite(most):
        raise ModelError("a map has infinite numbers on the calibration data")
    # 32767.5 is limited by half a unit, as if it were rounded.
    return int(np.clip(np.floor(np.log2((HIGHEST + 0.5) / most)), _LEAST, _MOST))


def groups(network: Network) -> Mapping[str, str]:
    """Name of each map -> the same name for all whose fraction must be the same."""
    group = {name: name for name in network.sizes}
    for layer in network.layers:
        if not _scales(layer):
            same = {group[source] for source in network.sources[layer.name]}
            same.add(group[layer.name])
            into = group[layer.name]
            group = {name: into if held in same else held for name, held in group.items()}
    return group


def _scales(layer: Layer) -> bool:
    """Whether the layer's output may have another fraction than its input."""
    return isinstance(layer, Conv | Dense | Depthwise | Multiply | Normalize | Product) or (
        isinstance(layer, Activation) and layer.function in ("affine", "curve")
    )


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

    def shift(self, network: Network, layer: Layer) -> int:
        """Bits by which a layer that scales shifts its products right."""
        first, *others = (self.maps[source] for source in network.sources[layer.name])
        second = others[0] if others else self.weights[layer.name]
        return first + second - self.maps[layer.name]


def with_fractions(model: Model, formats: Formats, layer: Layer) -> tuple[Layer, Weights | None]:
    """A layer with its fraction bits and constants, and its weights as elements.

    Raises:
        ModelError: products would have to be shifted by more bits than an engine can.
    """
    name = layer.name
    out = formats.maps[name]
    if isinstance(layer, Normalize) and layer.operation == "softmax":
        (source,) = model.network.sources[name]
        return replace(layer, bits=formats.maps[source], factor=out), None
    if isinstance(layer, Activation) and layer.function == "curve":
        (source,) = model.network.sources[name]
        shape = fitted(model.curves[name], *formats.ranges[name], formats.maps[source], out)
        return replace(layer, curve=shape), None
    if _scales(layer):
        shift = formats.shift(model.network, layer)
        if not 0 <= shift <= FRACTION_LIMIT:
            raise ModelError(f"{name}: products can't be shifted right by {shift} bits")
    match layer:
        case Conv() | Dense() | Depthwise():
            own = model.real[name]
            held = Weights(
                weights=as_elements(own.weights, formats.weights[name]),
                bias=as_elements(own.bias, out),
            )
            return replace(layer, fraction=shift), held
        case Multiply() | Product():
            return replace(layer, fraction=shift), None
        case Normalize():
            (source,) = model.network.sources[name]
            bits = formats.maps[source]
            epsilon = round(model.epsilons[name] * 4.0**bits)
            total = bits + formats.weights[name]
            return replace(layer, factor=total, fraction=shift, epsilon=epsilon), None
        case Activation(function="affine"):
            factor, offset = model.affine[name]
            scaled = int(as_elements(np.array(factor), formats.weights[name]))
            moved = int(as_elements(np.array(offset), out))
            return replace(layer, fraction=shift, factor=scaled, offset=moved), None
        case Activation(function="clip"):
            low, high = (int(as_elements(np.array(each), out)) for each in model.bounds[name])
            return replace(layer, low=low, high=high), None
        case Activation(function="tanh" | "sigmoid" | "gelu" | "erf"):
            return replace(layer, fraction=out), None
    return layer, None
