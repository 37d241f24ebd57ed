"""Balance of weights between layers: factors of two by channel, which change no output.

All weights of a layer have one fraction (docs/decisions/kernels.md), so that
one large weight takes bits from all others. Where a layer's outputs go into a layer with weights,
a channel may be multiplied by a power of two in the first and divided by it in the second, as ReLU
keeps positive factors. Source: M. Nagel and others, Data-Free Quantization Through Weight
Equalization and Bias Correction, ICCV 2019, section 4.1.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from microkernels.networks.network import Network
from microkernels.networks.parameters import Real, Reals

from .model import Model, real_layers

__all__ = ["balanced"]


def _pairs(model: Model) -> list[tuple[str, str]]:
    """Layers with weights, each with the only reader of its outputs, which has weights too."""
    network = model.network
    layers = {layer.name: layer for layer in network.layers}
    outputs = {port.layer for port in model.outputs}
    found = []
    for layer in network.layers:
        users = network.users(layer.name)
        if not layer.mixes_channels or len(users) != 1 or layer.name in outputs:
            continue
        if layers[users[0].name].mixes_channels:
            found.append((layer.name, users[0].name))
    return found


def _by_channel(network: Network, name: str, weights: Reals) -> Reals:
    """Weights of a layer as outputs x pixels x channels of its source."""
    (source,) = network.sources[name]
    size = network.sizes[source]
    if weights.ndim == 2:
        # Flattened channel by channel.
        return weights.reshape(len(weights), size.channels, -1).swapaxes(1, 2)
    return weights.reshape(len(weights), -1, size.channels)


def balanced(model: Model, given: Mapping[str, Reals]) -> Model:
    """The model with balanced weights.

    A channel is multiplied only as far as neither its elements on the data nor its weights exceed
    those of the layer's other channels, and as the largest weight of the second layer becomes
    smaller.

    Parameters:
        given: images x height x width x channels real numbers of each input and constant, by layer.
    """
    pairs = _pairs(model)
    if not pairs:
        return model
    largest = {
        layer.name: np.abs(values).reshape(-1, values.shape[-1]).max(axis=0)
        for layer, values in real_layers(model, given)
    }
    real = dict(model.real)
    for first, second in pairs:
        own, reader = real[first], real[second]
        rows = np.abs(own.weights).reshape(len(own.bias), -1).max(axis=1)
        elements = np.maximum(largest[first], np.abs(own.bias))
        held = _by_channel(model.network, second, reader.weights)
        columns = np.abs(held).max(axis=(0, 1))
        with np.errstate(divide="ignore"):
            room = np.minimum(
                np.log2(np.maximum(elements.max(), 1e-30) / np.maximum(elements, 1e-30)),
                np.log2(np.maximum(rows.max(), 1e-30) / np.maximum(rows, 1e-30)),
            )
            room = np.floor(room)
            # The largest weight that must remain, and what each channel needs to be below it.
            least = (columns * np.exp2(-room)).max()
            if least <= 0:
                continue
            wanted = np.ceil(np.log2(np.maximum(columns, 1e-30) / least))
        factors = np.exp2(np.clip(wanted, 0, room))
        real[first] = Real(
            weights=own.weights * factors.reshape(-1, *(1,) * (own.weights.ndim - 1)),
            bias=own.bias * factors,
        )
        scaled = held / factors
        if reader.weights.ndim == 2:
            scaled = scaled.swapaxes(1, 2)
        real[second] = Real(weights=scaled.reshape(reader.weights.shape), bias=reader.bias)
        largest[first] = largest[first] * factors
    return replace(model, real=real)
