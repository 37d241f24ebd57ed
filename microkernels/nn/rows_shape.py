"""Softmax and normalisations over the channels of each pixel: sizes, and the golden model.

A pixel is a *row*. Each operation multiplies a row by its own factor, which comes from a sum over
the row:

* softmax: exponentials ``e`` of the differences from the largest element, times ``1 / sum(e)``;
* layer normalisation: the differences ``y`` from the mean, times ``1 / sqrt(mean(y * y) + eps)``;
* RMS normalisation: the same of the row itself.

Sums have a wide range, but a sum on the engine has 16 bits. The engine therefore computes a sum
with several shifts (*levels*) and takes the smallest shift that does not saturate; the sum then has
12 bits or more. The factor is computed in 32 bits by Newton's method. docs/decisions/kernels.md
lists the errors.

A row longer than a vector is divided into *segments* of about the same length. A row's sum is then
the sum of its segments' sums, each rounded.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from isa.table import MAX_VL
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import (
    HIGHEST,
    LOWEST,
    WIDE,
    Elements,
    check_elements,
    check_fraction,
    multiply,
    round_shift,
    subtract,
    uncounted,
)

from .curves import UNIT_FRACTION, VectorOp, evaluate, power_sum

#: Maximum channels per row; the scratchpad may allow fewer.
MOST_CHANNELS = 8 * MAX_VL
#: Operation -> attributes of :class:`NormalizeShape` that it needs.
_NEEDS = {
    "softmax": (),
    "layer": ("fraction", "epsilon"),
    "rms": ("fraction", "epsilon"),
}
NORMALIZATIONS = tuple(_NEEDS)
#: Fraction bits of softmax's source, and of its rows' factors.
_SOURCE_LEAST, _SOURCE_MOST = -3, 30
_FACTOR_MOST = 28
#: Bits of the factors of normalised rows: 2 to this power divided by the deviation.
_DEVIATION_MOST = 40
_EPSILON_MOST = 1 << 40

#: exp(u) - 1 - u = u * u * (these, by ascending power) for u from -1 to 0, to 1.1e-5.
EXPONENTIAL = (16380, 5428, 1279, 176)
#: Maximum squarings: exp of -16 and less is 0.
_MOST_SQUARINGS = 4

_I64 = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Factor:
    """How rows' factors are computed from their sums.

    Attributes:
        shifts: of the levels, descending.
        added: to the sum of each level.
        scales: of each level, in 32 bits.
        mantissa: bits by which a sum is shifted left to be a mantissa, below 1.
        start: first approximation at 0, and by how much it falls to 1: numbers of 32 bits.
        rounds: of Newton's method.
        root: the factor is one over the root of the sum, otherwise one over the sum.
        shift: of the factor times its scale.
    """

    shifts: tuple[int, ...]
    added: tuple[int, ...]
    scales: tuple[int, ...]
    mantissa: int
    start: tuple[int, int]
    rounds: int
    root: bool
    shift: int

    @property
    def constants(self) -> tuple[int, ...]:
        """Constants of :func:`factor_steps`."""
        constant = 3 << ROOT["value"] if self.root else 2 << PLAIN["product"]
        highest = (1 << UNIT_FRACTION) - 1
        first = (highest - 1, 0, -(1 << self.mantissa), *self.start, constant, highest)
        return (*first, *self.scales, *self.added)


#: Fraction bits of mantissas, of their products with an approximation, and of approximations: for
#: factors of one over a root, and of one over a sum.
ROOT = {"mantissa": 30, "product": 30, "value": 24}
PLAIN = {"mantissa": 31, "product": 29, "value": 27}


@dataclass(frozen=True, kw_only=True)
class NormalizeShape:
    """Operation and sizes of a layer that normalises rows.

    Attributes:
        width, height, channels: of the map, at least 1 each; a row has at most
            :data:`MOST_CHANNELS` channels.
        operation: one of :data:`NORMALIZATIONS`.
        source: for softmax, fraction bits of the source, -3..30; otherwise 0.
        factor: for softmax, fraction bits of the output, 0..28; otherwise f, 0..40: a row's factor
            is 2 to the power of f divided by the deviation of its elements.
        fraction: bits by which products with the factor are shifted right, 0..15; not for softmax.
        epsilon: added to the mean square, in squared units in the last place; not for softmax.

    Raises:
        KernelError: a value out of range, or a value that the operation needs and lacks, or does
            not have.
    """

    width: int
    height: int
    channels: int
    operation: str
    source: int = 0
    factor: int = 0
    fraction: int | None = None
    epsilon: int | None = None

    def __post_init__(self) -> None:
        CHECK.fields(self)
        for name in ("width", "height", "channels"):
            CHECK.at_least(name, getattr(self, name), 1)
        CHECK.within("channels", self.channels, 1, MOST_CHANNELS)
        CHECK.one_of("operation", self.operation, NORMALIZATIONS)
        soft = self.operation == "softmax"
        CHECK.within("source", self.source, *((_SOURCE_LEAST, _SOURCE_MOST) if soft else (0, 0)))
        CHECK.within("factor", self.factor, 0, _FACTOR_MOST if soft else _DEVIATION_MOST)
        for name in ("fraction", "epsilon"):
            value = getattr(self, name)
            if (value is not None) != (name in _NEEDS[self.operation]):
                raise KernelError(
                    f"{self.operation} {'needs' if value is None else 'has no'} {name}"
                )
        if self.fraction is not None:
            check_fraction(self.fraction)
        if self.epsilon is not None:
            CHECK.within("epsilon", self.epsilon, 0, _EPSILON_MOST)

    @property
    def rows(self) -> int:
        """Rows per map."""
        return self.width * self.height

    @property
    def per_number(self) -> int:
        """Operations per element."""
        return (12 + 3 * self.squarings) if self.operation == "softmax" else 4

    @property
    def bits(self) -> int:
        """Bits that a sum of channels has beyond its terms."""
        return (self.channels - 1).bit_length()

    @property
    def segments(self) -> tuple[tuple[int, int], ...]:
        """First element and length of each segment of a row."""
        count = -(-self.channels // MAX_VL)
        length = -(-self.channels // count)
        starts = range(0, self.channels, length)
        return tuple((start, min(length, self.channels - start)) for start in starts)

    # Softmax.

    @property
    def squarings(self) -> int:
        """How often exponentials are squared: those of a difference divided by 2 to this power."""
        return min(max(UNIT_FRACTION - self.source, 0), _MOST_SQUARINGS)

    @property
    def widened(self) -> int:
        """Bits by which differences are shifted left to have :data:`UNIT_FRACTION` bits after the
        division; negative: right."""
        return UNIT_FRACTION - self.squarings - self.source

    @property
    def scalars(self) -> tuple[int, ...]:
        """Constants of exponentials."""
        wide = max(self.widened, 0)
        return (*EXPONENTIAL, (1 << UNIT_FRACTION) - 1, 1 << wide, -(1 << (UNIT_FRACTION - wide)))

    # Normalisations.

    @property
    def mean(self) -> tuple[int, int]:
        """One over the number of channels as an element, and its fraction bits."""
        fraction = UNIT_FRACTION - 1 + self.bits
        return (round((1 << fraction) / self.channels), fraction)

    @property
    def scale(self) -> Factor:
        """How rows' factors are computed from their sums."""
        return _soft_factor(self) if self.operation == "softmax" else _root_factor(self)


def _soft_factor(shape: NormalizeShape) -> Factor:
    # The largest exponential is 1, so an unshifted sum always saturates.
    shifts = [max(shape.bits, 1)]
    while shifts[-1] > 1:
        shifts.append(max(shifts[-1] - 3, 1))
    top = shifts[0]
    value = PLAIN["value"]
    return Factor(
        shifts=tuple(shifts),
        # Exponentials are one unit in the last place too small.
        added=tuple(_rounded_one(shape.channels, shift) for shift in shifts),
        scales=tuple(1 << (top - shift) for shift in shifts),
        mantissa=PLAIN["mantissa"] - UNIT_FRACTION,
        # Minimax start for 1 / x from 1/8 to 1: 43 % off at first, 1.6e-6 after four rounds.
        start=(round(5.0973 * (1 << value)), round(4.531 * (1 << value))),
        rounds=4,
        root=False,
        shift=value + top - shape.factor,
    )


def _rounded_one(value: int, shift: int) -> int:
    return (value + (1 << shift >> 1)) >> shift


def _root_factor(shape: NormalizeShape) -> Factor:
    assert shape.epsilon is not None
    top = UNIT_FRACTION + shape.bits
    shifts = [top - 4 * level for level in range(4)]
    value = ROOT["value"]
    # The mantissa is the sum divided by 2 to the power of 16 plus its shift.
    scale = 2.0**shape.factor * sqrt(shape.channels) * 2.0 ** (-8 - top / 2)
    bits = 22 - int(np.floor(np.log2(scale)))
    bits = min(max(bits, -value), 63 - value)
    return Factor(
        shifts=tuple(shifts),
        added=tuple(
            min(round(shape.channels * shape.epsilon / (1 << shift)), 1 << 15) for shift in shifts
        ),
        scales=tuple(round(scale * 2.0**bits) << (2 * level) for level in range(4)),
        mantissa=ROOT["mantissa"] - UNIT_FRACTION - 1,
        # 44 % off at first from 1/32 to 1, 1.8e-4 after four rounds; more for smaller ones.
        start=(round(3.25 * (1 << value)), round(2.65 * (1 << value))),
        rounds=7,
        root=True,
        shift=value + bits,
    )


def _summed(sums: _I64, shift: int) -> _I64:
    """Sums of rows from exact sums of their segments, along the last axis, each shifted right."""
    parts: _I64 = np.clip(round_shift(sums, shift), LOWEST, HIGHEST)
    totals: _I64 = np.clip(parts.sum(axis=-1, keepdims=True), LOWEST, HIGHEST)
    return totals


def factor_steps(factor: Factor) -> list[VectorOp]:
    """Rows' factors, limited to an element, from their sums by level, ``sums0`` and so on, in wide
    numbers; their constants are :attr:`Factor.constants`."""
    kind, levels = ROOT if factor.root else PLAIN, len(factor.shifts)
    almost, zero, mantissa, start, slope, constant, largest = range(7)
    scales, added = range(7, 7 + levels), range(7 + levels, 7 + 2 * levels)
    steps = [
        VectorOp("v.s.add", "total", "sums0", added[0], 0),
        VectorOp("v.s.min", "scale", "total", zero),
        VectorOp("v.s.add", "scale", "scale", scales[0]),
    ]
    for level in range(1, levels):
        # Whether the level saturates; if not, its sum and scale. Upper halves remain zero.
        sums = f"sums{level}"
        steps += [
            VectorOp("v.s.sub", "full", sums, almost),
            VectorOp("v.s.max", "full", "full", zero),
            VectorOp("v.s.add", sums, sums, added[level]),
            VectorOp("v.v.sub", "total", "total", sums),
            VectorOp("v.v.mul", "total", "total", "full"),
            VectorOp("v.v.add", "total", "total", sums),
            VectorOp("v.s.sub", "scale", "scale", scales[level]),
            VectorOp("v.v.mul", "scale", "scale", "full"),
            VectorOp("v.s.add", "scale", "scale", scales[level]),
        ]
    product = kind["mantissa"] + kind["value"] - kind["product"]
    after = kind["value"] + 1 if factor.root else kind["product"]
    squared = [VectorOp("v.v.mul", "full", "full", "value", kind["product"])]
    newton = [
        VectorOp("v.v.mul", "full", "total", "value", product),
        *squared * factor.root,
        VectorOp("v.s.add", "full", "full", constant),
        VectorOp("v.v.mul", "value", "value", "full", after),
    ]
    return [
        *steps,
        VectorOp("v.s.mul", "total", "total", mantissa),
        VectorOp("v.s.mul", "value", "total", slope, kind["mantissa"]),
        VectorOp("v.s.add", "value", "value", start),
        *newton * factor.rounds,
        VectorOp("v.v.mul", "value", "value", "scale", factor.shift),
        VectorOp("v.s.min", "result", "value", largest),
    ]


def factors(factor: Factor, sums: _I64) -> Elements:
    """Rows' factors from exact sums of their segments along the last axis."""
    levels: dict[str | int, Elements] = {
        f"sums{level}": _summed(sums, shift).astype(WIDE)
        for level, shift in enumerate(factor.shifts)
    }
    with uncounted():
        return evaluate(factor_steps(factor), factor.constants, levels)


def exponential_steps(shape: NormalizeShape) -> list[VectorOp]:
    """Exponentials of differences from the largest element, minus one unit in the last place, with
    :data:`UNIT_FRACTION` bits: 1 does not fit an element. Their constants are
    :attr:`NormalizeShape.scalars`."""
    second, third, fourth, fifth, one, factor, least = range(7)
    wide = shape.widened
    steps = []
    if wide > 0:
        steps.append(VectorOp("v.s.max", "x", "x", least))
    if wide:
        steps.append(VectorOp("v.s.mul", "x", "x", factor, max(-wide, 0)))
    steps += [
        *power_sum("part", "x", (fifth, fourth, third, second), UNIT_FRACTION),
        VectorOp("v.v.mul", "part", "part", "x"),
        VectorOp("v.v.mul", "part", "part", "x"),
        VectorOp("v.v.add", "x", "x", "part"),
    ]
    squaring = [
        VectorOp("v.v.mul", "part", "x", "x", limits=True),
        VectorOp("v.v.add", "part", "part", "x"),
        VectorOp("v.v.add", "x", "x", "part", limits=True),
    ]
    return [*steps, *squaring * shape.squarings, VectorOp("v.s.add", "result", "x", one)]


def normalize(shape: NormalizeShape, image: Elements) -> Elements:
    """Golden model of the kernel, bit-exact.

    Sums and squares limited by design do not count as saturated.

    Parameters:
        image: height x width x channels elements.

    Returns:
        height x width x channels elements.

    Raises:
        KernelError: an array of another shape, or values beyond 16 bits.
    """
    image = check_elements("image", image, (shape.height, shape.width, shape.channels))
    starts = [start for start, _ in shape.segments]

    def segment_sums(values: _I64) -> _I64:
        sums: _I64 = np.add.reduceat(values, starts, axis=2)
        return sums

    if shape.operation == "softmax":
        below = subtract(image, image.max(axis=2, keepdims=True))
        values = evaluate(exponential_steps(shape), shape.scalars, {"x": below})
        sums = segment_sums(values.astype(np.int64))
        shift = UNIT_FRACTION
    else:
        values = image
        if shape.operation == "layer":
            one, fraction = shape.mean
            mean = _summed(segment_sums(image.astype(np.int64)) * one, fraction)
            values = subtract(image, mean.astype(np.int16))
        sums = segment_sums(np.square(values.astype(np.int64)))
        assert shape.fraction is not None
        shift = shape.fraction
    return multiply(values, factors(shape.scale, sums), shift)
