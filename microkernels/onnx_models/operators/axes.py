"""Operators along axes: reductions, softmax, normalisations."""

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from isa.table import MAX_VL
from microkernels.common.fixed_point import Reals
from microkernels.networks.curves import Function
from microkernels.networks.maps import Size2
from microkernels.networks.network import Depthwise, ElementWise, Normalize
from microkernels.networks.parameters import Weights
from microkernels.nn.rows_shape import MOST_CHANNELS
from microkernels.onnx_models.importer import Importer
from microkernels.onnx_models.model import Value
from microkernels.onnx_models.read import GraphNode, attribute, axis_of, mixing, refused

from .arrange import index_of, rearranged, rows, straight, window_results
from .elements import affine, combine, curve_value
from .linear import pixel_conv
from .products import in_one_slice

#: From this opset on, softmax is over one axis; before, over all axes from that one on.
_ONE_AXIS_OPSET = 13
#: Maximum channels of LRN, which is a product with a matrix of channels x channels.
_MOST_LRN_CHANNELS = 4096
_ROOT = Function("sqrt")


def _axes(importer: Importer, node: GraphNode, rank: int) -> list[int] | None:
    in_attribute = attribute(node, "axes", None)
    values = importer.constant(node, 1) if in_attribute is None else np.asarray(in_attribute)
    if values is None or not values.size:
        return None if not attribute(node, "noop_with_empty_axes", 0) else []
    axes = sorted({int(axis) % rank for axis in values.ravel()}) if rank else []
    if any(not -rank <= int(axis) < rank for axis in values.ravel()):
        raise refused(node, f"axes must be from {-rank} to {rank - 1}")
    return axes


def _terms(importer: Importer, node: GraphNode, value: Value, kind: str) -> Value:
    """The term for each element in a sum of this kind."""
    match kind:
        case "l1":
            return importer.apply(node, ElementWise, value, last=False, function="absolute")
        case "squares":
            return combine(importer, node, "multiply", value, value, last=False)
    return value


def reduced(importer: Importer, node: GraphNode, value: Value, kind: str, axes: list[int]) -> Value:
    """Reduce axes of a value to one element.

    Parameters:
        value: not turned.
        kind: as for :func:`reduction`.
        axes: from 0 on, at least one.
    """
    if importer.batched(value.shape) and 0 in axes:
        raise mixing(node, f"the batch of {importer.batch} can't be reduced")
    index = index_of(importer, value)
    keep = [axis for axis in range(index.ndim) if axis not in axes]
    pixels = prod(index.shape[axis] for axis in axes)
    lined = index.transpose(*keep, *axes).reshape(-1, 1, pixels)
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(value.shape))
    if kind == "min":
        value = affine(importer, node, value, -1.0, 0.0, last=False)
    value = _terms(importer, node, value, kind)
    result = window_results(importer, node, value, lined, mean=kind not in ("max", "min"))
    if kind == "min":
        result = affine(importer, node, result, -1.0, 0.0, last=False)
    if kind in ("sum", "l1", "squares"):
        result = affine(importer, node, result, float(pixels), 0.0, last=False)
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
        value = straight(importer, node, importer.value(node))
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
    """The output of an operator that reduces each element by itself: ``noop_with_empty_axes``.

    Parameters:
        kind, before, after: as for :func:`reduction`.
    """
    if after == _ROOT:
        kind, after = "l1", None
    if before is None:
        value = _terms(importer, node, value, kind)
        if after is not None:
            value = curve_value(importer, node, value, after)
    # Otherwise the logarithm of a single exponential.
    importer.alias(node, value, value.shape)


def _softmax_axes(importer: Importer, node: GraphNode, rank: int) -> list[int]:
    """The axis of a softmax; in old models, all axes from one on."""
    one = importer.graph.opset >= _ONE_AXIS_OPSET
    first = axis_of(node, -1 if one else 1, rank)
    return [first] if one else list(range(first, rank))


def log_softmax(importer: Importer, node: GraphNode) -> None:
    """LogSoftmax: the difference from the largest element, minus the logarithm of the sum of the
    exponentials of these differences."""
    value = straight(importer, node, importer.value(node))
    axes = _softmax_axes(importer, node, len(value.shape))
    largest = reduced(importer, node, value, "max", axes)
    below = combine(importer, node, "subtract", value, largest, last=False)
    powers = curve_value(importer, node, below, Function("exp"))
    total = reduced(importer, node, straight(importer, node, powers), "sum", axes)
    logarithm = curve_value(importer, node, total, Function("log"))
    combine(importer, node, "subtract", below, logarithm)


def lp_normalization(importer: Importer, node: GraphNode) -> None:
    """LpNormalization: elements divided by the norm along an axis."""
    value = straight(importer, node, importer.value(node))
    kind = int(attribute(node, "p", 2))
    if kind not in (1, 2):
        raise refused(node, f"p must be 1 or 2, not {kind}")
    axis = axis_of(node, -1, len(value.shape))
    total = reduced(importer, node, value, "l1" if kind == 1 else "squares", [axis])
    inverse = Function("reciprocal") if kind == 1 else Function("power", (-0.5,))
    factor = curve_value(importer, node, total, inverse)
    combine(importer, node, "multiply", value, factor)


def local_response(importer: Importer, node: GraphNode) -> None:
    """LRN: elements divided by a power of the sum of squares of neighbouring channels."""
    value = straight(importer, node, importer.value(node))
    if len(value.shape) < 3:
        raise refused(node, f"its input must have 3 dimensions or more, not {len(value.shape)}")
    importer.check_images(node, value)
    channels, size = value.size.channels, int(attribute(node, "size", 0))
    if size < 1:
        raise refused(node, f"size must be at least 1, not {size}")
    if channels > _MOST_LRN_CHANNELS:
        raise refused(node, f"{channels:,} channels; at most {_MOST_LRN_CHANNELS:,} are supported")
    alpha, beta = (
        float(attribute(node, name, usual)) for name, usual in (("alpha", 1e-4), ("beta", 0.75))
    )
    squares = combine(importer, node, "multiply", value, value, last=False)
    distance = np.subtract.outer(np.arange(channels), np.arange(channels))
    near = (distance <= (size - 1) // 2) & (-distance <= size // 2)
    bias = np.full(channels, float(attribute(node, "bias", 1.0)))
    weights = near * (alpha / size)
    sums = pixel_conv(importer, node, squares, weights, bias, value.shape, last=False)
    factor = curve_value(importer, node, sums, Function("power", (-beta,)))
    combine(importer, node, "multiply", value, factor)
    importer.check_images(node, value)


def _along(
    importer: Importer, node: GraphNode, axes: list[int], make: Callable[[Value], Value]
) -> None:
    """Apply a function to rows along these axes."""
    value = importer.value(node)
    rank = len(value.shape)
    if importer.batched(value.shape) and 0 in axes:
        raise mixing(node, f"its rows lie along the batch of {importer.batch}")
    channels = prod(value.shape[axis] for axis in axes)
    if channels > MOST_CHANNELS:
        raise refused(
            node, f"its rows have {channels} elements; at most {MOST_CHANNELS} are supported"
        )
    if axes == [rank - 1]:
        in_rows = in_one_slice(importer, node, rows(importer, node, value))
        importer.alias(node, make(in_rows), value.shape)
        return
    index = index_of(importer, value)
    order = [axis for axis in range(rank) if axis not in axes] + axes
    lead = (1, -1) if importer.batched(value.shape) else (-1,)
    lined = index.transpose(order).reshape(*lead, channels)
    in_rows = rearranged(importer, node, [value], lined, turned=True)
    result = make(in_one_slice(importer, node, in_rows))
    if axes == list(range(axes[0], rank)):
        importer.alias(node, result, value.shape)
        return
    numbers = index_of(importer, result).reshape([index.shape[axis] for axis in order])
    back = numbers.transpose([order.index(axis) for axis in range(rank)])
    rearranged(importer, node, [result], back, output=node.output[0])


def softmax(importer: Importer, node: GraphNode) -> None:
    """Softmax."""
    axes = _softmax_axes(importer, node, len(importer.value(node).shape))

    def make(value: Value) -> Value:
        return importer.apply(node, Normalize, value, last=False, operation="softmax")

    _along(importer, node, axes, make)


def _weighted(
    importer: Importer, node: GraphNode, value: Value, scale: Reals, shift: Reals
) -> Value:
    """Multiply each channel by its scale and add its shift."""
    if (scale == 1).all() and not shift.any():
        return value
    if value.size.channels > MAX_VL:
        # A depthwise layer has no vectors of this length.
        for kind, constant in (("multiply", scale), ("add", shift)):
            factors = importer.constant_map(node, constant, value)
            value = combine(importer, node, kind, value, factors, last=False)
        return value
    layer = Depthwise(
        name=importer.unique(f"{node.name}_scale"),
        source=value.layer,
        kernel=Size2(1, 1),
        fraction=0,
        relu=False,
    )
    importer.real[layer.name] = Weights(weights=scale.reshape(-1, 1, 1), bias=shift)
    return importer.add(node, layer, value.size, value.shape, last=False, turned=True)


def _normalized(importer: Importer, node: GraphNode, value: Value, operation: str) -> Value:
    """Rows minus their means (for ``layer``) and divided by their deviations."""
    epsilon = float(attribute(node, "epsilon", 1e-5))
    if not 0 <= epsilon <= 1:
        raise refused(node, f"epsilon must be from 0 to 1, not {epsilon}")
    result = importer.apply(
        node, Normalize, value, last=False, operation=operation, fraction=0, epsilon=0
    )
    importer.epsilons[result.layer] = epsilon
    return result


def group_normalization(importer: Importer, node: GraphNode) -> None:
    """GroupNormalization, and InstanceNormalization, whose groups are single channels.

    The channels of a group with all their pixels form a row.
    """
    value = straight(importer, node, importer.value(node))
    if len(value.shape) < 3:
        raise refused(node, f"its input must have 3 dimensions or more, not {len(value.shape)}")
    importer.check_images(node, value)
    channels, pixels = value.shape[1], prod(value.shape[2:])
    alone = node.op_type == "InstanceNormalization"
    groups = channels if alone else int(attribute(node, "num_groups", 0))
    if groups < 1 or channels % groups:
        raise refused(node, f"num_groups must divide the {channels} channels, not be {groups}")
    if channels // groups * pixels > MOST_CHANNELS:
        raise refused(
            node,
            f"its groups have {channels // groups * pixels} elements; at most {MOST_CHANNELS} are "
            "supported",
        )
    lined = index_of(importer, value).reshape(1, groups, -1)
    by_groups = rearranged(importer, node, [value], lined, turned=True)
    result = _normalized(importer, node, in_one_slice(importer, node, by_groups), "layer")
    for number, kind in ((1, "multiply"), (2, "add")):
        parameters = importer.reals(node, number)
        if parameters.size not in (groups, channels):
            raise refused(
                node, f"input {number} must have {channels} elements, not {parameters.size}"
            )
        by_group = parameters.reshape(groups, -1)
        if (by_group == by_group[:1, :1]).all() and by_group[0, 0] == (
            1 if kind == "multiply" else 0
        ):
            continue
        spread = np.repeat(by_group, lined.shape[-1] // by_group.shape[1], axis=1)
        constant = importer.constant_map(node, spread, result)
        result = combine(importer, node, kind, result, constant, last=False)
    importer.alias(node, result, value.shape)


def normalization(operation: str) -> Callable[[Importer, GraphNode], None]:
    """The function of LayerNormalization (``layer``) or RMSNormalization (``rms``)."""

    def operator(importer: Importer, node: GraphNode) -> None:
        input_shape = importer.value(node).shape
        first = axis_of(node, -1, len(input_shape))
        parameters = [importer.reals(node, 1), np.zeros(1)]
        if operation == "layer" and importer.constant(node, 2) is not None:
            parameters[1] = importer.reals(node, 2)
        shape = input_shape[first:]
        try:
            scale, shift = (np.broadcast_to(values, shape).ravel() for values in parameters)
        except ValueError:
            raise refused(node, f"scale and bias do not fit rows of shape {list(shape)}") from None

        def make(value: Value) -> Value:
            result = _normalized(importer, node, value, operation)
            return _weighted(importer, node, result, scale, shift)

        _along(importer, node, list(range(first, len(input_shape))), make)

    return operator
