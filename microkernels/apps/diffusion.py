"""Edge-preserving diffusion; a step of it is a system of linear equations.

Brightness flows between neighbouring pixels, the less the more they differ (Perona and Malik). The
step is implicit: with the flow's strength ``w`` between pixels p and q taken from the image ``b``
before it, ``x[p] + sum over neighbours q of w * (x[p] - x[q]) = b[p]``.
"""

import numpy as np

from microkernels.common.fixed_point import Elements

from .gauss import FRACTION

__all__ = ["diffusion_system"]

#: Strength of the flow between equal pixels: diagonals stay below 1.5.
_STRENGTH = 0.1
#: Difference of two pixels that halves the flow; black to white is 1.
_EDGE = 0.1


def diffusion_system(image: Elements) -> Elements:
    """The equations for a block of pixels, without flow across its border.

    Parameters:
        image: height x width real numbers, at most 20 in all.

    Returns:
        Rows of a system as :func:`microkernels.apps.gauss.solve` takes it.
    """
    values = image.reshape(-1)
    number = np.arange(values.size).reshape(image.shape)
    matrix = np.eye(values.size)
    neighbours = [(number[1:], number[:-1]), (number[:, 1:], number[:, :-1])]
    for ones, neighbour_values in neighbours:
        for one, other in zip(ones.flat, neighbour_values.flat, strict=True):
            difference = (values[one] - values[other]) / _EDGE
            strength = _STRENGTH / (1 + difference * difference)
            matrix[one, one] += strength
            matrix[other, other] += strength
            matrix[one, other] -= strength
            matrix[other, one] -= strength
    real = np.column_stack([matrix, values])
    return np.floor(real * (1 << FRACTION) + 0.5).astype(np.int32)
