"""The launches of each application of the suite that trimming is measured on: sizes and data.

Data are real where they come to hand: a photograph of scikit-image, its stereo pair, scikit-learn's
digits; otherwise random numbers from a fixed seed. Sizes are such that an engine ends within some
ten thousand cycles.
"""

import numpy as np

from .bp_jobs import bp_construct_job, bp_copy_job, bp_job
from .conv_shape import ConvShape
from .dense_shape import DenseShape
from .fixed_point import Elements, to_fixed
from .lstm_job import lstm_job
from .lstm_shape import GATES, LstmShape, LstmWeights
from .matrix_add import matrix_add_job
from .nn_job import NnJob, conv_job, dense_job, pool_job
from .pool_shape import PoolShape
from .stereo import motorcycle

__all__ = [
    "belief_propagation",
    "bp_construct",
    "bp_copy",
    "conv_mid",
    "conv_short",
    "fully_connected",
    "lstm",
    "matrix_addition",
    "vgg_pooling",
]

_SEED = 1
_FRACTION = 10
_LSTM_FRACTION = 11
_LABELS = 16


def _values(*shape: int, limit: int = 1000) -> Elements:
    """Random elements from -``limit`` to ``limit``."""
    rng = np.random.default_rng([_SEED, *shape])
    return rng.integers(-limit, limit, shape, np.int16, endpoint=True)


def matrix_addition() -> tuple[NnJob, ...]:
    """Two random matrices of 60 x 50 elements."""
    return (matrix_add_job(_values(60, 50, limit=30000), _values(50, 60, limit=30000).T),)


def belief_propagation() -> tuple[NnJob, ...]:
    """An iteration of BP-M on the Motorcycle pair at 12 x 9 pixels, 16 labels."""
    return (bp_job(motorcycle(12, 9, _LABELS).problem),)


def bp_construct() -> tuple[NnJob, ...]:
    """The coarse data costs of the Motorcycle pair at 16 x 12 pixels, 16 labels."""
    return (bp_construct_job(motorcycle(16, 12, _LABELS).problem),)


def bp_copy() -> tuple[NnJob, ...]:
    """The messages that such a pair's coarse problem gives its fine one."""
    return (bp_copy_job(motorcycle(16, 12, _LABELS).problem),)


def _conv(shape: ConvShape, *, strips: bool) -> NnJob:
    size = (shape.filters, shape.kernel, shape.kernel, shape.channels)
    return conv_job(
        shape,
        _values(shape.height, shape.width, shape.channels),
        _values(*size, limit=100),
        _values(shape.filters),
        fraction=_FRACTION,
        strips=strips,
    )


def conv_short() -> tuple[NnJob, ...]:
    """A piece of VGG-16's conv1_1: 3 channels, short vectors."""
    shape = ConvShape(width=12, height=8, channels=3, filters=32, padding=1)
    return (_conv(shape, strips=True),)


def conv_mid() -> tuple[NnJob, ...]:
    """A piece of a layer in VGG-16's middle: 64 of its channels, 8 filters."""
    return (_conv(ConvShape(width=8, height=5, channels=64, filters=8), strips=False),)


def vgg_pooling() -> tuple[NnJob, ...]:
    """Maximum of 2 x 2 pixels of the sums of two segments, with bias and ReLU."""
    shape = PoolShape(width=14, height=8, channels=32, segments=2)
    maps = _values(shape.segments, shape.height, shape.width, shape.channels)
    return (pool_job(shape, maps, _values(shape.channels), relu=True),)


def fully_connected() -> tuple[NnJob, ...]:
    """A fully connected layer of 256 inputs and 48 outputs, with the sums of another vault."""
    shape = DenseShape(inputs=256, outputs=48)
    return (
        dense_job(
            shape,
            _values(shape.batch, shape.inputs),
            _values(shape.outputs, shape.inputs, limit=100),
            _values(shape.outputs),
            fraction=_FRACTION,
            others=_values(1, shape.batch, shape.outputs),
        ),
    )


def lstm() -> tuple[NnJob, ...]:
    """A time step of a layer of LSTM with 24 cells, 16 outputs and 12 inputs, batch 4."""
    shape = LstmShape(inputs=12, cells=24, outputs=16, batch=4)
    rng = np.random.default_rng(_SEED)

    def values(scale: float, *size: int) -> Elements:
        return to_fixed(rng.normal(0, scale, size), _LSTM_FRACTION)

    width = shape.outputs + shape.inputs
    weights = LstmWeights(
        gates=values(1.5 / np.sqrt(width), GATES, shape.cells, width),
        bias=values(0.5, GATES, shape.cells),
        peepholes=values(0.3, 3, shape.cells),
        projection=values(1.5 / np.sqrt(shape.cells), shape.outputs, shape.cells),
    )
    inputs = values(1.0, shape.batch, shape.inputs)
    return (lstm_job(shape, weights, inputs, fraction=_LSTM_FRACTION),)
