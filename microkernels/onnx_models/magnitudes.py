"""How large the numbers of a model are on the calibration data."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from microkernels.networks.network import Normalize, Pool

from .curves import Function, has_pole
from .errors import ModelError
from .formats import MOST_MAGNITUDE
from .integers import check_integers
from .logistic import LOGISTIC_LIMIT, logistic_operands
from .model import Model, Reals
from .reference import centred, real_layers, row_factors, window_sums

__all__ = ["Magnitudes", "magnitudes", "with_norms"]


class Magnitudes(NamedTuple):
    """What the data show.

    Attributes:
        largest: magnitude of each map, and of what is computed on the way from it.
        factors: largest factor of a row of each layer that normalises rows, but for softmax.
        ranges: least and greatest argument of each layer that is a curve.
    """

    largest: dict[str, float]
    factors: dict[str, float]
    ranges: dict[str, tuple[float, float]]


def _ends(values: Reals) -> tuple[float, float]:
    return float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))


def _range(model: Model, name: str, ends: tuple[float, float], real: Reals) -> tuple[float, float]:
    """The arguments of a curve, whose values are ``real``."""
    if not np.isfinite(real).all():
        raise ModelError(
            f"node {model.origins.get(name, name)}: {model.curves[name].name} has no value for "
            f"some numbers of the calibration data, which are from {ends[0]:g} to {ends[1]:g}"
        )
    if has_pole(model.curves[name], *ends):
        raise ModelError(
            f"node {model.origins.get(name, name)}: {model.curves[name].name} has no value at a "
            f"number among those of the calibration data, which are from {ends[0]:g} to {ends[1]:g}"
        )
    return ends


def with_norms(model: Model, given: Mapping[str, Reals]) -> Model:
    """The model with the bounds of layers that limit magnitudes for norms.

    Parameters:
        given: as of :func:`magnitudes`.
    """
    if not model.norms:
        return model
    bounds, curves = dict(model.bounds), dict(model.curves)
    found = replace(model, bounds=bounds, curves=curves)

    def bind(source: str, values: Reals) -> None:
        largest = float(np.abs(values).max(initial=0.0))
        for name, norm in model.norms.items():
            if source in model.network.sources[name]:
                bounds[name] = (0.0, norm.share * largest)
                least = bounds[name][1] ** norm.power / norm.pixels
                curves[norm.above] = Function("root_from", (norm.power, least))

    for name, values in given.items():
        bind(name, values)
    # Each layer is computed after its bounds were found.
    for layer, real in real_layers(found, given):
        bind(layer.name, real)
    return found


def magnitudes(model: Model, given: Mapping[str, Reals]) -> Magnitudes:
    """How large the numbers of a model are on data.

    Parameters:
        given: images x height x width x channels real numbers of each input and constant, by layer.

    Raises:
        ModelError: a function has no value for some of the numbers, or they are too large.
    """
    network = model.network
    logistic = logistic_operands(network)
    found = {name: float(np.abs(values).max(initial=0.0)) for name, values in given.items()}
    kept = dict(given)
    ends = {name: _ends(values) for name, values in given.items()}
    ranges: dict[str, tuple[float, float]] = {}
    factors: dict[str, float] = {}
    for layer, real in real_layers(model, given):
        ends[layer.name] = _ends(real)
        if layer.name in model.curves:
            (source,) = network.sources[layer.name]
            ranges[layer.name] = _range(model, layer.name, ends[source], real)
        largest = float(np.abs(real).max())
        if layer.name in model.real:
            largest = max(largest, float(np.abs(model.real[layer.name].bias).max()))
        sources = network.sources[layer.name]
        if layer.name in model.affine:
            factor, offset = model.affine[layer.name]
            product = abs(factor) * found[sources[0]]
            largest = max(largest, abs(offset), product)
        if isinstance(layer, Pool) and layer.mean:
            sums = window_sums(layer, kept[sources[0]], network.sizes[layer.name])
            largest = max(largest, float(np.abs(sums).max()))
        if isinstance(layer, Normalize):
            moved = float(np.abs(centred(layer, kept[sources[0]])).max())
            found[sources[0]] = max(found[sources[0]], moved)
            if layer.operation != "softmax":
                own = row_factors(model, layer, kept[sources[0]])
                factors[layer.name] = float(np.where(np.isfinite(own), own, 0.0).max())
        found[layer.name] = largest
        if any(
            (isinstance(user, Normalize) or (isinstance(user, Pool) and user.mean))
            and layer.name in network.sources[user.name]
            for user in network.layers
        ):
            kept[layer.name] = real
    for name, most in found.items():
        if not most <= MOST_MAGNITUDE:
            raise ModelError(
                f"node {model.origins.get(name, name)}: numbers on the calibration data reach "
                f"{most:.3g}; at most {MOST_MAGNITUDE:.3g} have a scale"
            )
    check_integers(model, ends, found)
    limited = {
        name: min(most, LOGISTIC_LIMIT) if name in logistic else most
        for name, most in found.items()
    }
    return Magnitudes(limited, factors, ranges)
