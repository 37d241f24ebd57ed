"""The logistic functions, bit-exact: a table of parabolas and its evaluation.

Both functions come from ``tanh`` on 0..8: ``sigmoid(x) = (1 + tanh(x / 2)) / 2``, and beyond 8 the
table's value is 1. An element has ``f`` fraction bits, FX or :data:`MOST_FRACTION`, whichever is
less, and so does its result. With ``u`` the magnitude of ``x``, or of ``x / 2`` for the sigmoid, in
units of ``2**-16``, which hold it exactly:

- the segment of ``u`` is found from its leading bits (:data:`REGIONS`), and ``t`` is the place
  within it in units of ``2**-12`` of its length, rounded down;
- ``y = constant + (slope - (curve * t >> 12)) * t >> 12``, in units of ``2**-18``; a ``u`` of 8 or
  more gives ``y = 2**18``;
- with ``y`` negated if ``x`` is negative, the result is ``2 * y`` for tanh and ``2**18 + y`` for
  the sigmoid, in units of ``2**-19``, rounded to ``f`` fraction bits, halves up. It needs no
  saturation: it is in range as the element is.

The table is made here from the mathematical function, by quadratic interpolation in the Chebyshev
points of each segment. Source: ours; the thesis (7.2.2, 7.2.4) only says that there is such a unit.
"""

import math
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from .special_unit import Array, SpecialUnit

#: Fraction bits of an element at most; a larger FX counts as this.
MOST_FRACTION = 15
#: Fraction bits of ``u``.
U_FRACTION = 16
#: ``u`` below two to this power is looked up in the table.
LIMIT_BITS = U_FRACTION + 3
#: Bits of the position within a segment.
PLACE_BITS = 12
#: Fraction bits of the table's value.
VALUE_FRACTION = 18
#: The result differs from the function's value by less than this many units in the last place.
ERROR_BOUND = 0.75


class LogisticOp(IntEnum):
    """The functions; the value is the encoding in bits 4:2."""

    SIGMOID = 0
    TANH = 1


@dataclass(frozen=True)
class Region:
    """Segments of equal length: those from ``u = start`` on, ``2**shift`` long, up to the next
    region or the table's end; ``first`` is the index of the first of them."""

    start: int
    shift: int
    first: int


#: Constant, slope and curve of a segment in units of ``2**-VALUE_FRACTION``, none negative (see the
#: module).
Segment = tuple[int, int, int]
#: Ascending. Segments are shorter where the function bends more.
REGIONS = (
    Region(start=0, shift=U_FRACTION - 4, first=0),
    Region(start=2 << U_FRACTION, shift=U_FRACTION - 3, first=32),
    Region(start=4 << U_FRACTION, shift=U_FRACTION - 1, first=48),
)


def _segment(start: float, length: float) -> Segment:
    """The parabola through tanh in the three Chebyshev points of a segment."""
    half = math.sqrt(3) / 4
    low, middle, high = (math.tanh(start + (0.5 + at) * length) for at in (-half, 0, half))
    # Around the middle of the segment; then around its beginning.
    slope = (high - low) / (2 * half)
    curve = (high - 2 * middle + low) / (2 * half * half)
    scale = 1 << VALUE_FRACTION
    constant = max(0, round((middle - slope / 2 + curve / 4) * scale))
    return constant, round((slope - curve) * scale), round(-curve * scale)


def _segments() -> tuple[Segment, ...]:
    segments: list[Segment] = []
    ends = [region.start for region in REGIONS[1:]] + [1 << LIMIT_BITS]
    for region, end in zip(REGIONS, ends, strict=True):
        assert region.first == len(segments)
        for start in range(region.start, end, 1 << region.shift):
            segments.append(_segment(start / 2**U_FRACTION, 2.0**region.shift / 2**U_FRACTION))
    return tuple(segments)


#: The table.
SEGMENTS = _segments()


@cache
def _coefficients() -> Array:
    """Constants, slopes and curves of the table."""
    import numpy as np

    return np.array(SEGMENTS, np.int64).T


def logistic(function: LogisticOp, values: Array, fx: int) -> Array:
    """Results for 16-bit elements, of the same type.

    Parameters:
        function: which one.
        values: signed 16-bit elements.
        fx: FX, 0..63.
    """
    # Imported late: the assembler needs only the instruction table, and starts without NumPy.
    import numpy as np

    constants, slopes, curves = _coefficients()
    fraction = min(fx, MOST_FRACTION)
    halved = function is LogisticOp.SIGMOID
    exact = values.astype(np.int64)
    u = np.abs(exact) << (U_FRACTION - fraction - halved)
    inside = np.minimum(u, (1 << LIMIT_BITS) - 1)
    index = np.zeros_like(u)
    place = np.zeros_like(u)
    for region in REGIONS:
        inside_region = inside >= region.start
        offset = inside - region.start
        index = np.where(inside_region, region.first + (offset >> region.shift), index)
        within = offset & ((1 << region.shift) - 1)
        place = np.where(inside_region, within >> (region.shift - PLACE_BITS), place)
    bent = slopes[index] - (curves[index] * place >> PLACE_BITS)
    y = constants[index] + (bent * place >> PLACE_BITS)
    y = np.where(u >> LIMIT_BITS, 1 << VALUE_FRACTION, y)
    y = np.where(exact < 0, -y, y)
    twice = (1 << VALUE_FRACTION) + y if halved else 2 * y
    shift = VALUE_FRACTION + 1 - fraction
    return ((twice + (1 << (shift - 1))) >> shift).astype(values.dtype)


_SEGMENT_LENGTHS = ", ".join(f"1/{1 << U_FRACTION - region.shift}" for region in REGIONS)

_MANUAL = f"""\
### Logistic functions

`v.sigmoid` and `v.tanh` take and return 16-bit elements with FX fraction bits. FX above
{MOST_FRACTION} counts as {MOST_FRACTION}. The result differs from `1 / (1 + exp(-x))` or `tanh(x)`
by less than {ERROR_BOUND} units of its last place, for every element and every FX, and is never out
of range. Between neighbouring elements it may go down by one unit where the function hardly rises.

Both functions come from one table of {len(SEGMENTS)} parabolas for tanh from 0 to
{(1 << LIMIT_BITS) >> U_FRACTION}, with 1 beyond; the segments are {_SEGMENT_LENGTHS} long, the
short ones near 0. Every bit is defined in `isa/logistic.py`. An engine has these instructions only
if its configuration asks for them.
"""

#: One element per cycle.
LOGISTIC = SpecialUnit(
    name="logistic",
    functions=LogisticOp,
    passes=4,
    fractions=True,
    evaluate=logistic,
    manual=_MANUAL,
)
