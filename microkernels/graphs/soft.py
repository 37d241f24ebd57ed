"""The soft minimum, with which messages are those of sum-product (thesis 2.1.1, equations 2.5-2.7).

Costs are then negative logarithms of probabilities, in :data:`UNIT` parts of 1, and the sum of two
probabilities is::

    soft(a, b) = min(a, b) - UNIT * log(1 + exp(-|a - b| / UNIT))

The second term is a polynomial of the difference, mapped to -1 to 1 by a product that saturates
beyond seven, where the term is 0. It is within one element of the real number.

A message needs the soft minimum over all labels of a variable. The rows of costs, one for each
label of the source, are filled up to a power of two with rows of the largest element; then the
second half of the rows is added to the first until one row is left.
"""

import numpy as np
from numpy.typing import NDArray

from microkernels.common.fixed_point import HIGHEST, Elements, add, multiply, subtract

#: Elements per unit of the natural logarithm.
UNIT = 256
#: The term's argument is this much less, and multiplied by the factor shifted right.
MIDDLE = 7 * UNIT // 2
FACTOR, FACTOR_SHIFT = 18725, 9
#: Coefficients by descending power, with as many fraction bits.
COEFFICIENTS = (1050, -741, -2809, 5561, -6218, 5583, -3365, 978)
FRACTION = 15
#: Shift of the polynomial to elements.
RESULT_SHIFT = 7
#: Elements that the kernel needs.
CONSTANTS = (MIDDLE, FACTOR, *COEFFICIENTS, 1)
#: Elements by which soft minima of all labels are below the minimum, at most, with errors.
MOST_BELOW = 8 * UNIT


def soft_minimum(first: Elements, second: Elements) -> Elements:
    """Golden model of the soft minimum, bit-exact."""
    least = np.minimum(first, second)
    difference = subtract(np.maximum(first, second), least)
    middle, factor, one = (np.array(value, np.int16) for value in (MIDDLE, FACTOR, 1))
    unit = multiply(subtract(difference, middle), factor, FACTOR_SHIFT)
    head, *coefficients, last = (np.array(value, np.int16) for value in COEFFICIENTS)
    total = multiply(unit, head, FRACTION)
    for coefficient in coefficients:
        total = multiply(add(total, coefficient), unit, FRACTION)
    term = multiply(add(total, last), one, RESULT_SHIFT)
    return subtract(least, term)


def padded(costs: NDArray[np.integer]) -> Elements:
    """``[i, j]``, rows of costs, filled up to a power of two."""
    rows = 1 << (len(costs) - 1).bit_length()
    fill = ((0, rows - len(costs)), (0, 0))
    return np.pad(costs.astype(np.int16), fill, constant_values=HIGHEST)


def soft_minima(costs: NDArray[np.integer], totals: Elements) -> Elements:
    """``[j]``: the soft minimum over i of ``costs[i, j] + totals[i]``."""
    rows = padded(costs)
    rows[: len(totals)] += totals[:, None]
    while len(rows) > 1:
        half = len(rows) // 2
        rows = soft_minimum(rows[:half], rows[half:])
    least: Elements = rows[0]
    return least


def probabilities(belief: Elements) -> NDArray[np.float64]:
    """Those of the labels of a variable with this belief."""
    weights = np.exp((belief.min() - belief.astype(np.float64)) / UNIT)
    return np.asarray(weights / weights.sum())
