"""Element-wise layers: operations and golden model.

An output element is computed from the elements at the same place in one map or two. All maps of a
layer have the same size. Products and logistic functions have fraction bits; sums and products
saturate. Maps of bytes have the operations :data:`OF_BYTES`.
"""

from dataclasses import dataclass

import numpy as np

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import (
    ELEMENT,
    FRACTION_LIMIT,
    NUMBERS,
    Elements,
    check_bits,
    check_elements,
    check_fraction,
    unpack,
)
from support.errors import counted

from .curves import (
    COEFFICIENTS,
    MOST_FRACTION,
    POLYNOMIALS,
    Curve,
    VectorOp,
    check_curve,
    curve_steps,
    evaluate,
    polynomial_constants,
    polynomial_steps,
)

#: Fraction bits of the slope of ``leaky``.
SLOPE_FRACTION = FRACTION_LIMIT
#: Operations on two maps, and their instructions.
_OF_TWO = {
    "add": "v.v.add",
    "subtract": "v.v.sub",
    "maximum": "v.v.max",
    "minimum": "v.v.min",
    "multiply": "v.v.mul",
}
#: The constants that each operation needs: those on one map, then all.
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
_NEEDS = dict.fromkeys(_OF_TWO, ()) | {"multiply": ("fraction",)} | _OF_ONE
#: Operations of one map, and all.
FUNCTIONS = tuple(_OF_ONE)
OPERATIONS = tuple(_NEEDS)
#: Operations that bytes have, too.
OF_BYTES = (*_OF_TWO, "relu", "absolute", "affine", "clip", "gate")
_CONSTANTS = ("fraction", "low", "high", "slope", "factor", "offset", "curve")


@dataclass(frozen=True, kw_only=True)
class ElementOperation:
    """An element-wise operation with its constants; None: the operation does not have it.

    Attributes:
        function: ``add``, ``subtract``, ``maximum``, ``minimum`` and ``multiply`` take two maps;
            ``relu``, ``absolute``, ``affine`` (``factor`` times x, plus ``offset``), ``clip``,
            ``gate`` (x times such a limited affine function of x, with fraction bits), ``leaky``
            (the larger of x and ``slope`` times x), ``tanh``, ``sigmoid``, ``gelu``, ``erf`` and
            ``curve`` take one.
        bits: of a number, 16 or 8; channels count elements.
        relu: for ``add``: negative sums become 0.
        fraction: of ``multiply``, ``affine`` and ``gate``, bits by which products are shifted
            right; of ``tanh``, ``sigmoid``, ``gelu`` and ``erf``, fraction bits of operand and
            result; 0..15, of the last two 0..14.
        low, high: smallest and largest result of ``clip``, and of what ``gate`` multiplies by;
            numbers, ``low`` at most ``high``.
        slope: of ``leaky``, an element with :data:`SLOPE_FRACTION` fraction bits: from -1 to just
            below 1.
        factor, offset: of ``affine`` and ``gate``, numbers.
        curve: for ``curve``, the function (:mod:`microkernels.nn.curves`).

    Raises:
        KernelError: a value out of range, a constant that the operation needs and lacks, or does
            not have, or an operation that bytes do not have.
    """

    function: str
    bits: int = 16
    relu: bool = False
    fraction: int | None = None
    low: int | None = None
    high: int | None = None
    slope: int | None = None
    factor: int | None = None
    offset: int | None = None
    curve: Curve | None = None

    def __post_init__(self) -> None:
        CHECK.fields(self)
        CHECK.one_of("function", self.function, OPERATIONS)
        check_bits(self.bits, self.function, OF_BYTES)
        limits = np.iinfo(NUMBERS[self.bits])
        for name in _CONSTANTS:
            value = getattr(self, name)
            if (value is not None) != (name in _NEEDS[self.function]):
                raise KernelError(
                    f"{self.function} {'needs' if value is None else 'has no'} {name}"
                )
            if value is not None and name not in ("fraction", "curve"):
                CHECK.within(name, value, int(limits.min), int(limits.max))
        if self.fraction is not None:
            check_fraction(self.fraction)
            if self.function in POLYNOMIALS:
                CHECK.within("fraction bits", self.fraction, 0, MOST_FRACTION)
        if self.curve is not None:
            check_curve(self.curve)
        if self.low is not None and self.high is not None and self.low > self.high:
            raise KernelError(f"low must be at most high, {self.high}, not {self.low}")
        if self.relu and self.function != "add":
            raise KernelError(f"relu can follow add, not {self.function}")

    @property
    def maps(self) -> int:
        """Number of input maps: 1 or 2."""
        return 2 if self.function in _OF_TWO else 1

    @property
    def constants(self) -> tuple[int, ...]:
        """Numbers that all numbers of a map are combined with."""
        if self.curve is not None:
            return self.curve.constants
        if self.function in POLYNOMIALS:
            return polynomial_constants(self.function, self.fraction or 0)
        if self.relu or self.function == "relu":
            return (0,)
        if self.function == "absolute":
            return (-1,)
        attributes = (name for name in _NEEDS[self.function] if name != "fraction")
        return tuple(getattr(self, name) for name in attributes)

    @property
    def fraction_bits(self) -> int | None:
        """The vector unit's setting FX; None: any."""
        if self.function == "absolute":
            return 0
        return SLOPE_FRACTION if self.function == "leaky" else self.fraction

    @property
    def gate_fraction(self) -> int:
        """Fraction bits of what ``gate`` multiplies by, which is less than 2."""
        return self.bits - 2

    @property
    def per_number(self) -> int:
        """Additions, multiplications, comparisons and functions per number."""
        if self.curve is not None:
            return self.curve.operations
        if self.function in POLYNOMIALS:
            return 2 * len(COEFFICIENTS[self.function]) + 4
        if self.function == "gate":
            return 5
        return 2 if self.relu or self.function in ("clip", "leaky", "affine", "absolute") else 1


def operation_steps(operation: ElementOperation) -> list[VectorOp]:
    """The instructions of an operation, with its constants; its fraction bits are set."""
    match operation.function:
        case "clip":
            return [
                VectorOp("v.s.max", "result", "x", 0),
                VectorOp("v.s.min", "result", "result", 1),
            ]
        case "affine":
            return [
                VectorOp("v.s.mul", "result", "x", 0, note="factor"),
                VectorOp("v.s.add", "result", "result", 1, note="offset"),
            ]
        case "gate":
            return [
                VectorOp("v.s.mul", "result", "x", 0, operation.fraction, note="factor"),
                VectorOp("v.s.add", "result", "result", 1, note="offset"),
                VectorOp("v.s.max", "result", "result", 2),
                VectorOp("v.s.min", "result", "result", 3),
                VectorOp("v.v.mul", "result", "result", "x", operation.gate_fraction, note="gate"),
            ]
        case "absolute" | "leaky":
            return [
                VectorOp("v.s.mul", "result", "x", 0, note="slope"),
                VectorOp("v.v.max", "result", "x", "result"),
            ]
        case "relu":
            return [VectorOp("v.s.max", "result", "x", 0)]
        case "gelu" | "erf":
            return polynomial_steps(operation.function, operation.fraction or 0)
        case "tanh" | "sigmoid":
            return [VectorOp(f"v.{operation.function}", "result", "x")]
    if operation.curve is not None:
        return curve_steps(operation.curve)
    combined = VectorOp(_OF_TWO[operation.function], "result", "x", "other")
    return [combined, VectorOp("v.s.max", "result", "result", 0, note="ReLU")][: 1 + operation.relu]


def element(
    operation: ElementOperation, image: Elements, other: Elements | None = None
) -> Elements:
    """Golden model of the element-wise kernel, bit-exact.

    Parameters:
        image: height x width x channels elements.
        other: the second map of an operation on two maps, otherwise None.

    Returns:
        height x width x channels elements.

    Raises:
        KernelError: an array of another shape, values beyond 16 bits, or the wrong number of maps.
    """
    image = check_elements("image", image, ("height", "width", "channels"))
    if (other is not None) != (operation.maps == 2):
        raise KernelError(f"{operation.function} needs {counted(operation.maps, 'map')}")
    maps: dict[str | int, Elements] = {"x": unpack(image, operation.bits)}
    if other is not None:
        maps["other"] = unpack(check_elements("other", other, image.shape), operation.bits)
    steps, bits = operation_steps(operation), operation.fraction_bits or 0
    return evaluate(steps, operation.constants, maps, bits).view(ELEMENT)
