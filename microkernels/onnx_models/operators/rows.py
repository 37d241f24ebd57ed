"""Operators that work on rows: softmax, normalisations."""

from collections.abc import Callable
from math import prod

import numpy as np

from isa.table import MAX_VL
from microkernels.networks.network import Depthwise, Normalize
from microkernels.networks.parameters import Reals, Weights
from microkernels.networks.sizes import Size2
from microkernels.nn.rows_shape import MOST_CHANNELS
from microkernels.onnx_models.importer import Importer, Value, index_of, rearranged, rows
from microkernels.onnx_models.read import GraphNode, attribute

from .elements import combine
from .products import in_one_slice

__all__ = ["group_normalization", "normalization", "softmax"]

#: From here on softmax is of one axis, before of all from it on.
_ONE_AXIS_OPSET = 13


def _along(
    importer: Importer, node: GraphNode, axes: list[int], make: Callable[[Value], Value]
) -> None:
    """Compute a function of rows whose elements are along these axes."""
    value = importer.held(node)
    rank = len(value.shape)
    if importer.batched(value.shape) and 0 in axes:
        raise node.mixing(f"its rows lie along the batch of {importer.batch}")
    channels = prod(value.shape[axis] for axis in axes)
    if channels > MOST_CHANNELS:
        raise node.refused(
            f"its rows have {channels} elements; at most {MOST_CHANNELS} are supported"
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
    rearranged(importer, node, [result], back, output=node.outputs[0])


def _axis(node: GraphNode, default: int, rank: int) -> int:
    axis = int(attribute(node, "axis", default))
    if not -rank <= axis < rank:
        raise node.refused(f"axis must be from {-rank} to {rank - 1}, not {axis}")
    return axis % rank


def softmax(importer: Importer, node: GraphNode) -> None:
    """Softmax along an axis; of old models, of all axes from one on."""
    rank = len(importer.held(node).shape)
    one = importer.graph.opset >= _ONE_AXIS_OPSET
    first = _axis(node, -1 if one else 1, rank)

    def make(value: Value) -> Value:
        layer = Normalize(name=importer.unique(node.name), source=value.layer, operation="softmax")
        return importer.add(node, layer, value.size, value.shape, last=False, turned=True)

    _along(importer, node, [first] if one else list(range(first, rank)), make)


def _weighted(
    importer: Importer, node: GraphNode, value: Value, scale: Reals, shift: Reals
) -> Value:
    """Each channel times its scale plus its shift."""
    if (scale == 1).all() and not shift.any():
        return value
    if value.size.channels > MAX_VL:
        # A slice of this length is no vector of a depthwise layer.
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
    """Rows less their means, for ``layer``, and by their deviations."""
    epsilon = float(attribute(node, "epsilon", 1e-5))
    if not 0 <= epsilon <= 1:
        raise node.refused(f"epsilon must be from 0 to 1, not {epsilon}")
    layer = Normalize(
        name=importer.unique(node.name),
        source=value.layer,
        operation=operation,
        fraction=0,
        epsilon=0,
    )
    importer.epsilons[layer.name] = epsilon
    return importer.add(node, layer, value.size, value.shape, last=False, turned=True)


def group_normalization(importer: Importer, node: GraphNode) -> None:
    """GroupNormalization; InstanceNormalization, whose groups are the channels.

    An image's channels of a group, with all their pixels, are a row.
    """
    value = importer.value(node)
    if len(value.shape) < 3:
        raise node.refused(f"its input must have 3 dimensions or more, not {len(value.shape)}")
    importer.check_images(node, value)
    channels, pixels = value.shape[1], prod(value.shape[2:])
    alone = node.op == "InstanceNormalization"
    groups = channels if alone else int(attribute(node, "num_groups", 0))
    if groups < 1 or channels % groups:
        raise node.refused(f"num_groups must divide the {channels} channels, not be {groups}")
    if channels // groups * pixels > MOST_CHANNELS:
        raise node.refused(
            f"its groups have {channels // groups * pixels} elements; at most {MOST_CHANNELS} are "
            "supported"
        )
    lined = index_of(importer, value).reshape(1, groups, -1)
    by_groups = rearranged(importer, node, [value], lined, turned=True)
    result = _normalized(importer, node, in_one_slice(importer, node, by_groups), "layer")
    for number, kind in ((1, "multiply"), (2, "add")):
        parameters = importer.reals(node, number)
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
        constant = importer.constant_map(node, spread, result)
        result = combine(importer, node, kind, result, constant, last=False)
    importer.alias(node, result, value.shape)


def normalization(operation: str) -> Callable[[Importer, GraphNode], None]:
    """The function of LayerNormalization (``layer``) or RMSNormalization (``rms``)."""

    def operator(importer: Importer, node: GraphNode) -> None:
        input_shape = importer.held(node).shape
        first = _axis(node, -1, len(input_shape))
        parameters = [importer.reals(node, 1), np.zeros(1)]
        if operation == "layer" and importer.constant(node, 2) is not None:
            parameters[1] = importer.reals(node, 2)
        shape = input_shape[first:]
        try:
            scale, shift = (np.broadcast_to(values, shape).ravel() for values in parameters)
        except ValueError:
            raise node.refused(f"scale and bias do not fit rows of shape {list(shape)}") from None

        def make(value: Value) -> Value:
            result = _normalized(importer, node, value, operation)
            return _weighted(importer, node, result, scale, shift)

        _along(importer, node, list(range(first, len(input_shape))), make)

    return operator
