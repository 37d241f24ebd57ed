"""Training of the digits' networks with NumPy: gradient descent (Adam) on the cross entropy.

``python -m microkernels.apps.digits_train`` trains both and prints their accuracy on the test
digits.
"""

from typing import TypedDict

import numpy as np

from microkernels.common.fixed_point import Elements

from .digits import (
    CLASSES,
    SIDE,
    Digits,
    Network,
    Weights,
    batches,
    blocks,
    convolved,
    load_digits,
    pooled,
    windows,
)

__all__ = ["NETWORKS", "Layers", "accuracy", "train"]


class Layers(TypedDict):
    """Parameters of :func:`train` that make a network."""

    convolutions: tuple[int, ...]
    hidden: tuple[int, ...]


#: The networks by name.
NETWORKS: dict[str, Layers] = {
    "CNN": {"convolutions": (8, 16), "hidden": ()},
    "MLP": {"convolutions": (), "hidden": (48,)},
}
_EPOCHS = 20
_BATCH = 32
_RATE = 3e-3
_MEMORY = (0.9, 0.999)
_TINY = 1e-8
_SEED = 11


def _initial(rng: np.random.Generator, outputs: int, *inputs: int) -> Weights:
    scale = np.sqrt(2 / np.prod(inputs))
    return Weights(rng.normal(0, scale, (outputs, *inputs)), np.zeros(outputs))


def accuracy(scores: Elements, labels: Elements) -> float:
    """Share of the digits whose highest score is that of their label."""
    return float(np.mean(scores.argmax(axis=1) == labels))


def train(
    digits: Digits,
    *,
    convolutions: tuple[int, ...],
    hidden: tuple[int, ...],
    epochs: int = _EPOCHS,
) -> Network:
    """A trained network.

    Parameters:
        convolutions: filters of each convolution, 0 to 3 of them.
        hidden: outputs of each fully connected layer before the last.
        epochs: passes over the training digits, at least 0.

    Raises:
        KernelError: more convolutions than the pictures can be halved.
    """
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
    network = Network(tuple(conv), tuple(connected))
    arrays = [
        array
        for layer in (*network.convolutions, *network.connected)
        for array in (layer.weights, layer.bias)
    ]
    moments = [(np.zeros_like(array), np.zeros_like(array)) for array in arrays]
    step = 0
    for _ in range(epochs):
        for chosen in batches(len(digits.train_labels), _BATCH, rng):
            step += 1
            slopes = _gradient(network, digits.train_images[chosen], digits.train_labels[chosen])
            for array, slope, (mean, square) in zip(arrays, slopes, moments, strict=True):
                mean += (1 - _MEMORY[0]) * (slope - mean)
                square += (1 - _MEMORY[1]) * (slope * slope - square)
                first = mean / (1 - _MEMORY[0] ** step)
                second = square / (1 - _MEMORY[1] ** step)
                array -= _RATE * first / (np.sqrt(second) + _TINY)
    return network


def _gradient(network: Network, images: Elements, labels: Elements) -> list[Elements]:
    """Slope of the loss for weights and bias of each layer."""
    inputs, made, values = [], [], images
    for layer in network.convolutions:
        inputs.append(values)
        made.append(np.maximum(convolved(values, layer), 0))
        values = pooled(made[-1])
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
        reversed(network.convolutions), reversed(inputs), reversed(made), strict=True
    ):
        slope = _unpool(slope, output) * (output > 0)
        flat = slope.reshape(-1, slope.shape[-1])
        window = windows(value).reshape(len(flat), -1)
        slopes = [(flat.T @ window).reshape(layer.weights.shape), flat.sum(axis=0), *slopes]
        # The backward pass of a convolution is a convolution with filters rotated by 180 degrees.
        turned = layer.weights[:, ::-1, ::-1].transpose(3, 1, 2, 0)
        slope = convolved(slope, Weights(turned, np.zeros(len(turned))))
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


def main() -> None:
    """Train both networks; print the accuracy of each on the test digits."""
    digits = load_digits()
    for name, layers in NETWORKS.items():
        network = train(digits, **layers)
        print(f"{name}: {accuracy(network.scores(digits.test_images), digits.test_labels):.1%}")


if __name__ == "__main__":
    main()
