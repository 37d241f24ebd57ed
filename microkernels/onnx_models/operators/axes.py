"""Operators along axes: reductions, softmax, normalisations."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from isa.table import MAX_VL
from microkernels.common.fixed_point import Reals
from microkernels.networks.curves import Function
from microkernels.networks.maps import Size2
from microkernels.networks.network import Depthwise, ElementWise, Normalize
from microkernels.networks.parameters import Weights
from microkernels.nn.rows_shape import MOST_CHANNELS
from microkernels.onnx_models.model import Value
from microkernels.onnx_models.node import GraphNode

from .arrange import index_of, rearranged, rows, straight, window_results
from .elements import combine
from .linear import pixel_conv
from .products import in_one_slice

#: From this opset on, softmax is over one axis; before, over all axes from that one on.
_ONE_AXIS_OPSET = 13
#: Maximum channels of LRN, which is a product with a matrix of channels x channels.
_MOST_LRN_CHANNELS = 4096
_ROOT = Function("sqrt")


def _axes(node: GraphNode, rank: int) -> list[int] | None:
    values = node.setting("axes", 1)
    if values is None or not values.size:
        return None if not node.attribute("noop_with_empty_axes", 0) else []
    axes = sorted({int(axis) % rank for axis in values.ravel()}) if rank else []
    if any(not -rank <= int(axis) < rank for axis in values.ravel()):
        raise node.refused(f"axes must be from {-rank} to {rank - 1}")
    return axes


def _terms(node: GraphNode, value: Value, kind: str) -> Value:
    """The term for each element in a sum of this kind."""
    match kind:
        case "l1":
            return node.apply(ElementWise, value, function="absolute")
        case "squares":
            return combine(node, "multiply", value, value)
    return value


def reduced(node: GraphNode, value: Value, kind: str, axes: list[int]) -> Value:
    """Reduce axes of a value to one element.

    Parameters:
        value: not turned.
        kind: as for :func:`reduction`.
        axes: from 0 on, at least one.
    """
    if node.importer.batched(value.shape) and 0 in axes:
        raise node.mixing(f"the batch of {node.batch} can't be reduced")
    index = index_of(node, value)
    keep = [axis for axis in range(index.ndim) if axis not in axes]
    pixels = prod(index.shape[axis] for axis in axes)
    lined = index.transpose(*keep, *axes).reshape(-1, 1, pixels)
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(value.shape))
    if kind == "min":
        value = node.affine(value, -1.0, 0.0)
    value = _terms(node, value, kind)
    result = window_results(node, value, lined, mean=kind not in ("max", "min"))
    if kind == "min":
        result = node.affine(result, -1.0, 0.0)
    if kind in ("sum", "l1", "squares"):
        result = node.affine(result, float(pixels), 0.0)
    return replace(result, shape=shape)


def reduction(
    node: GraphNode, kind: str, *, before: Function | None = None, after: Function | None = None
) -> Value:
    """An operator that reduces axes.

    Parameters:
        kind: ``max``, ``min``, ``sum``, ``mean``, ``l1`` (sum of magnitudes) or ``squares`` (sum
            of squares).
        before, after: functions of the elements and of the results.
    """
    value = straight(node, node.value())
    axes = _axes(node, len(value.shape))
    if axes == []:
        return _reduced_alone(node, value, kind, before, after)
    if axes is None:
        axes = list(range(len(value.shape)))
    if before is not None:
        value = node.curve(value, before)
    value = reduced(node, value, kind, axes)
    if after is not None:
        value = node.curve(value, after)
    keepdims = bool(node.attribute("keepdims", 1))
    left = (size for axis, size in enumerate(value.shape) if keepdims or axis not in axes)
    return replace(value, shape=tuple(left))


def _reduced_alone(
    node: GraphNode, value: Value, kind: str, before: Function | None, after: Function | None
) -> Value:
    """The output of an operator that reduces each element by itself: ``noop_with_empty_axes``.

    Parameters:
        kind, before, after: as for :func:`reduction`.
    """
    if after == _ROOT:
        kind, after = "l1", None
    if before is None:
        value = _terms(node, value, kind)
        if after is not None:
            value = node.curve(value, after)
    # Otherwise the logarithm of a single exponential.
    return value


def _softmax_axes(node: GraphNode, rank: int) -> list[int]:
    """The axis of a softmax; in old models, all axes from one on."""
    one = node.importer.graph.opset >= _ONE_AXIS_OPSET
    first = node.axis(node.attribute("axis", -1 if one else 1), rank)
    return [first] if one else list(range(first, rank))


def log_softmax(node: GraphNode) -> Value:
    """LogSoftmax: the difference from the largest element, minus the logarithm of the sum of the
    exponentials of these differences."""
    value = straight(node, node.value())
    axes = _softmax_axes(node, len(value.shape))
    largest = reduced(node, value, "max", axes)
    below = combine(node, "subtract", value, largest)
    powers = node.curve(below, Function("exp"))
    total = reduced(node, straight(node, powers), "sum", axes)
    return combine(node, "subtract", below, node.curve(total, Function("log")))


def lp_normalization(node: GraphNode) -> Value:
    """LpNormalization: elements divided by the norm along an axis."""
    value = straight(node, node.value())
    kind = int(node.attribute("p", 2))
    if kind not in (1, 2):
        raise node.refused(f"p must be 1 or 2, not {kind}")
    axis = node.axis(node.attribute("axis", -1), len(value.shape))
    total = reduced(node, value, "l1" if kind == 1 else "squares", [axis])
    inverse = Function("reciprocal") if kind == 1 else Function("power", (-0.5,))
    return combine(node, "multiply", value, node.curve(total, inverse))


def _of_channels(node: GraphNode) -> Value:
    """The first input, which must have pixels of channels."""
    value = straight(node, node.value())
    if len(value.shape) < 3:
        raise node.refused(f"its input must have 3 dimensions or more, not {len(value.shape)}")
    node.check_images(value)
    return value


def local_response(node: GraphNode) -> Value:
    """LRN: elements divided by a power of the sum of squares of neighbouring channels."""
    value = _of_channels(node)
    channels, size = value.size.channels, int(node.attribute("size", 0))
    if size < 1:
        raise node.refused(f"size must be at least 1, not {size}")
    if channels > _MOST_LRN_CHANNELS:
        raise node.refused(f"{channels:,} channels; at most {_MOST_LRN_CHANNELS:,} are supported")
    alpha, beta = (
        float(node.attribute(name, usual)) for name, usual in (("alpha", 1e-4), ("beta", 0.75))
    )
    squares = combine(node, "multiply", value, value)
    distance = np.subtract.outer(np.arange(channels), np.arange(channels))
    near = (distance <= (size - 1) // 2) & (-distance <= size // 2)
    bias = np.full(channels, float(node.attribute("bias", 1.0)))
    weights = near * (alpha / size)
    sums = pixel_conv(node, squares, weights, bias, value.shape)
    return combine(node, "multiply", value, node.curve(sums, Function("power", (-beta,))))


def _along(node: GraphNode, axes: list[int], make: Callable[[Value], Value]) -> Value:
    """Apply a function to rows along these axes."""
    value = node.value()
    rank = len(value.shape)
    if node.importer.batched(value.shape) and 0 in axes:
        raise node.mixing(f"its rows lie along the batch of {node.batch}")
    channels = prod(value.shape[axis] for axis in axes)
    if channels > MOST_CHANNELS:
        raise node.refused(
            f"its rows have {channels} elements; at most {MOST_CHANNELS} are supported"
        )
    if axes == [rank - 1]:
        in_rows = in_one_slice(node, rows(node, value))
        return replace(make(in_rows), shape=value.shape)
    index = index_of(node, value)
    order = [axis for axis in range(rank) if axis not in axes] + axes
    lead = (1, -1) if node.importer.batched(value.shape) else (-1,)
    lined = index.transpose(order).reshape(*lead, channels)
    in_rows = rearranged(node, [value], lined, turned=True)
    result = make(in_one_slice(node, in_rows))
    if axes == list(range(axes[0], rank)):
        return replace(result, shape=value.shape)
    numbers = index_of(node, result).reshape([index.shape[axis] for axis in order])
    back = numbers.transpose([order.index(axis) for axis in range(rank)])
    return rearranged(node, [result], back)


def softmax(node: GraphNode) -> Value:
    """Softmax."""
    axes = _softmax_axes(node, len(node.value().shape))
    return _along(node, axes, partial(node.apply, Normalize, operation="softmax"))


def _weighted(node: GraphNode, value: Value, scale: Reals, shift: Reals) -> Value:
    """Multiply each channel by its scale and add its shift."""
    if (scale == 1).all() and not shift.any():
        return value
    if value.size.channels > MAX_VL:
        # A depthwise layer has no vectors of this length.
        for kind, constant in (("multiply", scale), ("add", shift)):
            factors = node.constant_map(constant, value)
            value = combine(node, kind, value, factors)
        return value
    result = node.apply(
        Depthwise, value, suffix="_scale", turned=True, kernel=Size2(1, 1), fraction=0, relu=False
    )
    node.importer.real[result.layer] = Weights(weights=scale.reshape(-1, 1, 1), bias=shift)
    return result


def _normalized(node: GraphNode, value: Value, operation: str) -> Value:
    """Rows minus their means (for ``layer``) and divided by their deviations."""
    epsilon = float(node.attribute("epsilon", 1e-5))
    if not 0 <= epsilon <= 1:
        raise node.refused(f"epsilon must be from 0 to 1, not {epsilon}")
    result = node.apply(Normalize, value, operation=operation, fraction=0, epsilon=0)
    node.importer.epsilons[result.layer] = epsilon
    return result


def group_normalization(node: GraphNode) -> Value:
    """GroupNormalization, and InstanceNormalization, whose groups are single channels.

    The channels of a group with all their pixels form a row.
    """
    value = _of_channels(node)
    channels, pixels = value.shape[1], prod(value.shape[2:])
    alone = node.op == "InstanceNormalization"
    groups = channels if alone else int(node.attribute("num_groups", 0))
    if groups < 1 or channels % groups:
        raise node.refused(f"num_groups must divide the {channels} channels, not be {groups}")
    if channels // groups * pixels > MOST_CHANNELS:
        raise node.refused(
            f"its groups have {channels // groups * pixels} elements; at most {MOST_CHANNELS} are "
            "supported"
        )
    lined = index_of(node, value).reshape(1, groups, -1)
    by_groups = rearranged(node, [value], lined, turned=True)
    result = _normalized(node, in_one_slice(node, by_groups), "layer")
    for number, kind in ((1, "multiply"), (2, "add")):
        parameters = node.reals(number)
        if parameters.size not in (groups, channels):
            raise node.refused(
                f"input {number} must have {channels} elements, not {parameters.size}"
            )
        by_group = parameters.reshape(groups, -1)
        if (by_group == by_group[:1, :1]).all() and by_group[0, 0] == (
            1 if kind == "multiply" else 0
        ):
            continue
        spread = np.repeat(by_group, lined.shape[-1] // by_group.shape[1], axis=1)
        constant = node.constant_map(spread, result)
        result = combine(node, kind, result, constant)
    return replace(result, shape=value.shape)


def normalization(node: GraphNode, operation: str) -> Value:
    """LayerNormalization (``layer``) or RMSNormalization (``rms``)."""
    input_shape = node.value().shape
    first = node.axis(node.attribute("axis", -1), len(input_shape))
    parameters = [node.reals(1), np.zeros(1)]
    if operation == "layer" and node.constant(2) is not None:
        parameters[1] = node.reals(2)
    shape = input_shape[first:]
    try:
        scale, shift = (np.broadcast_to(values, shape).ravel() for values in parameters)
    except ValueError:
        raise node.refused(f"scale and bias do not fit rows of shape {list(shape)}") from None

    def make(value: Value) -> Value:
        return _weighted(node, _normalized(node, value, operation), scale, shift)

    return _along(node, list(range(first, len(input_shape))), make)
