"""The vector unit's fixed-point arithmetic on NumPy arrays, for the kernels' golden models.

Elements are signed 16-bit numbers. A map has a *fraction*, which may be negative, or more than 15:
an element is its real number times two to the power of it. A sum of products is exact, shifted
right by at most :data:`FRACTION_LIMIT` bits with halves rounded up, and saturated once; additions
saturate (docs/decisions/machine.md).

In a map of bytes an element is a pair of signed bytes, the first in the low half. Layers that exist
in both widths have an attribute ``bits``, 16 or 8: of a *number*, which is an element or a byte.

*Values that saturate are counted.* A value counts once each time it is limited to an element's
width: a sum or difference of elements (even if it is only an input of a reduction), the sum of a
row, a scaled product. The instruction set simulator counts the same way
(:attr:`isa.iss.simulator.Simulator.saturated`), and the two agree if a program computes exactly the
operations of its golden model. A program may compute more than that, such as unused elements at the
end of the last vector or a sum whose only purpose is to take time.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import CHECK, KernelError

#: Arrays of elements, and of any type; of real numbers.
Elements = np.ndarray[Any, Any]
Reals = NDArray[np.floating[Any]]

#: Type of an element in memory and the scratchpad.
ELEMENT = np.dtype("<i2")
ELEMENT_BYTES = ELEMENT.itemsize
LOWEST = -(1 << 15)
HIGHEST = (1 << 15) - 1
#: Maximum bits by which sums of products are shifted.
FRACTION_LIMIT = 15
#: Type of a number in a map of bytes.
BYTE = np.dtype("i1")
#: Type of wide numbers, for intermediate results.
WIDE = np.dtype("<i4")
#: Types of numbers, by their bits.
NUMBERS: dict[int, np.dtype[Any]] = {16: ELEMENT, 8: BYTE}


#: Of each open context, the number of values limited.
_active: list[list[int]] = []


@contextmanager
def count_saturation() -> Iterator[Callable[[], int]]:
    """Count the values that golden models limit while the context is open; yields a function that
    returns their number."""
    total = [0]
    _active.append(total)
    try:
        yield lambda: total[0]
    finally:
        _active.pop()


@contextmanager
def uncounted() -> Iterator[None]:
    """Values that are limited while the context is open are meant to be, and do not count."""
    counting = _active[:]
    _active.clear()
    try:
        yield
    finally:
        _active[:] = counting


def clip(values: NDArray[np.integer], low: int, high: int) -> NDArray[np.integer]:
    """Limit ``values`` to ``low``..``high`` and count those outside."""
    limited: NDArray[np.integer] = np.clip(values, low, high)
    if _active:
        clipped = int(np.count_nonzero(limited != values))
        for total in _active:
            total[0] += clipped
    return limited


def _saturate(values: Elements, dtype: np.dtype[Any] = ELEMENT) -> Elements:
    limits = np.iinfo(dtype)
    return clip(values, limits.min, limits.max).astype(dtype)


def round_shift(values: Elements, fraction: int) -> Elements:
    """``values`` shifted right, rounded to nearest, halves up; not limited."""
    half = 1 << fraction >> 1
    return (values + half) >> fraction


def check_fraction(fraction: int) -> None:
    """Check that ``fraction`` is a valid number of fraction bits.

    Raises:
        KernelError: ``fraction`` is not within 0..:data:`FRACTION_LIMIT`.
    """
    CHECK.within("fraction bits", fraction, 0, FRACTION_LIMIT)


def check_bits(bits: int, operation: str, of_bytes: Sequence[str]) -> None:
    """Check that an operation exists for numbers of this width.

    Parameters:
        bits: of a number. of_bytes: the operations that exist for bytes; all do for 16 bits.

    Raises:
        KernelError: another width, or an operation that bytes do not have.
    """
    CHECK.one_of("bits", bits, tuple(NUMBERS))
    if NUMBERS[bits] is BYTE and operation not in of_bytes:
        raise KernelError(
            f"{operation} needs 16 bits, not {bits}; operations on bytes are {', '.join(of_bytes)}"
        )


def packed(bits: int) -> int:
    """Numbers per element."""
    return ELEMENT_BYTES // NUMBERS[bits].itemsize


def unpack(elements: Elements, bits: int, channels: int | None = None) -> Elements:
    """The numbers of elements, for the first ``channels`` channels, or all. They share memory if
    the elements are contiguous."""
    return np.ascontiguousarray(elements, ELEMENT).view(NUMBERS[bits])[..., :channels]


def lowest_element(bits: int) -> int:
    """The element that consists of the lowest numbers."""
    number = NUMBERS[bits]
    return int(np.full(packed(bits), np.iinfo(number).min, number).view(ELEMENT)[0])


def check_elements(
    name: str, values: Elements, shape: tuple[int | str, ...], dtype: np.dtype[Any] = ELEMENT
) -> Elements:
    """``values`` as elements of ``dtype``; they must be whole numbers in its range and have this
    shape.

    Parameters:
        shape: numbers; a string is the name that messages use for a dimension of any size.

    Raises:
        KernelError: wrong shape, not whole numbers, or out of the element's range.
    """
    fixed = all(isinstance(size, int) for size in shape)
    expected = str(shape) if fixed else " x ".join(map(str, shape))
    try:
        elements = np.asarray(values)
    except ValueError:
        raise KernelError(
            f"{name} must have the shape {expected}, not rows of different lengths"
        ) from None
    if len(elements.shape) != len(shape) or any(
        isinstance(size, int) and size != actual
        for size, actual in zip(shape, elements.shape, strict=True)
    ):
        raise KernelError(f"{name} must have the shape {expected}, not {elements.shape}")
    if not np.issubdtype(elements.dtype, np.integer):
        raise KernelError(f"{name} must be whole numbers (see to_fixed), not {elements.dtype}")
    limits = np.iinfo(dtype)
    if elements.size and not limits.min <= elements.min() <= elements.max() <= limits.max:
        raise KernelError(
            f"{name} must be from {limits.min} to {limits.max}, but goes from {elements.min()} to "
            f"{elements.max()}"
        )
    return elements.astype(dtype)


def pack(numbers: Elements, bits: int) -> Elements:
    """Numbers of maps, ... x channels, as elements: bytes in pairs, the last one with 0.

    Raises:
        KernelError: values beyond 8 bits that should be bytes.
    """
    if NUMBERS[bits] is ELEMENT:
        return numbers
    elements = check_elements("bytes", numbers, np.shape(numbers), BYTE)
    elements = np.pad(elements, [(0, 0)] * (elements.ndim - 1) + [(0, elements.shape[-1] % 2)])
    return np.ascontiguousarray(elements).view(ELEMENT)


def _wide(first: Elements, second: Elements) -> type[np.signedinteger[Any]]:
    """A type wide enough for every sum and difference; a narrow one is faster."""
    narrow = max(first.dtype.itemsize, np.asarray(second).dtype.itemsize) < np.int32().itemsize
    return np.int32 if narrow else np.int64


def add(first: Elements, second: Elements) -> Elements:
    """Element-wise saturated sums: ``v.v.add`` and ``v.s.add``, of the type of ``first``."""
    return _saturate(np.add(first, second, dtype=_wide(first, second)), first.dtype)


def subtract(first: Elements, second: Elements) -> Elements:
    """Element-wise saturated differences: ``v.v.sub`` and ``v.s.sub``, of the type of ``first``."""
    return _saturate(np.subtract(first, second, dtype=_wide(first, second)), first.dtype)


def multiply(first: Elements, second: Elements, fraction: int) -> Elements:
    """Element-wise products, shifted right by ``fraction`` bits: ``v.v.mul`` and ``v.s.mul``; bytes
    or wide numbers if ``first`` is of these."""
    product = first.astype(np.int64) * second.astype(np.int64)
    kind = first.dtype if first.dtype in (BYTE, WIDE) else ELEMENT
    return _saturate(round_shift(product, fraction), kind)


def dot(rows: Elements, columns: Elements, fraction: int) -> Elements:
    """Matrix product whose elements are those of ``m.v.mul.add``.

    Parameters:
        rows: matrix of n x m elements, or a stack of such matrices. columns: m x p elements.
        fraction: number of bits to shift the sums right by.
    """
    # Sums of 256 products have 39 bits, far fewer than 53, so floating point is exact, and fast.
    exact = rows.astype(np.float64) @ columns.astype(np.float64)
    return _saturate(round_shift(exact.astype(np.int64), fraction))


def to_fixed(values: Elements, fraction: int) -> Elements:
    """Real numbers as elements with ``fraction`` fraction bits, rounded to nearest, saturated.

    Raises:
        KernelError: ``fraction`` is out of range, or a value is not a number.
    """
    check_fraction(fraction)
    scaled = np.asarray(values, np.float64) * (1 << fraction)
    if not np.all(np.isfinite(scaled)):
        raise KernelError("values must be finite numbers")
    # The engine doesn't do this arithmetic, so values limited here don't count as saturated.
    return np.clip(np.floor(scaled + 0.5), LOWEST, HIGHEST).astype(ELEMENT)


def as_elements(values: Reals, fraction: int, bits: int = 16) -> Elements:
    """Real numbers as elements with ``fraction`` fraction bits, rounded to nearest, halves up, and
    limited to ``bits``."""
    scaled = np.floor(np.ldexp(np.asarray(values, np.float64), fraction) + 0.5)
    limits = np.iinfo(NUMBERS[bits])
    return np.clip(scaled, limits.min, limits.max).astype(ELEMENT)


def real_of(values: Elements, fraction: int) -> Reals:
    """Elements with ``fraction`` fraction bits as real numbers."""
    return np.ldexp(values.astype(np.float64), -fraction)
