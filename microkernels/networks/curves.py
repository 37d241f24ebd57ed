"""Element-wise functions as curves (:mod:`microkernels.nn.curves`).

A curve is fitted, in elements, on the range of its argument in the calibration data. Its pieces,
from left to right, are those with the fewest operations whose error is at most 1.5 units in the
last place or 7e-5 of the largest result; if there are too many of them, the error may be 1.25 times
as large, and so on. Each piece is a polynomial of degree 1 to 7 that reaches as far as this error
allows. A function that is odd is one odd piece, for both signs alike, if its error is at most 1.25
times that of the first pieces.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from math import erf, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microkernels.common.fixed_point import HIGHEST, LOWEST
from microkernels.nn.curves import (
    MOST_COEFFICIENTS,
    MOST_PIECES,
    UNIT_FRACTION,
    Curve,
    Piece,
    part,
)

_Reals = NDArray[np.floating[Any]]

_DEGREES = range(1, 8)
#: Error of a piece that is looked for first: units in the last place, and part of the largest
#: result; the larger one.
_GOOD, _GOOD_PART = 1.5, 7e-5
#: Factor of the next one.
_WORSE = 1.25
#: Elements by which an odd function may differ for opposite arguments.
_ODD = 0.25
#: Units in the last place by which the last coefficient of an odd piece may be moved.
_BESIDE = 3
#: Part of it that a polynomial with real coefficients may have.
_BEFORE_ROUNDING = 0.75
#: Maximum arguments of a piece at which it is fitted, and at which its error is measured.
_NODES, _SAMPLES = 24, 385
_ONE = 1 << UNIT_FRACTION
_ERF = np.frompyfunc(erf, 1, 1)
#: Most lengths that are tried with rounded coefficients.
_TRIALS = 6
#: A piece's end is found to within this part of its length.
_RESOLUTION = 16


class Function(NamedTuple):
    """A function of real numbers.

    Attributes:
        name: in :data:`FUNCTIONS`. parameters: after its arguments.
        of: functions whose results are its arguments; empty: it is of the arguments themselves.
    """

    name: str
    parameters: tuple[float, ...] = ()
    of: "tuple[Function, ...]" = ()

    @property
    def title(self) -> str:
        """Names of the function and of those that it is of."""
        return " of ".join([self.name, *(inner.title for inner in self.of if inner != ARGUMENT)])

    def after(self, inner: "Sequence[Function]") -> "Function":
        """The function of the results of ``inner``."""
        return self._replace(of=tuple(each.after(inner) for each in self.of) or tuple(inner))


#: Names of functions with a step at 0.
STEPS = ("positive", "inverse")
#: The argument itself.
ARGUMENT = Function("argument")


def _elu(x: _Reals, alpha: float, gamma: float, width: float) -> _Reals:
    below = alpha * np.expm1(np.minimum(x, 0.0) / width)
    return np.asarray(gamma * (np.maximum(x, 0.0) + below))


def _softplus(x: _Reals) -> _Reals:
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


def _root_from(x: _Reals, power: float, least: float) -> _Reals:
    # Below this, powers have few bits, fewer than the root.
    below = x * max(least, 1e-300) ** (1 / power - 1)
    return np.asarray(np.where(x >= least, np.power(x, 1 / power), below))


def _inverse(x: _Reals) -> _Reals:
    # 0 has none, and counts as its own.
    return np.asarray(np.where(x == 0, 0.0, np.where(x > 0, np.reciprocal(x), np.nan)))


def _erf(x: _Reals) -> _Reals:
    return np.asarray(_ERF(x), np.float64)


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
    "inverse": _inverse,
    "power": _power,
    "root_from": _root_from,
    "gelu": lambda x: x * (1 + _erf(x / sqrt(2))) / 2,
    "erf": lambda x: _erf(x),
    "argument": lambda x: x,
    "affine": lambda x, factor, offset: factor * x + offset,
    "clip": np.clip,
    "leaky": lambda x, slope: np.asarray(np.maximum(x, slope * x)),
    "relu": lambda x: np.maximum(x, 0),
    "absolute": np.abs,
    **{name: getattr(np, name) for name in ("add", "subtract", "multiply", "maximum", "minimum")},
}  # fmt: skip

#: Placeholder until calibration, as large as a curve may be.
UNFITTED = Curve(0, 0, 0, (Piece(0, 0, 0, 0, 0, (0,) * 6),) * MOST_PIECES)

#: The function in elements.
_Target = Callable[[_Reals], _Reals]


class _Front(NamedTuple):
    """Pieces from the left end of a curve.

    Attributes:
        place: the last one's end. value: of all pieces beyond it.
    """

    place: int
    value: int
    pieces: tuple[Piece, ...] = ()


def evaluated(function: Function, *values: _Reals) -> _Reals:
    """The function of real numbers; NaN or infinite where undefined."""
    inner = [evaluated(each, *values) for each in function.of]
    arguments = inner or [np.asarray(each, np.float64) for each in values]
    with np.errstate(all="ignore"):
        return FUNCTIONS[function.name](*arguments, *function.parameters)


def has_pole(function: Function, least: float, greatest: float) -> bool:
    """Whether the function has a pole between numbers at which it is defined."""
    if any(has_pole(inner, least, greatest) for inner in function.of):
        return True
    if len(function.of) == 1:
        arguments = evaluated(function.of[0], np.linspace(least, greatest, _SAMPLES))
        least, greatest = float(arguments.min()), float(arguments.max())
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

    def everywhere(elements: _Reals) -> _Reals:
        return np.asarray(np.ldexp(evaluated(function, np.ldexp(elements, -source)), fraction))

    def target(elements: _Reals) -> _Reals:
        within = np.clip(elements, np.ldexp(least, source), np.ldexp(greatest, source))
        return np.asarray(np.clip(everywhere(within), LOWEST, HIGHEST))

    if function.name == "positive":
        return Curve(0, LOWEST, HIGHEST, (_step(min(int(np.ldexp(1.0, fraction)), HIGHEST)),))
    if function.name == "inverse" and low <= 0:
        return _stepped(high, target)
    odd = _odd(min(max(-low, high, 2), HIGHEST), everywhere)
    if odd is not None:
        return odd
    first, last = _even(low, high, target)
    start = int(np.floor(target(np.array([float(first)]))[0] + 0.5))
    return Curve(start, low, high, _pieces(_Front(first, start), last, target))


def _odd(half: int, target: _Target) -> Curve | None:
    """The curve of a function that is odd, but for its value at 0, from ``-half`` to ``half``;
    None: it is not, or one piece has too large an error."""
    places = np.linspace(0, half, _SAMPLES)
    right, left = target(places), target(-places)
    middle = float(right[0])
    limits = right.min(), right.max(), left.min(), left.max()
    with np.errstate(invalid="ignore"):
        odd = np.abs(right + left - 2 * middle).max() <= _ODD
    # One that is not finite compares as False.
    if not (odd and max(map(abs, limits)) <= HIGHEST):
        return None
    start = int(np.floor(middle + 0.5))
    error = _WORSE * max(_GOOD, _GOOD_PART * float(np.abs(right).max()))
    front = _Front(-half, start)
    for degree in range(1, MOST_COEFFICIENTS):
        piece = _odd_piece(half, degree, lambda places: target(places) - middle)
        if piece is None:
            return None
        if _error(piece, front, half, target) > 2 * error:
            continue
        # Rounding may favour the coefficients beside the nearest.
        *first, last = piece.coefficients
        for offset in sorted(range(-_BESIDE, _BESIDE + 1), key=abs):
            near = min(max(last + offset, LOWEST), HIGHEST)
            beside = piece._replace(coefficients=(*first, near))
            if _error(beside, front, half, target) <= error:
                return Curve(start, -half, half, (beside,))
    return None


def _odd_piece(half: int, degree: int, target: _Target) -> Piece | None:
    """The odd piece with a polynomial of this degree; None: its numbers do not fit."""
    factor, shift = _scale(half)
    # Of the argument of the polynomial, and of the function.
    nodes = _between(_NODES)
    units = np.sqrt((nodes + 1) / 2)
    wanted = target(units * (_ONE * (1 << shift) / factor))
    end = int(np.floor(wanted[0] + 0.5))
    bend = (units**3 - units)[:, np.newaxis]
    powers = np.vander(nodes, degree + 1)
    real = np.linalg.lstsq(powers * bend, wanted - end * units, rcond=None)[0]
    room = max(_room(real), UNIT_FRACTION)
    if not end or room > 2 * UNIT_FRACTION:
        return None
    coefficients = _rounded(real, room)
    return Piece(0, factor, shift, 1, 2 * UNIT_FRACTION - room, coefficients, end)


def _room(real: _Reals) -> int:
    """Bits of the largest number in Horner's rule from -1 to 1, which must stay below 1."""
    nodes = _between(_NODES)
    bound, sums = 0.0, np.zeros_like(nodes)
    for coefficient in real:
        sums = sums * nodes + coefficient
        bound = max(bound, float(np.abs(sums).max()), abs(float(coefficient)))
    return int(np.ceil(np.log2(max(bound * 1.01 + 1, 1.0))))


def _rounded(real: _Reals, room: int) -> tuple[int, ...]:
    """Coefficients of a piece."""
    numbers = np.floor(np.ldexp(real, UNIT_FRACTION - room) + 0.5).astype(int)
    return tuple(map(int, np.clip(numbers, LOWEST, HIGHEST)))


def _pieces(front: _Front, end: int, target: _Target) -> tuple[Piece, ...]:
    """Pieces from ``front`` up to ``end`` with as small an error as so many can have."""
    largest = np.abs(target(np.linspace(front.place, end, _SAMPLES))).max()
    error, pieces = max(_GOOD, _GOOD_PART * float(largest)), None
    while pieces is None:
        pieces = _cheapest(front, end, target, error)
        error *= _WORSE
    return pieces


def _step(height: int) -> Piece:
    """The piece that is 0 up to the element 0, and ``height`` from 1 on: half the sum of the
    saturated argument, which is -1, 0 or 1, and of its square."""
    half = _ONE >> 2
    return Piece(0, HIGHEST, 0, height, UNIT_FRACTION - 1, (half, half, 0))


def _stepped(high: int, target: _Target) -> Curve:
    """The curve of a function that is 0 up to 0, where it has a step."""
    height = int(np.floor(target(np.array([1.0]))[0] + 0.5))
    front = _Front(1, height, (_step(height),))
    end = high - (high + 1) % 2
    return Curve(0, 0, high, front.pieces if end <= 1 else _pieces(front, end, target))


def _even(low: int, high: int, target: _Target) -> tuple[int, int]:
    """Ends of the pieces, an even number of elements apart, at least 2.

    One element is left out, if any, at the end where the function is less steep.
    """
    if (high - low) % 2:
        left, right = np.abs(np.diff(target(np.array([[low, low + 1.0], [high - 1.0, high]]))))
        low, high = (low + 1, high) if left < right else (low, high - 1)
    if high == low:
        low = min(max(low - 1, LOWEST), HIGHEST - 2)
        high = low + 2
    return low, high


def _cheapest(front: _Front, end: int, target: _Target, error: float) -> tuple[Piece, ...] | None:
    """Pieces up to ``end`` with the fewest operations; None: too many."""
    # Operations -> the farthest front with as many.
    fronts, reached = {0: front}, front.place - 1
    for operations in range(UNFITTED.operations + 1):
        front = fronts.get(operations, front)
        if front.place <= reached:
            continue
        reached = front.place
        if reached == end:
            return front.pieces
        if len(front.pieces) == MOST_PIECES:
            continue
        for farther in _farther(front, end, target, error):
            needed = operations + farther.pieces[-1].operations
            if needed not in fronts or fronts[needed].place < farther.place:
                fronts[needed] = farther
    return None


def _farther(front: _Front, end: int, target: _Target, error: float) -> Iterator[_Front]:
    """``front`` with a piece of each degree that reaches farther than those of lower degree, as far
    as ``error`` allows."""
    # Half a piece's length.
    most, reached = (end - front.place) // 2, 0
    for degree in _DEGREES:
        good, bad = reached, most + 1
        # The first trial is the whole rest, or twice the length of a lower degree.
        half = min(2 * reached, most) or most
        while good < half < bad:
            if _polynomial(front, half, target, degree)[1] <= _BEFORE_ROUNDING * error:
                good = half
            else:
                bad = half
            if bad - good <= good // _RESOLUTION:
                break
            half = min(2 * good, most) if bad > most else (good + bad) // 2
        # Rounded coefficients may need a shorter piece.
        for _ in range(_TRIALS):
            if good <= reached:
                break
            piece = _piece(front, good, target, degree)
            if _error(piece, front, good, target) <= error:
                place = front.place + 2 * good
                added = int(part(piece, np.array([place], np.int16))[0])
                yield _Front(place, front.value + added, (*front.pieces, piece))
                reached = good
                break
            good -= good // 8 + 1
        if reached == most:
            return


@cache
def _solver(degree: int, half: int) -> tuple[_Reals, _Reals, _Reals]:
    """How polynomials are fitted to pieces of ``2 * half`` elements, from -1 to 1.

    Returns:
        The arguments; the matrix from values there to the coefficients of least squares, by
        descending power; the matrix from these to the polynomial's values.
    """
    count = min(2 * half + 1, _NODES)
    # A short piece is fitted at its elements alone.
    nodes = np.linspace(1, -1, count) if count < _NODES else _between(_NODES)
    powers = np.vander(nodes, degree + 1)
    # An error at an end applies to all arguments beyond it.
    weights = np.array([100.0, *(1.0,) * (count - 2), 100.0])
    return nodes, np.linalg.pinv(powers * weights[:, np.newaxis]) * weights, powers


def _between(count: int) -> _Reals:
    """Places from 1 to -1, denser at the ends, where errors are largest."""
    return np.cos(np.pi * np.arange(count) / (count - 1))


def _scale(half: int) -> tuple[int, int]:
    """Factor and shift from ``half`` to 1, which saturates except for a ``half`` of 1."""
    shift = max((half - 1).bit_length() - 1, 0)
    return min(-(-(_ONE << shift) // half), HIGHEST), shift


def _polynomial(front: _Front, half: int, target: _Target, degree: int) -> tuple[_Reals, float]:
    """Coefficients for the ``2 * half`` elements from ``front`` on, and their largest error."""
    factor, shift = _scale(half)
    nodes, solver, powers = _solver(degree, min(half, _NODES))
    ratio = _ONE * (1 << shift) / factor if 2 * half + 1 >= _NODES else half
    wanted = target(front.place + half + nodes * ratio) - front.value
    coefficients = solver @ wanted
    return coefficients, float(np.abs(powers @ coefficients - wanted).max())


def _piece(front: _Front, half: int, target: _Target, degree: int) -> Piece:
    """The piece on the ``2 * half`` elements from ``front`` on, which adds nothing at its start."""
    real, _ = _polynomial(front, half, target, degree)
    room = _room(real)
    scale, right = (1, UNIT_FRACTION - room) if room <= UNIT_FRACTION else (1 << room - 15, 0)
    *first, last = _rounded(real, room)
    piece = Piece(front.place + half, *_scale(half), 1, 0, (*first, last))
    last -= int(part(piece, np.array([front.place], np.int16))[0])
    last = min(max(last, LOWEST), HIGHEST)
    return piece._replace(scale=scale, result_shift=right, coefficients=(*first, last))


def _error(piece: Piece, front: _Front, half: int, target: _Target) -> float:
    """Largest error of ``front`` and ``piece`` on these elements."""
    elements = np.unique((front.place + half * (1 + _between(_SAMPLES))).astype(np.int16))
    values = part(piece, elements).astype(np.float64) + front.value
    return float(np.abs(values - target(elements.astype(np.float64))).max())
