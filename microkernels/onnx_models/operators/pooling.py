"""Operators that become pooling."""

import numpy as np

from microkernels.networks.network import Multiply, Pool
from microkernels.networks.pairs import Pads, Pair
from microkernels.onnx_models.graph import Node
from microkernels.onnx_models.importer import Importer, Value, attribute
from microkernels.onnx_models.model import Reals

from .window import Window, spatial, window

__all__ = ["average_pool", "global_average_pool", "global_max_pool", "max_pool", "pad"]


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


def _windows(importer: Importer, node: Node) -> tuple[Value, Window]:
    value = importer.value(node)
    rank = spatial(node, value)
    kernel = tuple(int(each) for each in attribute(node, "kernel_shape", ()))
    if len(kernel) != rank or min(kernel) < 1:
        raise node.refused(f"kernel_shape must be {rank} number(s) from 1 on, not {list(kernel)}")
    found = window(node, value, kernel)
    if found.dilation != Pair(1, 1):
        raise node.refused("dilations must be 1")
    return value, found


def max_pool(importer: Importer, node: Node) -> None:
    """MaxPool, without the indices."""
    _add(importer, node, *_windows(importer, node), mean=False)


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
    value, found = _windows(importer, node)
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


def _whole(importer: Importer, node: Node, *, mean: bool) -> None:
    value = importer.value(node)
    spatial(node, value)
    whole = Pair(value.size.width, value.size.height)
    found = Window(kernel=whole, dilation=Pair(1, 1), stride=Pair(1, 1), pads=Pads(0, 0, 0, 0))
    _add(importer, node, value, found, mean=mean)


def global_average_pool(importer: Importer, node: Node) -> None:
    """GlobalAveragePool."""
    _whole(importer, node, mean=True)


def global_max_pool(importer: Importer, node: Node) -> None:
    """GlobalMaxPool."""
    _whole(importer, node, mean=False)


def pad(importer: Importer, node: Node) -> None:
    """Pad with zeros around rows and columns: means of windows of one pixel."""
    value = importer.value(node)
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
