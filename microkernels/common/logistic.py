"""Golden model of ``v.sigmoid`` and ``v.tanh`` on NumPy arrays.

It follows the manual's description of the table, not the simulator's code: the parabolas come from
a linear system per segment, and a search finds each element's segment.
"""

import numpy as np

from .fixed_point import ELEMENT, Elements, check_fraction

_PLACES = 1 << 12
_VALUE_ONE = 1 << 18
_U_ONE = 1 << 16
#: Segment starts in units of 1/65536, and the table's end.
_EDGES = np.array(
    [edge * _U_ONE // 16 for edge in (*range(32), *range(32, 64, 2), *range(64, 129, 8))], np.int64
)
_STARTS, _LENGTHS = _EDGES[:-1], np.diff(_EDGES)


def _parabolas() -> tuple[Elements, Elements, Elements]:
    """Constant, slope and (downward) bend of each segment, in units of 2**-18."""
    nodes = (1 + np.cos(np.pi * (2 * np.arange(3) + 1) / 6)) / 2
    u = (_STARTS[:, None] + nodes * _LENGTHS[:, None]) / _U_ONE
    constant, slope, curve = np.linalg.solve(np.vander(nodes, increasing=True), np.tanh(u).T)
    coefficients = np.rint(np.array([constant, slope, -curve]) * _VALUE_ONE).astype(np.int64)
    constants, slopes, bends = np.maximum(coefficients, 0)
    return constants, slopes, bends


_CONSTANTS, _SLOPES, _BENDS = _parabolas()


def _table(u: Elements) -> Elements:
    """tanh of ``u`` (units of 1/65536, 0 or more) in units of 2**-18."""
    index = np.searchsorted(_STARTS, np.minimum(u, _EDGES[-1] - 1), side="right") - 1
    place = (u - _STARTS[index]) * _PLACES // _LENGTHS[index]
    slope = _SLOPES[index] - _BENDS[index] * place // _PLACES
    value: Elements = np.where(
        u < _EDGES[-1], _CONSTANTS[index] + slope * place // _PLACES, _VALUE_ONE
    )
    return value


def _rounded(values: Elements, bits: int) -> Elements:
    """``values / 2**bits``, rounded to nearest, halves up."""
    return ((values + (1 << bits >> 1)) // (1 << bits)).astype(ELEMENT)


def tanh(values: Elements, fraction: int) -> Elements:
    """``v.tanh`` of elements with ``fraction`` fraction bits, 0..15.

    Raises:
        KernelError: ``fraction`` outside its range.
    """
    check_fraction(fraction)
    wide = values.astype(np.int64)
    return _rounded(np.sign(wide) * _table(np.abs(wide) * _U_ONE >> fraction), 18 - fraction)


def sigmoid(values: Elements, fraction: int) -> Elements:
    """``v.sigmoid`` of elements with ``fraction`` fraction bits, 0..15.

    Raises:
        KernelError: ``fraction`` outside its range.
    """
    check_fraction(fraction)
    wide = values.astype(np.int64)
    half = np.sign(wide) * _table(np.abs(wide) * _U_ONE >> fraction + 1)
    return _rounded(_VALUE_ONE + half, 19 - fraction)
