"""Weights of edges that follow a picture: smoothness where the picture is smooth."""

import numpy as np

from microkernels.bp.problem import MOST_WEIGHT, EdgeWeights
from microkernels.common.errors import KernelError
from microkernels.data.pictures import Photograph
from support.errors import clipped

__all__ = ["edge_weights"]

_MOST_THRESHOLD = 255


def edge_weights(name: str, picture: Photograph) -> EdgeWeights:
    """Weights of all edges by name.

    ``gradient:T,P``: P for an edge between pixels of like colour, else 1, as the option of that
    name in MRF 2.2. Colours are alike if the root mean square of their channels' differences is
    below T grey levels.

    Parameters:
        name: of the weights; T is from 1 to 255, P from 1 to 255.
        picture: ``[y, x, channel]``.

    Raises:
        KernelError: another name, or numbers out of range.
    """
    kind, _, numbers = name.partition(":")
    parameters = numbers.split(",")
    if (
        kind != "gradient"
        or len(parameters) != 2
        or not all(one.isascii() and one.isdigit() and len(one) < 6 for one in parameters)
        or not 1 <= int(parameters[0]) <= _MOST_THRESHOLD
        or not 1 <= int(parameters[1]) <= MOST_WEIGHT
    ):
        raise KernelError(
            f"unknown edges {clipped(name, 40)!r}; there is gradient:T,P with a threshold T from 1 "
            f"to {_MOST_THRESHOLD} and a weight P from 1 to {MOST_WEIGHT}"
        )
    threshold, weight = map(int, parameters)
    colours = picture.astype(np.float64)
    weights = []
    for axis in (1, 0):
        squares = np.diff(colours, axis=axis) ** 2
        alike = squares.sum(axis=2) < threshold**2 * picture.shape[2]
        weights.append(np.where(alike, weight, 1))
    return EdgeWeights(*weights)
