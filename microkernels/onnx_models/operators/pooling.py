"""Operators that become pooling."""

from math import prod

import numpy as np

from microkernels.networks.curves import Function
from microkernels.networks.network import ElementWise, Pool
from microkernels.networks.rearrange import LOWEST_ELEMENT, ZERO
from microkernels.onnx_models.errors import ModelError
from microkernels.onnx_models.importer import Importer
from microkernels.onnx_models.model import Norm, Value
from microkernels.onnx_models.read import GraphNode, attribute, mixing, refused
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
from .elements import affine, combine, curve_value, limited

#: Power of a norm -> fraction of the largest magnitude up to which powers have their own bits, and
#: how often it is applied.
_SHARES = {2: (1 / 8, 1), 3: (1 / 3, 3), 4: (3 / 10, 4)}
#: Powers up to this one become products.
_MOST_PRODUCTS = 4


def _add(
    importer: Importer,
    node: GraphNode,
    value: Value,
    places: Positions,
    *,
    mean: bool,
    last: bool = True,
) -> Value:
    layer = Pool(
        name=importer.unique(node.name),
        source=value.layer,
        window=places.window,
        stride=places.stride,
        padding=places.pads,
        mean=mean,
    )
    shape = places.shape(value, value.shape[1])
    return importer.add(node, layer, importer.map_of(shape), shape, last=last)


def _kernel(node: GraphNode, value: Value) -> tuple[int, ...]:
    rank = len(value.shape) - 2
    kernel = tuple(int(size) for size in attribute(node, "kernel_shape", ()))
    if rank < 1 or len(kernel) != rank or min(kernel) < 1:
        raise refused(
            node,
            f"kernel_shape must be {counted(rank, 'number')} of at least 1, not {list(kernel)}",
        )
    return kernel


def _on_maps(value: Value, places: Positions) -> bool:
    """Whether pooling of maps supports such windows."""
    return len(value.shape) <= 4 and max(places.dilations) == 1


def _by_axes(
    importer: Importer, node: GraphNode, value: Value, places: Positions, *, mean: bool
) -> Value:
    """Pooling along one axis after the other, each along the rows of a map; pixels of windows with
    gaps are gathered first. Padding counts in a mean."""
    channels, sizes = value.shape[1], list(value.shape[2:])
    for axis, kernel in enumerate(places.kernel):
        step, around = places.strides[axis], (places.before[axis], places.after[axis])
        if kernel == step == 1 and not any(around):
            continue
        index = np.moveaxis(index_of(importer, value).reshape(channels, *sizes), axis + 1, 1)
        sizes[axis] = places.outputs(sizes[axis], axis)
        if places.dilations[axis] > 1:
            padded = np.pad(index, [(0, 0), around, *[(0, 0)] * (index.ndim - 2)])
            starts = np.arange(sizes[axis])[:, None] * step
            taps = starts + np.arange(kernel) * places.dilations[axis]
            index, step, around = padded[:, taps.ravel()], kernel, (0, 0)
        lined = index.reshape(1, channels, index.shape[1], -1)
        empty = ZERO if mean else LOWEST_ELEMENT
        moved = rearranged(importer, node, [value], lined, empty=empty)
        before, after = around
        along = Positions.plain([kernel, 1], [step, 1], [before, 0], [after, 0])
        value = _add(importer, node, moved, along, mean=mean, last=False)
        # Restore the order of the axes.
        order = [sizes[axis], *(size for other, size in enumerate(sizes) if other != axis)]
        back = np.moveaxis(index_of(importer, value).reshape(channels, *order), 1, axis + 1)
        value = rearranged(importer, node, [value], back[np.newaxis])
    return value


def max_pool(importer: Importer, node: GraphNode) -> None:
    """MaxPool, without the indices."""
    value = map_value(importer, node)
    _pooled(importer, node, value, mean=False)


def _pooled(
    importer: Importer, node: GraphNode, value: Value, *, mean: bool
) -> tuple[Value, Positions]:
    """The node's output, before correction for different divisors of a mean, and its windows."""
    places = positions(node, value, _kernel(node, value))
    if _on_maps(value, places):
        spatial(node, value)
        return _add(importer, node, value, places, mean=mean), places
    result = _by_axes(importer, node, value, places, mean=mean)
    importer.alias(node, result, result.shape)
    return result, places


def average_pool(importer: Importer, node: GraphNode) -> None:
    """AveragePool; if divisors differ, a multiplication by constants follows."""
    value = map_value(importer, node)
    result, places = _pooled(importer, node, value, mean=True)
    # Pixels that ceil_mode adds do not count.
    around = bool(attribute(node, "count_include_pad", 0))
    counts = np.ones(())
    for axis, size in enumerate(value.shape[2:]):
        counts = np.multiply.outer(counts, places.counts(size, axis, around=around))
    pixels = prod(places.kernel)
    if (counts == pixels).all():
        return
    factors = importer.constant_map(node, (pixels / counts)[np.newaxis, np.newaxis], result)
    combine(importer, node, "multiply", result, factors)


def lp_pool(importer: Importer, node: GraphNode) -> None:
    """LpPool: the root of the sum of powers of magnitudes.

    Powers of small numbers have few bits. So there are several norms, for magnitudes up to a
    fraction of the largest, up to the square of that fraction, and so on, each with its own bits
    for powers. The largest norm counts: for a window with larger magnitudes a norm is too small,
    and a norm is made too small where the next one is better.
    """
    value = map_value(importer, node)
    power = int(attribute(node, "p", 2))
    if power < 1:
        raise refused(node, f"p must be at least 1, not {power}")
    large = importer.apply(node, ElementWise, value, last=False, function="absolute")
    pixels = prod(_kernel(node, value))
    if power == 1:
        result, _ = _pooled(importer, node, large, mean=True)
    else:
        share, count = _SHARES.get(power, (1.0, 0))
        result = _root(importer, node, _power(importer, node, large, power), power)
        above = result
        for number in range(1, count + 1):
            small = limited(importer, node, large, 0.0, 0.0, last=False)
            importer.norms[small.layer] = Norm(share**number, above.layer, power, pixels)
            above = _root(importer, node, _power(importer, node, small, power), power)
            result = combine(importer, node, "maximum", result, above, last=False)
    affine(importer, node, result, pixels ** (1 / power), 0.0)


def _power(importer: Importer, node: GraphNode, value: Value, power: int) -> Value:
    """A power of each element, from 2 on."""
    if power > _MOST_PRODUCTS:
        return curve_value(importer, node, value, Function("power", (float(power),)))

    square = combine(importer, node, "multiply", value, value, last=False)
    if power == 2:
        return square
    factor = value if power == 3 else square
    return combine(importer, node, "multiply", square, factor, last=False)


def _root(importer: Importer, node: GraphNode, powers: Value, power: int) -> Value:
    """The root of the means of the windows, which have the range of the elements."""
    means, _ = _pooled(importer, node, powers, mean=True)
    return curve_value(importer, node, means, Function("power", (1 / power,)))


def max_unpool(importer: Importer, node: GraphNode) -> None:
    """MaxUnpool with constant indices: each element moves to its place, with zeros in between."""
    value = straight(importer, node, importer.value(node))
    importer.check_images(node, value)
    places = importer.reals(node, 1)
    rank = len(value.shape) - 2
    if places.shape != value.shape or rank < 1:
        raise refused(node, f"its indices must have the shape {list(value.shape)} of its input")
    kernel = _kernel(node, value)
    strides = attribute(node, "strides", None) or [1] * rank
    pads = attribute(node, "pads", None) or [0] * (2 * rank)
    usual = [
        (size - 1) * int(step) + pixels - int(pads[axis]) - int(pads[axis + rank])
        for axis, (size, step, pixels) in enumerate(
            zip(value.shape[2:], strides, kernel, strict=True)
        )
    ]
    declared = importer.constant(node, 2)
    shape = (*value.shape[:2], *usual)
    if declared is not None:
        shape = tuple(int(extent) for extent in declared.ravel())
    if len(shape) != rank + 2 or shape[:2] != value.shape[:2] or min(shape) < 1:
        raise refused(node, f"its output can't have the shape {list(shape)}")
    # Indices refer to all images of the output shape that the attributes imply.
    elements = shape[1] * prod(usual)
    inside = places.astype(np.int64) - elements * np.arange(len(places)).reshape(
        -1, *(1,) * (rank + 1)
    )
    if (inside < 0).any() or (inside >= elements).any():
        raise refused(node, "its indices are not within its output")
    if (inside != inside[:1]).any():
        raise mixing(node, "its indices differ between the images of the batch")
    index = index_of(importer, value)
    numbers = np.zeros(shape[1:], np.int64)
    at = np.unravel_index(inside[0].ravel(), (shape[1], *usual))
    if any(int(extent.max()) >= size for extent, size in zip(at, shape[1:], strict=True)):
        raise refused(node, "its indices are not within its output")
    numbers[at] = index.ravel()
    rearranged(importer, node, [value], numbers[np.newaxis], output=node.output[0])


def _whole(importer: Importer, node: GraphNode, *, mean: bool) -> None:
    value = map_value(importer, node)
    spatial(node, value)
    sizes = list(value.shape[2:])
    windows = [sizes]
    if mean and len(sizes) > 1 and min(sizes) > 1:
        # A sum over rows and columns needs as many extra bits as a sum over each, added up.
        windows = [[sizes[0], 1], [1, sizes[1]]]
    for number, kernel in enumerate(windows, 1):
        places = Positions.plain(kernel)
        value = _add(importer, node, value, places, mean=mean, last=number == len(windows))


def global_average_pool(importer: Importer, node: GraphNode) -> None:
    """GlobalAveragePool."""
    _whole(importer, node, mean=True)


def global_max_pool(importer: Importer, node: GraphNode) -> None:
    """GlobalMaxPool."""
    _whole(importer, node, mean=False)


def pad(importer: Importer, node: GraphNode) -> None:
    """Pad: zeros around rows and columns by means of one-pixel windows, others by moves."""
    try:
        _pad_maps(importer, node)
    except ModelError:
        movement(importer, node)


def _pad_maps(importer: Importer, node: GraphNode) -> None:
    value = map_value(importer, node)
    rank = spatial(node, value)
    if attribute(node, "mode", "constant") != "constant":
        raise refused(node, "mode must be constant")
    in_attribute = attribute(node, "pads", None)
    values = importer.reals(node, 1) if in_attribute is None else np.asarray(in_attribute)
    axes = importer.constant(node, 3)
    if axes is not None:
        raise refused(node, "axes are not supported; give pads for all")
    fill = importer.constant(node, 2)
    if float(attribute(node, "value", 0.0)) != 0 or (fill is not None and np.any(fill != 0)):
        raise refused(node, "the padding value must be 0")
    pads = [int(pad) for pad in values.ravel()]
    if len(pads) != 2 * (rank + 2) or min(pads) < 0 or any(pads[:2] + pads[rank + 2 : rank + 4]):
        raise refused(node, f"pads must be 0 or more, and 0 for batch and channels, not {pads}")
    places = Positions.plain([1] * rank, None, pads[2 : rank + 2], pads[rank + 4 :])
    _add(importer, node, value, places, mean=True)
