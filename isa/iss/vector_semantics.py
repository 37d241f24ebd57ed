"""Results of the vector instructions, bit-exact, on NumPy arrays.

Numbers are signed two's complement. Everything between the operands and the one saturation of a
result is exact: 64-bit lanes compute with Python integers, narrower lanes with 64-bit integers
wherever these hold every intermediate value.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from isa.table import ReductionOp, VerticalOp, Width

__all__ = ["Count", "VectorFunction", "element_type", "element_wise", "matrix_vector"]

Array = np.ndarray[Any, Any]

#: ``f(*operands, fx)``: results for the operands that the instruction table lists: vectors of VL
#: elements, one element, or a matrix of MR x VL.
VectorFunction = Callable[..., Array]

#: Called with the number of values that saturated.
Count = Callable[[int], None]

_VERTICAL: dict[VerticalOp, Callable[[Array, Array], Array]] = {
    VerticalOp.ADD: np.add,
    VerticalOp.SUB: np.subtract,
    VerticalOp.MIN: np.minimum,
    VerticalOp.MAX: np.maximum,
    VerticalOp.MUL: np.multiply,
    VerticalOp.ABSDIFF: lambda b, c: abs(b - c),
    VerticalOp.AVG: lambda b, c: (b + c + 1) >> 1,
}
#: Those whose results may not fit the element.
_SATURATES = (VerticalOp.ADD, VerticalOp.SUB, VerticalOp.ABSDIFF)
_REDUCE = {
    ReductionOp.ADD: np.add.reduce,
    ReductionOp.MIN: np.minimum.reduce,
    ReductionOp.MAX: np.maximum.reduce,
}
_HALF_BITS = 32


def element_type(width: Width) -> np.dtype[Any]:
    """The little-endian signed type of an element in the scratchpad and in memory."""
    return np.dtype(f"<i{width.bytes}")


def _exact_type(width: Width) -> np.dtype[Any]:
    """A type that holds every sum, difference and product of two elements."""
    return np.dtype(object if width is Width.W64 else np.int64)


class _Saturation:
    """Limits values to the range of an element of ``width``, and reports to ``count`` how many were
    beyond; None: not counted."""

    def __init__(self, width: Width, count: Count | None) -> None:
        self._highest = (1 << (width.bits - 1)) - 1
        self._count = count

    def __call__(self, values: Array) -> Array:
        """``values``, limited; same type."""
        limited: Array = np.minimum(np.maximum(values, -self._highest - 1), self._highest)
        if self._count is not None and (clipped := np.count_nonzero(limited != values)):
            self._count(int(clipped))
        return limited


def _round_shift(values: Array, fx: int) -> Array:
    """``values`` shifted right by ``fx`` (0..63) bits, rounded to nearest, halves up.

    Equal to ``(values + 2**(fx - 1)) >> fx``, without the sum that could leave 64 bits.
    """
    if not fx:
        return values
    shifted: Array = ((values >> (fx - 1)) + 1) >> 1
    return shifted


def element_wise(vertical: VerticalOp, width: Width, count: Count | None = None) -> VectorFunction:
    """The function of a ``v.v`` or ``v.s`` instruction; results have the element's type.

    Parameters:
        vertical: any but ``NOP``.
        count: called with the number of values that saturate, if any do.
    """
    operation = _VERTICAL[vertical]
    saturate = _Saturation(width, count)
    element, exact = element_type(width), _exact_type(width)
    if vertical in (VerticalOp.MIN, VerticalOp.MAX):
        return lambda b, c, fx: operation(b, c)
    if vertical is VerticalOp.MUL:
        return lambda b, c, fx: saturate(
            _round_shift(operation(b.astype(exact), c.astype(exact)), fx)
        ).astype(element)
    return lambda b, c, fx: saturate(operation(b.astype(exact), c.astype(exact))).astype(element)


def _sum_of_wide_products(products: Array) -> Array:
    """Exact sums of the rows of 64-bit ``products``, which may need more than 64 bits."""
    high = (products >> _HALF_BITS).sum(axis=1).astype(object)
    low = (products & ((1 << _HALF_BITS) - 1)).sum(axis=1).astype(object)
    total: Array = (high << _HALF_BITS) + low
    return total


def _numbers(elements: Array, half: np.dtype[Any]) -> Array:
    """The numbers of pairs, each pair in the place of its element."""
    numbers: Array = np.ascontiguousarray(elements).view(half)
    return numbers


def matrix_vector(
    vertical: VerticalOp,
    reduction: ReductionOp,
    width: Width,
    count: Count | None = None,
    *,
    pairs: bool = False,
) -> VectorFunction:
    """The function of an ``m.v`` instruction; results have the element's type.

    Parameters:
        pairs: as of :class:`isa.table.Instruction`.
        count: called with the number of values that saturate, if any do: those that are reduced
            and those that are written count alike.
    """
    saturate = _Saturation(width, count)
    reduce = _REDUCE[reduction]
    element, exact = element_type(width), _exact_type(width)

    if vertical is VerticalOp.MUL:
        wide_sum = width is Width.W32 and reduction is ReductionOp.ADD
        half = np.dtype(f"<i{width.bytes // 2}") if pairs else element

        def multiply(matrix: Array, vector: Array, fx: int) -> Array:
            if pairs:
                matrix, vector = _numbers(matrix, half), _numbers(vector, half)
            products = matrix.astype(exact) * vector.astype(exact)
            total = _sum_of_wide_products(products) if wide_sum else reduce(products, axis=1)
            return saturate(_round_shift(total, fx)).astype(element)

        return multiply

    def reduced(values: Array) -> Array:
        total = reduce(values, axis=1)
        if reduction is ReductionOp.ADD:
            total = saturate(total)
        return np.asarray(total).astype(element)

    if vertical is VerticalOp.NOP:
        return lambda matrix, fx: reduced(matrix.astype(exact))
    operation = _VERTICAL[vertical]
    saturates = vertical in _SATURATES

    def combine(matrix: Array, vector: Array, fx: int) -> Array:
        values = operation(matrix.astype(exact), vector.astype(exact))
        return reduced(saturate(values) if saturates else values)

    return combine
