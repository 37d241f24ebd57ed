"""Element-wise functions as polynomials: gelu and erf, and any function as a curve.

gelu and erf have a part that depends only on the magnitude and is about 0 beyond a limit:
``gelu(x)`` is the larger of x and 0, minus ``|x| * Phi(-|x|)``; ``erf(x)`` has the magnitude ``1 -
erfc(|x|)``. The part is a polynomial, by Horner's rule, of the limited magnitude mapped to -1 to 1.
Compared with real numbers, the results are off by at most 2e-4 plus one unit in the last place.

A curve is the sum of a start value and of *pieces*: each limits the argument to its own range, and
is a polynomial there, by Horner's rule, of the argument mapped to -1 to 1. Below its range a piece
adds nothing; above it, it adds its value at the end. Short pieces where a function is steep
therefore need no selection between them. Both need only instructions of the plain engine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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
    subtract,
)

__all__ = [
    "MOST_FRACTION",
    "MOST_PIECES",
    "POLYNOMIALS",
    "UNIT_FRACTION",
    "Curve",
    "Piece",
    "Polynomial",
    "arguments_beyond",
    "check_curve",
    "curve",
    "curve_of",
    "part",
    "polynomial",
]

#: Fraction bits of coefficients and of the polynomials' arguments.
UNIT_FRACTION = 15
#: Maximum fraction bits of operand and result.
MOST_FRACTION = 14


@dataclass(frozen=True, kw_only=True)
class Polynomial:
    """The part of a function that depends on the magnitude.

    Attributes:
        coefficients: by ascending power, with :data:`UNIT_FRACTION` bits.
        limit: of the magnitude, in halves.
    """

    coefficients: tuple[int, ...]
    limit: int

    def constants(self, fraction: int) -> tuple[int, ...]:
        """Elements that the kernel needs: limit, offset of the magnitude, factor of the sum; -1, 1,
        1 and 0 as elements, the element below 1; coefficients by descending power.

        Parameters:
            fraction: bits of operand and result, 0..:data:`MOST_FRACTION`.
        """
        one = 1 << fraction
        limit = min((self.limit * one >> 1) - 1, HIGHEST)
        factor = round((1 << UNIT_FRACTION + 2) / self.limit)
        fixed = (max(limit, 1), -(self.limit * one >> 2), factor, -1, 1, one, 0, one - 1)
        return (*fixed, *reversed(self.coefficients))


#: Function -> its polynomial: |x| * Phi(-|x|) to 5e-6, and erfc(|x|) to 2.8e-5, up to the limit.
POLYNOMIALS = {
    "gelu": Polynomial(
        coefficients=(1491, -5586, 7085, 9, -9530, 9403, -527, -4666, 2068, 842, -585), limit=8
    ),
    "erf": Polynomial(
        coefficients=(1110, -5841, 13178, -15432, 7208, 4211, -6743, 1400, 1632, -721), limit=6
    ),
}


def polynomial(name: str, image: Elements, fraction: int) -> Elements:
    """Golden model of gelu and erf, bit-exact.

    Parameters:
        name: one of :data:`POLYNOMIALS`.
        image: elements with ``fraction`` bits, 0..:data:`MOST_FRACTION`.
    """
    CHECK.within("fraction bits", fraction, 0, MOST_FRACTION)
    limit, offset, factor, minus, one, unity, zero, below, *coefficients = (
        np.array(constant, np.int16) for constant in POLYNOMIALS[name].constants(fraction)
    )
    magnitude = np.maximum(image, multiply(image, minus, 0))
    unit = multiply(add(np.minimum(magnitude, limit), offset), factor, fraction)
    power_sum = add(multiply(unit, coefficients[0], UNIT_FRACTION), coefficients[1])
    for coefficient in coefficients[2:]:
        power_sum = add(multiply(power_sum, unit, UNIT_FRACTION), coefficient)
    if name == "gelu":
        part = multiply(power_sum, one, UNIT_FRACTION - fraction)
        return subtract(np.maximum(image, zero), part)
    # The slope of erf is below 2, so twice the operand exceeds the magnitude.
    bound = add(multiply(power_sum, minus, UNIT_FRACTION - fraction), unity)
    near = np.minimum(np.maximum(image, multiply(below, minus, 0)), below)
    return np.minimum(np.maximum(add(near, near), multiply(bound, minus, 0)), bound)


#: Maximum pieces, given by the instruction buffer, and maximum coefficients of each.
MOST_PIECES = 8
_MOST_COEFFICIENTS = 8
#: Coefficients of a line.
_LINE = 2


class Piece(NamedTuple):
    """A part of a curve; all numbers are elements except the shifts, which are 0..15.

    Attributes:
        low, high: range of the argument, ``low`` at most ``high``.
        factor, shift: convert the difference from the middle to -1 to 1 with :data:`UNIT_FRACTION`
            bits: it is multiplied, and the product is shifted right.
        scale, result_shift: factor and shift that convert the polynomial to a part of the result.
        coefficients: by descending power, with :data:`UNIT_FRACTION` bits, 2 to 8.
    """

    low: int
    high: int
    factor: int
    shift: int
    scale: int
    result_shift: int
    coefficients: tuple[int, ...]

    @property
    def middle(self) -> int:
        """Middle of the range."""
        return (self.low + self.high + 1) >> 1

    @property
    def constants(self) -> tuple[int, ...]:
        """Elements that the kernel needs, in order of use."""
        return (self.low, self.high, -self.middle, self.factor, *self.coefficients, self.scale)


class Curve(NamedTuple):
    """An element-wise function.

    Attributes:
        start: element to which the pieces are added.
        pieces: 1 to :data:`MOST_PIECES`, by ascending range.
    """

    start: int
    pieces: tuple[Piece, ...]

    @property
    def constants(self) -> tuple[int, ...]:
        """Elements that the kernel needs, in order of use."""
        first, *rest = (piece.constants for piece in self.pieces)
        return (*first, self.start, *(value for constants in rest for value in constants))

    @property
    def operations(self) -> int:
        """Operations per element."""
        return sum(2 * len(piece.coefficients) + 5 for piece in self.pieces)


def curve_of(start: int, pieces: Sequence[Sequence[Any]]) -> Curve:
    """The curve from plain data.

    Raises:
        TypeError: the data is not a curve.
    """
    parts = (Piece._make((*numbers, tuple(last))) for *numbers, last in pieces)
    return Curve(start, tuple(parts))


def check_curve(curve: Curve) -> None:
    """Check the numbers of a curve.

    Raises:
        KernelError: a value out of range.
    """
    CHECK.kind("curve", curve, Curve)
    CHECK.within("pieces of a curve", len(curve.pieces), 1, MOST_PIECES)
    for piece in curve.pieces:
        CHECK.within("coefficients of a piece", len(piece.coefficients), 2, _MOST_COEFFICIENTS)
        for shift in (piece.shift, piece.result_shift):
            CHECK.within("shift", shift, 0, FRACTION_LIMIT)
        if piece.low > piece.high:
            raise KernelError(f"low must be at most high, {piece.high}, not {piece.low}")
    for value in curve.constants:
        CHECK.within("number of a curve", value, LOWEST, HIGHEST)


def part(piece: Piece, image: Elements) -> Elements:
    """What a piece adds."""
    low, high, offset, factor, first, *coefficients, scale = (
        np.array(constant, np.int16) for constant in piece.constants
    )
    unit = multiply(add(np.minimum(np.maximum(image, low), high), offset), factor, piece.shift)
    sums = multiply(unit, first, UNIT_FRACTION)
    for coefficient in coefficients[:-1]:
        sums = multiply(add(sums, coefficient), unit, UNIT_FRACTION)
    return multiply(add(sums, coefficients[-1]), scale, piece.result_shift)


def arguments_beyond(function: Curve, image: Elements) -> int:
    """Number of elements outside the range of all pieces, where the curve keeps its end values; a
    step, which is a line of its own, has the right values there."""
    if len(function.pieces) == 1 and len(function.pieces[0].coefficients) == _LINE:
        return 0
    low, high = function.pieces[0].low, function.pieces[-1].high
    return int(np.count_nonzero((image < low) | (image > high)))


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
