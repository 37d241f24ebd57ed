"""Transposed convolutions: zeros between the pixels, then a convolution."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from microkernels.networks.network import Conv, MapSize
from microkernels.networks.parameters import Weights
from microkernels.networks.sizes import Size2
from microkernels.onnx_models.importer import Importer, Index, index_of, rearranged
from microkernels.onnx_models.read import GraphNode, attribute

from .arrange import map_value, numbers
from .linear import MAP_AXES, conv_bias, conv_by_moves, spread_weights

__all__ = ["conv_transpose"]

#: Elements of the image with zeros between its pixels, at most.
_MOST_SPREAD = 1 << 24


def _spread(
    node: GraphNode,
    index: Index,
    strides: Sequence[int],
    extents: Sequence[int],
    pads: Sequence[int],
    added: Sequence[int],
) -> Index:
    """Numbers of elements with a stride between them, and with what a plain convolution reads
    around them; 0 where there is none.

    Parameters:
        index: channels, then pixels along each axis.
        extents: pixels of a filter. pads: of the output, as ONNX has them. added: after its end.
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
            raise node.refused(f"pads {pads} leave nothing of its output")
    return index


def _pads(
    node: GraphNode,
    sizes: Sequence[int],
    strides: Sequence[int],
    extents: Sequence[int],
    added: Sequence[int],
) -> list[int]:
    """Pixels that are cut off the output at the start of each axis, then at the end of each."""
    rank = len(sizes)
    pads = numbers(node, "pads", 2 * rank, least=0)
    auto = attribute(node, "auto_pad", "NOTSET")
    declared = attribute(node, "output_shape", None)
    if declared is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        declared = [size * step for size, step in zip(sizes, strides, strict=True)]
    for axis in range(rank if declared is not None else 0):
        full = strides[axis] * (sizes[axis] - 1) + added[axis] + extents[axis]
        total = full - int(declared[-rank:][axis])
        less = total // 2
        first = less if auto == "SAME_UPPER" else total - less
        pads[axis], pads[rank + axis] = first, total - first
    return pads


def conv_transpose(importer: Importer, node: GraphNode) -> None:
    """ConvTranspose, with strides, pads, dilations and groups."""
    value = map_value(importer, node)
    weights = importer.reals(node, 1)
    rank = len(value.shape) - 2
    groups = int(attribute(node, "group", 1))
    channels = value.size.channels
    if (
        rank < 1
        or weights.ndim != rank + 2
        or groups < 1
        or channels % groups
        or len(weights) != channels
    ):
        raise node.refused(
            f"weights of shape {list(weights.shape)} in {groups} group(s) do not fit an input of "
            f"shape {list(value.shape)}"
        )
    kernel = weights.shape[2:]
    strides, dilations = (numbers(node, name, rank, least=1) for name in ("strides", "dilations"))
    added = numbers(node, "output_padding", rank, least=0)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = value.shape[2:]
    pads = _pads(node, sizes, strides, extents, added)
    spread = prod((s - 1) * t + e for s, t, e in zip(sizes, strides, extents, strict=True))
    if spread * max(channels, weights.shape[1] * groups) > _MOST_SPREAD:
        raise node.refused(
            f"{spread:,} pixels of each channel; {_MOST_SPREAD:,} elements in all are allowed"
        )
    index = _spread(node, index_of(importer, value)[0], strides, extents, pads, added)
    spaced = rearranged(importer, node, [value], index[np.newaxis])
    inner = channels // groups
    turned = weights[(slice(None), slice(None), *[slice(None, None, -1)] * rank)]
    filters = weights.shape[1] * groups
    grouped = turned.reshape(groups, inner, weights.shape[1], *kernel).swapaxes(1, 2)
    grouped = grouped.reshape(filters, inner, *kernel)
    if rank > MAP_AXES:
        attributes = {"dilations": dilations}
        conv_by_moves(importer, replace(node, attributes=attributes), spaced, grouped, groups)
        return
    gaps = Size2(dilations[-1], dilations[0] if rank == 2 else 1)
    bias = conv_bias(importer, node, filters)
    full_weights = spread_weights(grouped, groups, gaps)
    down, across = full_weights.shape[1:3]
    layer = Conv(
        name=importer.unique(node.name),
        source=spaced.layer,
        filters=filters,
        kernel=Size2(across, down),
        fraction=0,
        relu=False,
    )
    importer.real[layer.name] = Weights(weights=full_weights, bias=bias)
    size = MapSize(spaced.size.width - across + 1, spaced.size.height - down + 1, filters)
    shape = (value.shape[0], filters, *(size.height, size.width)[2 - rank :])
    importer.add(node, layer, size, shape)
