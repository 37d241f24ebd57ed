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

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from itertools import count
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
    uncounted,
)
from microkernels.common.logistic import sigmoid, tanh

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


class VectorOp(NamedTuple):
    """An instruction of a function of vectors, which is written once for golden model and program.

    Attributes:
        mnemonic: of a vector instruction, without width.
        into, first, second: names of vectors, such as ``x``, the argument, which may be
            overwritten, ``other``, a second one, ``unit`` and ``part``, on the way, and ``result``.
            A number refers to a constant of the function; "": there is no second operand.
        shift: bits by which this and the following products are shifted right; None: as before.
        limits: results that saturate are meant to, and do not count.
        note: for the text of a program.
    """

    mnemonic: str
    into: str
    first: str
    second: str | int = ""
    shift: int | None = None
    limits: bool = False
    note: str = ""

    @property
    def places(self) -> tuple[str | int, ...]:
        """Where its result goes, and its operands."""
        return (self.into, self.first, self.second)[: 2 if self.second == "" else 3]


#: Operation of an instruction -> its function, with and without fraction bits.
_FIXED: Mapping[str, Callable[..., Elements]] = {"mul": multiply, "tanh": tanh, "sigmoid": sigmoid}
_EXACT: Mapping[str, Callable[..., Elements]] = {
    "add": add, "sub": subtract, "max": np.maximum, "min": np.minimum
}  # fmt: skip


def evaluate(
    steps: Sequence[VectorOp],
    constants: Sequence[int],
    arguments: Mapping[str | int, Elements],
    bits: int = 0,
) -> Elements:
    """Golden model of a function, bit-exact.

    Parameters:
        constants: of the function. arguments: vectors by name, of numbers of the same type.
        bits: by which products are shifted at first.
    """
    kind = next(iter(arguments.values())).dtype
    vectors: dict[str | int, Elements] = {**arguments}
    vectors |= {number: np.array(value, kind) for number, value in enumerate(constants)}
    for step in steps:
        bits = bits if step.shift is None else step.shift
        operation, (into, *operands) = step.mnemonic.rpartition(".")[2], step.places
        values = [vectors[one] for one in operands]
        with uncounted() if step.limits else nullcontext():
            exact = operation in _EXACT
            result = _EXACT[operation](*values) if exact else _FIXED[operation](*values, bits)
        vectors[into] = result
    return vectors["result"]


def power_sum(into: str, argument: str, coefficients: Sequence[int], shift: int) -> list[VectorOp]:
    """A polynomial, by Horner's rule from the numbers of at least two coefficients, by descending
    power; products are shifted by ``shift``."""
    first, second, *rest = coefficients
    steps = [
        VectorOp("v.s.mul", into, argument, first, shift, note="Horner's rule"),
        VectorOp("v.s.add", into, into, second),
    ]
    for coefficient in rest:
        steps += [
            VectorOp("v.v.mul", into, into, argument),
            VectorOp("v.s.add", into, into, coefficient),
        ]
    return steps


def polynomial_steps(name: str, fraction: int) -> list[VectorOp]:
    """gelu, erf or tanh with the constants :func:`polynomial_constants`. ``part`` may be the place
    of the result, of gelu and erf."""
    minus, limit, offset, factor, unity, one, zero = range(7)
    first = 7 if name == "gelu" else 5
    coefficients = range(first, first + len(COEFFICIENTS[name]))
    steps = [
        VectorOp("v.s.mul", "unit", "x", minus, 0, note="magnitude"),
        VectorOp("v.v.max", "unit", "x", "unit"),
        VectorOp("v.s.min", "unit", "unit", limit),
        VectorOp("v.s.add", "unit", "unit", offset),
        VectorOp("v.s.mul", "unit", "unit", factor, fraction),
        *power_sum("part", "unit", coefficients, UNIT_FRACTION),
    ]
    if name == "gelu":
        return [
            *steps,
            VectorOp("v.s.mul", "part", "part", one, UNIT_FRACTION - fraction),
            VectorOp("v.s.max", "x", "x", zero),
            VectorOp("v.v.sub", "result", "x", "part"),
        ]
    steps += [
        VectorOp("v.s.mul", "part", "part", minus, UNIT_FRACTION - fraction),
        VectorOp("v.s.add", "part", "part", unity, note="magnitude of the result"),
        VectorOp("v.s.mul", "unit", "part", minus, 0),
    ]
    # The magnitude of tanh is below that of its operand.
    beyond = "result"
    if name == "erf":
        # The slope is below 2.
        beyond = "x"
        steps.append(VectorOp("v.v.add", "x", "x", "x", limits=True, note="beyond the result"))
    return [
        *steps,
        VectorOp("v.v.max", beyond, "x", "unit"),
        VectorOp("v.v.min", "result", beyond, "part"),
    ]


def polynomial(name: str, image: Elements, fraction: int) -> Elements:
    """Golden model of gelu, erf and tanh, bit-exact.

    Parameters:
        name: one of :data:`COEFFICIENTS`.
        image: elements with ``fraction`` bits, 0..:data:`MOST_FRACTION`, of tanh one less.
    """
    CHECK.within("fraction bits", fraction, 0, MOST_FRACTION - (name == "tanh"))
    constants = polynomial_constants(name, fraction)
    return evaluate(polynomial_steps(name, fraction), constants, {"x": image})


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


def _piece_steps(piece: Piece, into: str, number: int) -> list[VectorOp]:
    """What a piece adds, with its constants from ``number`` on."""
    numbers = count(number)
    shifted, argument, bits = "x", "unit", UNIT_FRACTION
    steps = []
    if piece.middle:
        shifted = "unit"
        steps.append(VectorOp("v.s.add", "unit", "x", next(numbers), limits=True, note="a part"))
    steps.append(VectorOp("v.s.mul", "unit", shifted, next(numbers), piece.shift, limits=True))
    if piece.end:
        # Half of P's argument.
        argument, bits = "part", UNIT_FRACTION - 1
        steps += [
            VectorOp("v.v.mul", "part", "unit", "unit", UNIT_FRACTION, limits=True),
            VectorOp("v.s.add", "part", "part", next(numbers)),
        ]
    steps += power_sum(into, argument, [next(numbers) for _ in piece.coefficients], bits)
    if piece.end:
        steps += [
            VectorOp("v.s.add", "part", "part", next(numbers), UNIT_FRACTION),
            VectorOp("v.v.mul", "part", "part", "unit"),
            VectorOp("v.s.mul", "unit", "unit", next(numbers)),
            VectorOp("v.v.mul", into, into, "part", piece.result_shift),
            VectorOp("v.v.add", into, into, "unit"),
        ]
    elif piece.scaled:
        steps.append(VectorOp("v.s.mul", into, into, next(numbers), piece.result_shift))
    return steps


def curve_steps(function: Curve) -> list[VectorOp]:
    """A curve, with its constants in the order of their numbers."""
    first, *rest = function.pieces
    steps, number = _piece_steps(first, "result", 0), len(first.constants)
    if function.start:
        steps.append(VectorOp("v.s.add", "result", "result", number, note="start"))
        number += 1
    for piece in rest:
        steps += _piece_steps(piece, "part", number)
        steps.append(VectorOp("v.v.add", "result", "result", "part"))
        number += len(piece.constants)
    return steps


def part(piece: Piece, image: Elements) -> Elements:
    """What a piece adds."""
    return evaluate(_piece_steps(piece, "result", 0), piece.constants, {"x": image})


def arguments_beyond(function: Curve, image: Elements) -> int:
    """Number of elements outside the range of a curve, where it has its values at the ends."""
    return int(np.count_nonzero((image < function.low) | (image > function.high)))


def curve(function: Curve, image: Elements) -> Elements:
    """Golden model of a curve, bit-exact.

    Parameters:
        function: to compute.
        image: elements.
    """
    return evaluate(curve_steps(function), function.constants, {"x": image})
