"""The applications that trimming is measured on: the integer applications of SCRATCH's evaluation
and the thesis's workloads at small sizes. This is the only list of them.

Each is one or more launches of one engine; a golden model gives the expected outputs of each
launch. Real data is used where available (a photograph from scikit-image, its stereo pair,
scikit-learn's digits), otherwise random numbers from a fixed seed. Sizes are chosen so that an
engine finishes within roughly ten thousand cycles.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from isa.program import Program
from isa.run import Launch
from microkernels.apps.bitonic_sort import bitonic_sort_job
from microkernels.apps.convolve_image import ImageFilter, convolve_image_job
from microkernels.apps.digits import (
    ACTIVATION_FRACTION,
    CLASSES,
    SIDE,
    load_digits,
    nin_fixed_scores,
    trained,
    trained_nin,
)
from microkernels.apps.gauss import diffusion_system, gauss_job
from microkernels.apps.kmeans import FRACTION as KMEANS_FRACTION
from microkernels.apps.kmeans import kmeans_job, moved_centres
from microkernels.apps.matrix_add import matrix_add_job
from microkernels.apps.matrix_multiply import matrix_multiply_job
from microkernels.apps.matrix_transpose import matrix_transpose_job
from microkernels.apps.median_pool import median_pool_job
from microkernels.bp.jobs import bp_construct_job, bp_copy_job, bp_job
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements, to_fixed
from microkernels.data.pictures import photograph
from microkernels.data.stereo import motorcycle
from microkernels.nn.jobs import conv_job, dense_job, lstm_job, pool_job
from microkernels.nn.lstm_shape import LstmShape, usual_weights
from microkernels.nn.window_shape import ConvShape, PoolShape
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import ONE_ENGINE, ChipEngines
from support.errors import VipError, unknown

_SEED = 1
_FRACTION = 10
_LSTM_FRACTION = 11
_LABELS = 16
#: Highest pixel values of the photograph, and of a digit.
_WHITE = 255
_HIGHEST_PIXEL = 16
#: Fraction of pixels that are wrongly black or white.
_NOISE = 0.05

#: A launch that takes more cycles is an error.
_MAX_CYCLES = 100_000_000

_Make = Callable[..., tuple[KernelJob, ...]]


@dataclass(frozen=True, kw_only=True)
class Application:
    """An application.

    Attributes:
        name: its name in commands. summary: computation and data.
        preset: name of the full engine it is written for.
        make: creates its jobs. shares: it takes a number of engines, which share them.
    """

    name: str
    summary: str
    preset: str = "pe"
    make: _Make
    shares: bool = False

    def on(self, engines: int) -> "Application":
        """Itself, as work of so many engines of a vault.

        Raises:
            KernelError: only one engine can do it.
        """
        if engines == 1:
            return self
        if not self.shares:
            several = ", ".join(name for name, one in suite().items() if one.shares)
            raise KernelError(
                f"{self.name} is work of one engine, not of {engines}; several share: {several}"
            )
        return replace(self, name=f"{self.name}-{engines}", make=partial(self.make, engines))

    @cached_property
    def jobs(self) -> tuple[KernelJob, ...]:
        """Its launches, in order. The initial memory of each follows from the golden models of the
        launches before it; the expected outputs follow from its own golden model."""
        return self.make()

    @property
    def workloads(self) -> tuple[tuple[Launch, bytes], ...]:
        """Its launches on a simulated engine, each with the memory before it, from address 0 on."""
        return tuple(
            (
                Launch(program=job.program, parameters=job.parameters, max_cycles=_MAX_CYCLES),
                job.memory,
            )
            for job in self.jobs
        )

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs of its launches, each once."""
        return tuple(dict.fromkeys(job.program for job in self.jobs))


_SUITE: dict[str, Application] = {}


def suite() -> Mapping[str, Application]:
    """All applications by name: SCRATCH's, then the thesis's."""
    return _SUITE


def _application(
    name: str, summary: str, preset: str = "pe", *, shares: bool = False
) -> Callable[[_Make], _Make]:
    """Add the application that the function creates to the suite."""

    def listed(make: _Make) -> _Make:
        _SUITE[name] = Application(
            name=name, summary=summary, preset=preset, make=make, shares=shares
        )
        return make

    return listed


def _values(*shape: int, limit: int = 1000) -> Elements:
    rng = np.random.default_rng([_SEED, *shape])
    return rng.integers(-limit, limit, shape, np.int16, endpoint=True)


@_application("matrix-addition", "matrices of 60 x 300, saturated")
def matrix_addition() -> tuple[KernelJob, ...]:
    """Two random matrices of 60 x 300 elements."""
    return (matrix_add_job(_values(60, 300, limit=30000), _values(300, 60, limit=30000).T),)


@_application("matrix-multiplication", "32 x 64 by 64 x 40, fixed point")
def matrix_multiplication() -> tuple[KernelJob, ...]:
    """Random matrices of 32 x 64 and 64 x 40 elements."""
    product = matrix_multiply_job(_values(32, 64), _values(64, 40), fraction=_FRACTION)
    return (product,)


@_application("matrix-transposition", "a photograph of 100 x 60 pixels")
def matrix_transposition() -> tuple[KernelJob, ...]:
    """The photograph at 100 x 60 pixels, transposed."""
    return (matrix_transpose_job(photograph(100, 60)),)


@_application("image-convolution", "binomial filter of 3 x 3 on a photograph of 40 x 96 pixels")
def image_convolution() -> tuple[KernelJob, ...]:
    """The photograph at 40 x 96 pixels, smoothed by a binomial filter of 3 x 3."""
    binomial = ImageFilter(((1, 2, 1), (2, 4, 2), (1, 2, 1)), shift=4)
    return (convolve_image_job(binomial, photograph(40, 96)),)


@_application("bitonic-sort", "two rows of 256 pixels")
def bitonic_sort() -> tuple[KernelJob, ...]:
    """Two of the photograph's rows, of 256 pixels."""
    return (bitonic_sort_job(photograph(2, 256)),)


def _maps() -> Elements:
    _, (images, _) = load_digits()
    return to_fixed(images[:32].transpose(3, 1, 2, 0), ACTIVATION_FRACTION)


@_application("max-pooling", "2 x 2 pixels, 32 digits")
def max_pooling() -> tuple[KernelJob, ...]:
    """Maxima of 2 x 2 pixels of 32 digits."""
    return (pool_job(PoolShape(width=SIDE, height=SIDE, channels=32), _maps()),)


@_application("average-pooling", "2 x 2 pixels, 32 digits")
def average_pooling() -> tuple[KernelJob, ...]:
    """Means of 2 x 2 pixels of 32 digits."""
    return (pool_job(PoolShape(width=SIDE, height=SIDE, channels=32, mean=True), _maps()),)


@_application("median-pooling", "3 x 3 pixels, two apart, of a noisy photograph of 8-bit pixels")
def median_pooling() -> tuple[KernelJob, ...]:
    """Medians of 3 x 3 pixels, two apart, of the photograph at 41 x 151 pixels with noise."""
    image = photograph(41, 151) - 128
    rng = np.random.default_rng(_SEED)
    noisy = np.where(rng.random(image.shape) < _NOISE, rng.choice([-128, 127], image.shape), image)
    return (median_pool_job(noisy, stride=2),)


@_application("k-means", "48 digits, ten centres that the host moves")
def kmeans() -> tuple[KernelJob, ...]:
    """Two rounds of k-means on 48 digits: assignment, then the host moves the ten centres."""
    (images, _), _ = load_digits()
    points = (images[: 48 + CLASSES] * _HIGHEST_PIXEL).astype(np.int16)
    points = points.reshape(len(points), -1)
    points, centres = points[CLASSES:], points[:CLASSES] << KMEANS_FRACTION
    first = kmeans_job(points, centres)
    return first, kmeans_job(points, moved_centres(points, first.expected, centres))


@_application("gaussian-elimination", "four systems of 16 equations, 32-bit fixed point")
def gaussian_elimination() -> tuple[KernelJob, ...]:
    """An implicit step of edge-preserving diffusion on four blocks of 4 x 4 pixels of the
    photograph; each block is a system of 16 equations."""
    image = photograph(8, 8) / _WHITE
    systems = [diffusion_system(image[y : y + 4, x : x + 4]) for y in (0, 4) for x in (0, 4)]
    return (gauss_job(np.stack(systems)),)


@_application("cnn", "a digit through two convolutions and a fully connected layer")
def convolutional_network() -> tuple[KernelJob, ...]:
    """A digit through a network of three layers: two convolutions with pooling, one fully
    connected."""
    _, (images, _) = load_digits()
    network = trained("CNN of 2 epochs")
    jobs: list[KernelJob] = []
    network.fixed_scores(images[:1], _collect(jobs))
    return tuple(jobs)


@_application("network-in-network", "a digit through convolutions of 3 x 3 and 1 x 1")
def network_in_network() -> tuple[KernelJob, ...]:
    """A digit through a network in network."""
    _, (images, _) = load_digits()
    jobs: list[KernelJob] = []
    nin_fixed_scores(trained_nin(), images[0], _collect(jobs))
    return tuple(jobs)


def _collect(jobs: list[KernelJob]) -> Callable[[KernelJob], Elements]:
    """Return a function that returns a job's expected outputs and appends the job to ``jobs``."""

    def run(job: KernelJob) -> Elements:
        jobs.append(job)
        return job.expected

    return run


@_application("bp", "an iteration of belief propagation, 16 labels", shares=True)
def belief_propagation(engines: int = 1) -> tuple[KernelJob, ...]:
    """One iteration of BP-M on the Motorcycle pair at 12 x 9 pixels, 16 labels."""
    return (bp_job(motorcycle(12, 9, _LABELS).problem, engines=ChipEngines(pes=engines)),)


@_application("bp-construct", "hierarchical belief propagation: coarse data costs")
def bp_construct() -> tuple[KernelJob, ...]:
    """The coarse data costs of the Motorcycle pair at 16 x 12 pixels, 16 labels."""
    return (bp_construct_job(motorcycle(16, 12, _LABELS).problem),)


@_application("bp-copy", "hierarchical belief propagation: messages for the fine level")
def bp_copy() -> tuple[KernelJob, ...]:
    """Messages of the Motorcycle pair's coarse problem, copied to its fine problem."""
    return (bp_copy_job(motorcycle(16, 12, _LABELS).problem),)


def _conv(shape: ConvShape, *, strips: bool) -> KernelJob:
    size = (shape.filters, shape.kernel, shape.kernel, shape.channels)
    return conv_job(
        shape,
        _values(shape.height, shape.width, shape.channels),
        _values(*size, limit=100),
        _values(shape.filters),
        fraction=_FRACTION,
        strips=strips,
    )


@_application("conv-short", "a network's first convolution, 3 channels")
def conv_short() -> tuple[KernelJob, ...]:
    """A piece of VGG-16's conv1_1: 3 channels, short vectors."""
    shape = ConvShape(width=12, height=8, channels=3, filters=32, padding=1)
    return (_conv(shape, strips=True),)


@_application("conv-mid", "a convolution of 64 channels")
def conv_mid() -> tuple[KernelJob, ...]:
    """A piece of a layer in VGG-16's middle: 64 of its channels, 8 filters."""
    return (_conv(ConvShape(width=8, height=5, channels=64, filters=8), strips=False),)


@_application("vgg-pooling", "sums of two segments, maximum of 2 x 2, bias, ReLU")
def vgg_pooling() -> tuple[KernelJob, ...]:
    """Maximum of 2 x 2 pixels of the sums of two segments, with bias and ReLU."""
    shape = PoolShape(width=14, height=8, channels=32, segments=2)
    maps = _values(shape.segments, shape.height, shape.width, shape.channels)
    return (pool_job(shape, maps, _values(shape.channels), relu=True),)


@_application("fully-connected", "256 inputs, 48 outputs")
def fully_connected() -> tuple[KernelJob, ...]:
    """A fully connected layer of 256 inputs and 48 outputs, with the sums of another vault."""
    return (
        dense_job(
            _values(1, 256),
            _values(48, 256, limit=100),
            _values(48),
            fraction=_FRACTION,
            others=_values(1, 1, 48),
        ),
    )


@_application(
    "lstm",
    "a time step of 24 cells with peepholes and projection, batch 4",
    preset="pe-logistic",
)
def lstm() -> tuple[KernelJob, ...]:
    """A time step of a layer of LSTM with 24 cells, 16 outputs and 12 inputs, batch 4."""
    shape = LstmShape(inputs=12, cells=24, outputs=16, batch=4)
    rng = np.random.default_rng(_SEED)

    def values(scale: float, *size: int) -> Elements:
        return to_fixed(rng.normal(0, scale, size), _LSTM_FRACTION)

    weights = usual_weights(shape, values)
    inputs = values(1.0, 1, shape.batch, shape.inputs)
    return (lstm_job(shape, weights, inputs, fraction=_LSTM_FRACTION, engines=ONE_ENGINE),)


class ApplicationError(VipError):
    """An unknown application; the message names the known ones."""


def choose(names: Sequence[str]) -> tuple[Application, ...]:
    """The applications called ``names`` in the suite's order; all of them if ``names`` is empty.

    Raises:
        ApplicationError: no application has one of the names.
    """
    for name in names:
        if name not in suite():
            raise ApplicationError(unknown("application", name, suite()))
    return tuple(item for item in suite().values() if not names or item.name in names)
