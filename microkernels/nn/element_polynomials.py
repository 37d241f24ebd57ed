"""Functions of elements that are polynomials of the magnitude: gelu and erf.

Both have a part that depends on the magnitude alone and is about 0 from a limit on: ``gelu(x)`` is
the larger of x and 0, less ``|x| * Phi(-|x|)``; ``erf(x)`` has the magnitude ``1 - erfc(|x|)``. The
part is a polynomial, by Horner's rule, of the limited magnitude moved to -1 to 1. Only instructions
of the plain engine are needed. Against real numbers, the results are off by at most 2e-4 and a unit
of the last place.
"""

from dataclasses import dataclass

import numpy as np

from microkernels.common.errors import CHECK
from microkernels.common.fixed_point import HIGHEST, Elements, add, multiply, subtract

__all__ = ["MOST_FRACTION", "POLYNOMIALS", "UNIT_FRACTION", "Polynomial", "polynomial"]

#: Fraction bits of coefficients and of the polynomial's argument.
UNIT_FRACTION = 15
#: Fraction bits of operand and result at most.
MOST_FRACTION = 14


@dataclass(frozen=True, kw_only=True)
class Polynomial:
    """The part of a function that depends on the magnitude.

    Attributes:
        coefficients: by rising power, with :data:`UNIT_FRACTION` bits.
        limit: of the magnitude, in halves.
    """

    coefficients: tuple[int, ...]
    limit: int

    def constants(self, fraction: int) -> tuple[int, ...]:
        """Elements that the kernel needs: limit, what is added to the magnitude, factor of the sum;
        -1, 1, 1 and 0 as elements, the element below 1; coefficients by falling power.

        Parameters:
            fraction: bits of operand and result, 0..:data:`MOST_FRACTION`.
        """
        whole = 1 << fraction
        limit = min((self.limit * whole >> 1) - 1, HIGHEST)
        factor = round((1 << UNIT_FRACTION + 2) / self.limit)
        fixed = (max(limit, 1), -(self.limit * whole >> 2), factor, -1, 1, whole, 0, whole - 1)
        return (*fixed, *reversed(self.coefficients))


#: Function -> its polynomial: |x| * Phi(-|x|) to 5e-6, and erfc(|x|) to 2.8e-5, up to the limit.
POLYNOMIALS = {
    "gelu": Polynomial(
        coefficients=(1491, -5586, 7085, 9, -9530, 9403, -527, -4666, 2068, 842, -585), limit=8
    ),
    "erf": Polynomial(
        coefficients=(1110, -5841, 13178, -15432, 7208, 4211, -6743, 1400, 1632, -721), limit=6
    ),
}


def polynomial(name: str, image: Elements, fraction: int) -> Elements:
    """Golden model of gelu and erf, bit-exact.

    Parameters:
        name: one of :data:`POLYNOMIALS`.
        image: elements with ``fraction`` bits, 0..:data:`MOST_FRACTION`.
    """
    CHECK.within("fraction bits", fraction, 0, MOST_FRACTION)
    limit, moved, factor, minus, one, whole, zero, below, *coefficients = (
        np.array(each, np.int16) for each in POLYNOMIALS[name].constants(fraction)
    )
    magnitude = np.maximum(image, multiply(image, minus, 0))
    unit = multiply(add(np.minimum(magnitude, limit), moved), factor, fraction)
    found = add(multiply(unit, coefficients[0], UNIT_FRACTION), coefficients[1])
    for coefficient in coefficients[2:]:
        found = add(multiply(found, unit, UNIT_FRACTION), coefficient)
    if name == "gelu":
        part = multiply(found, one, UNIT_FRACTION - fraction)
        return subtract(np.maximum(image, zero), part)
    # The slope of erf is below 2, so that twice the operand is beyond the magnitude.
    most = add(multiply(found, minus, UNIT_FRACTION - fraction), whole)
    near = np.minimum(np.maximum(image, multiply(below, minus, 0)), below)
    return np.minimum(np.maximum(add(near, near), multiply(most, minus, 0)), most)
