"""Functions of elements and of rows from their equations, on integers of any size.

Golden models compute the instructions that programs have (:func:`microkernels.nn.curves.evaluate`).
Here the equations of :mod:`microkernels.nn.curves` and :mod:`microkernels.nn.rows_shape` stand
beside them, with arithmetic of their own, so that an error in a list of instructions shows.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from microkernels.nn.curves import COEFFICIENTS, Curve, Piece
from microkernels.nn.element_shape import SLOPE_FRACTION, ElementOperation
from microkernels.nn.rows_shape import EXPONENTIAL, PLAIN, ROOT, Factor, NormalizeShape

_Numbers = NDArray[np.int64]
_UNIT = 15
_ONE = 1 << _UNIT
#: Where the magnitudes of polynomials end.
_LIMITS = {"gelu": 4.0, "erf": 3.0, "tanh": 5.0}


def _limited(values: _Numbers, bits: int = 16) -> _Numbers:
    return np.clip(values, -(1 << bits - 1), (1 << bits - 1) - 1)


def _shifted(values: _Numbers, shift: int) -> _Numbers:
    """Divided by a power of two and rounded, halves up."""
    return np.floor_divide(2 * values + (1 << shift), 2 << shift)


def _product(first: _Numbers, second: _Numbers | int, shift: int, bits: int = 16) -> _Numbers:
    return _limited(_shifted(first * second, shift), bits)


def _horner(argument: _Numbers, coefficients: tuple[int, ...], shift: int) -> _Numbers:
    total = np.full_like(argument, coefficients[0])
    for coefficient in coefficients[1:]:
        total = _limited(_product(total, argument, shift) + coefficient)
    return total


def polynomial(name: str, x: _Numbers, fraction: int) -> _Numbers:
    """gelu is max(x, 0) - p(abs(x)); erf and tanh are 1 - p(abs(x)) with the sign of x."""
    end, one = _LIMITS[name], 1 << fraction
    magnitude = np.minimum(_limited(abs(x)), max(min(int(end * one) - 1, (1 << 15) - 1), 1))
    # From -1 to 1 over the range.
    unit = _product(magnitude - int(end * one / 2), round(2 * _ONE / end), fraction)
    p, shift = _horner(unit, COEFFICIENTS[name][::-1], _UNIT), _UNIT - fraction
    if name == "gelu":
        return _limited(np.maximum(x, 0) - _product(p, 1, shift))
    bound = _limited(one + _product(p, -1, shift))
    # Both functions have at most the magnitude of 2 x, tanh that of x.
    near = 2 * x if name == "erf" else x
    return np.minimum(np.maximum(near, -bound), bound)


def _part(piece: Piece, x: _Numbers) -> _Numbers:
    unit = _product(_limited(x - piece.middle), piece.factor, piece.shift)
    if not piece.end:
        total = _horner(unit, piece.coefficients, _UNIT)
        return _product(total, piece.scale, piece.result_shift) if piece.scaled else total
    # unit * end + unit * (unit^2 - 1) * P(2 unit^2 - 1)
    square = _product(unit, unit, _UNIT) - _ONE // 2
    total = _horner(square, piece.coefficients, _UNIT - 1)
    bend = _product(_limited(square - _ONE // 2), unit, _UNIT)
    line = _product(unit, piece.end, _UNIT)
    return _limited(_product(total, bend, piece.result_shift) + line)


def curve(function: Curve, x: _Numbers) -> _Numbers:
    """What starts the curve, and what each piece adds."""
    first, *rest = function.pieces
    total = _limited(_part(first, x) + function.start)
    for piece in rest:
        total = _limited(total + _part(piece, x))
    return total


_OF_TWO: dict[str, Callable[[_Numbers, _Numbers], _Numbers]] = {
    "add": np.add,
    "subtract": np.subtract,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


def element(operation: ElementOperation, x: _Numbers, other: _Numbers) -> _Numbers:
    """Any operation but the logistic unit's, of which :mod:`microkernels.common.logistic` has a
    model, on numbers of its width."""
    name, bits, fraction = operation.function, operation.bits, operation.fraction or 0
    if name in _OF_TWO:
        result = _limited(_OF_TWO[name](x, other), bits)
        return np.maximum(result, 0) if operation.relu else result
    match name:
        case "multiply":
            return _product(x, other, fraction, bits)
        case "affine":
            return _limited(_product(x, operation.factor, fraction, bits) + operation.offset, bits)
        case "gate":
            gate = _product(x, operation.factor, fraction, bits) + operation.offset
            gate = np.minimum(np.maximum(_limited(gate, bits), operation.low), operation.high)
            return _product(x, gate, operation.gate_fraction, bits)
        case "absolute":
            return _limited(abs(x), bits)
        case "leaky":
            return np.maximum(x, _product(x, operation.slope, SLOPE_FRACTION, bits))
        case "clip":
            return np.minimum(np.maximum(x, operation.low), operation.high)
        case "relu":
            return np.maximum(x, 0)
        case "gelu" | "erf":
            return polynomial(name, x, fraction)
    assert operation.curve is not None
    return curve(operation.curve, x)


def _exponentials(shape: NormalizeShape, below: _Numbers) -> _Numbers:
    """exp(u) - 2^-15 of differences from the largest, u from -1 to 0, squared until in range."""
    wide = shape.widened
    if wide > 0:
        below = np.maximum(below, -(_ONE >> wide)) << wide
    elif wide < 0:
        below = _shifted(below, -wide)
    series = _horner(below, EXPONENTIAL[::-1], _UNIT)
    less = below + _product(_product(series, below, _UNIT), below, _UNIT)
    for _ in range(shape.squarings):
        # (1 + y)^2 - 1 = y^2 + 2 y
        less = np.maximum(_product(less, less, _UNIT) + 2 * less, -_ONE)
    return less + _ONE - 1


def _row_factors(factor: Factor, sums: _Numbers) -> _Numbers:
    """Factors by Newton's rounds, from the sums of the first level that does not saturate."""

    def level_of(shift: int) -> _Numbers:
        return _limited(_limited(_shifted(sums, shift)).sum(axis=-1, keepdims=True))

    levels = [level_of(shift) for shift in factor.shifts]
    total = levels[0] + factor.added[0]
    scale = np.full_like(total, factor.scales[0])
    for number, level in enumerate(levels[1:], 1):
        saturated = level == _ONE - 1
        total = np.where(saturated, total, level + factor.added[number])
        scale = np.where(saturated, scale, factor.scales[number])
    kind, (start, slope) = ROOT if factor.root else PLAIN, factor.start
    negative = _product(total, -(1 << factor.mantissa), 0, 32)
    value = start + _product(negative, slope, kind["mantissa"], 32)
    shift = kind["mantissa"] + kind["value"] - kind["product"]
    for _ in range(factor.rounds):
        product = _product(negative, value, shift, 32)
        if factor.root:
            # y (3 - x y^2) / 2
            product = _product(product, value, kind["product"], 32) + (3 << kind["value"])
            value = _product(value, product, kind["value"] + 1, 32)
        else:
            # y (2 - x y)
            value = _product(value, product + (2 << kind["product"]), kind["product"], 32)
    return np.minimum(_product(value, scale, factor.shift, 32), _ONE - 1)


def normalize(shape: NormalizeShape, x: _Numbers) -> _Numbers:
    """Softmax, or rows with the mean and the norm, or the norm alone, of one."""
    starts = [start for start, _ in shape.segments]
    if shape.operation == "softmax":
        x, shift = _exponentials(shape, _limited(x - x.max(axis=2, keepdims=True))), _UNIT
        parts = np.add.reduceat(x, starts, axis=2)
    else:
        assert shape.fraction is not None
        shift = shape.fraction
        if shape.operation == "layer":
            one, fraction = shape.mean
            means = _limited(_shifted(np.add.reduceat(x, starts, axis=2) * one, fraction))
            x = _limited(x - _limited(means.sum(axis=2, keepdims=True)))
        parts = np.add.reduceat(x * x, starts, axis=2)
    return _product(x, _row_factors(shape.scale, parts), shift)
