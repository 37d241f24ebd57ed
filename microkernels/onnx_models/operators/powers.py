"""Powers by a constant, and square roots.

Those that are no products are curves. But the root of a sum of two squares, which is the magnitude
of a complex number, is the largest projection on directions of the plane: squares of small numbers
would have too few bits.
"""

import numpy as np

from microkernels.networks.curves import Function
from microkernels.networks.network import Activation, Add, Combine, Multiply
from microkernels.onnx_models.importer import Importer, Value
from microkernels.onnx_models.read import GraphNode

from .elements import curve_value

__all__ = ["MAGNITUDE_ERROR", "power", "square_root"]

#: Directions of an eighth of the plane.
_DIRECTIONS = 4
_ANGLE = np.pi / 4 / _DIRECTIONS
#: Largest error of a magnitude, as a share of it.
MAGNITUDE_ERROR = float((1 - np.cos(_ANGLE / 2)) / (1 + np.cos(_ANGLE / 2)))
_MOST_EXPONENT = 8


def _multiplied(importer: Importer, node: GraphNode, one: Value, other: Value) -> Value:
    layer = Multiply(
        name=importer.unique(node.name), source=one.layer, other=other.layer, fraction=0
    )
    return importer.add(node, layer, one.size, one.shape, last=False)


def power(importer: Importer, node: GraphNode) -> None:
    """Pow with a constant exponent; whole ones from 1 to 8 are products."""
    value = importer.value(node)
    exponents = importer.reals(node, 1)
    exponent = float(exponents.ravel()[0]) if exponents.size else 0.0
    if exponents.size != 1:
        raise node.refused("the exponent must be one number")
    if exponent == 0.5:
        square_root(importer, node)
        return
    if exponent not in range(1, _MOST_EXPONENT + 1):
        function = Function("power", (exponent,))
        curve_value(importer, node, importer.held(node), function, last=True)
        return
    product, square, left = None, value, int(exponent)
    while left:
        if left & 1:
            product = square if product is None else _multiplied(importer, node, product, square)
        left >>= 1
        if left:
            square = _multiplied(importer, node, square, square)
    assert product is not None
    importer.alias(node, product, value.shape)


def square_root(importer: Importer, node: GraphNode) -> None:
    """Sqrt: a curve; of the sum of two squares by projections, to :data:`MAGNITUDE_ERROR`.

    Of the magnitudes of both, the larger and the smaller are projected on directions from 0 to 45
    degrees; the largest projection lies below the root by less than the cosine of half the angle
    between two directions, and a common factor halves this error.
    """
    total = importer.value(node)
    parts = _squared(importer, total)
    if parts is None:
        curve_value(importer, node, total, Function("sqrt"), last=True)
        return
    shape = total.shape
    importer.approximation = max(importer.approximation, MAGNITUDE_ERROR)

    def add(layer: Activation | Add | Combine) -> str:
        return importer.add(node, layer, total.size, shape, last=False).layer

    def combined(operation: str, one: str, other: str) -> str:
        name = importer.unique(node.name)
        return add(Combine(name=name, source=one, other=other, operation=operation))

    def scaled(source: str, factor: float) -> str:
        layer = Activation(
            name=importer.unique(node.name),
            source=source,
            function="affine",
            factor=0,
            offset=0,
            fraction=0,
        )
        importer.affine[layer.name] = (factor, 0.0)
        return add(layer)

    one, other = (
        add(Activation(name=importer.unique(node.name), source=part, function="absolute"))
        for part in parts
    )
    large, small = combined("maximum", one, other), combined("minimum", one, other)
    longest = ""
    for number in range(_DIRECTIONS):
        angle = (number + 0.5) * _ANGLE
        factor = 1 + MAGNITUDE_ERROR
        along, across = scaled(large, factor * np.cos(angle)), scaled(small, factor * np.sin(angle))
        line = add(Add(name=importer.unique(node.name), source=along, other=across))
        longest = line if not longest else combined("maximum", longest, line)
    importer.add(node, importer.layers[longest], total.size, shape)


def _squared(importer: Importer, total: Value) -> tuple[str, str] | None:
    """Layers whose squares ``total`` is the sum of; None: it is no such sum."""
    layers = importer.layers
    sums = layers.get(total.layer)
    if not isinstance(sums, Add) or sums.relu:
        return None
    squares = [layers.get(source) for source in sums.sources]
    factors = [
        square.source
        for square in squares
        if isinstance(square, Multiply) and square.source == square.other
    ]
    return (factors[0], factors[1]) if len(factors) == len(squares) else None
