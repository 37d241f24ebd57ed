"""Element-wise functions as curves (:mod:`microkernels.nn.curves`).

A curve is fitted, in elements, on the range of its argument in the calibration data. Its pieces are
polynomials of degree 5; the piece with the largest error is divided until that error is 1.5 units
in the last place, or until the curve has its maximum number of pieces.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microkernels.common.fixed_point import FRACTION_LIMIT, HIGHEST, LOWEST
from microkernels.nn.curves import (
    MOST_PIECES,
    UNIT_FRACTION,
    Curve,
    Piece,
    curve,
    part,
)

__all__ = ["FUNCTIONS", "UNFITTED", "Function", "evaluated", "fitted", "has_pole"]

_Reals = NDArray[np.floating[Any]]

_DEGREE = 5
#: Error in units in the last place below which a piece is not divided.
_GOOD = 1.5
#: Maximum arguments of a piece at which it is fitted, and at which its error is measured.
_NODES, _SAMPLES = 16, 129
#: Weights of these arguments in the fit: an error at an end applies to all arguments beyond it.
_WEIGHTS = np.array([100.0, *(1.0,) * (_NODES - 2), 100.0])
_ONE = 1 << UNIT_FRACTION
#: Candidate points for dividing a piece, as fractions of it; functions are steep at the ends.
_SHARES = (1 / 16, 1 / 4, 1 / 2, 3 / 4, 15 / 16)


class Function(NamedTuple):
    """A function of real numbers: its name in :data:`FUNCTIONS`, and its parameters."""

    name: str
    parameters: tuple[float, ...] = ()


def _elu(x: _Reals, alpha: float, gamma: float, width: float) -> _Reals:
    below = alpha * np.expm1(np.minimum(x, 0.0) / width)
    return np.asarray(gamma * (np.maximum(x, 0.0) + below))


def _softplus(x: _Reals) -> _Reals:
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


def _root_from(x: _Reals, power: float, least: float) -> _Reals:
    # Below this, powers have few bits, fewer than the root.
    below = x * max(least, 1e-300) ** (1 / power - 1)
    return np.asarray(np.where(x >= least, np.power(x, 1 / power), below))


def _power(x: _Reals, exponent: float) -> _Reals:
    return np.asarray(np.power(x, exponent))


#: Name -> function of an array and parameters; NaN or infinite where undefined.
FUNCTIONS: Mapping[str, Callable[..., _Reals]] = {
    **{
        name: getattr(np, name)
        for name in ("exp", "log", "sqrt", "reciprocal", "sin", "cos", "tan", "sinh", "cosh",
                     "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "tanh")
    },
    "sigmoid": lambda x: np.asarray((np.tanh(x / 2) + 1) / 2),
    "elu": _elu,
    "softplus": _softplus,
    "softsign": lambda x: np.asarray(x / (1 + np.abs(x))),
    "mish": lambda x: np.asarray(x * np.tanh(_softplus(x))),
    "positive": lambda x: np.asarray(np.where(x > 0, 1.0, 0.0)),
    "inverse": lambda x: np.asarray(np.where(x == 0, 0.0, np.reciprocal(x))),
    "power": _power,
    "root_from": _root_from,
}  # fmt: skip

#: Placeholder until calibration, as large as a curve may be.
UNFITTED = Curve(0, (Piece(0, 0, 0, 0, 0, 0, (0,) * (_DEGREE + 1)),) * MOST_PIECES)


def evaluated(function: Function, values: _Reals) -> _Reals:
    """The function of real numbers; NaN or infinite where undefined."""
    with np.errstate(all="ignore"):
        return FUNCTIONS[function.name](np.asarray(values, np.float64), *function.parameters)


def has_pole(function: Function, least: float, greatest: float) -> bool:
    """Whether the function has a pole between numbers at which it is defined."""
    name = function.name
    if name == "reciprocal" or (name == "power" and function.parameters[0] < 0):
        return least < 0 < greatest
    # The tangent's poles are half a turn apart.
    turns = [np.floor(end / np.pi + 0.5) for end in (least, greatest)]
    return name == "tan" and turns[0] != turns[1]


@lru_cache(maxsize=1024)
def fitted(function: Function, least: float, greatest: float, source: int, fraction: int) -> Curve:
    """The curve of a function.

    Parameters:
        least, greatest: range of the argument, in real numbers; the function is finite there.
        source, fraction: fraction bits of the argument and the result.
    """
    low, high = (
        int(np.clip(edge, LOWEST, HIGHEST))
        for edge in (np.floor(np.ldexp(least, source)), np.ceil(np.ldexp(greatest, source)))
    )

    def target(elements: NDArray[np.floating[Any]]) -> _Reals:
        real = np.clip(np.ldexp(elements, -source), least, greatest)
        scaled = np.ldexp(evaluated(function, real), fraction)
        return np.asarray(np.clip(scaled, LOWEST, HIGHEST))

    if function.name == "positive":
        return Curve(0, (_step(0, lambda _: np.ldexp(np.ones(1), fraction), 0),))
    edges = [low, high]
    if function.name == "inverse":
        # Its steps lie between adjacent elements.
        edges = sorted({low, high, *(end for end in (-1, 0, 1) if low <= end <= high)})
    best, smallest = _through(edges, target), np.inf
    while True:
        candidate = _through(edges, target)
        errors = [_error(candidate, *ends, target) for ends in pairwise(edges)]
        if max(errors) < smallest:
            best, smallest = candidate, max(errors)
        wide = [
            error if last - first > 1 else 0.0
            for error, (first, last) in zip(errors, pairwise(edges), strict=True)
        ]
        if max(wide) <= _GOOD or len(errors) == MOST_PIECES:
            return best
        at = int(np.argmax(wide))
        edges.insert(at + 1, _divided(edges[at], edges[at + 1], target))


def _divided(low: int, high: int, target: Callable[[_Reals], _Reals]) -> int:
    """Where to divide a piece so that the larger error of its two parts is smallest."""
    places = {round(low + share * (high - low)) for share in _SHARES}

    def error(place: int) -> float:
        halves = ((low, place), (place, high))
        return max(_error(_through(ends, target), *ends, target) for ends in halves)

    return min(sorted(places - {low, high}), key=error)


def _through(edges: Sequence[int], target: Callable[[_Reals], _Reals]) -> Curve:
    """The curve with pieces between these arguments."""
    start = int(np.floor(target(np.array([float(edges[0])]))[0] + 0.5))
    pieces: list[Piece] = []
    before = start
    for low, high in pairwise(edges):
        step = high - low == 1
        piece = _step(low, target, before) if step else _piece(low, high, target, before)
        before += int(part(piece, np.array([high], np.int16))[0])
        pieces.append(piece)
    return Curve(start, tuple(pieces))


def _step(low: int, target: Callable[[_Reals], _Reals], less: int) -> Piece:
    """The piece that equals ``target`` minus a number at the argument after ``low``, and 0 at
    ``low``."""
    height = int(np.floor(target(np.array([low + 1.0]))[0] + 0.5)) - less
    # The argument is mapped to -1 and 0; a larger coefficient times -1 would be rounded.
    shift = max(abs(height).bit_length() - UNIT_FRACTION + 1, 0)
    part_height = height >> shift
    return Piece(low, low + 1, HIGHEST, 0, 1 << shift, 0, (part_height, part_height))


def _piece(low: int, high: int, target: Callable[[_Reals], _Reals], less: int) -> Piece:
    """The piece that equals ``target`` minus a number from ``low`` to ``high``, and 0 at
    ``low``."""
    middle = (low + high + 1) >> 1
    half = max(high - middle, middle - low, 1)
    shift = min(half.bit_length() - 1, FRACTION_LIMIT)
    factor = min((HIGHEST << shift) // half, HIGHEST)
    nodes = np.cos(np.pi * np.arange(_NODES) / (_NODES - 1))
    arguments = np.clip(middle + nodes * _ONE * (1 << shift) / factor, low, high)
    units = (arguments - middle) * factor / (1 << shift) / _ONE
    powers = np.vander(units, _DEGREE + 1) * _WEIGHTS[:, np.newaxis]
    real = np.linalg.lstsq(powers, (target(arguments) - less) * _WEIGHTS, rcond=None)[0]
    # Every step of Horner's rule must stay below 1.
    bound, sums = 0.0, np.zeros_like(units)
    for coefficient in real:
        sums = sums * units + coefficient
        bound = max(bound, float(np.abs(sums).max()), abs(float(coefficient)))
    room = int(np.ceil(np.log2(max(bound * 1.01 + 1, 1.0))))
    scale, right = (1, UNIT_FRACTION - room) if room <= UNIT_FRACTION else (1 << room - 15, 0)
    coefficients = np.floor(np.ldexp(real, UNIT_FRACTION - room) + 0.5).astype(int)
    coefficients = np.clip(coefficients, LOWEST, HIGHEST)
    piece = Piece(low, high, factor, shift, scale, right, tuple(coefficients.tolist()))
    # It adds nothing at its start.
    plain = piece._replace(scale=1, result_shift=0)
    moved = int(part(plain, np.array([low], np.int16))[0])
    last = int(np.clip(coefficients[-1] - moved, LOWEST, HIGHEST))
    return piece._replace(coefficients=(*piece.coefficients[:-1], last))


def _error(candidate: Curve, low: int, high: int, target: Callable[[_Reals], _Reals]) -> float:
    """Largest error from ``low`` to ``high``."""
    elements = np.unique(np.linspace(low, high, _SAMPLES).astype(np.int16))
    values = curve(candidate, elements).astype(np.float64)
    return float(np.abs(values - target(elements.astype(np.float64))).max())
