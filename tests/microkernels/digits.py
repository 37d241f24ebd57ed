"""``python -m tests.microkernels.digits FILE``: trains the networks of
:mod:`microkernels.apps.digits` with NumPy, from fixed seeds, and writes their weights.

Networks of layers are trained by gradient descent (Adam) on the cross entropy. The scores of the
network in network are linear in the weights of its third convolution, which are fitted by least
squares.
"""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from microkernels.apps.digits import (
    CLASSES,
    SIDE,
    DigitNetwork,
    Digits,
    blocks,
    convolved,
    load_digits,
    pooled,
    windows,
)
from microkernels.common.fixed_point import Elements
from microkernels.networks.parameters import Weights
from support.files import write_file

#: Filters of each convolution, outputs of each hidden layer, and epochs of each network.
NETWORKS: dict[str, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    "CNN": ((8, 16), (), 20),
    "MLP": ((), (48,), 20),
    "CNN of 2 epochs": ((8, 16), (), 2),
}
_BATCH = 32
_RATE = 3e-3
_MEMORY = (0.9, 0.999)
_TINY = 1e-8
_SEED = 11
_FILTERS = 32
_NIN_SEED = 5
#: Weight of the fit's penalty for large weights.
_RIDGE = 1e-1


def _initial(rng: np.random.Generator, outputs: int, *inputs: int) -> Weights:
    scale = np.sqrt(2 / np.prod(inputs))
    weights = rng.normal(0, scale, (outputs, *inputs))
    return Weights(weights=weights, bias=np.zeros(outputs))


def _batches(count: int, size: int, rng: np.random.Generator) -> Iterator[Elements]:
    """Indices of 0..count - 1 in random order, ``size`` at a time."""
    order = rng.permutation(count)
    for first in range(0, count, size):
        yield order[first : first + size]


def train(digits: Digits, name: str) -> DigitNetwork:
    """A trained network, one of :data:`NETWORKS`."""
    images, labels = digits
    convolutions, hidden, epochs = NETWORKS[name]
    rng = np.random.default_rng(_SEED)
    channels, side = 1, SIDE
    conv = []
    for filters in convolutions:
        conv.append(_initial(rng, filters, 3, 3, channels))
        channels, side = filters, side // 2
    connected, length = [], side * side * channels
    for outputs in (*hidden, CLASSES):
        connected.append(_initial(rng, outputs, length))
        length = outputs
    network = DigitNetwork(tuple(conv), tuple(connected))
    arrays = [
        array
        for layer in (*network.convolutions, *network.connected)
        for array in (layer.weights, layer.bias)
    ]
    moments = [(np.zeros_like(array), np.zeros_like(array)) for array in arrays]
    step = 0
    for _ in range(epochs):
        for batch in _batches(len(labels), _BATCH, rng):
            step += 1
            slopes = _gradient(network, images[batch], labels[batch])
            for array, slope, (mean, square) in zip(arrays, slopes, moments, strict=True):
                mean += (1 - _MEMORY[0]) * (slope - mean)
                square += (1 - _MEMORY[1]) * (slope * slope - square)
                first = mean / (1 - _MEMORY[0] ** step)
                second = square / (1 - _MEMORY[1] ** step)
                array -= _RATE * first / (np.sqrt(second) + _TINY)
    return network


def _gradient(network: DigitNetwork, images: Elements, labels: Elements) -> list[Elements]:
    """Slope of the loss for weights and bias of each layer."""
    inputs, outputs, values = [], [], images
    for layer in network.convolutions:
        inputs.append(values)
        outputs.append(np.maximum(convolved(values, layer), 0))
        values = pooled(outputs[-1])
    shape = values.shape
    vectors = [values.reshape(len(images), -1)]
    for layer in network.connected[:-1]:
        vectors.append(np.maximum(vectors[-1] @ layer.weights.T + layer.bias, 0))
    last = network.connected[-1]
    scores = vectors[-1] @ last.weights.T + last.bias
    likely = np.exp(scores - scores.max(axis=1, keepdims=True))
    slope = likely / likely.sum(axis=1, keepdims=True)
    slope[np.arange(len(labels)), labels] -= 1
    slope /= len(labels)
    slopes: list[Elements] = []
    for layer, vector in zip(reversed(network.connected), reversed(vectors), strict=True):
        slopes = [slope.T @ vector, slope.sum(axis=0), *slopes]
        slope = (slope @ layer.weights) * (vector > 0)
    slope = slope.reshape(shape)
    for layer, value, output in zip(
        reversed(network.convolutions), reversed(inputs), reversed(outputs), strict=True
    ):
        slope = _unpool(slope, output) * (output > 0)
        flat = slope.reshape(-1, slope.shape[-1])
        window = windows(value).reshape(len(flat), -1)
        slopes = [(flat.T @ window).reshape(layer.weights.shape), flat.sum(axis=0), *slopes]
        # The backward pass of a convolution is a convolution with filters rotated by 180 degrees.
        turned = layer.weights[:, ::-1, ::-1].transpose(3, 1, 2, 0)
        slope = convolved(slope, Weights(weights=turned, bias=np.zeros(len(turned))))
    return slopes


def _unpool(slope: Elements, output: Elements) -> Elements:
    """The slope at the pooled values: that of each block goes to its maximum."""
    cut = blocks(output)
    highest = cut.argmax(axis=3)[:, :, :, np.newaxis]
    spread = np.zeros_like(cut)
    np.put_along_axis(spread, highest, slope[:, :, :, np.newaxis], axis=3)
    count, height, width, channels = output.shape
    back = spread.reshape(count, height // 2, width // 2, 2, 2, channels)
    return back.transpose(0, 1, 3, 2, 4, 5).reshape(output.shape)


def nin_hidden(layers: tuple[Weights, ...], images: Elements) -> Elements:
    """Outputs of the first two convolutions for pictures."""
    first, second = layers
    values = np.maximum(convolved(images, first), 0)
    hidden: Elements = np.maximum(values @ second.weights[:, 0, 0].T + second.bias, 0)
    return hidden


def fit_nin(digits: Digits) -> tuple[Weights, ...]:
    """Parameters of the three convolutions."""
    rng = np.random.default_rng(_NIN_SEED)
    first = Weights(
        weights=rng.normal(0, np.sqrt(2 / 9), (_FILTERS, 3, 3, 1)), bias=np.zeros(_FILTERS)
    )
    second = Weights(
        weights=rng.normal(0, np.sqrt(2 / _FILTERS), (_FILTERS, 1, 1, _FILTERS)),
        bias=np.zeros(_FILTERS),
    )
    values = nin_hidden((first, second), digits[0]).mean(axis=(1, 2))
    values = np.column_stack([values, np.ones(len(values))])
    targets = np.eye(CLASSES)[digits[1]] - 1 / CLASSES
    squares = values.T @ values + _RIDGE * np.eye(_FILTERS + 1)
    solution = np.linalg.solve(squares, values.T @ targets).T
    return (
        first,
        second,
        Weights(weights=solution[:, :-1].reshape(CLASSES, 1, 1, _FILTERS), bias=solution[:, -1]),
    )


def arrays(digits: Digits) -> dict[str, Elements]:
    """All weights and biases by network, layer and part, as in the file."""
    networks = {name: train(digits, name) for name in NETWORKS}
    layers = {
        f"{name}/{kind}{number}": layer
        for name, network in networks.items()
        for kind, group in (
            ("convolution", network.convolutions),
            ("connected", network.connected),
        )
        for number, layer in enumerate(group)
    }
    layers |= {f"NIN/convolution{n}": layer for n, layer in enumerate(fit_nin(digits))}
    return {
        f"{name}/{part}": values
        for name, layer in layers.items()
        for part, values in (("weights", layer.weights), ("bias", layer.bias))
    }


if __name__ == "__main__":
    content = io.BytesIO()
    np.savez_compressed(content, **arrays(load_digits()[0]))
    write_file(Path(sys.argv[1]), content.getvalue())
