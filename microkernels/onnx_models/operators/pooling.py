"""Operators that become pooling."""

from math import prod

import numpy as np

from microkernels.networks.network import Activation, Layer, Multiply, Pool
from microkernels.networks.pairs import Pads, Pair
from microkernels.onnx_models.curves import Function
from microkernels.onnx_models.errors import ModelError
from microkernels.onnx_models.graph import Node
from microkernels.onnx_models.importer import Importer, Value, attribute
from microkernels.onnx_models.model import Reals

from .arrange import map_value, movement, window_results
from .elements import affine
from .functions import curve_value
from .gather import gathered
from .window import Positions, Window, positions, spatial, window

__all__ = ["average_pool", "global_average_pool", "global_max_pool", "lp_pool", "max_pool", "pad"]


def _add(
    importer: Importer, node: Node, value: Value, found: Window, *, mean: bool, last: bool = True
) -> Value:
    layer = Pool(
        name=importer.unique(node.name),
        source=value.layer,
        window=found.kernel,
        stride=found.stride,
        padding=found.pads,
        mean=mean,
    )
    size = found.output(value.size, value.size.channels)
    rank = len(value.shape) - 2
    shape = (*value.shape[:2], *(size.height, size.width)[2 - rank :])
    return importer.add(node, layer, size, shape, last=last)


def _kernel(node: Node, value: Value) -> tuple[int, ...]:
    rank = len(value.shape) - 2
    kernel = tuple(int(each) for each in attribute(node, "kernel_shape", ()))
    if rank < 1 or len(kernel) != rank or min(kernel) < 1:
        raise node.refused(f"kernel_shape must be {rank} number(s) from 1 on, not {list(kernel)}")
    return kernel


def _on_maps(value: Value, found: Positions) -> bool:
    """Whether pooling of maps has such windows."""
    return len(value.shape) <= 4 and max(found.dilations) == 1


def _by_moves(
    importer: Importer, node: Node, value: Value, found: Positions, *, mean: bool, pads: bool
) -> None:
    """Pooling of windows that were gathered before.

    Parameters:
        pads: pixels around the input count, of a mean.
    """
    index = gathered(importer, node, value, found)
    channels, *outputs, pixels = index.shape
    lined = index.reshape(channels, -1, pixels)
    made = window_results(importer, node, value, lined, mean=mean)
    shape = (importer.batch, channels, *outputs)
    if not mean or pads or (index > 0).all():
        importer.alias(node, made, shape)
        return
    counts = (lined[0] > 0).sum(1)
    factors = importer.constant_map(node, (pixels / counts).reshape(1, 1, -1, 1), made)
    layer = Multiply(
        name=importer.unique(node.name), source=made.layer, other=factors.layer, fraction=0
    )
    scaled = importer.add(node, layer, made.size, made.shape, last=False)
    importer.alias(node, scaled, shape)


def max_pool(importer: Importer, node: Node) -> None:
    """MaxPool, without the indices."""
    value = map_value(importer, node)
    kernel = _kernel(node, value)
    found = positions(node, value, kernel)
    if _on_maps(value, found):
        spatial(node, value)
        _add(importer, node, value, window(node, value, kernel), mean=False)
    else:
        _by_moves(importer, node, value, found, mean=False, pads=False)


def _counted(found: Window, value: Value, pads: Pads) -> Reals:
    """Of each window of a mean the pixels that count; those within ``pads`` do."""
    size = value.size
    inside = np.zeros(
        (
            size.height + found.pads.top + found.pads.bottom,
            size.width + found.pads.left + found.pads.right,
        )
    )
    first = (found.pads.top - pads.top, found.pads.left - pads.left)
    inside[
        first[0] : first[0] + pads.top + size.height + pads.bottom,
        first[1] : first[1] + pads.left + size.width + pads.right,
    ] = 1
    kernel = (found.kernel.down, found.kernel.across)
    views = np.lib.stride_tricks.sliding_window_view(inside, kernel)
    counts: Reals = views[:: found.stride.down, :: found.stride.across].sum((2, 3))
    return counts


def average_pool(importer: Importer, node: Node) -> None:
    """AveragePool; where the divisor differs, a multiplication by constants follows."""
    value = map_value(importer, node)
    kernel = _kernel(node, value)
    along = positions(node, value, kernel)
    if not _on_maps(value, along):
        if attribute(node, "count_include_pad", 0) and attribute(node, "ceil_mode", 0):
            raise node.refused("ceil_mode with count_include_pad is supported on maps alone")
        counted = bool(attribute(node, "count_include_pad", 0))
        _by_moves(importer, node, value, along, mean=True, pads=counted)
        return
    spatial(node, value)
    found = window(node, value, kernel)
    pads = Pads(0, 0, 0, 0)
    if attribute(node, "count_include_pad", 0):
        # Pixels that ceil_mode adds do not count.
        given = list(attribute(node, "pads", ()) or ())
        if given and attribute(node, "auto_pad", "NOTSET") == "NOTSET":
            before, after = given[: len(given) // 2], given[len(given) // 2 :]
            none = [0] * (2 - len(before))
            pads = Pads(
                (none + before)[1], (none + before)[0], (none + after)[1], (none + after)[0]
            )
        else:
            pads = found.pads
    counts = _counted(found, value, pads)
    pixels = found.kernel.across * found.kernel.down
    if (counts == pixels).all():
        _add(importer, node, value, found, mean=True)
        return
    made = _add(importer, node, value, found, mean=True, last=False)
    shares = (pixels / counts).reshape(1, 1, *counts.shape)
    factors = importer.constant_map(
        node, shares if len(made.shape) == 4 else shares.reshape(1, 1, -1), made
    )
    layer = Multiply(
        name=importer.unique(node.name), source=made.layer, other=factors.layer, fraction=0
    )
    importer.add(node, layer, made.size, made.shape)


def lp_pool(importer: Importer, node: Node) -> None:
    """LpPool: the root of the sum of powers of magnitudes."""
    value = map_value(importer, node)
    kernel = _kernel(node, value)
    power = int(attribute(node, "p", 2))
    if power < 1:
        raise node.refused(f"p must be at least 1, not {power}")
    name = importer.unique(node.name)
    layer: Layer = Activation(name=name, source=value.layer, function="absolute")
    if power == 2:
        layer = Multiply(name=name, source=value.layer, other=value.layer, fraction=0)
    powers = importer.add(node, layer, value.size, value.shape, last=False)
    if power > 2:
        powers = curve_value(importer, node, powers, Function("power", (float(power),)))
    found = positions(node, powers, kernel)
    if _on_maps(powers, found):
        spatial(node, powers)
        _add(importer, node, powers, window(node, powers, kernel), mean=True)
    else:
        _by_moves(importer, node, powers, found, mean=True, pads=True)
    # The root of the mean; then it has the range of the elements.
    made = importer.values[node.outputs[0]]
    if power > 1:
        made = curve_value(importer, node, made, Function("power", (1 / power,)))
    affine(importer, node, made, prod(kernel) ** (1 / power), 0.0)


def _whole(importer: Importer, node: Node, *, mean: bool) -> None:
    value = map_value(importer, node)
    spatial(node, value)
    width, height = value.size.width, value.size.height
    windows = [Pair(width, height)]
    if mean and min(width, height) > 1:
        # A sum over rows and columns needs as many bits more as one over each, both together.
        windows = [Pair(1, height), Pair(width, 1)]
    for number, whole in enumerate(windows, 1):
        found = Window(kernel=whole, dilation=Pair(1, 1), stride=Pair(1, 1), pads=Pads(0, 0, 0, 0))
        value = _add(importer, node, value, found, mean=mean, last=number == len(windows))


def global_average_pool(importer: Importer, node: Node) -> None:
    """GlobalAveragePool."""
    _whole(importer, node, mean=True)


def global_max_pool(importer: Importer, node: Node) -> None:
    """GlobalMaxPool."""
    _whole(importer, node, mean=False)


def pad(importer: Importer, node: Node) -> None:
    """Pad with zeros around rows and columns: means of windows of one pixel; else by moves."""
    try:
        _pad_maps(importer, node)
    except ModelError:
        movement(importer, node)


def _pad_maps(importer: Importer, node: Node) -> None:
    value = map_value(importer, node)
    rank = spatial(node, value)
    if attribute(node, "mode", "constant") != "constant":
        raise node.refused("mode must be constant")
    given = attribute(node, "pads", None)
    held = importer.reals(node, 1) if given is None else np.asarray(given)
    axes = importer.constant(node, 3)
    if axes is not None:
        raise node.refused("axes are not supported; give pads for all")
    fill = importer.constant(node, 2)
    if float(attribute(node, "value", 0.0)) != 0 or (fill is not None and np.any(fill != 0)):
        raise node.refused("the value around must be 0")
    pads = [int(each) for each in held.ravel()]
    if len(pads) != 2 * (rank + 2) or min(pads) < 0 or any(pads[:2] + pads[rank + 2 : rank + 4]):
        raise node.refused(f"pads must be 0 or more, and 0 for batch and channels, not {pads}")
    before, after = pads[2 : rank + 2], pads[rank + 4 :]
    none = [0] * (2 - rank)
    top, left = none + before
    bottom, right = none + after
    found = Window(
        kernel=Pair(1, 1),
        dilation=Pair(1, 1),
        stride=Pair(1, 1),
        pads=Pads(left, top, right, bottom),
    )
    _add(importer, node, value, found, mean=True)
