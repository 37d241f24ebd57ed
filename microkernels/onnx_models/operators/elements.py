"""Operators that work element by element."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from microkernels.common.fixed_point import Reals
from microkernels.networks.curves import Function
from microkernels.networks.network import ElementWise
from microkernels.nn.element_shape import SLOPE_FRACTION
from microkernels.onnx_models.model import Value, to_maps
from microkernels.onnx_models.node import GraphNode
from microkernels.onnx_models.read import REALS

from .arrange import index_of, rearranged, rows, straight
from .linear import activate, scale_channels


def unary(node: GraphNode, name: str) -> Value:
    """An operator without attributes, a function in
    :data:`microkernels.networks.curves.FUNCTIONS`."""
    return node.curve(node.value(), Function(name))


def elu(node: GraphNode) -> Value:
    """Elu, Celu and Selu: x above 0, an exponential minus 1 below."""
    alpha, gamma = 1.0, 1.0
    if node.op == "Selu":
        alpha, gamma = 1.6732632423543772, 1.0507009873554805
    alpha = float(node.attribute("alpha", alpha))
    gamma = float(node.attribute("gamma", gamma))
    width = alpha if node.op == "Celu" else 1.0
    if width == 0:
        raise node.refused("alpha must not be 0")
    return node.curve(node.value(), Function("elu", (alpha, gamma, width)))


_UNBOUNDED = float("inf")
#: Error of Gelu's approximation by tanh.
_GELU_ERROR = 4.8e-4
#: Maximum channels of a single pixel that is multiplied by a diagonal matrix.
_MOST_DIAGONAL = 64
#: From this opset on, operands are broadcast as in NumPy.
_BROADCAST_OPSET = 7


def combine(node: GraphNode, kind: str, first: Value, second: Value) -> Value:
    """Combine two values, broadcast to one shape: ``kind`` as for :func:`combined`, except
    ``divide``."""
    if first.shape != second.shape:
        shapes = (first.shape, second.shape)
        first, second = (_spread(node, one, shapes) for one in (first, second))
    if first.turned or second.turned:
        first, second = (rows(node, one) for one in (first, second))
    elif first.size != second.size:
        # At least one of them was reshaped.
        size = node.importer.map_of(first.shape)
        first, second = (
            one if one.size == size else rearranged(node, [one], index_of(node, one))
            for one in (first, second)
        )
    return node.apply(
        ElementWise,
        first,
        function=kind,
        other=second.layer,
        fraction=0 if kind == "multiply" else None,
    )


def _spread(node: GraphNode, value: Value, shapes: Sequence[tuple[int, ...]]) -> Value:
    """``value``, broadcast to the common shape of ``shapes``."""
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(str(list(operand_shape)) for operand_shape in shapes)
        raise node.refused(
            f"its inputs of shapes {listed} can't be broadcast to one shape"
        ) from None
    if shape == value.shape:
        return value
    if node.importer.batched(shape) and len(shape) != len(value.shape):
        raise node.mixing(
            f"its input of shape {list(value.shape)} has the batch of {node.batch} along "
            f"a different axis from its output of shape {list(shape)}"
        )
    if prod(shape) == prod(value.shape):
        return replace(value, shape=shape)
    wide = (1, *shape[1:]) if node.importer.batched(shape) else shape
    spread = np.broadcast_to(index_of(node, value), wide)
    return rearranged(node, [value], spread, turned=value.turned)


def _by_channel(node: GraphNode, values: Reals, like: Value) -> Reals | None:
    """Constants as one number, or one per channel of ``like``; None if they have another form."""
    if values.size == 1:
        return values.ravel()
    axis = -1 if like.turned else 1
    if len(like.shape) < 2 or like.shape[axis] != like.size.channels:
        return None
    try:
        spread = np.broadcast_to(values, like.shape)
    except ValueError:
        return None
    maps = to_maps("", spread, node.batch, like.size, turned=like.turned)
    one = maps[:1, :1, :1]
    return one.ravel() if (maps == one).all() else None


def with_constant(
    node: GraphNode, kind: str, value: Value, constant: Reals, *, first: bool
) -> Value:
    """Combine ``value`` with a constant; ``first``: the constant is the first operand."""
    value = _spread(node, value, (value.shape, constant.shape))
    linear = kind in ("add", "subtract", "multiply")
    numbers = _by_channel(node, constant, value) if linear else None
    fused = value.layer not in node.importer.shared and value.layer in node.importer.real
    many = value.size.width == value.size.height == 1 and value.size.channels > _MOST_DIAGONAL
    if numbers is None or (numbers.size > 1 and many and not fused):
        constants = node.constant_map(constant, value)
        return combine(node, kind, *((constants, value) if first else (value, constants)))
    scale: Reals = np.ones(1)
    shift: Reals = np.zeros(1)
    if kind == "multiply":
        scale = numbers
    elif kind == "subtract":
        scale, shift = (-scale, numbers) if first else (scale, -numbers)
    else:
        shift = numbers
    if scale.size == shift.size == 1 and not fused:
        return node.affine(value, float(scale[0]), float(shift[0]))
    return scale_channels(node, value, scale, shift)


def combined(node: GraphNode, kind: str) -> Value:
    """An operator with two operands.

    Parameters:
        kind: ``add``, ``subtract``, ``multiply``, ``divide``, ``maximum`` or ``minimum``.
    """
    if node.attribute("broadcast", 0) or node.attribute("axis", None) is not None:
        raise node.refused("broadcast belongs to opset 6; export the model with opset 7 or later")
    operation = kind
    if node.is_constant(1):
        constant = node.reals(1)
        if kind == "divide":
            if (constant == 0).any():
                raise node.refused("division by 0")
            constant, operation = 1 / constant, "multiply"
        return with_constant(node, operation, node.value(), constant, first=False)
    second = node.value(1)
    if kind == "divide":
        second, operation = node.curve(second, Function("reciprocal")), "multiply"
    if node.is_constant(0):
        return with_constant(node, operation, second, node.reals(0), first=True)
    return combine(node, operation, node.value(), second)


def variadic(node: GraphNode, kind: str, *, mean: bool = False) -> Value:
    """An operator with any number of operands, such as Sum; ``kind`` as for :func:`combined`."""
    count = len(node.inputs)
    if count == 2 and not mean:
        return combined(node, kind)
    result = node.value()
    for number in range(1, count):
        result = combine(node, kind, result, node.value(number))
    return node.affine(result, 1 / count, 0.0) if mean else result


def function(node: GraphNode, name: str) -> Value:
    """An operator that :mod:`microkernels.nn.element_shape` calls ``name``."""
    constants: dict[str, Any] = {"fraction": 0} if name in ("tanh", "sigmoid", "erf") else {}
    return node.apply(ElementWise, node.value(), function=name, **constants)


def gelu(node: GraphNode) -> Value:
    """Gelu, computed exactly even if the node asks for the approximation by tanh."""
    if node.attribute("approximate", "none") != "none":
        node.importer.approximation = max(node.importer.approximation, _GELU_ERROR)
    return node.apply(ElementWise, node.value(), function="gelu", fraction=0)


def relu(node: GraphNode) -> Value:
    """Relu, merged into the previous layer if possible."""
    return activate(node) or node.apply(ElementWise, node.value(), function="relu")


def negative(node: GraphNode) -> Value:
    """Neg."""
    return node.affine(node.value(), -1.0, 0.0)


def leaky_relu(node: GraphNode) -> Value:
    """LeakyRelu with a slope from -1 to 1."""
    alpha = float(node.attribute("alpha", 0.01))
    slope = round(alpha * (1 << SLOPE_FRACTION))
    if not -(1 << SLOPE_FRACTION) <= slope < 1 << SLOPE_FRACTION:
        raise node.refused(f"alpha must be from -1 to below 1, not {alpha}")
    return node.apply(ElementWise, node.value(), function="leaky", slope=slope)


def p_relu(node: GraphNode) -> Value:
    """PRelu with constant slopes: the positive part plus the slopes times the negative one."""
    value = node.value()
    slopes = node.reals(1)
    if node.importer.graph.opset < _BROADCAST_OPSET and slopes.ndim == 1:
        # A slope for each channel.
        slopes = slopes.reshape(-1, *(1,) * (len(value.shape) - 2))
    positive = node.apply(ElementWise, value, function="relu")
    below = node.limited(value, -_UNBOUNDED, 0.0)
    numbers = _by_channel(node, slopes, value)
    if numbers is not None and numbers.size == 1:
        scaled = node.affine(below, float(numbers[0]), 0.0)
    elif numbers is not None:
        scaled = scale_channels(node, below, numbers, np.zeros(1))
    else:
        factors = node.constant_map(slopes, value)
        scaled = combine(node, "multiply", below, factors)
    return combine(node, "add", positive, scaled)


def clip(node: GraphNode) -> Value:
    """Clip between constants."""
    value = node.value()
    limits = []
    for number, name, open_end in ((1, "min", -_UNBOUNDED), (2, "max", _UNBOUNDED)):
        bound = node.constant(number)
        if bound is not None and bound.size != 1:
            raise node.refused(f"{name} must be one number, not {bound.size}")
        limit = float(node.attribute(name, open_end)) if bound is None else float(bound.ravel()[0])
        limits.append(limit)
    low, high = limits
    if np.isnan(low) or np.isnan(high):
        raise node.refused(f"min and max must be numbers, not {low} and {high}")
    return node.limited(value, min(low, high), high)


def hard_sigmoid(node: GraphNode) -> Value:
    """HardSigmoid."""
    alpha, beta = float(node.attribute("alpha", 0.2)), float(node.attribute("beta", 0.5))
    return node.limited(node.affine(node.value(), alpha, beta), 0.0, 1.0)


def hard_swish(node: GraphNode) -> Value:
    """HardSwish: the input times a HardSigmoid of slope 1/6."""
    value = node.value()
    gate = node.limited(node.affine(value, 1 / 6, 0.5), 0.0, 1.0)
    return combine(node, "multiply", value, gate)


def swish(node: GraphNode) -> Value:
    """Swish: the input times the sigmoid of ``alpha`` times the input."""
    value = node.value()
    alpha = float(node.attribute("alpha", 1.0))
    inner = value if alpha == 1 else node.affine(value, alpha, 0.0)
    gate = node.apply(ElementWise, inner, function="sigmoid", fraction=0)
    return combine(node, "multiply", value, gate)


#: Directions of an eighth of the plane.
_DIRECTIONS = 4
_ANGLE = np.pi / 4 / _DIRECTIONS
#: Maximum relative error of a magnitude.
MAGNITUDE_ERROR = float((1 - np.cos(_ANGLE / 2)) / (1 + np.cos(_ANGLE / 2)))
#: Exponents up to this one become products.
_MOST_EXPONENT = 8


def power(node: GraphNode) -> Value:
    """Pow with a constant exponent; integers from 1 to 8 become products."""
    value = straight(node, node.value())
    exponents = node.reals(1)
    exponent = float(exponents.ravel()[0]) if exponents.size else 0.0
    if exponents.size != 1:
        raise node.refused("the exponent must be one number")
    if exponent == 0.5:
        return square_root(node)
    if exponent not in range(1, _MOST_EXPONENT + 1):
        return node.curve(node.value(), Function("power", (exponent,)))
    product, square, left = None, value, int(exponent)
    while left:
        if left & 1:
            product = square if product is None else combine(node, "multiply", product, square)
        left >>= 1
        if left:
            square = combine(node, "multiply", square, square)
    assert product is not None
    return replace(product, shape=value.shape)


def square_root(node: GraphNode) -> Value:
    """Sqrt: a curve or, for the sum of two squares, projections, with an error of up to
    :data:`MAGNITUDE_ERROR`.

    Squares of small numbers would have too few bits for the root of their sum, which is the
    magnitude of a complex number. Instead, the larger and the smaller magnitude are projected on
    directions from 0 to 45 degrees. The ratio of the largest projection to the root is at least the
    cosine of half the angle between two directions, and a common factor halves this error.
    """
    total = straight(node, node.value())
    parts = _squared(node, total)
    if parts is None:
        return node.curve(total, Function("sqrt"))
    node.importer.approximation = max(node.importer.approximation, MAGNITUDE_ERROR)
    one, other = (
        node.apply(ElementWise, replace(total, layer=part), function="absolute") for part in parts
    )
    large = combine(node, "maximum", one, other)
    small = combine(node, "minimum", one, other)
    longest: Value | None = None
    for number in range(_DIRECTIONS):
        angle = (number + 0.5) * _ANGLE
        along, across = (
            node.affine(value, (1 + MAGNITUDE_ERROR) * share, 0.0)
            for value, share in ((large, np.cos(angle)), (small, np.sin(angle)))
        )
        line = combine(node, "add", along, across)
        longest = line if longest is None else combine(node, "maximum", longest, line)
    assert longest is not None
    return replace(longest, shape=total.shape)


def _squared(node: GraphNode, total: Value) -> tuple[str, str] | None:
    """Two layers such that ``total`` is the sum of their squares; None if it isn't such a sum."""
    layers = node.importer.layers
    sums = layers.get(total.layer)
    if not isinstance(sums, ElementWise) or sums.function != "add" or sums.relu:
        return None
    squares = [layers.get(source) for source in sums.sources]
    factors = [
        square.source
        for square in squares
        if isinstance(square, ElementWise)
        and square.function == "multiply"
        and square.source == square.other
    ]
    return (factors[0], factors[1]) if len(factors) == len(squares) else None


def identity(node: GraphNode) -> Value:
    """Identity."""
    return node.value()


def cast(node: GraphNode) -> Value:
    """Cast to real numbers, or between integers, which changes nothing."""
    integers = node.importer.graph.integers
    before, kind = (integers.get(name, "") for name in (node.inputs[0], node.output))
    supported = before and np.can_cast(before, kind) if kind else True
    if not supported or (not kind and int(node.attribute("to", REALS[0])) not in REALS):
        raise node.refused("only casts to real numbers, and to wider integers, are supported")
    if before and not kind and node.importer.rounded:
        # Its map may not have any fraction bits.
        return node.affine(node.value(), 1.0, 0.0)
    return node.value()


def dropout(node: GraphNode) -> Value:
    """Dropout, which does nothing at inference."""
    training = node.constant(2)
    if training is not None and np.any(training):
        raise node.refused("training_mode must be false: export the model for inference")
    return node.value()


def view(node: GraphNode) -> Value:
    """Flatten, Reshape, Squeeze and Unsqueeze: the elements in their order, in another shape, which
    ONNX infers."""
    value, shape = node.value(), node.inferred_shape()
    if shape is None:
        name = {"Flatten": "axis", "Reshape": "shape"}.get(node.op, "axes")
        setting = np.asarray(node.setting(name, 1)).tolist()
        raise node.refused(f"{name} {setting} can't be applied to {list(value.shape)}")
    if prod(shape) != prod(value.shape):
        raise node.refused(f"{list(value.shape)} can't be reshaped to {list(shape)}")
    return replace(value, shape=shape)
