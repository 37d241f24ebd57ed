"""Operators that become convolutions and fully connected layers.

A transposed convolution inserts zeros between the pixels, then convolves.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from microkernels.common.fixed_point import Reals
from microkernels.networks.maps import Pads, Size2
from microkernels.networks.network import Conv, Dense, Depthwise, ElementWise, MapSize
from microkernels.networks.parameters import Weights
from microkernels.onnx_models.model import Value
from microkernels.onnx_models.node import GraphNode
from support.errors import counted

from .arrange import (
    Index,
    Positions,
    gathered,
    index_of,
    map_value,
    numbers,
    positions,
    rearranged,
    straight,
)

#: Maximum weights of a layer.
_MOST_WEIGHTS = 1 << 26
#: Channels that fill the slices of a map.
_FEW_CHANNELS = 16
#: Maximum pixels of a depthwise convolution's window, whose weights are in the scratchpad.
_MOST_TAPS = 40
#: Maximum elements of an image with zeros between its pixels, or around if they are most of it.
_MOST_SPREAD = 1 << 24
#: Number of axes of a map.
_MAP_AXES = 2


def _check_filters(node: GraphNode, value: Value, weights: Reals, groups: int) -> None:
    """Refuse weights of a convolution that don't fit its input.

    Raises:
        ModelError: the shape is wrong, or not divisible by the groups.
    """
    rank = len(value.shape) - 2
    if rank < 1 or weights.ndim != rank + 2:
        raise node.refused(
            f"weights of shape {list(weights.shape)} do not fit an input of shape "
            f"{list(value.shape)}"
        )
    filters, inner = weights.shape[:2]
    channels = value.shape[1]
    if groups < 1 or filters % groups or inner * groups != channels:
        raise node.refused(
            f"group={groups} does not fit {counted(channels, 'channel')} and weights of shape "
            f"{list(weights.shape)}"
        )
    declared = node.attribute("kernel_shape", None)
    if declared is not None and tuple(declared) != weights.shape[2:]:
        raise node.refused(
            f"kernel_shape {list(declared)} does not fit weights of shape {list(weights.shape)}"
        )


def _check_padding(node: GraphNode, value: Value, pads: Pads) -> None:
    """Refuse padding that is most of a large map.

    Raises:
        ModelError: it is.
    """
    size = value.size
    padded = (size.width + pads.left + pads.right) * (size.height + pads.top + pads.bottom)
    elements = padded * size.channels
    if elements > max(_MOST_SPREAD, 4 * size.elements):
        raise node.refused(
            f"with its padding the map has {elements:,} elements, more than {_MOST_SPREAD:,} and "
            f"4 times those of the map, {size.elements:,}"
        )


def conv(node: GraphNode) -> Value:
    """Conv, with strides, pads, dilations and groups."""
    value = map_value(node)
    weights = node.weights(1)
    groups = int(node.attribute("group", 1))
    _check_filters(node, value, weights, groups)
    rank, filters, channels = len(value.shape) - 2, len(weights), value.shape[1]
    if rank > _MAP_AXES:
        return _conv_by_moves(node, value, weights, groups)
    places = positions(node, value, weights.shape[2:])
    down = places.window.height
    if weights.size > _MOST_WEIGHTS:
        raise node.refused(f"{weights.size:,} weights are more than {_MOST_WEIGHTS:,}")
    _check_padding(node, value, places.pads)
    bias = _conv_bias(node, filters)
    shape = places.shape(value, filters)
    if groups == channels == filters and channels > 1:
        # Treat the filter of each channel like that of a convolution with one channel.
        real = Weights(weights=_by_rows(weights)[..., 0], bias=bias)
        return _depthwise(node, value, real, shape, places)
    if (
        down == value.size.height == 1
        and places.pads.top == places.pads.bottom == 0
        and channels < _FEW_CHANNELS <= channels * places.stride.width
        and filters * channels * places.window.width <= _MOST_WEIGHTS
    ):
        full = _spread_weights(weights, groups, places.dilation)
        real = Weights(weights=full, bias=bias)
        return _conv_of_samples(node, value, places, real, shape)
    real = Weights(weights=_by_rows(weights), bias=bias)
    steps = {"stride": places.stride, "padding": places.pads, "dilation": places.dilation}
    return _convolve(node, value, real, shape, groups, **steps)


def _depthwise(
    node: GraphNode, value: Value, real: Weights, shape: tuple[int, ...], places: Positions
) -> Value:
    """A depthwise convolution; a large window is the sum of parts of it.

    Parameters:
        real: its weights are channels x down x across.
        shape: of the output. places: of the windows.
    """
    _, down, across = real.weights.shape
    columns = -(-across // -(-across // _MOST_TAPS))
    rows = max(1, _MOST_TAPS // columns)
    rows = -(-down // -(-down // rows))
    starts = [(top, left) for top in range(0, down, rows) for left in range(0, across, columns)]
    total: Value | None = None
    for top, left in starts:
        weights = real.weights[:, top : top + rows, left : left + columns]
        (gap, gap_down), pads = places.dilation, places.pads
        above, before = top * gap_down, left * gap
        kernel = Size2(*weights.shape[:0:-1])
        part = node.weigh(
            Depthwise,
            value,
            Weights(weights=weights, bias=real.bias if total is None else 0 * real.bias),
            shape,
            kernel=kernel,
            stride=places.stride,
            dilation=places.dilation,
            padding=Pads(
                left=pads.left - before,
                top=pads.top - above,
                right=pads.right - (across - left - kernel.width) * gap,
                bottom=pads.bottom - (down - top - kernel.height) * gap_down,
            ),
        )
        if total is not None:
            part = node.apply(ElementWise, total, function="add", other=part.layer)
        total = part
    assert total is not None
    return total


def _by_rows(weights: Reals) -> Reals:
    """Weights of filters x channels x pixels along one or two axes as filters x down x across x
    channels."""
    filters, inner, *kernel = weights.shape
    rows, columns = [1] * (2 - len(kernel)) + kernel
    return weights.reshape(filters, inner, rows, columns).transpose(0, 2, 3, 1)


def _convolve(
    node: GraphNode,
    value: Value,
    real: Weights,
    shape: tuple[int, ...],
    groups: int = 1,
    **attributes: Any,
) -> Value:
    """A convolution.

    Parameters:
        real: its weights are filters x down x across x channels of a group.
        shape: of the output. attributes: other attributes of the layer.
    """
    filters, down, across, inner = real.weights.shape
    attributes["inner"] = inner if groups > 1 else None
    kernel = Size2(across, down)
    return node.weigh(Conv, value, real, shape, filters=filters, kernel=kernel, **attributes)


def _conv_of_samples(
    node: GraphNode, value: Value, places: Positions, real: Weights, shape: tuple[int, ...]
) -> Value:
    """A convolution along one axis with few channels and a large stride, such as a Fourier
    transform: the samples of a step become channels.

    Parameters:
        shape: of the output.
    """
    filters, _, across, channels = real.weights.shape
    step = places.stride.width
    width = shape[-1]
    taps = -(-across // step)
    index = index_of(node, value).reshape(channels, -1)
    before = (width - 1 + taps) * step
    padded = np.zeros((channels, max(before, places.pads.left + index.shape[1])), np.int64)
    padded[:, places.pads.left : places.pads.left + index.shape[1]] = index
    # Reorder channels x steps x samples of a step to samples x channels for each step.
    steps = padded[:, :before].reshape(channels, -1, step).transpose(2, 0, 1)
    lined = steps.reshape(1, step * channels, width - 1 + taps)
    moved = rearranged(node, [value], lined)
    taps_of = np.zeros((filters, 1, taps * step, channels))
    taps_of[:, :, :across] = real.weights
    by_steps = taps_of.reshape(filters, 1, taps, step * channels)
    return _convolve(node, moved, Weights(weights=by_steps, bias=real.bias), shape)


def _conv_bias(node: GraphNode, filters: int) -> Reals:
    """The bias of a convolution; zeros if it has none.

    Raises:
        ModelError: it does not fit the filters.
    """
    bias = node.reals(2) if node.constant(2) is not None else np.zeros(filters)
    if bias.shape != (filters,):
        raise node.refused(f"a bias of shape {list(bias.shape)} does not fit {filters} filters")
    return bias


def _conv_by_moves(node: GraphNode, value: Value, weights: Reals, groups: int) -> Value:
    """A convolution along three or more axes: pixels of windows are gathered as channels."""
    places = positions(node, value, weights.shape[2:])
    index = gathered(node, value, places)
    channels, *outputs, pixels = index.shape
    lined = index.reshape(channels, -1, pixels).swapaxes(1, 2)
    moved = rearranged(node, [value], lined.reshape(1, channels * pixels, lined.shape[2]))
    filters = len(weights)
    full = _spread_weights(weights.reshape(filters, -1, pixels), groups, Size2(1, 1))
    # Reorder filters x 1 x pixels x channels to channels x pixels.
    flat = full.transpose(0, 1, 3, 2).reshape(filters, channels * pixels)
    shape = (node.batch, filters, *outputs)
    return pixel_conv(node, moved, flat, _conv_bias(node, filters), shape)


def _spaced(
    node: GraphNode,
    index: Index,
    strides: Sequence[int],
    extents: Sequence[int],
    pads: Sequence[int],
    added: Sequence[int],
) -> Index:
    """Numbers of elements with a stride between them, and with the padding that a plain convolution
    reads around them; 0 for no element.

    Parameters:
        index: channels, then pixels along each axis.
        extents: pixels of a filter. pads: of the output, as in ONNX. added: after its end.
    """
    rank, sizes = len(strides), index.shape[1:]
    for axis in range(rank):
        length = (sizes[axis] - 1) * strides[axis] + 1
        wide = np.zeros((*index.shape[: axis + 1], length, *index.shape[axis + 2 :]), np.int64)
        wide[(slice(None),) * (axis + 1) + (slice(None, None, strides[axis]),)] = index
        before = extents[axis] - 1 - pads[axis]
        after = extents[axis] - 1 - pads[rank + axis] + added[axis]
        around = [(0, 0)] * wide.ndim
        around[axis + 1] = (max(before, 0), max(after, 0))
        wide = np.pad(wide, around)
        cut = slice(max(-before, 0), wide.shape[axis + 1] - max(-after, 0))
        index = wide[(slice(None),) * (axis + 1) + (cut,)]
        if index.shape[axis + 1] < extents[axis]:
            raise node.refused(f"pads {pads} remove all of its output")
    return index


def _pads(
    node: GraphNode,
    sizes: Sequence[int],
    strides: Sequence[int],
    extents: Sequence[int],
    added: Sequence[int],
) -> list[int]:
    """Pixels to cut off the output at the start of each axis, then at the end of each."""
    rank = len(sizes)
    pads = numbers(node, "pads", 2 * rank, least=0)
    auto = node.attribute("auto_pad", "NOTSET")
    declared = node.attribute("output_shape", None)
    full = [
        step * (size - 1) + more + extent
        for step, size, more, extent in zip(strides, sizes, added, extents, strict=True)
    ]
    if declared is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        declared = [min(full[axis], strides[axis] * sizes[axis]) for axis in range(rank)]
    for axis in range(rank if declared is not None else 0):
        total = full[axis] - int(declared[-rank:][axis])
        # Like onnxruntime, missing pixels are added at the end.
        cut = max(total, 0)
        first = cut // 2 if auto == "SAME_UPPER" else cut - cut // 2
        pads[axis], pads[rank + axis] = first, total - first
    return pads


def conv_transpose(node: GraphNode) -> Value:
    """ConvTranspose, with strides, pads, dilations and groups."""
    value = map_value(node)
    weights = node.reals(1)
    rank = len(value.shape) - 2
    groups = int(node.attribute("group", 1))
    channels = value.size.channels
    if (
        rank < 1
        or weights.ndim != rank + 2
        or groups < 1
        or channels % groups
        or len(weights) != channels
    ):
        raise node.refused(
            f"weights of shape {list(weights.shape)} with group={groups} do not fit an input of "
            f"shape {list(value.shape)}"
        )
    kernel = weights.shape[2:]
    strides, dilations = (numbers(node, name, rank, least=1) for name in ("strides", "dilations"))
    added = numbers(node, "output_padding", rank, least=0)
    if any(pixels >= max(ends) for pixels, *ends in zip(added, strides, dilations, strict=True)):
        raise node.refused(
            f"output_padding {added} must be less than strides {strides} or dilations {dilations}"
        )
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = value.shape[2:]
    pads = _pads(node, sizes, strides, extents, added)
    spread = prod((s - 1) * t + e for s, t, e in zip(sizes, strides, extents, strict=True))
    if spread * max(channels, weights.shape[1] * groups) > _MOST_SPREAD:
        raise node.refused(
            f"{spread:,} pixels of each channel; {_MOST_SPREAD:,} elements in all are allowed"
        )
    index = _spaced(node, index_of(node, value)[0], strides, extents, pads, added)
    spaced = rearranged(node, [value], index[np.newaxis])
    inner = channels // groups
    turned = weights[(slice(None), slice(None), *[slice(None, None, -1)] * rank)]
    filters = weights.shape[1] * groups
    grouped = turned.reshape(groups, inner, weights.shape[1], *kernel).swapaxes(1, 2)
    grouped = grouped.reshape(filters, inner, *kernel)
    if rank > _MAP_AXES:
        from onnx import helper

        plain = helper.make_node("Conv", node.inputs, node.outputs, node.name, dilations=dilations)
        return _conv_by_moves(GraphNode(node.importer, plain), spaced, grouped, groups)
    gaps = Size2(dilations[-1], dilations[0] if rank == 2 else 1)
    bias = _conv_bias(node, filters)
    real = Weights(weights=_by_rows(grouped), bias=bias)
    shape = Positions.plain(extents).shape(spaced, filters)
    return _convolve(node, spaced, real, shape, groups, dilation=gaps)


def pixel_conv(
    node: GraphNode,
    value: Value,
    weights: Reals,
    bias: Reals,
    shape: tuple[int, ...],
    *,
    turned: bool = False,
) -> Value:
    """A convolution with single pixels.

    Parameters:
        weights: filters x channels. bias: by filter.
        shape: of the tensor.
        turned: as for :meth:`microkernels.onnx_models.node.GraphNode.add`.
    """
    filters = len(weights)
    return node.weigh(
        Conv,
        value,
        Weights(weights=weights[:, None, None, :], bias=bias),
        shape,
        size=value.size._replace(channels=filters),
        turned=turned,
        filters=filters,
        kernel=1,
    )


def _spread_weights(weights: Reals, groups: int, dilation: Size2) -> Reals:
    """Weights with groups and gaps (filters x channels of a group x pixels along one or two axes)
    as filters x down x across x channels, filled with zeros."""
    filters, inner, *kernel = weights.shape
    rows, columns = [1] * (2 - len(kernel)) + kernel
    down, across = (rows - 1) * dilation.height + 1, (columns - 1) * dilation.width + 1
    kernels = weights.reshape(filters, inner, rows, columns)
    if groups == 1 and dilation == Size2(1, 1):
        return kernels.transpose(0, 2, 3, 1)
    full = np.zeros((filters, down, across, inner * groups))
    taps = full[:, :: dilation.height, :: dilation.width]
    of_group = filters // groups
    for group in range(groups):
        part = slice(group * of_group, (group + 1) * of_group)
        taps[part, :, :, group * inner : (group + 1) * inner] = kernels[part].transpose(0, 2, 3, 1)
    return full


def connect(node: GraphNode, weights: Reals) -> Value:
    """A fully connected layer with outputs x inputs weights."""
    value = straight(node, node.value())
    outputs, inputs = weights.shape
    size = value.size
    if inputs != size.elements or len(value.shape) != 2:
        raise node.refused(
            f"weights for {inputs} inputs do not fit an input of shape {list(value.shape)}"
        )
    real = Weights(weights=weights, bias=np.zeros(outputs))
    shape, size = (value.shape[0], outputs), MapSize(1, 1, outputs)
    return node.weigh(Dense, value, real, shape, size=size, outputs=outputs)


def scale_channels(node: GraphNode, value: Value, scale: Reals, shift: Reals) -> Value:
    """Each channel of ``value`` times ``scale`` plus ``shift``, each with one number per channel or
    one for all: in the weights of the previous layer if nothing else reads it, otherwise in a layer
    of its own."""
    before = node.importer.layers.get(value.layer)
    channels = value.size.channels
    if (
        value.layer not in node.importer.shared
        and value.layer in node.importer.real
        and before is not None
        and before.with_relu()
    ):
        real = node.importer.real[before.name]
        if scale.size == 1 or len(real.bias) == scale.size:
            rows = scale.reshape(-1, *(1,) * (real.weights.ndim - 1))
            # Avoid needless copies of large weights.
            weights = real.weights if (scale == 1).all() else real.weights * rows
            bias = real.bias * scale.ravel() + shift.ravel()
            node.importer.real[before.name] = Weights(weights=weights, bias=bias)
            return value
    factors, shifts = (np.broadcast_to(each.ravel(), (channels,)).copy() for each in (scale, shift))
    return pixel_conv(node, value, np.diag(factors), shifts, value.shape, turned=value.turned)


def batch_normalization(node: GraphNode) -> Value:
    """BatchNormalization with the statistics from training."""
    value = map_value(node)
    if node.attribute("training_mode", 0):
        raise node.refused("training_mode must be 0: export the model for inference")
    scale, shift, mean, variance = (node.reals(number) for number in range(1, 5))
    channels = value.size.channels
    if any(values.shape != (channels,) for values in (scale, shift, mean, variance)):
        raise node.refused(f"scale, bias, mean and variance must have {channels} values each")
    deviation = np.sqrt(variance + float(node.attribute("epsilon", 1e-5)))
    if not (np.isfinite(deviation).all() and (deviation > 0).all()):
        raise node.refused("variances must not be negative")
    factor = scale / deviation
    return scale_channels(node, value, factor, shift - mean * factor)


def activate(node: GraphNode) -> Value | None:
    """The first input with ReLU merged into the layer before, if nothing else reads that."""
    value, importer = node.value(), node.importer
    before = importer.layers.get(value.layer)
    limited = None if before is None or value.layer in importer.shared else before.with_relu()
    if limited is None:
        return None
    importer.layers[value.layer] = limited
    return value
