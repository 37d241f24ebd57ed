"""Small networks for scikit-learn's handwritten digits, in floating point and on the kernels.

Needs scikit-learn, which includes the digits (1,797 of 8 x 8 pixels, values 0 to 16). The networks
were trained on 1,297 of them by ``tests/microkernels/digits``; ``digits.npz`` has the weights.
:data:`NETWORKS` are a CNN and a multi-layer perceptron. The network in network
(:func:`trained_nin`) has a convolution of 3 x 3 pixels, two of 1 x 1, and the mean of all pixels as
the score of a class.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import Elements, to_fixed
from microkernels.networks.parameters import Weights
from microkernels.nn.jobs import conv_job, dense_job, pool_job
from microkernels.nn.window_shape import ConvShape, PoolShape
from microkernels.runtime.job import KernelJob
from support.extras import need

#: Width and height of a digit in pixels, its highest value, and the number of classes.
SIDE = 8
_HIGHEST = 16
CLASSES = 10
#: Fraction bits of the values between layers, and of weights.
ACTIVATION_FRACTION = 8
WEIGHT_FRACTION = 12
#: Number of digits held out from training as the test set.
_TEST_DIGITS = 500
_SPLIT_SEED = 7
#: Vectors per batch of a fully connected layer, and inputs per chunk: fixed, so that the sums of a
#: digit don't depend on the number of digits.
_BATCH = 16
_CHUNK = 16
#: Names of the networks with convolutions and fully connected layers, for :func:`trained`.
NETWORKS = ("CNN", "MLP")
_WEIGHTS = Path(__file__).with_name("digits.npz")
#: Pooling after each convolution.
_WINDOW = 2
_KERNEL = 3


#: Pictures (count x 8 x 8 x 1, 0 to 1) and their labels.
Digits = tuple[Elements, Elements]


def load_digits() -> tuple[Digits, Digits]:
    """scikit-learn's digits for training and for testing, split at random but reproducibly.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    need("sklearn", "handwritten digits")
    from sklearn.datasets import load_digits as load  # type: ignore[import-untyped]

    bunch = load()
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(bunch.target))
    images = (bunch.images / _HIGHEST).reshape(-1, SIDE, SIDE, 1)[order]
    labels = bunch.target[order]
    test = images[:_TEST_DIGITS], labels[:_TEST_DIGITS]
    return (images[_TEST_DIGITS:], labels[_TEST_DIGITS:]), test


@dataclass(frozen=True)
class DigitNetwork:
    """Convolutions of 3 x 3 with padding, ReLU and maximum pooling, then fully connected layers
    with ReLU between them. Without convolutions it is a multi-layer perceptron.

    Attributes:
        convolutions, connected: the layers in order, with real weights: filters x down x across x
            channels, and outputs x inputs.

    Raises:
        KernelError: layers don't fit each other or the digits.
    """

    convolutions: tuple[Weights, ...] = field(default=())
    connected: tuple[Weights, ...] = field(default=())

    def __post_init__(self) -> None:
        for name in ("convolutions", "connected"):
            CHECK.kind(name, getattr(self, name), tuple)
            for layer in getattr(self, name):
                CHECK.kind(f"a layer of {name}", layer, Weights)
        side, channels = SIDE, 1
        for number, layer in enumerate(self.convolutions):
            expected = (len(layer.bias), _KERNEL, _KERNEL, channels)
            if layer.weights.shape != expected:
                raise KernelError(
                    f"weights of convolution {number} must have the shape {expected}, not "
                    f"{layer.weights.shape}"
                )
            side, channels = side // _WINDOW, len(layer.bias)
        length = side * side * channels
        for number, layer in enumerate(self.connected):
            wanted_shape = (len(layer.bias), length)
            if layer.weights.shape != wanted_shape:
                raise KernelError(
                    f"weights of fully connected layer {number} must have the shape "
                    f"{wanted_shape}, not {layer.weights.shape}"
                )
            length = len(layer.bias)
        if length != CLASSES or not self.connected:
            raise KernelError(f"the last layer must have {CLASSES} outputs, not {length}")

    def scores(self, images: Elements) -> Elements:
        """Floating point: count x 10 scores of count x 8 x 8 x 1 pictures.

        Raises:
            KernelError: the pictures have another shape, or there are none.
        """
        values = _checked(images)
        for layer in self.convolutions:
            values = np.maximum(convolved(values, layer), 0)
            values = pooled(values)
        values = values.reshape(len(images), -1)
        for number, layer in enumerate(self.connected):
            values = values @ layer.weights.T + layer.bias
            if number + 1 < len(self.connected):
                values = np.maximum(values, 0)
        return values

    def fixed_scores(self, images: Elements, run: Callable[[KernelJob], Elements]) -> Elements:
        """Fixed point: count x 10 scores, as the kernels compute them.

        Parameters:
            images: count x 8 x 8 x 1 real numbers.
            run: returns the outputs of a job: ``lambda job: job.expected`` for the golden model, or
                those of a simulated machine.

        Raises:
            KernelError: the pictures have another shape, or there are none.
        """
        values = [to_fixed(image, ACTIVATION_FRACTION) for image in _checked(images)]
        for layer in self.convolutions:
            values = [self._convolve(value, layer, run) for value in values]
        vectors = np.stack([value.reshape(-1) for value in values])
        for number, layer in enumerate(self.connected):
            relu = number + 1 < len(self.connected)
            parts = [
                run(_connect(vectors[first : first + _BATCH], layer, relu=relu))
                for first in range(0, len(vectors), _BATCH)
            ]
            vectors = np.concatenate(parts)
        return vectors

    @staticmethod
    def _convolve(
        value: Elements, layer: Weights, run: Callable[[KernelJob], Elements]
    ) -> Elements:
        values = run(_convolution(value, layer))
        height, width, channels = values.shape
        pool = PoolShape(
            width=width, height=height, channels=channels, kernel=_WINDOW, stride=_WINDOW
        )
        return run(pool_job(pool, values[np.newaxis]))


def _checked(images: Elements) -> Elements:
    """``images``, checked to be pictures of digits."""
    if images.shape != (len(images), SIDE, SIDE, 1) or not len(images):
        raise KernelError(
            f"pictures must have the shape (count, {SIDE}, {SIDE}, 1), not {images.shape}"
        )
    return images


def _convolution(value: Elements, layer: Weights, *, relu: bool = True) -> KernelJob:
    height, width, _ = value.shape
    filters, kernel, _, channels = layer.weights.shape
    return conv_job(
        ConvShape(
            width=width,
            height=height,
            channels=channels,
            filters=filters,
            kernel=kernel,
            padding=kernel // 2,
        ),
        value,
        to_fixed(layer.weights, WEIGHT_FRACTION),
        to_fixed(layer.bias, ACTIVATION_FRACTION),
        fraction=WEIGHT_FRACTION,
        relu=relu,
    )


def _connect(vectors: Elements, layer: Weights, *, relu: bool) -> KernelJob:
    return dense_job(
        vectors,
        to_fixed(layer.weights, WEIGHT_FRACTION),
        to_fixed(layer.bias, ACTIVATION_FRACTION),
        fraction=WEIGHT_FRACTION,
        relu=relu,
        chunk=_CHUNK,
    )


def windows(images: Elements) -> Elements:
    """Windows of 3 x 3 pixels: count x height x width x 9 * channels, padded with zeros."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (_KERNEL, _KERNEL), (1, 2))
    moved = views.transpose(0, 1, 2, 4, 5, 3)
    return moved.reshape(*images.shape[:3], -1)


def convolved(images: Elements, layer: Weights) -> Elements:
    """The convolution of ``images`` in floating point, before ReLU."""
    products: Elements = windows(images) @ layer.weights.reshape(len(layer.bias), -1).T
    return np.asarray(products + layer.bias)


def blocks(values: Elements) -> Elements:
    """Blocks of 2 x 2 pixels: count x height / 2 x width / 2 x 4 x channels."""
    count, height, width, channels = values.shape
    cut = values.reshape(count, height // 2, 2, width // 2, 2, channels)
    return cut.transpose(0, 1, 3, 2, 4, 5).reshape(count, height // 2, width // 2, 4, channels)


def pooled(values: Elements) -> Elements:
    """Maxima of blocks of 2 x 2 pixels."""
    maxima: Elements = blocks(values).max(axis=3)
    return maxima


def accuracy(scores: Elements, labels: Elements) -> float:
    """Fraction of digits whose label has the highest score."""
    return float(np.mean(scores.argmax(axis=1) == labels))


@cache
def _layers(name: str, kind: str) -> tuple[Weights, ...]:
    """The layers of a kind (``convolution`` or ``connected``) of a trained network."""
    with np.load(_WEIGHTS) as arrays:
        layers: list[Weights] = []
        while f"{name}/{kind}{len(layers)}/bias" in arrays:
            stem = f"{name}/{kind}{len(layers)}"
            weights, bias = (arrays[f"{stem}/{part}"] for part in ("weights", "bias"))
            layers.append(Weights(weights=weights, bias=bias))
    return tuple(layers)


def trained(name: str) -> DigitNetwork:
    """A trained network.

    Parameters:
        name: one of :data:`NETWORKS`, or ``CNN of 2 epochs``, the same CNN with less training.
    """
    return DigitNetwork(_layers(name, "convolution"), _layers(name, "connected"))


def trained_nin() -> tuple[Weights, ...]:
    """The three convolutions of the network in network: two random ones, and one fitted to the
    digits by least squares."""
    return _layers("NIN", "convolution")


def nin_fixed_scores(
    layers: tuple[Weights, ...], image: Elements, run: Callable[[KernelJob], Elements]
) -> Elements:
    """Fixed point: the 10 scores of a picture, as the kernels compute them.

    Parameters:
        image: 8 x 8 x 1 real numbers.
        run: returns the outputs of a job, as for :meth:`DigitNetwork.fixed_scores`.
    """
    values = to_fixed(image, ACTIVATION_FRACTION)
    for number, layer in enumerate(layers):
        values = run(_convolution(values, layer, relu=number + 1 < len(layers)))
    pooling = PoolShape(width=SIDE, height=SIDE, channels=CLASSES, kernel=SIDE, mean=True)
    return run(pool_job(pooling, values[np.newaxis])).reshape(CLASSES)
