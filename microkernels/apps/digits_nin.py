"""A network in network for scikit-learn's digits: a convolution of 3 x 3 pixels, two of 1 x 1, and
the mean of all pixels as a class's score.

The first two convolutions are random. After them the scores are linear in the weights of the third
convolution, which are fitted to the digits by least squares.
"""

from collections.abc import Callable

import numpy as np

from microkernels.common.fixed_point import Elements, to_fixed
from microkernels.nn.conv_shape import ConvShape
from microkernels.nn.jobs import conv_job, pool_job
from microkernels.nn.pool_shape import PoolShape
from microkernels.runtime.job import KernelJob

from .digits import ACTIVATION_FRACTION, CLASSES, SIDE, WEIGHT_FRACTION, Digits, Weights, convolved

__all__ = ["fit_nin", "nin_fixed_scores", "nin_scores"]

_FILTERS = 32
_SEED = 5
#: Weight of the fit's penalty for large weights.
_RIDGE = 1e-1


def _hidden(images: Elements, layers: tuple[Weights, ...]) -> Elements:
    """Outputs of the first two convolutions for pictures."""
    first, second = layers
    values = np.maximum(convolved(images, first), 0)
    hidden: Elements = np.maximum(values @ second.weights[:, 0, 0].T + second.bias, 0)
    return hidden


def fit_nin(digits: Digits) -> tuple[Weights, ...]:
    """Parameters of the three convolutions."""
    rng = np.random.default_rng(_SEED)
    first = Weights(rng.normal(0, np.sqrt(2 / 9), (_FILTERS, 3, 3, 1)), np.zeros(_FILTERS))
    second = Weights(
        rng.normal(0, np.sqrt(2 / _FILTERS), (_FILTERS, 1, 1, _FILTERS)), np.zeros(_FILTERS)
    )
    values = _hidden(digits.train_images, (first, second)).mean(axis=(1, 2))
    values = np.column_stack([values, np.ones(len(values))])
    wanted = np.eye(CLASSES)[digits.train_labels] - 1 / CLASSES
    squares = values.T @ values + _RIDGE * np.eye(_FILTERS + 1)
    found = np.linalg.solve(squares, values.T @ wanted).T
    return first, second, Weights(found[:, :-1].reshape(CLASSES, 1, 1, _FILTERS), found[:, -1])


def nin_scores(layers: tuple[Weights, ...], images: Elements) -> Elements:
    """Floating point: count x 10 scores of count x 8 x 8 x 1 pictures."""
    values = _hidden(images, layers[:2])
    scores: Elements = (values @ layers[2].weights[:, 0, 0].T + layers[2].bias).mean(axis=(1, 2))
    return scores


def nin_fixed_scores(
    layers: tuple[Weights, ...], image: Elements, run: Callable[[KernelJob], Elements]
) -> Elements:
    """Fixed point: the 10 scores of a picture, as the kernels compute them.

    Parameters:
        image: 8 x 8 x 1 real numbers.
        run: gives the outputs of a job, as for
            :meth:`microkernels.apps.digits.Network.fixed_scores`.
    """
    values = to_fixed(image, ACTIVATION_FRACTION)
    for number, layer in enumerate(layers):
        filters, kernel, _, channels = layer.weights.shape
        shape = ConvShape(
            width=SIDE,
            height=SIDE,
            channels=channels,
            filters=filters,
            kernel=kernel,
            padding=kernel // 2,
        )
        values = run(
            conv_job(
                shape,
                values,
                to_fixed(layer.weights, WEIGHT_FRACTION),
                to_fixed(layer.bias, ACTIVATION_FRACTION),
                fraction=WEIGHT_FRACTION,
                relu=number + 1 < len(layers),
            )
        )
    whole = PoolShape(width=SIDE, height=SIDE, channels=CLASSES, window=SIDE, mean=True)
    return run(pool_job(whole, values[np.newaxis])).reshape(CLASSES)
