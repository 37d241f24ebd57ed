"""Any function of an element as pieces of polynomials.

The sum of a start value and of *pieces*: each limits the argument to a range of its own, and
is a polynomial there, by Horner's rule, of the argument moved to -1 to 1. Below its range a piece
adds nothing, above it what it adds at the end. So short pieces where a function is steep need no
choice between them. Only instructions of the plain engine are needed.
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
)

__all__ = [
    "MOST_PIECES",
    "UNIT_FRACTION",
    "Curve",
    "Piece",
    "arguments_beyond",
    "check_curve",
    "curve",
    "curve_of",
]

#: Fraction bits of coefficients and of the polynomials' arguments.
UNIT_FRACTION = 15
#: Pieces at most, for the instruction buffer, and coefficients of each.
MOST_PIECES = 8
_MOST_COEFFICIENTS = 8


class Piece(NamedTuple):
    """A part of a curve; all numbers are elements but the shifts, which are 0..15.

    Attributes:
        low, high: range of the argument, ``low`` not above ``high``.
        factor, shift: of the difference from the middle, so that it is from -1 to 1 with
            :data:`UNIT_FRACTION` bits: it is multiplied, and the product is shifted right.
        scale, result_shift: likewise, of the polynomial, so that it is part of the result.
        coefficients: by falling power, with :data:`UNIT_FRACTION` bits, 2 to 8.
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
        """Of the range."""
        return (self.low + self.high + 1) >> 1

    @property
    def constants(self) -> tuple[int, ...]:
        """Elements that the kernel needs, in the order of their use."""
        return (self.low, self.high, -self.middle, self.factor, *self.coefficients, self.scale)


class Curve(NamedTuple):
    """A function of an element.

    Attributes:
        start: element to which the pieces are added.
        pieces: 1 to :data:`MOST_PIECES`, by rising range.
    """

    start: int
    pieces: tuple[Piece, ...]

    @property
    def constants(self) -> tuple[int, ...]:
        """Elements that the kernel needs, in the order of their use."""
        first, *others = (piece.constants for piece in self.pieces)
        return (*first, self.start, *(value for held in others for value in held))

    @property
    def operations(self) -> int:
        """Operations of an element."""
        return sum(2 * len(piece.coefficients) + 5 for piece in self.pieces)


def curve_of(start: int, pieces: Sequence[Sequence[Any]]) -> Curve:
    """The reverse of a curve as plain data.

    Raises:
        TypeError: it is no such data.
    """
    held = (Piece._make((*numbers, tuple(last))) for *numbers, last in pieces)
    return Curve(start, tuple(held))


def check_curve(curve: Curve) -> None:
    """Check the numbers of a curve.

    Raises:
        KernelError: a value outside its range.
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
    low, high, moved, factor, first, *coefficients, scale = (
        np.array(each, np.int16) for each in piece.constants
    )
    unit = multiply(add(np.minimum(np.maximum(image, low), high), moved), factor, piece.shift)
    found = multiply(unit, first, UNIT_FRACTION)
    for coefficient in coefficients[:-1]:
        found = multiply(add(found, coefficient), unit, UNIT_FRACTION)
    return multiply(add(found, coefficients[-1]), scale, piece.result_shift)


def arguments_beyond(given: Curve, image: Elements) -> int:
    """How many elements lie outside the range of all pieces, at whose ends the curve keeps its
    value."""
    low, high = given.pieces[0].low, given.pieces[-1].high
    return int(np.count_nonzero((image < low) | (image > high)))


def curve(given: Curve, image: Elements) -> Elements:
    """Golden model of a curve, bit-exact.

    Parameters:
        given: function.
        image: elements.
    """
    first, *others = given.pieces
    found = add(part(first, image), np.array(given.start, np.int16))
    for piece in others:
        found = add(found, part(piece, image))
    return found
