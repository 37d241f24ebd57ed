"""Element-wise functions as polynomials: gelu, erf and tanh, and any function as a curve.

gelu, erf and tanh have a part that depends only on the magnitude and is about 0 beyond a limit:
``gelu(x)`` is the larger of x and 0, minus ``|x| * Phi(-|x|)``; ``erf(x)`` has the magnitude ``1 -
erfc(|x|)``, tanh likewise. The part is a polynomial, by Horner's rule, of the limited magnitude
mapped to -1 to 1. Compared with real numbers, the results are off by at most 2e-4 (tanh: 1.5e-4)
plus one unit in the last place.

A curve is the sum of a start value and of *pieces*. Each maps its own range of the argument to -1
to 1, by a product that saturates beyond, and is a polynomial of that, by Horner's rule. Below its
range a piece therefore adds nothing; above it, it adds its value at the end. Short pieces where a
function is steep need no selection between them. Both need only instructions of the plain engine.

A function that is odd about the middle of its range, such as tanh, is one *odd* piece: ``end * u +
(u**3 - u) * P(2 * u**2 - 1)``, where u is the range mapped to -1 to 1 and P a polynomial. It has
its exact value at the ends, and the factor of P is below 0.4, so are P's errors of rounding.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import (
    FRACTION_LIMIT,
    HIGHEST,
    LOWEST,
    Elements,
    add,
    multiply,
    round_shift,
    subtract,
)

#: Fraction bits of coefficients and of the polynomials' arguments.
UNIT_FRACTION = 15
HALF = 1 << UNIT_FRACTION - 1
#: Maximum fraction bits of operand and result.
MOST_FRACTION = 14


#: Function -> polynomial of the magnitude, by ascending power with :data:`UNIT_FRACTION` bits:
#: |x| * Phi(-|x|) to 5e-6, erfc(|x|) to 2.8e-5, and 1 - tanh(|x|) to 1.5e-4, up to a limit.
COEFFICIENTS = {
    "gelu": (1491, -5586, 7085, 9, -9530, 9403, -527, -4666, 2068, 842, -585),
    "erf": (1110, -5841, 13178, -15432, 7208, 4211, -6743, 1400, 1632, -721),
    "tanh": (
        437, -2167, 5511, -8993, 8674, -6990, 12539, -8931, -13760, 16032, 2981, -5332
    ),
}  # fmt: skip
#: The limits, in halves.
_LIMITS = {"gelu": 8, "erf": 6, "tanh": 10}
#: Functions of layers that are such polynomials; in layers, tanh is a curve or the unit's.
POLYNOMIALS = ("gelu", "erf")


def polynomial_constants(name: str, fraction: int) -> tuple[int, ...]:
    """Elements that a kernel needs: -1; limit of the magnitude, its offset and factor; 1 as an
    element; for gelu 1 and 0; coefficients by descending power.

    Parameters:
        name: one of :data:`COEFFICIENTS`.
        fraction: bits of operand and result, 0..:data:`MOST_FRACTION`, of tanh one less.
    """
    one, halves = 1 << fraction, _LIMITS[name]
    limit = max(min((halves * one >> 1) - 1, HIGHEST), 1)
    factor = round((1 << UNIT_FRACTION + 2) / halves)
    further = (1, 0) if name == "gelu" else ()
    return (-1, limit, -(halves * one >> 2), factor, one, *further, *reversed(COEFFICIENTS[name]))


def _scalars(constants: Sequence[int]) -> list[Elements]:
    return [np.array(constant, np.int16) for constant in constants]


def _power_sum(
    argument: Elements, coefficients: Sequence[Elements], fraction: int = UNIT_FRACTION
) -> Elements:
    """A polynomial by Horner's rule; products are shifted right by ``fraction``."""
    total, *rest = coefficients
    for coefficient in rest:
        total = add(multiply(total, argument, fraction), coefficient)
    return total


def polynomial(name: str, image: Elements, fraction: int) -> Elements:
    """Golden model of gelu, erf and tanh, bit-exact.

    Parameters:
        name: one of :data:`COEFFICIENTS`.
        image: elements with ``fraction`` bits, 0..:data:`MOST_FRACTION`, of tanh one less.
    """
    CHECK.within("fraction bits", fraction, 0, MOST_FRACTION - (name == "tanh"))
    minus, limit, offset, factor, unity, *numbers = _scalars(polynomial_constants(name, fraction))
    coefficients = numbers[-len(COEFFICIENTS[name]) :]
    magnitude = np.maximum(image, multiply(image, minus, 0))
    unit = multiply(add(np.minimum(magnitude, limit), offset), factor, fraction)
    power_sum = _power_sum(unit, coefficients)
    if name == "gelu":
        one, zero = numbers[:2]
        part = multiply(power_sum, one, UNIT_FRACTION - fraction)
        return subtract(np.maximum(image, zero), part)
    bound = add(multiply(power_sum, minus, UNIT_FRACTION - fraction), unity)
    # The magnitude of tanh is below that of its operand.
    beyond = image
    if name == "erf":
        # The slope is below 2, so twice the operand exceeds the magnitude. The kernel's saturates,
        # which makes no difference and must not count here.
        near = np.clip(image, LOWEST // 2, HIGHEST // 2)
        beyond = add(near, near)
    return np.minimum(np.maximum(beyond, multiply(bound, minus, 0)), bound)


#: Maximum pieces, given by the instruction buffer, and maximum coefficients of each.
MOST_PIECES = 8
MOST_COEFFICIENTS = 12


class Piece(NamedTuple):
    """A part of a curve; all numbers are elements except the shifts, which are 0..15.

    Attributes:
        middle: of its range. factor, shift: the difference from the middle is multiplied and
            shifted right; the result, with :data:`UNIT_FRACTION` bits, saturates at the ends.
        scale, result_shift: factor and shift that convert the polynomial to a part of the result.
        coefficients: by descending power, with :data:`UNIT_FRACTION` bits, 2 to 12.
        end: of an odd piece, its value at the upper end, and ``result_shift`` is that of P's
            product; 0: the piece is not odd.
    """

    middle: int
    factor: int
    shift: int
    scale: int
    result_shift: int
    coefficients: tuple[int, ...]
    end: int = 0

    @property
    def scaled(self) -> bool:
        """Whether the polynomial is not yet the part of the result."""
        return (self.scale, self.result_shift) != (1, 0)

    @property
    def constants(self) -> tuple[int, ...]:
        """Elements that the kernel needs, in order of use."""
        shifted = (-self.middle,) if self.middle else ()
        if self.end:
            return (*shifted, self.factor, -HALF, *self.coefficients, -HALF, self.end)
        scale = (self.scale,) if self.scaled else ()
        return (*shifted, self.factor, *self.coefficients, *scale)

    @property
    def operations(self) -> int:
        """Operations per element, with the sum that the piece is added to."""
        if self.end:
            return 2 * len(self.coefficients) + 7
        return 2 * len(self.coefficients) + 2 + self.scaled


class Curve(NamedTuple):
    """An element-wise function.

    Attributes:
        start: element to which the pieces are added.
        low, high: smallest and largest argument; beyond, the value is that at the end.
        pieces: 1 to :data:`MOST_PIECES`, by ascending range.
    """

    start: int
    low: int
    high: int
    pieces: tuple[Piece, ...]

    @property
    def constants(self) -> tuple[int, ...]:
        """Elements that the kernel needs, in order of use."""
        first, *rest = (piece.constants for piece in self.pieces)
        start = (self.start,) if self.start else ()
        return (*first, *start, *(value for constants in rest for value in constants))

    @property
    def operations(self) -> int:
        """Operations per element."""
        return sum(piece.operations for piece in self.pieces)


def curve_of(start: int, low: int, high: int, pieces: Sequence[Sequence[Any]]) -> Curve:
    """The curve from plain data.

    Raises:
        TypeError: the data is not a curve.
    """
    parts = [Piece._make(piece) for piece in pieces]
    parts = [part._replace(coefficients=tuple(part.coefficients)) for part in parts]
    return Curve(start, low, high, tuple(parts))


def check_curve(curve: Curve) -> None:
    """Check the numbers of a curve.

    Raises:
        KernelError: a value out of range.
    """
    CHECK.kind("curve", curve, Curve)
    CHECK.within("pieces of a curve", len(curve.pieces), 1, MOST_PIECES)
    for piece in curve.pieces:
        CHECK.within("coefficients of a piece", len(piece.coefficients), 2, MOST_COEFFICIENTS)
        for shift in (piece.shift, piece.result_shift):
            CHECK.within("shift", shift, 0, FRACTION_LIMIT)
    if curve.low > curve.high:
        raise KernelError(f"low must be at most high, {curve.high}, not {curve.low}")
    for value in (curve.low, curve.high, *curve.constants):
        CHECK.within("number of a curve", value, LOWEST, HIGHEST)


def _limited(values: Elements) -> Elements:
    """Elements that saturate where a piece ends, which is not counted."""
    return np.clip(values, LOWEST, HIGHEST)


def part(piece: Piece, image: Elements) -> Elements:
    """What a piece adds."""
    shifted = _limited(image.astype(np.int64) - piece.middle)
    wide = _limited(round_shift(shifted * piece.factor, piece.shift))
    unit = argument = wide.astype(np.int16)
    fraction = UNIT_FRACTION
    if piece.end:
        # Half of P's argument.
        square = _limited(round_shift(wide * wide, UNIT_FRACTION))
        argument, fraction = (square - HALF).astype(np.int16), UNIT_FRACTION - 1
    sums = _power_sum(argument, _scalars(piece.coefficients), fraction)
    if piece.end:
        bend = multiply(add(argument, np.array(-HALF, np.int16)), unit, UNIT_FRACTION)
        line = multiply(unit, np.array(piece.end, np.int16), UNIT_FRACTION)
        return add(multiply(sums, bend, piece.result_shift), line)
    if not piece.scaled:
        return sums
    return multiply(sums, np.array(piece.scale, np.int16), piece.result_shift)


def arguments_beyond(function: Curve, image: Elements) -> int:
    """Number of elements outside the range of a curve, where it has its values at the ends."""
    return int(np.count_nonzero((image < function.low) | (image > function.high)))


def curve(function: Curve, image: Elements) -> Elements:
    """Golden model of a curve, bit-exact.

    Parameters:
        function: to compute.
        image: elements.
    """
    first, *rest = function.pieces
    total = add(part(first, image), np.array(function.start, np.int16))
    for piece in rest:
        total = add(total, part(piece, image))
    return total
