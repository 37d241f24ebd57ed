"""Operators that become convolutions and fully connected layers."""

import numpy as np

from microkernels.networks.network import INPUT, Conv, Dense, Depthwise, MapSize
from microkernels.networks.parameters import Reals, Weights
from microkernels.networks.sizes import Size2
from microkernels.onnx_models.importer import Importer, Value, index_of, rearranged
from microkernels.onnx_models.read import GraphNode, attribute

from .arrange import MapWindow, gathered, map_value, positions, window

__all__ = [
    "MAP_AXES",
    "activate",
    "batch_normalization",
    "connect",
    "conv",
    "conv_bias",
    "conv_by_moves",
    "pixel_conv",
    "scale_channels",
    "spread_weights",
]

#: Weights of a layer that grouped ones may spread to.
_MOST_WEIGHTS = 1 << 26
#: Channels that fill the slices of a map.
_FEW_CHANNELS = 16
#: Pixels across or down of a depthwise convolution that has a kernel of its own.
_MOST_DEPTHWISE = 8
#: Axes of a map.
MAP_AXES = 2


def _check_filters(node: GraphNode, value: Value, weights: Reals, groups: int) -> None:
    """Refuse weights of a convolution that do not fit its input.

    Raises:
        ModelError: another shape, or one that the groups do not divide.
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
            f"{groups} group(s) do not fit {channels} channels and weights of shape "
            f"{list(weights.shape)}"
        )
    declared = attribute(node, "kernel_shape", None)
    if declared is not None and tuple(declared) != weights.shape[2:]:
        raise node.refused(
            f"kernel_shape {list(declared)} does not fit weights of shape {list(weights.shape)}"
        )


def conv(importer: Importer, node: GraphNode) -> None:
    """Conv, with strides, pads, dilations and groups."""
    value = map_value(importer, node)
    weights = importer.weights(node, 1)
    groups = int(attribute(node, "group", 1))
    _check_filters(node, value, weights, groups)
    rank, filters, channels = len(value.shape) - 2, len(weights), value.shape[1]
    if rank > MAP_AXES:
        conv_by_moves(importer, node, value, weights, groups)
        return
    places = window(node, value, weights.shape[2:])
    down, across = places.kernel.height, places.kernel.width
    if filters * channels * down * across > _MOST_WEIGHTS:
        raise node.refused(
            f"{filters} x {channels} x {down} x {across} weights, with those of groups and "
            f"dilation that are 0, are more than {_MOST_WEIGHTS:,}"
        )
    bias = conv_bias(importer, node, filters)
    size = places.output(value.size, filters)
    shape = (value.shape[0], filters, *(size.height, size.width)[2 - rank :])
    if groups == channels == filters and channels > 1 and max(down, across) <= _MOST_DEPTHWISE:
        one = Depthwise(
            name=importer.unique(node.name),
            source=value.layer,
            kernel=places.kernel,
            stride=places.stride,
            padding=places.pads,
            fraction=0,
            relu=False,
        )
        # The filter of each channel, as that of a convolution of one channel.
        samples = spread_weights(weights, 1, places.dilation)[..., 0]
        importer.real[one.name] = Weights(weights=samples, bias=bias)
        importer.add(node, one, size, shape)
        return
    full = spread_weights(weights, groups, places.dilation)
    if (
        down == value.size.height == 1
        and channels < _FEW_CHANNELS <= channels * places.stride.width
    ):
        _conv_of_samples(importer, node, value, places, Weights(weights=full, bias=bias), shape)
        return
    layer = Conv(
        name=importer.unique(node.name),
        source=value.layer,
        filters=filters,
        kernel=places.kernel,
        stride=places.stride,
        padding=places.pads,
        fraction=0,
        relu=False,
    )
    importer.real[layer.name] = Weights(weights=full, bias=bias)
    importer.add(node, layer, size, shape)


def _conv_of_samples(
    importer: Importer,
    node: GraphNode,
    value: Value,
    places: MapWindow,
    real: Weights,
    shape: tuple[int, ...],
) -> None:
    """A convolution along one axis, of few channels, in steps of many samples, such as a Fourier
    transform: the samples of a step become channels.

    Parameters:
        shape: of the output.
    """
    filters, _, across, channels = real.weights.shape
    step = places.stride.width
    width = shape[-1]
    taps = -(-across // step)
    index = index_of(importer, value).reshape(channels, -1)
    before = (width - 1 + taps) * step
    padded = np.zeros((channels, max(before, places.pads.left + index.shape[1])), np.int64)
    padded[:, places.pads.left : places.pads.left + index.shape[1]] = index
    # Channels x steps x samples of a step, as samples x channels of each step.
    steps = padded[:, :before].reshape(channels, -1, step).transpose(2, 0, 1)
    lined = steps.reshape(1, step * channels, width - 1 + taps)
    moved = rearranged(importer, node, [value], lined)
    taps_of = np.zeros((filters, 1, taps * step, channels))
    taps_of[:, :, :across] = real.weights
    layer = Conv(
        name=importer.unique(node.name),
        source=moved.layer,
        filters=filters,
        kernel=Size2(taps, 1),
        fraction=0,
        relu=False,
    )
    importer.real[layer.name] = Weights(
        weights=taps_of.reshape(filters, 1, taps, step * channels), bias=real.bias
    )
    importer.add(node, layer, MapSize(width, 1, filters), shape)


def conv_bias(importer: Importer, node: GraphNode, filters: int) -> Reals:
    """The bias of a convolution; zeros, if it has none.

    Raises:
        ModelError: it does not fit the filters.
    """
    bias = importer.reals(node, 2) if importer.constant(node, 2) is not None else np.zeros(filters)
    if bias.shape != (filters,):
        raise node.refused(f"a bias of shape {list(bias.shape)} does not fit {filters} filters")
    return bias


def conv_by_moves(
    importer: Importer, node: GraphNode, value: Value, weights: Reals, groups: int
) -> None:
    """A convolution along three axes or more: pixels of the windows are gathered as channels."""
    places = positions(node, value, weights.shape[2:])
    index = gathered(importer, node, value, places)
    channels, *outputs, pixels = index.shape
    lined = index.reshape(channels, -1, pixels).swapaxes(1, 2)
    moved = rearranged(importer, node, [value], lined.reshape(1, channels * pixels, lined.shape[2]))
    filters = len(weights)
    full = spread_weights(weights.reshape(filters, -1, pixels), groups, Size2(1, 1))
    # Filters x 1 x pixels x channels, as channels x pixels.
    flat = full.transpose(0, 1, 3, 2).reshape(filters, channels * pixels)
    layer, size = pixel_conv(importer, node, moved, flat, conv_bias(importer, node, filters))
    importer.add(node, layer, size, (importer.batch, filters, *outputs))


def pixel_conv(
    importer: Importer, node: GraphNode, value: Value, weights: Reals, bias: Reals
) -> tuple[Conv, MapSize]:
    """A convolution of single pixels, not yet added to the network, and the size of its output.

    Parameters:
        weights: filters x channels. bias: of each filter.
    """
    layer = Conv(
        name=importer.unique(node.name),
        source=value.layer,
        filters=len(weights),
        kernel=1,
        fraction=0,
        relu=False,
    )
    importer.real[layer.name] = Weights(weights=weights[:, None, None, :], bias=bias)
    return layer, value.size._replace(channels=len(weights))


def spread_weights(weights: Reals, groups: int, dilation: Size2) -> Reals:
    """Weights of groups and with gaps (filters x channels of a group x pixels along one or two
    axes) as filters x down x across x channels, with zeros between."""
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


def connect(importer: Importer, node: GraphNode, weights: Reals, *, last: bool = True) -> Value:
    """A fully connected layer of outputs x inputs weights.

    Parameters:
        last: it makes the node's output.
    """
    value = importer.value(node)
    outputs, inputs = weights.shape
    size = value.size
    if inputs != size.elements or len(value.shape) != 2:
        raise node.refused(
            f"weights for {inputs} inputs do not fit an input of shape {list(value.shape)}"
        )
    name = importer.unique(node.name)
    if value.layer == INPUT:
        # The kernel of fully connected layers takes the outputs of layers alone.
        layer: Conv | Dense = Conv(
            name=name,
            source=value.layer,
            filters=outputs,
            kernel=Size2(size.width, size.height),
            fraction=0,
            relu=False,
        )
        weights = weights.reshape(outputs, size.channels, size.height, size.width)
        weights = weights.transpose(0, 2, 3, 1)
    else:
        layer = Dense(name=name, source=value.layer, outputs=outputs, fraction=0, relu=False)
    importer.real[name] = Weights(weights=weights, bias=np.zeros(outputs))
    size, shape = MapSize(1, 1, outputs), (value.shape[0], outputs)
    return importer.add(node, layer, size, shape, last=last)


def scale_channels(
    importer: Importer, node: GraphNode, value: Value, scale: Reals, shift: Reals
) -> Value:
    """Each channel of ``value`` times ``scale`` plus ``shift``, one number of each a channel, or
    one for all: in the weights of the layer before if nothing else reads it, else in a layer of
    its own."""
    before = importer.layers.get(value.layer)
    channels = value.size.channels
    if value.alone and value.layer in importer.real and before is not None and before.with_relu():
        real = importer.real[before.name]
        if scale.size == 1 or len(real.bias) == scale.size:
            rows = scale.reshape(-1, *(1,) * (real.weights.ndim - 1))
            # Large weights are not copied in vain.
            weights = real.weights if (scale == 1).all() else real.weights * rows
            bias = real.bias * scale.ravel() + shift.ravel()
            importer.real[before.name] = Weights(weights=weights, bias=bias)
            return value
    factors, shifts = (np.broadcast_to(each.ravel(), (channels,)).copy() for each in (scale, shift))
    layer, size = pixel_conv(importer, node, value, np.diag(factors), shifts)
    return importer.add(node, layer, size, value.shape, last=False, turned=value.turned)


def batch_normalization(importer: Importer, node: GraphNode) -> None:
    """BatchNormalization with the statistics of the training."""
    value = map_value(importer, node)
    if attribute(node, "training_mode", 0):
        raise node.refused("training_mode must be 0: export the model for inference")
    scale, shift, mean, variance = (importer.reals(node, number) for number in range(1, 5))
    channels = value.size.channels
    if any(values.shape != (channels,) for values in (scale, shift, mean, variance)):
        raise node.refused(f"scale, bias, mean and variance must have {channels} values each")
    deviation = np.sqrt(variance + float(attribute(node, "epsilon", 1e-5)))
    if not (np.isfinite(deviation).all() and (deviation > 0).all()):
        raise node.refused("variances must not be negative")
    factor = scale / deviation
    result = scale_channels(importer, node, value, factor, shift - mean * factor)
    importer.alias(node, result, value.shape)


def activate(importer: Importer, node: GraphNode) -> bool:
    """Take ReLU into the layer before, if nothing else reads that; whether it was possible."""
    value = importer.held(node)
    before = importer.layers.get(value.layer)
    limited = before.with_relu() if before is not None and value.alone else None
    if limited is None:
        return False
    importer.layers[value.layer] = limited
    importer.alias(node, value, value.shape)
    return True
