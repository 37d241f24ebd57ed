"""Element-wise layers: operations, sizes and golden model.

An output element is computed from the elements at the same place in one map or two. All maps of a
layer have the same size. Products and logistic functions have fraction bits; sums and products
saturate. Maps of bytes have the operations :data:`OF_BYTES`.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import (
    ELEMENT,
    FRACTION_LIMIT,
    NUMBERS,
    Elements,
    add,
    check_bits,
    check_elements,
    check_fraction,
    multiply,
    subtract,
    unpack,
)
from microkernels.common.logistic import sigmoid, tanh
from support.errors import counted

from .curves import (
    MOST_FRACTION,
    POLYNOMIALS,
    Curve,
    check_curve,
    curve,
    polynomial,
    polynomial_constants,
)

#: Fraction bits of the slope of ``leaky``.
SLOPE_FRACTION = FRACTION_LIMIT
#: The :class:`ElementConstants` that each operation needs, for two maps and for one.
_OF_TWO: dict[str, tuple[str, ...]] = {
    "add": (),
    "subtract": (),
    "maximum": (),
    "minimum": (),
    "multiply": ("fraction",),
}
_OF_ONE: dict[str, tuple[str, ...]] = {
    "relu": (),
    "absolute": (),
    "affine": ("factor", "fraction", "offset"),
    "clip": ("low", "high"),
    "gate": ("factor", "fraction", "offset", "low", "high"),
    "leaky": ("slope",),
    "tanh": ("fraction",),
    "sigmoid": ("fraction",),
    "gelu": ("fraction",),
    "erf": ("fraction",),
    "curve": ("curve",),
}
_NEEDS: dict[str, tuple[str, ...]] = _OF_TWO | _OF_ONE
#: Operations of one map, and all.
FUNCTIONS = tuple(_OF_ONE)
OPERATIONS = tuple(_NEEDS)
#: Operations that bytes have, too.
OF_BYTES = (*_OF_TWO, "relu", "absolute", "affine", "clip", "gate")


@dataclass(frozen=True, kw_only=True)
class ElementConstants:
    """Constants of element-wise operations; None: the operation does not have it.

    Attributes:
        fraction: of ``multiply``, ``affine`` and ``gate``, bits by which products are shifted
            right; of ``tanh``, ``sigmoid``, ``gelu`` and ``erf``, fraction bits of operand and
            result; 0..15, of the last two 0..14.
        low, high: smallest and largest result of ``clip``, and of what ``gate`` multiplies by;
            numbers, ``low`` at most ``high``.
        slope: of ``leaky``, an element with :data:`SLOPE_FRACTION` fraction bits: from -1 to just
            below 1.
        factor, offset: of ``affine`` and ``gate``, numbers.
        curve: for ``curve``, the function (:mod:`microkernels.nn.curves`).
    """

    fraction: int | None = None
    low: int | None = None
    high: int | None = None
    slope: int | None = None
    factor: int | None = None
    offset: int | None = None
    curve: Curve | None = None


_CONSTANTS = tuple(field.name for field in fields(ElementConstants))


@dataclass(frozen=True, kw_only=True)
class ElementShape(ElementConstants):
    """Operation and sizes of an element-wise layer.

    Attributes:
        width, height, channels: of each map, at least 1 each.
        operation: ``add``, ``subtract``, ``maximum``, ``minimum`` and ``multiply`` take two maps;
            ``relu``, ``absolute``, ``affine`` (``factor`` times x, plus ``offset``), ``clip``,
            ``gate`` (x times such a limited affine function of x, with fraction bits), ``leaky``
            (the larger of x and ``slope`` times x), ``tanh``, ``sigmoid``, ``gelu``, ``erf`` and
            ``curve`` take one.
        relu: for ``add``: negative sums become 0.
        bits: of a number, 16 or 8; channels count elements.

    Raises:
        KernelError: a value out of range, a constant that the operation needs and lacks, or does
            not have, or an operation that bytes do not have.
    """

    width: int
    height: int
    channels: int
    operation: str
    relu: bool = False
    bits: int = 16

    def __post_init__(self) -> None:
        CHECK.fields(self)
        for name in ("width", "height", "channels"):
            CHECK.at_least(name, getattr(self, name), 1)
        CHECK.one_of("operation", self.operation, OPERATIONS)
        check_bits(self.bits, self.operation, OF_BYTES)
        limits = np.iinfo(NUMBERS[self.bits])
        for name in _CONSTANTS:
            value = getattr(self, name)
            if (value is not None) != (name in _NEEDS[self.operation]):
                raise KernelError(
                    f"{self.operation} {'needs' if value is None else 'has no'} {name}"
                )
            if value is not None and name not in ("fraction", "curve"):
                CHECK.within(name, value, int(limits.min), int(limits.max))
        if self.fraction is not None:
            check_fraction(self.fraction)
            if self.operation in POLYNOMIALS:
                CHECK.within("fraction bits", self.fraction, 0, MOST_FRACTION)
        if self.curve is not None:
            check_curve(self.curve)
        if self.low is not None and self.high is not None and self.low > self.high:
            raise KernelError(f"low must be at most high, {self.high}, not {self.low}")
        if self.relu and self.operation != "add":
            raise KernelError(f"relu can follow add, not {self.operation}")

    @property
    def maps(self) -> int:
        """Number of input maps: 1 or 2."""
        return 2 if self.operation in _OF_TWO else 1

    @property
    def constants(self) -> tuple[int, ...]:
        """Numbers that all numbers of a map are combined with."""
        if self.curve is not None:
            return self.curve.constants
        if self.operation in POLYNOMIALS:
            return polynomial_constants(self.operation, self.fraction or 0)
        if self.relu or self.operation == "relu":
            return (0,)
        if self.operation == "absolute":
            return (-1,)
        attributes = (name for name in _NEEDS[self.operation] if name != "fraction")
        return tuple(getattr(self, name) for name in attributes)

    @property
    def fraction_bits(self) -> int | None:
        """The vector unit's setting FX; None: any."""
        if self.operation == "absolute":
            return 0
        return SLOPE_FRACTION if self.operation == "leaky" else self.fraction

    @property
    def gate_fraction(self) -> int:
        """Fraction bits of what ``gate`` multiplies by, which is less than 2."""
        return self.bits - 2

    @property
    def operations(self) -> int:
        """Additions, multiplications, comparisons and functions per number."""
        if self.curve is not None:
            return self.curve.operations
        if self.operation in POLYNOMIALS:
            # Eight of the constants are not coefficients.
            return 2 * (len(self.constants) - 8) + 4
        if self.operation == "gate":
            return 5
        return 2 if self.relu or self.operation in ("clip", "leaky", "affine", "absolute") else 1


_OPERATIONS: dict[str, Callable[[Elements, Elements], Elements]] = {
    "subtract": subtract,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


def element(shape: ElementShape, image: Elements, other: Elements | None = None) -> Elements:
    """Golden model of the element-wise kernel, bit-exact.

    Parameters:
        image: height x width x channels elements.
        other: the second map of an operation on two maps, otherwise None.

    Returns:
        height x width x channels elements.

    Raises:
        KernelError: an array of another shape, values beyond 16 bits, or the wrong number of maps.
    """
    size = (shape.height, shape.width, shape.channels)
    image = unpack(check_elements("image", image, size), shape.bits)
    if (other is not None) != (shape.maps == 2):
        raise KernelError(f"{shape.operation} needs {counted(shape.maps, 'map')}")
    if other is not None:
        other = unpack(check_elements("other", other, size), shape.bits)
    return _combined(shape, image, other).view(ELEMENT)


def _combined(shape: ElementShape, image: Elements, other: Elements | None) -> Elements:
    """:func:`element` on arrays of numbers."""
    if other is not None:
        if shape.operation == "add":
            total = add(image, other)
            return np.maximum(total, 0) if shape.relu else total
        if shape.operation == "multiply":
            return multiply(image, other, shape.fraction or 0)
        return _OPERATIONS[shape.operation](image, other)
    match shape.operation:
        case "affine":
            product = multiply(image, np.array(shape.factor), shape.fraction or 0)
            return add(product, np.array(shape.offset))
        case "gate":
            product = multiply(image, np.array(shape.factor), shape.fraction or 0)
            gate = np.clip(add(product, np.array(shape.offset)), shape.low, shape.high)
            return multiply(image, gate, shape.gate_fraction)
        case "absolute":
            return np.maximum(image, multiply(image, np.array(-1), 0))
        case "leaky":
            sloped = multiply(image, np.array(shape.slope), SLOPE_FRACTION)
            return np.maximum(image, sloped)
        case "tanh":
            return tanh(image, shape.fraction or 0)
        case "sigmoid":
            return sigmoid(image, shape.fraction or 0)
        case "gelu" | "erf":
            return polynomial(shape.operation, image, shape.fraction or 0)
        case "clip":
            return np.clip(image, shape.low, shape.high)
        case "curve":
            assert shape.curve is not None
            return curve(shape.curve, image)
        case _:
            return np.maximum(image, 0)
