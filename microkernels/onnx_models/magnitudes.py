"""How large the numbers of a model are on the calibration data."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from microkernels.networks.curves import Function, has_pole
from microkernels.networks.parameters import Reals

from .errors import ModelError
from .formats import MOST_MAGNITUDE
from .integers import check_integers
from .model import LOGISTIC_LIMIT, Model, logistic_operands, real_layers

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


def with_norms(model: Model, inputs: Mapping[str, Reals]) -> Model:
    """The model with the bounds of layers that limit magnitudes for norms.

    Parameters:
        inputs: as of :func:`magnitudes`.
    """
    if not model.norms:
        return model
    bounds, curves = dict(model.bounds), dict(model.curves)
    bounded = replace(model, bounds=bounds, curves=curves)

    def bind(source: str, values: Reals) -> None:
        largest = float(np.abs(values).max(initial=0.0))
        for name, norm in model.norms.items():
            if source in model.network.sources[name]:
                bounds[name] = (0.0, norm.share * largest)
                least = bounds[name][1] ** norm.power / norm.pixels
                curves[norm.above] = Function("root_from", (norm.power, least))

    for name, values in inputs.items():
        bind(name, values)
    # Each layer is computed after its bounds were found.
    for layer, real in real_layers(bounded, inputs):
        bind(layer.name, real)
    return bounded


def magnitudes(model: Model, inputs: Mapping[str, Reals]) -> Magnitudes:
    """How large the numbers of a model are on data.

    Parameters:
        inputs: images x height x width x channels real numbers of each input and constant, by
            layer.

    Raises:
        ModelError: a function has no value for some of the numbers, or they are too large.
    """
    network = model.network
    logistic = logistic_operands(network)
    peaks = {name: float(np.abs(values).max(initial=0.0)) for name, values in inputs.items()}
    sources_needed = {
        source
        for layer in network.layers
        if layer.needs_source
        for source in network.sources[layer.name]
    }
    maps = dict(inputs)
    ends = {name: _ends(values) for name, values in inputs.items()}
    ranges: dict[str, tuple[float, float]] = {}
    factors: dict[str, float] = {}
    for layer, real in real_layers(model, inputs):
        name, source = layer.name, network.sources[layer.name][0]
        ends[name] = _ends(real)
        if name in model.curves:
            ranges[name] = _range(model, name, ends[source], real)
        within = layer.peaks(maps.get(source), peaks[source], network.sizes[name], model)
        peaks[source] = max(peaks[source], within.source)
        peaks[name] = max(float(np.abs(real).max()), within.inner)
        if within.factor is not None:
            factors[name] = within.factor
        if name in sources_needed:
            maps[name] = real
    for name, peak in peaks.items():
        if not peak <= MOST_MAGNITUDE:
            raise ModelError(
                f"node {model.origins.get(name, name)}: numbers on the calibration data reach "
                f"{peak:.3g}; at most {MOST_MAGNITUDE:.3g} have a scale"
            )
    check_integers(model, ends, peaks)
    limited = {
        name: min(peak, LOGISTIC_LIMIT) if name in logistic else peak
        for name, peak in peaks.items()
    }
    return Magnitudes(limited, factors, ranges)
