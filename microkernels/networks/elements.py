"""Element-wise layers, whose inputs and output have the same size."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import inf
from typing import Any, ClassVar

import numpy as np

from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import (
    ELEMENT_BYTES,
    FRACTION_LIMIT,
    Elements,
    Reals,
    as_elements,
)
from microkernels.nn.curves import MOST_FRACTION, POLYNOMIALS, arguments_beyond, curve_of
from microkernels.nn.element import ElementLayout
from microkernels.nn.element_shape import (
    FUNCTIONS,
    OF_BYTES,
    SLOPE_FRACTION,
    ElementOperation,
    element,
)

from .curves import ARGUMENT, UNFITTED, Function, evaluated, fitted
from .families import PixelLayer
from .layer import LANES, MEMORY_BYTES, ChipWork, Constructor, Layer, LayerPlan
from .maps import MapSize
from .parameters import Fractions, Peaks, RealParameters, Weights

#: Functions of the logistic unit.
LOGISTIC = ("tanh", "sigmoid")
#: Maximum fraction bits of functions.
_FUNCTION_BITS = dict.fromkeys(LOGISTIC, FRACTION_LIMIT) | dict.fromkeys(POLYNOMIALS, MOST_FRACTION)
#: What reports call operations on two maps that have a pace of their own.
_PAIRS = {"add": "Add", "multiply": "Multiply"}


@dataclass(frozen=True, kw_only=True)
class ElementWise(PixelLayer, ElementOperation):
    """An operation on each element of a map, or on the elements at the same place in two maps.

    ``tanh`` and ``sigmoid`` need engines with the logistic unit.

    Attributes:
        other: of an operation on two maps, name of the second layer whose output is an input;
            otherwise like ``source``. "" with one map.
    """

    layouts = ElementLayout
    golden = staticmethod(element)
    tuples: ClassVar[Mapping[str, Constructor]] = {"curve": curve_of}

    other: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        ElementOperation.__post_init__(self)
        if (self.function in FUNCTIONS) != (not self.other):
            maps = "one map" if self.function in FUNCTIONS else "two maps, the second one as other"
            raise KernelError(f"{self.function} takes {maps}")

    @property
    def kind(self) -> str:
        return _PAIRS.get(self.function, "Combine") if self.other else "Activation"

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source, self.other) if self.other else (self.source,)

    @property
    def reads_bytes(self) -> bool:
        return self.function in OF_BYTES

    def planned(self, plan: LayerPlan, work: ChipWork) -> LayerPlan:
        elements = plan.tile.elements
        memory = (len(self.sources) + 1) * elements * ELEMENT_BYTES / MEMORY_BYTES
        vectors = elements * self.per_number / LANES / work.engines.pes
        return plan.timed(max(memory, vectors), work)

    def shape(self, size: MapSize) -> ElementOperation:
        attributes = (field.name for field in fields(ElementOperation))
        return ElementOperation(**{name: getattr(self, name) for name in attributes})

    def real(self, sources: Sequence[Reals], size: MapSize, parameters: RealParameters) -> Reals:
        return evaluated(self.formula(parameters), *sources)

    def with_relu(self) -> Layer | None:
        return replace(self, relu=True) if self.function == "add" and not self.relu else None

    def formula(self, parameters: RealParameters) -> Function:
        match self.function:
            case "curve":
                return parameters.curves[self.name]
            case "affine":
                return Function("affine", parameters.affine[self.name])
            case "clip":
                return Function("clip", parameters.bounds[self.name])
            case "gate":
                inner = Function("affine", parameters.affine[self.name])
                gate = Function("clip", parameters.bounds[self.name], of=(inner,))
                return Function("multiply", of=(ARGUMENT, gate))
            case "leaky":
                assert self.slope is not None
                return Function("leaky", (self.slope / (1 << SLOPE_FRACTION),))
        result = Function(self.function)
        return Function("relu", of=(result,)) if self.relu else result

    @property
    def shifts(self) -> bool:
        return self.function in ("affine", "multiply")

    @property
    def scales(self) -> bool:
        return self.shifts or self.function == "curve"

    @property
    def output_limits(self) -> tuple[int, int] | None:
        bits = _FUNCTION_BITS.get(self.function)
        return None if bits is None else (0, bits)

    def peaks(
        self, sources: Sequence[Reals], largest: float, size: MapSize, parameters: RealParameters
    ) -> Peaks:
        if self.function != "affine":
            return Peaks()
        factor, offset = parameters.affine[self.name]
        return Peaks(inner=max(abs(offset), abs(factor) * largest))

    def scaled(
        self, fractions: Fractions, parameters: RealParameters
    ) -> tuple[Layer, Weights | None]:
        return replace(self, **self._constants(fractions, parameters)), None

    def _constants(self, fractions: Fractions, parameters: RealParameters) -> dict[str, Any]:
        out = fractions.output

        def number(value: float, fraction: int) -> int:
            return int(as_elements(np.array(value), fraction, self.bits))

        match self.function:
            case "gate":
                return self._gate(fractions, parameters)
            case "curve":
                source, ends = fractions.sources[0], fractions.ends
                return {"curve": fitted(parameters.curves[self.name], *ends, source, out)}
            case "affine":
                factor, offset = parameters.affine[self.name]
                return {
                    "fraction": self.shift(fractions),
                    "factor": number(factor, fractions.weights),
                    "offset": number(offset, out),
                }
            case "clip":
                low, high = (number(bound, out) for bound in parameters.bounds[self.name])
                return {"low": low, "high": high}
            case "multiply":
                return {"fraction": self.shift(fractions)}
            case "tanh" | "sigmoid" | "gelu" | "erf":
                return {"fraction": out}
        return {}

    def _gate(self, fractions: Fractions, parameters: RealParameters) -> dict[str, int]:
        """Constants of a gate, with the most bits that its factor has."""
        factor, offset = parameters.affine[self.name]
        low, high = parameters.bounds[self.name]
        bits = self.gate_fraction
        scale = bits - fractions.sources[0]
        most = self.bits - 1 - int(np.frexp(factor)[1])
        shift = int(np.clip(most - scale, 0, FRACTION_LIMIT))
        numbers = {
            "factor": as_elements(np.array(factor), scale + shift, self.bits),
            "offset": as_elements(np.array(offset), bits, self.bits),
            "low": as_elements(np.array(low), bits, self.bits),
            "high": as_elements(np.array(high), bits, self.bits),
        }
        return {name: int(number) for name, number in numbers.items()} | {"fraction": shift}

    def beyond(self, source: Elements) -> int:
        return 0 if self.curve is None else arguments_beyond(self.curve, source)

    @property
    def logistic(self) -> str:
        return self.function if self.function in LOGISTIC else ""

    @property
    def transcendental(self) -> bool:
        return self.function in ("erf", "gelu", "curve", *LOGISTIC)

    def without(self, functions: Collection[str]) -> Layer:
        if self.logistic not in functions:
            return self
        return replace(self, function="curve", fraction=None, curve=UNFITTED)

    @property
    def long_program(self) -> tuple[str, float] | None:
        return ("a function by polynomials", inf) if self.function == "curve" else None
