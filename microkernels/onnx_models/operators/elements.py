"""Operators that work element by element."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from microkernels.common.fixed_point import Reals
from microkernels.networks.curves import UNFITTED, Function
from microkernels.networks.network import INPUT, ElementWise
from microkernels.nn.element_shape import SLOPE_FRACTION
from microkernels.onnx_models.importer import Importer
from microkernels.onnx_models.model import Value, to_maps
from microkernels.onnx_models.read import GraphNode, attribute, mixing, refused

from .arrange import index_of, rearranged, rows, straight
from .linear import activate, scale_channels


def curve_value(
    importer: Importer, node: GraphNode, value: Value, function: Function, *, last: bool = False
) -> Value:
    """A function of each element.

    Parameters:
        last: it produces the node's first output.
    """
    result = importer.apply(node, ElementWise, value, last=last, function="curve", curve=UNFITTED)
    importer.curves[result.layer] = function
    return result


def unary(name: str) -> Callable[[Importer, GraphNode], None]:
    """The function of an operator without attributes.

    Parameters:
        name: in :data:`microkernels.networks.curves.FUNCTIONS`.
    """

    def operator(importer: Importer, node: GraphNode) -> None:
        curve_value(importer, node, importer.value(node), Function(name), last=True)

    return operator


def elu(importer: Importer, node: GraphNode) -> None:
    """Elu, Celu and Selu: x above 0, an exponential minus 1 below."""
    alpha, gamma = 1.0, 1.0
    if node.op_type == "Selu":
        alpha, gamma = 1.6732632423543772, 1.0507009873554805
    alpha = float(attribute(node, "alpha", alpha))
    gamma = float(attribute(node, "gamma", gamma))
    width = alpha if node.op_type == "Celu" else 1.0
    if width == 0:
        raise refused(node, "alpha must not be 0")
    function = Function("elu", (alpha, gamma, width))
    curve_value(importer, node, importer.value(node), function, last=True)


_UNBOUNDED = float("inf")
#: Error of Gelu's approximation by tanh.
_GELU_ERROR = 4.8e-4
#: Maximum channels of a single pixel that is multiplied by a diagonal matrix.
_MOST_DIAGONAL = 64
#: From this opset on, operands are broadcast as in NumPy.
_BROADCAST_OPSET = 7


def affine(
    importer: Importer,
    node: GraphNode,
    value: Value,
    factor: float,
    offset: float,
    *,
    last: bool = True,
) -> Value:
    """``factor`` times the elements plus ``offset``."""
    result = importer.apply(
        node, ElementWise, value, last=last, function="affine", factor=0, offset=0, fraction=0
    )
    importer.affine[result.layer] = (factor, offset)
    return result


def limited(
    importer: Importer, node: GraphNode, value: Value, low: float, high: float, *, last: bool = True
) -> Value:
    """The elements, limited to two bounds."""
    result = importer.apply(node, ElementWise, value, last=last, function="clip", low=0, high=0)
    importer.bounds[result.layer] = (low, high)
    return result


def combine(
    importer: Importer,
    node: GraphNode,
    kind: str,
    first: Value,
    second: Value,
    *,
    last: bool = True,
) -> Value:
    """Combine two values, broadcast to one shape: ``kind`` as for :func:`combined`, except
    ``divide``."""
    if first.shape != second.shape:
        shapes = (first.shape, second.shape)
        first, second = (_spread(importer, node, one, shapes) for one in (first, second))
    if first.turned or second.turned:
        first, second = (rows(importer, node, one) for one in (first, second))
    elif first.size != second.size:
        # At least one of them was reshaped.
        size = importer.map_of(first.shape)
        first, second = (
            one if one.size == size else rearranged(importer, node, [one], index_of(importer, one))
            for one in (first, second)
        )
    return importer.apply(
        node,
        ElementWise,
        first,
        last=last,
        function=kind,
        other=second.layer,
        fraction=0 if kind == "multiply" else None,
    )


def _spread(
    importer: Importer, node: GraphNode, value: Value, shapes: Sequence[tuple[int, ...]]
) -> Value:
    """``value``, broadcast to the common shape of ``shapes``."""
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(str(list(operand_shape)) for operand_shape in shapes)
        raise refused(
            node, f"its inputs of shapes {listed} can't be broadcast to one shape"
        ) from None
    if shape == value.shape:
        return value
    if importer.batched(shape) and len(shape) != len(value.shape):
        raise mixing(
            node,
            f"its input of shape {list(value.shape)} has the batch of {importer.batch} along "
            f"a different axis from its output of shape {list(shape)}",
        )
    if prod(shape) == prod(value.shape):
        return replace(value, shape=shape)
    wide = (1, *shape[1:]) if importer.batched(shape) else shape
    spread = np.broadcast_to(index_of(importer, value), wide)
    return rearranged(importer, node, [value], spread, turned=value.turned)


def _by_channel(importer: Importer, values: Reals, like: Value) -> Reals | None:
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
    maps = to_maps("", spread, importer.batch, like.size, turned=like.turned)
    one = maps[:1, :1, :1]
    return one.ravel() if (maps == one).all() else None


def with_constant(
    importer: Importer, node: GraphNode, kind: str, value: Value, constant: Reals, *, first: bool
) -> None:
    """Combine ``value`` with a constant; ``first``: the constant is the first operand."""
    value = _spread(importer, node, value, (value.shape, constant.shape))
    linear = kind in ("add", "subtract", "multiply")
    numbers = _by_channel(importer, constant, value) if linear else None
    layer = importer.layers.get(value.layer)
    fused = value.layer not in importer.shared and layer is not None and layer.name in importer.real
    many = value.size.width == value.size.height == 1 and value.size.channels > _MOST_DIAGONAL
    if numbers is None or (numbers.size > 1 and many and not fused):
        constants = importer.constant_map(node, constant, value)
        operands = (constants, value) if first else (value, constants)
        combine(importer, node, kind, *operands)
        return
    scale: Reals = np.ones(1)
    shift: Reals = np.zeros(1)
    if kind == "multiply":
        scale = numbers
    else:
        shift = numbers
        if kind == "subtract":
            scale, shift = (-scale, shift) if first else (scale, -shift)
    one = scale.size == shift.size == 1
    if one and not fused:
        affine(importer, node, value, float(scale[0]), float(shift[0]))
        return
    result = scale_channels(importer, node, value, scale, shift)
    importer.alias(node, result, value.shape)


def combined(kind: str) -> Callable[[Importer, GraphNode], None]:
    """The function of an operator with two operands.

    Parameters:
        kind: ``add``, ``subtract``, ``multiply``, ``divide``, ``maximum`` or ``minimum``.
    """

    def operator(importer: Importer, node: GraphNode) -> None:
        if attribute(node, "broadcast", 0) or attribute(node, "axis", None) is not None:
            raise refused(
                node, "broadcast belongs to opset 6; export the model with opset 7 or later"
            )
        operation = kind
        if importer.is_constant(node, 1):
            constant = importer.reals(node, 1)
            if kind == "divide":
                if (constant == 0).any():
                    raise refused(node, "division by 0")
                constant, operation = 1 / constant, "multiply"
            value = importer.value(node)
            with_constant(importer, node, operation, value, constant, first=False)
        elif kind == "divide":
            inverse = curve_value(importer, node, importer.value(node, 1), Function("reciprocal"))
            if importer.is_constant(node, 0):
                constant = importer.reals(node, 0)
                with_constant(importer, node, "multiply", inverse, constant, first=True)
            else:
                combine(importer, node, "multiply", importer.value(node), inverse)
        elif importer.is_constant(node, 0):
            constant = importer.reals(node, 0)
            with_constant(importer, node, kind, importer.value(node, 1), constant, first=True)
        else:
            first, second = importer.value(node), importer.value(node, 1)
            if first.layer == second.layer != INPUT and importer.is_input(first):
                raise refused(node, "both inputs are the same input of the model")
            combine(importer, node, kind, first, second)

    return operator


def variadic(kind: str, *, mean: bool = False) -> Callable[[Importer, GraphNode], None]:
    """The function of an operator with any number of operands, such as Sum."""

    def operator(importer: Importer, node: GraphNode) -> None:
        count = len(node.input)
        if count == 2 and not mean:
            combined(kind)(importer, node)
            return
        result = importer.value(node)
        for number in range(1, count):
            last = number + 1 == count and not mean
            result = combine(importer, node, kind, result, importer.value(node, number), last=last)
        if mean:
            affine(importer, node, result, 1 / count, 0.0)
        elif count == 1:
            importer.alias(node, result, result.shape)

    return operator


def function(name: str) -> Callable[[Importer, GraphNode], None]:
    """The function of an operator that :mod:`microkernels.nn.element_shape` calls ``name``."""

    def operator(importer: Importer, node: GraphNode) -> None:
        constants: dict[str, Any] = {"fraction": 0} if name in ("tanh", "sigmoid", "erf") else {}
        importer.apply(node, ElementWise, importer.value(node), function=name, **constants)

    return operator


def gelu(importer: Importer, node: GraphNode) -> None:
    """Gelu, computed exactly even if the node asks for the approximation by tanh."""
    if attribute(node, "approximate", "none") != "none":
        importer.approximation = max(importer.approximation, _GELU_ERROR)
    importer.apply(node, ElementWise, importer.value(node), function="gelu", fraction=0)


def relu(importer: Importer, node: GraphNode) -> None:
    """Relu, merged into the previous layer if possible."""
    if not activate(importer, node):
        importer.apply(node, ElementWise, importer.value(node), function="relu")


def negative(importer: Importer, node: GraphNode) -> None:
    """Neg."""
    affine(importer, node, importer.value(node), -1.0, 0.0)


def leaky_relu(importer: Importer, node: GraphNode) -> None:
    """LeakyRelu with a slope from -1 to 1."""
    alpha = float(attribute(node, "alpha", 0.01))
    slope = round(alpha * (1 << SLOPE_FRACTION))
    if not -(1 << SLOPE_FRACTION) <= slope < 1 << SLOPE_FRACTION:
        raise refused(node, f"alpha must be from -1 to below 1, not {alpha}")
    importer.apply(node, ElementWise, importer.value(node), function="leaky", slope=slope)


def p_relu(importer: Importer, node: GraphNode) -> None:
    """PRelu with constant slopes: the positive part plus the slopes times the negative one."""
    value = importer.value(node)
    slopes = importer.reals(node, 1)
    if importer.graph.opset < _BROADCAST_OPSET and slopes.ndim == 1:
        # A slope for each channel.
        slopes = slopes.reshape(-1, *(1,) * (len(value.shape) - 2))
    positive = importer.apply(node, ElementWise, value, last=False, function="relu")
    below = limited(importer, node, value, -_UNBOUNDED, 0.0, last=False)
    numbers = _by_channel(importer, slopes, value)
    if numbers is not None and numbers.size == 1:
        scaled = affine(importer, node, below, float(numbers[0]), 0.0, last=False)
    elif numbers is not None:
        scaled = scale_channels(importer, node, below, numbers, np.zeros(1))
    else:
        factors = importer.constant_map(node, slopes, value)
        scaled = combine(importer, node, "multiply", below, factors, last=False)
    combine(importer, node, "add", positive, scaled)


def clip(importer: Importer, node: GraphNode) -> None:
    """Clip between constants."""
    value = importer.value(node)
    limits = []
    for number, name, open_end in ((1, "min", -_UNBOUNDED), (2, "max", _UNBOUNDED)):
        bound = importer.constant(node, number)
        if bound is not None and bound.size != 1:
            raise refused(node, f"{name} must be one number, not {bound.size}")
        limit = float(attribute(node, name, open_end)) if bound is None else float(bound.ravel()[0])
        limits.append(limit)
    low, high = limits
    if np.isnan(low) or np.isnan(high):
        raise refused(node, f"min and max must be numbers, not {low} and {high}")
    limited(importer, node, value, min(low, high), high)


def hard_sigmoid(importer: Importer, node: GraphNode) -> None:
    """HardSigmoid."""
    alpha, beta = float(attribute(node, "alpha", 0.2)), float(attribute(node, "beta", 0.5))
    value = importer.value(node)
    scaled = affine(importer, node, value, alpha, beta, last=False)
    limited(importer, node, scaled, 0.0, 1.0)


def hard_swish(importer: Importer, node: GraphNode) -> None:
    """HardSwish: the input times a HardSigmoid of slope 1/6."""
    value = importer.value(node)
    scaled = affine(importer, node, value, 1 / 6, 0.5, last=False)
    gate = limited(importer, node, scaled, 0.0, 1.0, last=False)
    combine(importer, node, "multiply", value, gate)


def swish(importer: Importer, node: GraphNode) -> None:
    """Swish: the input times the sigmoid of ``alpha`` times the input."""
    value = importer.value(node)
    alpha = float(attribute(node, "alpha", 1.0))
    inner = value if alpha == 1 else affine(importer, node, value, alpha, 0.0, last=False)
    gate = importer.apply(node, ElementWise, inner, last=False, function="sigmoid", fraction=0)
    combine(importer, node, "multiply", value, gate)


#: Directions of an eighth of the plane.
_DIRECTIONS = 4
_ANGLE = np.pi / 4 / _DIRECTIONS
#: Maximum relative error of a magnitude.
MAGNITUDE_ERROR = float((1 - np.cos(_ANGLE / 2)) / (1 + np.cos(_ANGLE / 2)))
#: Exponents up to this one become products.
_MOST_EXPONENT = 8


def _product(importer: Importer, node: GraphNode, one: Value, other: Value) -> Value:
    return combine(importer, node, "multiply", one, other, last=False)


def power(importer: Importer, node: GraphNode) -> None:
    """Pow with a constant exponent; integers from 1 to 8 become products."""
    value = straight(importer, node, importer.value(node))
    exponents = importer.reals(node, 1)
    exponent = float(exponents.ravel()[0]) if exponents.size else 0.0
    if exponents.size != 1:
        raise refused(node, "the exponent must be one number")
    if exponent == 0.5:
        square_root(importer, node)
        return
    if exponent not in range(1, _MOST_EXPONENT + 1):
        function = Function("power", (exponent,))
        curve_value(importer, node, importer.value(node), function, last=True)
        return
    product, square, left = None, value, int(exponent)
    while left:
        if left & 1:
            product = square if product is None else _product(importer, node, product, square)
        left >>= 1
        if left:
            square = _product(importer, node, square, square)
    assert product is not None
    importer.alias(node, product, value.shape)


def square_root(importer: Importer, node: GraphNode) -> None:
    """Sqrt: a curve or, for the sum of two squares, projections, with an error of up to
    :data:`MAGNITUDE_ERROR`.

    Squares of small numbers would have too few bits for the root of their sum, which is the
    magnitude of a complex number. Instead, the larger and the smaller magnitude are projected on
    directions from 0 to 45 degrees. The ratio of the largest projection to the root is at least the
    cosine of half the angle between two directions, and a common factor halves this error.
    """
    total = straight(importer, node, importer.value(node))
    parts = _squared(importer, total)
    if parts is None:
        curve_value(importer, node, total, Function("sqrt"), last=True)
        return
    importer.approximation = max(importer.approximation, MAGNITUDE_ERROR)
    one, other = (
        importer.apply(
            node, ElementWise, replace(total, layer=part), last=False, function="absolute"
        )
        for part in parts
    )
    large = combine(importer, node, "maximum", one, other, last=False)
    small = combine(importer, node, "minimum", one, other, last=False)
    longest: Value | None = None
    for number in range(_DIRECTIONS):
        angle = (number + 0.5) * _ANGLE
        along, across = (
            affine(importer, node, value, (1 + MAGNITUDE_ERROR) * share, 0.0, last=False)
            for value, share in ((large, np.cos(angle)), (small, np.sin(angle)))
        )
        line = combine(importer, node, "add", along, across, last=False)
        if longest is not None:
            line = combine(importer, node, "maximum", longest, line, last=False)
        longest = line
    assert longest is not None
    importer.alias(node, longest, total.shape)


def _squared(importer: Importer, total: Value) -> tuple[str, str] | None:
    """Two layers such that ``total`` is the sum of their squares; None if it isn't such a sum."""
    layers = importer.layers
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


#: Types of real numbers, by their number in ONNX.
_REALS = (1, 10, 11, 16)


def identity(importer: Importer, node: GraphNode) -> None:
    """Identity, and Dropout at inference."""
    value = importer.value(node)
    importer.alias(node, value, value.shape)


def cast(importer: Importer, node: GraphNode) -> None:
    """Cast to real numbers, or between integers, which changes nothing."""
    is_integer = node.input[0] in importer.graph.integers
    kind = importer.graph.integers.get(node.output[0], "")
    if kind and not (is_integer and np.can_cast(importer.graph.integers[node.input[0]], kind)):
        raise refused(node, "only casts to real numbers, and to wider integers, are supported")
    if not kind and int(attribute(node, "to", _REALS[0])) not in _REALS:
        raise refused(node, "only casts to real numbers, and to wider integers, are supported")
    value = importer.value(node)
    if is_integer and not kind and importer.rounded:
        # Its map may not have any fraction bits.
        affine(importer, node, value, 1.0, 0.0)
        return
    identity(importer, node)


def dropout(importer: Importer, node: GraphNode) -> None:
    """Dropout, which does nothing at inference."""
    training = importer.constant(node, 2)
    if training is not None and np.any(training):
        raise refused(node, "training_mode must be false: export the model for inference")
    identity(importer, node)


def flatten(importer: Importer, node: GraphNode) -> None:
    """Flatten from the first axis after the batch on."""
    value = importer.value(node)
    axis = int(attribute(node, "axis", 1))
    rank = len(value.shape)
    if not -rank <= axis <= rank:
        raise refused(node, f"axis must be from {-rank} to {rank}, not {axis}")
    axis += rank if axis < 0 else 0
    first = int(np.prod(value.shape[:axis]))
    importer.alias(node, value, (first, int(np.prod(value.shape)) // first))


def reshape(importer: Importer, node: GraphNode) -> None:
    """Reshape that keeps the batch first."""
    value = importer.value(node)
    in_attribute = attribute(node, "shape", None)
    target = importer.constant(node, 1) if in_attribute is None else np.asarray(in_attribute)
    if target is None:
        raise refused(node, "a shape is missing")
    sizes = [int(extent) for extent in target.ravel()]
    if not attribute(node, "allowzero", 0):
        sizes = [
            value.shape[axis] if size == 0 and axis < len(value.shape) else size
            for axis, size in enumerate(sizes)
        ]
    count = int(np.prod(value.shape))
    if sizes.count(-1) == 1:
        product = -int(np.prod(sizes))
        if product > 0 and count % product == 0:
            sizes[sizes.index(-1)] = count // product
    if any(size < 1 for size in sizes) or int(np.prod(sizes)) != count:
        raise refused(
            node, f"{list(value.shape)} can't be reshaped to {[int(extent) for extent in target]}"
        )
    importer.alias(node, value, tuple(sizes))


def _axes(importer: Importer, node: GraphNode, rank: int) -> list[int] | None:
    in_attribute = attribute(node, "axes", None)
    values = importer.constant(node, 1) if in_attribute is None else np.asarray(in_attribute)
    if values is None:
        return None
    axes = [int(number) for number in values.ravel()]
    if any(not -rank <= axis < rank for axis in axes):
        raise refused(node, f"axes must be from {-rank} to {rank - 1}, not {axes}")
    return [axis % rank for axis in axes]


def squeeze(importer: Importer, node: GraphNode) -> None:
    """Squeeze."""
    value = importer.value(node)
    axes = _axes(importer, node, len(value.shape))
    if axes is None:
        axes = [axis for axis, size in enumerate(value.shape) if size == 1]
    if any(value.shape[axis] != 1 for axis in axes):
        raise refused(node, f"axes {axes} of {list(value.shape)} are not all of size 1")
    shape = tuple(size for axis, size in enumerate(value.shape) if axis not in axes)
    importer.alias(node, value, shape)


def unsqueeze(importer: Importer, node: GraphNode) -> None:
    """Unsqueeze."""
    value = importer.value(node)
    in_attribute = attribute(node, "axes", None)
    count = len(in_attribute) if in_attribute is not None else importer.reals(node, 1).size
    axes = _axes(importer, node, len(value.shape) + count) or []
    shape = list(value.shape)
    for axis in sorted(axes):
        shape.insert(axis, 1)
    importer.alias(node, value, tuple(shape))
