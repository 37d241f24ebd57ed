"""Magnitudes of a model's numbers on the calibration data, balancing of its weights, and the
resulting fraction bits.

Layers that only select, add or limit elements have the same fraction for all their maps, which form
a *group*. A convolution shifts its sums right by the fraction of its input plus that of its weights
minus that of its output, which must be 0 to 15.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from microkernels.common.fixed_point import FRACTION_LIMIT, HIGHEST, NUMBERS, Reals
from microkernels.networks.curves import Function, has_pole
from microkernels.networks.network import Layer, Network
from microkernels.networks.parameters import Fractions, Weights

from .errors import ModelError
from .model import LOGISTIC_LIMIT, MappedModel, logistic_operands, real_layers

#: Range of fractions of maps; beyond it, numbers are too small or too large for any scale.
_LEAST, _MOST = -64, 64
#: Fraction bits by layer; for :data:`microkernels.networks.network.INPUT` those of the map alone.
Formats = Mapping[str, Fractions]
#: Maximum magnitude of a map's numbers.
MOST_MAGNITUDE = (HIGHEST + 0.5) * 2.0**-_LEAST


def fraction_for(magnitude: float, bits: int) -> int:
    """The maximum fraction bits with which numbers of this magnitude fit ``bits``."""
    if magnitude == 0:
        return FRACTION_LIMIT
    if not np.isfinite(magnitude):
        raise ModelError("a map has infinite numbers on the calibration data")
    # Clipping 32767.5 loses half a unit, like rounding.
    most = np.iinfo(NUMBERS[bits]).max + 0.5
    return int(np.clip(np.floor(np.log2(most / magnitude)), _LEAST, _MOST))


def groups(network: Network) -> Mapping[str, str]:
    """Name of each map -> a name shared by all maps that must have the same fraction."""
    group = {name: name for name in network.sizes}
    for layer in network.layers:
        tied = layer.tied(network.sources[layer.name])
        if tied:
            same = {group[source] for source in tied}
            same.add(group[layer.name])
            into = group[layer.name]
            group = {name: into if of in same else of for name, of in group.items()}
    return group


def with_fractions(
    model: MappedModel, formats: Formats, layer: Layer
) -> tuple[Layer, Weights | None]:
    """A layer with its fraction bits and constants, and its weights as elements.

    Raises:
        ModelError: products need a shift by more bits than an engine has.
    """
    fractions = formats[layer.name]
    shift = layer.shift(fractions)
    if layer.shifts and not 0 <= shift <= layer.most_shift:
        raise ModelError(f"{layer.name}: products can't be shifted right by {shift} bits")
    return layer.scaled(fractions, model)


def _pairs(model: MappedModel) -> list[tuple[str, str]]:
    """Pairs of a layer with weights and the only reader of its outputs, which also has weights."""
    network = model.network
    layers = {layer.name: layer for layer in network.layers}
    outputs = {port.layer for port in model.outputs}
    pairs = []
    for layer in network.layers:
        users = network.users(layer.name)
        if not layer.mixes_channels or len(users) != 1 or layer.name in outputs | model.rounded:
            continue
        if not layers[users[0].name].mixes_channels:
            continue
        weights = model.real[users[0].name].weights
        if weights.ndim == 2 or weights.shape[-1] == network.sizes[layer.name].channels:
            pairs.append((layer.name, users[0].name))
    return pairs


def _by_channel(network: Network, name: str, weights: Reals) -> Reals:
    """Weights of a layer as outputs x pixels x channels of its source."""
    (source,) = network.sources[name]
    size = network.sizes[source]
    if weights.ndim == 2:
        # Flattened channel by channel.
        return weights.reshape(len(weights), size.channels, -1).swapaxes(1, 2)
    return weights.reshape(len(weights), -1, size.channels)


def balanced(model: MappedModel, inputs: Mapping[str, Reals]) -> MappedModel:
    """The model with balanced weights.

    A channel is scaled up only while neither its elements on the data nor its weights exceed those
    of the layer's other channels, and only while this reduces the largest weight of the second
    layer.

    Parameters:
        inputs: images x height x width x channels real numbers of each input and constant, by
            layer.
    """
    pairs = _pairs(model)
    if not pairs:
        return model
    largest = {
        layer.name: np.abs(values).reshape(-1, values.shape[-1]).max(axis=0)
        for layer, values in real_layers(model, inputs)
    }
    real = dict(model.real)
    for first, second in pairs:
        writer, reader = real[first], real[second]
        rows = np.abs(writer.weights).reshape(len(writer.bias), -1).max(axis=1)
        elements = np.maximum(largest[first], np.abs(writer.bias))
        by_channel = _by_channel(model.network, second, reader.weights)
        columns = np.abs(by_channel).max(axis=(0, 1))
        with np.errstate(divide="ignore"):
            room = np.minimum(
                np.log2(np.maximum(elements.max(), 1e-30) / np.maximum(elements, 1e-30)),
                np.log2(np.maximum(rows.max(), 1e-30) / np.maximum(rows, 1e-30)),
            )
            room = np.floor(room)
            # The largest weight that must remain, and the factor that brings each channel below it.
            least = (columns * np.exp2(-room)).max()
            if least <= 0:
                continue
            exponents = np.ceil(np.log2(np.maximum(columns, 1e-30) / least))
        factors = np.exp2(np.clip(exponents, 0, room))
        real[first] = Weights(
            weights=writer.weights * factors.reshape(-1, *(1,) * (writer.weights.ndim - 1)),
            bias=writer.bias * factors,
        )
        scaled = by_channel / factors
        if reader.weights.ndim == 2:
            scaled = scaled.swapaxes(1, 2)
        real[second] = Weights(weights=scaled.reshape(reader.weights.shape), bias=reader.bias)
        largest[first] = largest[first] * factors
    return replace(model, real=real)


class Magnitudes(NamedTuple):
    """Results for the calibration data.

    Attributes:
        largest: magnitude of each map, and of intermediate values computed from it.
        factors: largest row factor of each layer that normalises rows, except for softmax.
        ranges: smallest and largest argument of each layer that is a curve.
    """

    largest: dict[str, float]
    factors: dict[str, float]
    ranges: dict[str, tuple[float, float]]


def _ends(values: Reals) -> tuple[float, float]:
    return float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))


def _range(
    model: MappedModel, name: str, ends: tuple[float, float], real: Reals
) -> tuple[float, float]:
    """The range of arguments of a curve, whose values are ``real``."""
    if not np.isfinite(real).all():
        raise ModelError(
            f"node {model.origins.get(name, name)}: {model.curves[name].title} is undefined for "
            f"some of the calibration data, which range from {ends[0]:g} to {ends[1]:g}"
        )
    if has_pole(model.curves[name], *ends):
        raise ModelError(
            f"node {model.origins.get(name, name)}: {model.curves[name].title} has a pole "
            f"within the range of the calibration data, {ends[0]:g} to {ends[1]:g}"
        )
    return ends


def with_norms(model: MappedModel, inputs: Mapping[str, Reals]) -> MappedModel:
    """The model with the bounds of layers that limit magnitudes for norms.

    Parameters:
        inputs: as for :func:`magnitudes`.
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
    # Each layer is computed after its bounds are known.
    for layer, real in real_layers(bounded, inputs):
        bind(layer.name, real)
    return bounded


def magnitudes(model: MappedModel, inputs: Mapping[str, Reals]) -> Magnitudes:
    """Magnitudes of a model's numbers on data.

    Parameters:
        inputs: images x height x width x channels real numbers of each input and constant, by
            layer.

    Raises:
        ModelError: a function is undefined for some of the numbers, or they are too large.
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
        sources = [maps[each] for each in network.sources[name]] if layer.needs_source else []
        within = layer.peaks(sources, peaks[source], network.sizes[name], model)
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
    _check_integers(model, ends, peaks)
    limited = {
        name: min(peak, LOGISTIC_LIMIT) if name in logistic else peak
        for name, peak in peaks.items()
    }
    return Magnitudes(limited, factors, ranges)


def integer_limits(kind: str) -> tuple[int, int]:
    """The smallest and the largest integer of a type, by its name; truth values are 0 and 1."""
    if kind == "bool":
        return 0, 1
    limits = np.iinfo(kind)
    return int(limits.min), int(limits.max)


def _check_integers(
    model: MappedModel, ends: Mapping[str, tuple[float, float]], largest: Mapping[str, float]
) -> None:
    """Refuse integers that must be exact but exceed their type, or elements.

    Parameters:
        ends: smallest and largest number of each layer and input. largest: magnitude, including
            intermediate values.

    Raises:
        ModelError: there are such integers.
    """
    for layer, (tensor, kind) in model.exact.items():
        low, high = ends[layer]
        least, most = integer_limits(kind)
        if low < least or high > most:
            raise ModelError(
                f"tensor {tensor}: on the calibration data its integers are from {low:,.0f} to "
                f"{high:,.0f}, which does not fit {kind}"
            )
        if largest[layer] > HIGHEST:
            raise ModelError(
                f"tensor {tensor}: on the calibration data its integers need {largest[layer]:,.0f}"
                f"; elements hold up to {HIGHEST:,}: end the model in real numbers, by Cast"
            )
