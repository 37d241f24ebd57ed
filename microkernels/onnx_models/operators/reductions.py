"""Operators that reduce axes, and others that need sums over them."""

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from microkernels.networks.curves import Function
from microkernels.networks.network import Activation, Layer, Multiply
from microkernels.onnx_models.importer import Importer, Value, index_of, straight
from microkernels.onnx_models.read import GraphNode, attribute

from .arrange import window_results
from .elements import combine, curve_value
from .linear import pixel_conv

__all__ = ["local_response", "log_softmax", "lp_normalization", "reduced", "reduction"]

#: From here on softmax is of one axis, before of all from it on.
_ONE_AXIS_OPSET = 13
#: LRN is a product with a matrix of channels x channels.
_MOST_LRN_CHANNELS = 4096
_ROOT = Function("sqrt")


def _axes(importer: Importer, node: GraphNode, rank: int) -> list[int] | None:
    in_attribute = attribute(node, "axes", None)
    values = importer.constant(node, 1) if in_attribute is None else np.asarray(in_attribute)
    if values is None or not values.size:
        return None if not attribute(node, "noop_with_empty_axes", 0) else []
    axes = sorted({int(axis) % rank for axis in values.ravel()}) if rank else []
    if any(not -rank <= int(axis) < rank for axis in values.ravel()):
        raise node.refused(f"axes must be from {-rank} to {rank - 1}")
    return axes


def _affine(importer: Importer, node: GraphNode, value: Value, factor: float) -> Value:
    layer = Activation(
        name=importer.unique(node.name),
        source=value.layer,
        function="affine",
        factor=0,
        offset=0,
        fraction=0,
    )
    importer.affine[layer.name] = (factor, 0.0)
    return importer.add(node, layer, value.size, value.shape, last=False)


def _terms(importer: Importer, node: GraphNode, value: Value, kind: str) -> Value:
    """What a sum of this kind adds, for each element."""
    name = importer.unique(node.name)
    match kind:
        case "l1":
            layer: Layer = Activation(name=name, source=value.layer, function="absolute")
        case "squares":
            layer = Multiply(name=name, source=value.layer, other=value.layer, fraction=0)
        case _:
            return value
    return importer.add(node, layer, value.size, value.shape, last=False)


def reduced(importer: Importer, node: GraphNode, value: Value, kind: str, axes: list[int]) -> Value:
    """A value with axes reduced to one element.

    Parameters:
        value: not turned.
        kind: as of :func:`reduction`.
        axes: from 0 on, at least one.
    """
    if importer.batched(value.shape) and 0 in axes:
        raise node.mixing(f"the batch of {importer.batch} can't be reduced")
    index = index_of(importer, value)
    keep = [axis for axis in range(index.ndim) if axis not in axes]
    pixels = prod(index.shape[axis] for axis in axes)
    lined = index.transpose(*keep, *axes).reshape(-1, 1, pixels)
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(value.shape))
    if kind == "min":
        value = _affine(importer, node, value, -1.0)
    value = _terms(importer, node, value, kind)
    result = window_results(importer, node, value, lined, mean=kind not in ("max", "min"))
    if kind == "min":
        result = _affine(importer, node, result, -1.0)
    if kind in ("sum", "l1", "squares"):
        result = _affine(importer, node, result, float(pixels))
    return replace(result, shape=shape)


def reduction(
    kind: str, *, before: Function | None = None, after: Function | None = None
) -> Callable[[Importer, GraphNode], None]:
    """The function of an operator that reduces axes.

    Parameters:
        kind: ``max``, ``min``, ``sum``, ``mean``, ``l1`` (sum of magnitudes) or ``squares`` (sum
            of squares).
        before, after: functions of the elements and of the results.
    """

    def operator(importer: Importer, node: GraphNode) -> None:
        value = importer.value(node)
        axes = _axes(importer, node, len(value.shape))
        if axes == []:
            _reduced_alone(importer, node, value, kind, before, after)
            return
        if axes is None:
            axes = list(range(len(value.shape)))
        if before is not None:
            value = curve_value(importer, node, value, before)
        value = reduced(importer, node, value, kind, axes)
        if after is not None:
            value = curve_value(importer, node, value, after)
        keepdims = bool(attribute(node, "keepdims", 1))
        left = (size for axis, size in enumerate(value.shape) if keepdims or axis not in axes)
        importer.alias(node, value, tuple(left))

    return operator


def _reduced_alone(
    importer: Importer,
    node: GraphNode,
    value: Value,
    kind: str,
    before: Function | None,
    after: Function | None,
) -> None:
    """The output of an operator that reduces each element alone: ``noop_with_empty_axes``.

    Parameters:
        kind, before, after: as of :func:`reduction`.
    """
    if after == _ROOT:
        kind, after = "l1", None
    if before is None:
        value = _terms(importer, node, value, kind)
        if after is not None:
            value = curve_value(importer, node, value, after)
    # Else a logarithm of one exponential.
    importer.alias(node, value, value.shape)


def _axis(node: GraphNode, default: int, rank: int) -> int:
    axis = int(attribute(node, "axis", default))
    if not -rank <= axis < rank:
        raise node.refused(f"axis must be from {-rank} to {rank - 1}, not {axis}")
    return axis % rank


def log_softmax(importer: Importer, node: GraphNode) -> None:
    """LogSoftmax: the difference from the largest element, less the logarithm of the sum of the
    exponentials of such differences."""
    value = importer.value(node)
    rank = len(value.shape)
    one = importer.graph.opset >= _ONE_AXIS_OPSET
    first = _axis(node, -1 if one else 1, rank)
    axes = [first] if one else list(range(first, rank))
    largest = reduced(importer, node, value, "max", axes)
    below = combine(importer, node, "subtract", value, largest, last=False)
    powers = curve_value(importer, node, below, Function("exp"))
    total = reduced(importer, node, straight(importer, node, powers), "sum", axes)
    logarithm = curve_value(importer, node, total, Function("log"))
    combine(importer, node, "subtract", below, logarithm)


def lp_normalization(importer: Importer, node: GraphNode) -> None:
    """LpNormalization: elements by the norm of an axis."""
    value = importer.value(node)
    kind = int(attribute(node, "p", 2))
    if kind not in (1, 2):
        raise node.refused(f"p must be 1 or 2, not {kind}")
    axis = _axis(node, -1, len(value.shape))
    total = reduced(importer, node, value, "l1" if kind == 1 else "squares", [axis])
    inverse = Function("reciprocal") if kind == 1 else Function("power", (-0.5,))
    factor = curve_value(importer, node, total, inverse)
    combine(importer, node, "multiply", value, factor)


def local_response(importer: Importer, node: GraphNode) -> None:
    """LRN: elements by a power of the sum of the squares of channels around them."""
    value = importer.value(node)
    if len(value.shape) < 3:
        raise node.refused(f"its input must have 3 dimensions or more, not {len(value.shape)}")
    importer.check_images(node, value)
    channels, size = value.size.channels, int(attribute(node, "size", 0))
    if size < 1:
        raise node.refused(f"size must be at least 1, not {size}")
    if channels > _MOST_LRN_CHANNELS:
        raise node.refused(f"{channels:,} channels; at most {_MOST_LRN_CHANNELS:,} are supported")
    alpha, beta = (
        float(attribute(node, name, usual)) for name, usual in (("alpha", 1e-4), ("beta", 0.75))
    )
    squares = importer.add(
        node,
        Multiply(
            name=importer.unique(node.name), source=value.layer, other=value.layer, fraction=0
        ),
        value.size,
        value.shape,
        last=False,
    )
    distance = np.subtract.outer(np.arange(channels), np.arange(channels))
    near = (distance <= (size - 1) // 2) & (-distance <= size // 2)
    bias = np.full(channels, float(attribute(node, "bias", 1.0)))
    layer, near_sums = pixel_conv(importer, node, squares, near * (alpha / size), bias)
    sums = importer.add(node, layer, near_sums, value.shape, last=False)
    factor = curve_value(importer, node, sums, Function("power", (-beta,)))
    combine(importer, node, "multiply", value, factor)
    importer.check_images(node, value)
