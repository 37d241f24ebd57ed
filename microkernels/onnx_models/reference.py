"""The layers of a mapped model in floating point, for calibration.

Evaluated with 64-bit numbers from the definitions of ONNX's operators. Tests hold it against
onnxruntime, which shows that the mapping is right.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import erf, sqrt

import numpy as np

from microkernels.networks.network import (
    INPUT,
    Activation,
    Add,
    Combine,
    Conv,
    Dense,
    Depthwise,
    Layer,
    MapSize,
    Multiply,
    Normalize,
    Pool,
    Product,
    Rearrange,
    Source,
)
from microkernels.networks.pairs import pads, pair
from microkernels.nn.element_shape import SLOPE_FRACTION

from .curves import evaluated
from .model import Model, Reals

__all__ = ["centred", "real_layer", "real_layers", "row_factors", "window_sums"]


_ERF = np.frompyfunc(erf, 1, 1)


def real_layers(model: Model, given: Mapping[str, Reals]) -> Iterator[tuple[Layer, Reals]]:
    """Each layer that is computed with its outputs, in order; those that no later layer needs are
    not kept.

    Parameters:
        given: images x height x width x channels real numbers of each input, by its layer.
    """
    network = model.network
    found = dict(given)
    last = {
        source: layer.name for layer in network.layers for source in network.sources[layer.name]
    }
    for layer in network.layers:
        if isinstance(layer, Source):
            continue
        sources = [found[source] for source in network.sources[layer.name]]
        found[layer.name] = real_layer(model, layer, sources, network.sizes[layer.name])
        if layer.name in model.rounded:
            found[layer.name] = np.rint(found[layer.name])
        yield layer, found[layer.name]
        for source in network.sources[layer.name]:
            if source != INPUT and last[source] == layer.name:
                found.pop(source, None)


def _views(
    values: Reals, kernel: tuple[int, int], stride: tuple[int, int], size: MapSize
) -> Iterator[tuple[int, int, Reals]]:
    """Each pixel of the windows: its row, its column, and its values in all windows."""
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            down = slice(row, row + (size.height - 1) * stride[0] + 1, stride[0])
            across = slice(column, column + (size.width - 1) * stride[1] + 1, stride[1])
            yield row, column, values[:, down, across]


def _padded(layer: Conv | Depthwise | Pool, values: Reals, around: float) -> Reals:
    sides = pads(layer.padding)
    widths = ((0, 0), (sides.top, sides.bottom), (sides.left, sides.right), (0, 0))
    return np.pad(values, widths, constant_values=around)


def window_sums(layer: Pool, values: Reals, size: MapSize) -> Reals:
    """Sums of the windows of a mean."""
    window, stride = pair(layer.window), pair(layer.stride)
    total = np.zeros((len(values), size.height, size.width, size.channels))
    kernel, steps = (window.down, window.across), (stride.down, stride.across)
    for _, _, view in _views(_padded(layer, values, 0.0), kernel, steps, size):
        total += view
    return total


def real_layer(model: Model, layer: Layer, sources: Sequence[Reals], size: MapSize) -> Reals:
    """Outputs of one layer, of ``size``, for those of its sources."""
    values = sources[0]
    match layer:
        case Conv():
            own = model.real[layer.name]
            kernel, stride = pair(layer.kernel), pair(layer.stride)
            total = np.broadcast_to(own.bias, (len(values), size.height, size.width, size.channels))
            total = total.copy()
            sizes, steps = (kernel.down, kernel.across), (stride.down, stride.across)
            for row, column, view in _views(_padded(layer, values, 0.0), sizes, steps, size):
                total += view @ own.weights[:, row, column].T
            return np.maximum(total, 0) if layer.relu else total
        case Depthwise():
            own = model.real[layer.name]
            kernel, stride = pair(layer.kernel), pair(layer.stride)
            total = np.broadcast_to(own.bias, (len(values), size.height, size.width, size.channels))
            total = total.copy()
            sizes, steps = (kernel.down, kernel.across), (stride.down, stride.across)
            for row, column, view in _views(_padded(layer, values, 0.0), sizes, steps, size):
                total += view * own.weights[:, row, column]
            return np.maximum(total, 0) if layer.relu else total
        case Dense():
            own = model.real[layer.name]
            flat = values.transpose(0, 3, 1, 2).reshape(len(values), -1)
            sums = (flat @ own.weights.T + own.bias).reshape(-1, 1, 1, layer.outputs)
            return np.maximum(sums, 0) if layer.relu else sums
        case Pool(mean=True):
            window = pair(layer.window)
            return window_sums(layer, values, size) / (window.across * window.down)
        case Pool():
            window, stride = pair(layer.window), pair(layer.stride)
            most = np.full((len(values), size.height, size.width, size.channels), -np.inf)
            sizes, steps = (window.down, window.across), (stride.down, stride.across)
            for _, _, view in _views(_padded(layer, values, -np.inf), sizes, steps, size):
                np.maximum(most, view, out=most)
            return most
        case Add():
            total = values + sources[1]
            return np.maximum(total, 0) if layer.relu else total
        case Multiply():
            return values * sources[1]
        case Product():
            one, other = values.transpose(0, 2, 1, 3), sources[1].transpose(0, 2, 3, 1)
            return np.asarray((one @ other).transpose(0, 2, 1, 3))
        case Normalize():
            return _normalized(model, layer, values)
        case Combine():
            by_name = {"subtract": np.subtract, "maximum": np.maximum, "minimum": np.minimum}
            found: Reals = by_name[layer.operation](values, sources[1])
            return found
        case Rearrange():
            index = np.array(layer.order)
            flat = np.concatenate([each.reshape(len(each), -1) for each in sources], axis=1)
            chosen = np.where(index < 0, 0.0, flat[:, np.maximum(index, 0)])
            # The lowest element is only chosen below a maximum.
            chosen[:, index == -2] = -np.abs(flat).max(initial=0.0)
            return chosen.reshape(-1, size.height, size.width, size.channels)
        case Activation():
            return _activated(model, layer, values)
    raise AssertionError(f"{layer.name}: no layer that is computed")


def centred(layer: Normalize, values: Reals) -> Reals:
    """What a layer that normalises rows multiplies by their factors; of softmax, the differences
    from the largest elements, whose exponentials are multiplied."""
    if layer.operation == "rms":
        return values
    of = np.max if layer.operation == "softmax" else np.mean
    return np.asarray(values - of(values, axis=3, keepdims=True))


def row_factors(model: Model, layer: Normalize, values: Reals) -> Reals:
    """Factors of the rows, of another operation than softmax."""
    squares = np.mean(np.square(centred(layer, values)), axis=3, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.asarray(1 / np.sqrt(squares + model.epsilons[layer.name]))


def _normalized(model: Model, layer: Normalize, values: Reals) -> Reals:
    moved = centred(layer, values)
    if layer.operation == "softmax":
        powers = np.exp(moved)
        return np.asarray(powers / powers.sum(axis=3, keepdims=True))
    factors = row_factors(model, layer, values)
    return np.asarray(moved * np.where(np.isfinite(factors), factors, 0.0))


def _activated(model: Model, layer: Activation, values: Reals) -> Reals:
    match layer.function:
        case "relu":
            return np.maximum(values, 0)
        case "absolute":
            return np.abs(values)
        case "affine":
            factor, offset = model.affine[layer.name]
            return values * factor + offset
        case "curve":
            return evaluated(model.curves[layer.name], values)
        case "clip":
            low, high = model.bounds[layer.name]
            return np.clip(values, low, high)
        case "leaky":
            assert layer.slope is not None
            slope = layer.slope / (1 << SLOPE_FRACTION)
            return np.asarray(np.maximum(values, slope * values))
        case "tanh":
            return np.tanh(values)
        case "erf":
            return np.asarray(_ERF(values), np.float64)
        case "gelu":
            return np.asarray(values * (1 + np.asarray(_ERF(values / sqrt(2)), np.float64)) / 2)
        case _:
            # The logistic function, without overflow.
            found: Reals = (np.tanh(values / 2) + 1) / 2
            return found
