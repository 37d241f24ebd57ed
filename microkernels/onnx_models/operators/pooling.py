"""Operators that become pooling."""

from math import prod

import numpy as np

from microkernels.networks.curves import Function
from microkernels.networks.network import ElementWise, Pool
from microkernels.networks.rearrange import LOWEST_ELEMENT, ZERO
from microkernels.onnx_models.errors import ModelError
from microkernels.onnx_models.model import Norm, Value
from microkernels.onnx_models.node import GraphNode
from support.errors import counted

from .arrange import (
    Positions,
    index_of,
    map_value,
    movement,
    positions,
    rearranged,
    spatial,
    straight,
)
from .elements import combine

#: Power of a norm -> fraction of the largest magnitude up to which powers have their own bits, and
#: how often it is applied.
_SHARES = {2: (1 / 8, 1), 3: (1 / 3, 3), 4: (3 / 10, 4)}
#: Powers up to this one become products.
_MOST_PRODUCTS = 4


def _add(node: GraphNode, value: Value, places: Positions, *, mean: bool) -> Value:
    shape = places.shape(value, value.shape[1])
    return node.apply(
        Pool,
        value,
        size=node.importer.map_of(shape),
        shape=shape,
        turned=False,
        window=places.window,
        stride=places.stride,
        padding=places.pads,
        mean=mean,
    )


def _kernel(node: GraphNode, value: Value) -> tuple[int, ...]:
    rank = len(value.shape) - 2
    kernel = tuple(int(size) for size in node.attribute("kernel_shape", ()))
    if rank < 1 or len(kernel) != rank or min(kernel) < 1:
        raise node.refused(
            f"kernel_shape must be {counted(rank, 'number')} of at least 1, not {list(kernel)}"
        )
    return kernel


def _by_axes(node: GraphNode, value: Value, places: Positions, *, mean: bool) -> Value:
    """Pooling along one axis after the other, each along the rows of a map; pixels of windows with
    gaps are gathered first. Padding counts in a mean."""
    channels, sizes = value.shape[1], list(value.shape[2:])
    for axis, kernel in enumerate(places.kernel):
        step, around = places.strides[axis], (places.before[axis], places.after[axis])
        if kernel == step == 1 and not any(around):
            continue
        index = np.moveaxis(index_of(node, value).reshape(channels, *sizes), axis + 1, 1)
        sizes[axis] = places.outputs(sizes[axis], axis)
        if places.dilations[axis] > 1:
            padded = np.pad(index, [(0, 0), around, *[(0, 0)] * (index.ndim - 2)])
            starts = np.arange(sizes[axis])[:, None] * step
            taps = starts + np.arange(kernel) * places.dilations[axis]
            index, step, around = padded[:, taps.ravel()], kernel, (0, 0)
        lined = index.reshape(1, channels, index.shape[1], -1)
        empty = ZERO if mean else LOWEST_ELEMENT
        moved = rearranged(node, [value], lined, empty=empty)
        before, after = around
        along = Positions.plain([kernel, 1], [step, 1], [before, 0], [after, 0])
        value = _add(node, moved, along, mean=mean)
        # Restore the order of the axes.
        order = [sizes[axis], *(size for other, size in enumerate(sizes) if other != axis)]
        back = np.moveaxis(index_of(node, value).reshape(channels, *order), 1, axis + 1)
        value = rearranged(node, [value], back[np.newaxis])
    return value


def max_pool(node: GraphNode) -> Value:
    """MaxPool, without the indices."""
    return _pooled(node, map_value(node), mean=False)[0]


def _pooled(node: GraphNode, value: Value, *, mean: bool) -> tuple[Value, Positions]:
    """A value in the node's windows, with the same divisor for all means, and these windows."""
    places = positions(node, value, _kernel(node, value))
    if len(value.shape) <= 4 and max(places.dilations) == 1:
        spatial(node, value)
        return _add(node, value, places, mean=mean), places
    return _by_axes(node, value, places, mean=mean), places


def average_pool(node: GraphNode) -> Value:
    """AveragePool; if divisors differ, a multiplication by constants follows."""
    value = map_value(node)
    result, places = _pooled(node, value, mean=True)
    # Pixels that ceil_mode adds do not count.
    around = bool(node.attribute("count_include_pad", 0))
    counts = np.ones(())
    for axis, size in enumerate(value.shape[2:]):
        counts = np.multiply.outer(counts, places.counts(size, axis, around=around))
    pixels = prod(places.kernel)
    if (counts == pixels).all():
        return result
    factors = node.constant_map((pixels / counts)[np.newaxis, np.newaxis], result)
    return combine(node, "multiply", result, factors)


def lp_pool(node: GraphNode) -> Value:
    """LpPool: the root of the sum of powers of magnitudes.

    Powers of small numbers have few bits. So there are several norms, for magnitudes up to a
    fraction of the largest, up to the square of that fraction, and so on, each with its own bits
    for powers. The largest norm counts: for a window with larger magnitudes a norm is too small,
    and a norm is made too small where the next one is better.
    """
    value = map_value(node)
    power = int(node.attribute("p", 2))
    if power < 1:
        raise node.refused(f"p must be at least 1, not {power}")
    large = node.apply(ElementWise, value, function="absolute")
    pixels = prod(_kernel(node, value))
    if power == 1:
        result, _ = _pooled(node, large, mean=True)
    else:
        share, count = _SHARES.get(power, (1.0, 0))
        result = _root(node, _power(node, large, power), power)
        above = result
        for number in range(1, count + 1):
            small = node.limited(large, 0.0, 0.0)
            node.importer.norms[small.layer] = Norm(share**number, above.layer, power, pixels)
            above = _root(node, _power(node, small, power), power)
            result = combine(node, "maximum", result, above)
    return node.affine(result, pixels ** (1 / power), 0.0)


def _power(node: GraphNode, value: Value, power: int) -> Value:
    """A power of each element, from 2 on."""
    if power > _MOST_PRODUCTS:
        return node.curve(value, Function("power", (float(power),)))

    square = combine(node, "multiply", value, value)
    if power == 2:
        return square
    factor = value if power == 3 else square
    return combine(node, "multiply", square, factor)


def _root(node: GraphNode, powers: Value, power: int) -> Value:
    """The root of the means of the windows, which have the range of the elements."""
    means, _ = _pooled(node, powers, mean=True)
    return node.curve(means, Function("power", (1 / power,)))


def max_unpool(node: GraphNode) -> Value:
    """MaxUnpool with constant indices: each element moves to its place, with zeros in between."""
    value = straight(node, node.value())
    node.check_images(value)
    places = node.reals(1)
    rank = len(value.shape) - 2
    if places.shape != value.shape or rank < 1:
        raise node.refused(f"its indices must have the shape {list(value.shape)} of its input")
    kernel = _kernel(node, value)
    strides = node.attribute("strides", None) or [1] * rank
    pads = node.attribute("pads", None) or [0] * (2 * rank)
    usual = [
        (size - 1) * int(step) + pixels - int(pads[axis]) - int(pads[axis + rank])
        for axis, (size, step, pixels) in enumerate(
            zip(value.shape[2:], strides, kernel, strict=True)
        )
    ]
    declared = node.constant(2)
    shape = (*value.shape[:2], *usual)
    if declared is not None:
        shape = tuple(int(extent) for extent in declared.ravel())
    if len(shape) != rank + 2 or shape[:2] != value.shape[:2] or min(shape) < 1:
        raise node.refused(f"its output can't have the shape {list(shape)}")
    # Indices refer to all images of the output shape that the attributes imply.
    elements = shape[1] * prod(usual)
    inside = places.astype(np.int64) - elements * np.arange(len(places)).reshape(
        -1, *(1,) * (rank + 1)
    )
    if (inside < 0).any() or (inside >= elements).any():
        raise node.refused("its indices are not within its output")
    if (inside != inside[:1]).any():
        raise node.mixing("its indices differ between the images of the batch")
    index = index_of(node, value)
    numbers = np.zeros(shape[1:], np.int64)
    at = np.unravel_index(inside[0].ravel(), (shape[1], *usual))
    if any(int(extent.max()) >= size for extent, size in zip(at, shape[1:], strict=True)):
        raise node.refused("its indices are not within its output")
    numbers[at] = index.ravel()
    return rearranged(node, [value], numbers[np.newaxis])


def global_pool(node: GraphNode, *, mean: bool) -> Value:
    """GlobalAveragePool (``mean``) or GlobalMaxPool."""
    value = map_value(node)
    spatial(node, value)
    sizes = list(value.shape[2:])
    windows = [sizes]
    if mean and len(sizes) > 1 and min(sizes) > 1:
        # A sum over rows and columns needs as many extra bits as a sum over each, added up.
        windows = [[sizes[0], 1], [1, sizes[1]]]
    for kernel in windows:
        value = _add(node, value, Positions.plain(kernel), mean=mean)
    return value


def pad(node: GraphNode) -> Value:
    """Pad: zeros around rows and columns by means of one-pixel windows, others by moves."""
    fill = node.constant(2)
    if float(node.attribute("value", 0.0)) != 0 or (fill is not None and np.any(fill != 0)):
        raise node.refused("the padding value must be 0")
    try:
        return _pad_maps(node)
    except ModelError:
        return movement(node)


def _pad_maps(node: GraphNode) -> Value:
    value = map_value(node)
    rank = spatial(node, value)
    if node.attribute("mode", "constant") != "constant":
        raise node.refused("mode must be constant")
    values = node.setting("pads", 1)
    if node.constant(3) is not None:
        raise node.refused("axes are not supported; give pads for all")
    pads = [] if values is None else [int(pad) for pad in values.ravel()]
    if len(pads) != 2 * (rank + 2) or min(pads) < 0 or any(pads[:2] + pads[rank + 2 : rank + 4]):
        raise node.refused(f"pads must be 0 or more, and 0 for batch and channels, not {pads}")
    places = Positions.plain([1] * rank, None, pads[2 : rank + 2], pads[rank + 4 :])
    return _add(node, value, places, mean=True)
