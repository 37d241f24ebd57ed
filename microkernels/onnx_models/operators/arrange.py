"""Moves of elements: those that operators need first, and operators that do nothing else.

To determine where each element comes from, onnxruntime runs the operator on numbers of elements
instead of values: 0 stands for the constant 0.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from microkernels.networks.maps import Pads, Size2
from microkernels.networks.network import INPUT, Pool, Rearrange
from microkernels.networks.rearrange import LOWEST_ELEMENT, ZERO
from microkernels.onnx_models.errors import ModelError, one_line
from microkernels.onnx_models.fold import Array, evaluate
from microkernels.onnx_models.model import Value
from microkernels.onnx_models.node import GraphNode
from support.errors import counted
from support.extras import MissingExtraError

#: Limits for strides, dilations and pads, and for the windows of a node, checked before the work.
_MOST_NUMBER = 1 << 16
_MOST_WINDOWS = 1 << 24
#: Maximum elements of a rearranged map: each may be a separate move.
_MOST_ELEMENTS = 1 << 20
#: Maximum elements of a map from which some are taken.
_MOST_INDEXED = 1 << 24

Index = NDArray[np.int64]


def copied(node: GraphNode, value: Value) -> Value:
    """``value`` as the output of a layer, copied if it is an input of the network."""
    if value.layer != INPUT:
        return value
    return node.affine(value, 1.0, 0.0, suffix="_copy")


def index_of(node: GraphNode, value: Value, first: int = 1) -> Index:
    """Numbers of an image's elements in ONNX's order, from ``first`` on, in the tensor's shape with
    a batch of 1.

    Raises:
        ModelError: too many elements.
    """
    shape = (1, *value.shape[1:]) if node.importer.batched(value.shape) else value.shape
    if prod(shape) > _MOST_INDEXED:
        raise ModelError(
            f"an image of {prod(shape):,} elements can't be rearranged; at most {_MOST_INDEXED:,}"
        )
    return np.arange(first, first + prod(shape), dtype=np.int64).reshape(shape)


def _map_index(value: Value) -> Index:
    """Position in the map of each element of an image, in ONNX's order."""
    size = value.size
    places = np.arange(size.elements).reshape(size.height, size.width, size.channels)
    return places.transpose((1, 0, 2) if value.turned else (2, 0, 1)).ravel()


def rearranged(
    node: GraphNode,
    values: Sequence[Value],
    index: Index,
    *,
    empty: int = ZERO,
    turned: bool = False,
) -> Value:
    """A layer with the elements of ``values`` that ``index`` selects.

    Parameters:
        index: numbers of elements, from 1 on through all values; 0: ``empty``. In the shape of an
            image, with a batch of 1.
        empty: the constant for 0.
        turned: the last axis becomes channels.

    Raises:
        ModelError: there are too many elements, or none.
    """
    if not 0 < index.size <= _MOST_ELEMENTS:
        raise node.refused(
            f"its output has {index.size:,} elements per image; 1 to {_MOST_ELEMENTS:,} are allowed"
        )
    shape = index.shape
    if node.importer.batched(shape):
        shape = (node.batch, *shape[1:])
    size = node.importer.rows_of(shape) if turned else node.importer.map_of(shape)
    sources = [copied(node, value) for value in values]
    places, before = [], 0
    for value in sources:
        places.append(_map_index(value) + before)
        before += value.size.elements
    every = np.concatenate(places)
    flat = index.ravel()
    order = np.where(flat == 0, empty, every[np.maximum(flat, 1) - 1])
    if turned:
        order = order.reshape(size.width, size.height, size.channels).transpose(1, 0, 2).ravel()
    else:
        order = order.reshape(size.channels, size.height, size.width).transpose(1, 2, 0).ravel()
    names, order = _composed(node, [value.layer for value in sources], order)
    same = len(names) == 1 and node.importer.sizes[names[0]] == size
    if same and (order == np.arange(len(order))).all():
        node.importer.shared.add(names[0])
        return replace(sources[0], layer=names[0], size=size, shape=shape, turned=turned)
    layer = Rearrange(
        name=node.importer.unique(node.name),
        inputs=tuple(names),
        size=size,
        order=array("q", order.tobytes()),
    )
    return node.add(layer, size, shape, turned=turned)


def _composed(node: GraphNode, names: list[str], order: Index) -> tuple[list[str], Index]:
    """Layers and order that bypass layers of moves: elements come directly from where these take
    them, as long as those layers are not smaller than the result."""
    firsts = np.cumsum([0, *(node.importer.sizes[name].elements for name in names)])
    into: list[str] = []
    composed = order.copy()
    for name, first, end in zip(names, firsts, firsts[1:], strict=False):
        of_layer = (order >= first) & (order < end)
        layer = node.importer.layers.get(name)
        inputs: tuple[str, ...] = (name,)
        chosen = order[of_layer] - first
        if isinstance(layer, Rearrange) and len(layer.order) >= len(order):
            inputs, chosen = layer.inputs, layer.index[chosen]
        places = np.cumsum([0, *(node.importer.sizes[source].elements for source in inputs)])
        moved = chosen.copy()
        for source, start, last in zip(inputs, places, places[1:], strict=False):
            if source not in into:
                into.append(source)
            base = sum(
                node.importer.sizes[before].elements for before in into[: into.index(source)]
            )
            inside = (chosen >= start) & (chosen < last)
            moved[inside] = chosen[inside] - start + base
        composed[of_layer] = moved
    return into, composed


def _vector(value: Value) -> bool:
    """Whether an image is one pixel, so that its elements have only one order."""
    return value.size.width == value.size.height == 1


def straight(node: GraphNode, value: Value) -> Value:
    """``value`` in a map with the order of its shape: channels, rows, columns."""
    if not value.turned:
        return value
    if _vector(value) and node.importer.map_of(value.shape) == value.size:
        return replace(value, turned=False)
    return rearranged(node, [value], index_of(node, value))


def rows(node: GraphNode, value: Value) -> Value:
    """``value`` with its last axis as channels, the one before as rows, and others as columns."""
    if value.size == node.importer.rows_of(value.shape) and (value.turned or _vector(value)):
        return replace(value, turned=True)
    return rearranged(node, [value], index_of(node, value), turned=True)


def adjacent(node: GraphNode, value: Value, index: Index) -> float:
    """Mean length of runs of adjacent elements in a source's map along the last axis.

    Parameters:
        index: of the elements, as for :func:`rearranged`.
    """
    order = _map_index(value)[index.ravel() - 1]
    _, order = _composed(node, [value.layer], order)
    steps = np.diff(order.reshape(-1, index.shape[-1]), axis=1) == 1
    return index.size / (index.size - int(np.count_nonzero(steps)))


def spatial(node: GraphNode, value: Value) -> int:
    """Number of dimensions of the maps in ``value``, 1 or 2.

    Raises:
        ModelError: it is neither.
    """
    rank = len(value.shape) - 2
    if rank not in (1, 2):
        raise node.refused(
            f"its input of shape {list(value.shape)} must have 1 or 2 dimensions after batch and "
            "channels"
        )
    return rank


@dataclass(frozen=True, kw_only=True)
class Positions:
    """Windows along each axis of an input: each list has one item per axis.

    Attributes:
        kernel: pixels. strides, dilations: of the windows.
        before, after: padding in pixels.
        added: pixels of ``after`` for the last window of ``ceil_mode``.
    """

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    before: list[int]
    after: list[int]
    added: list[int]

    @classmethod
    def plain(
        cls,
        kernel: list[int],
        strides: list[int] | None = None,
        before: list[int] | None = None,
        after: list[int] | None = None,
    ) -> Self:
        """Windows without gaps; None: stride 1, and no padding."""
        one, none = [1] * len(kernel), [0] * len(kernel)
        return cls(
            kernel=kernel,
            strides=strides or one,
            dilations=one,
            before=before or none,
            after=after or none,
            added=none,
        )

    @property
    def extents(self) -> list[int]:
        """Pixels of a window, including the gaps from dilation."""
        pairs = zip(self.kernel, self.dilations, strict=True)
        return [(pixels - 1) * dilation + 1 for pixels, dilation in pairs]

    def outputs(self, size: int, axis: int) -> int:
        """Number of windows along an axis of ``size`` pixels."""
        free = size + self.before[axis] + self.after[axis] - self.extents[axis]
        return free // self.strides[axis] + 1

    def shape(self, value: Value, channels: int) -> tuple[int, ...]:
        """Shape of the results of all windows of a tensor."""
        sizes = (self.outputs(size, axis) for axis, size in enumerate(value.shape[2:]))
        return (value.shape[0], channels, *sizes)

    # As for a layer of maps: one axis is across, two are down and across.

    @property
    def window(self) -> Size2:
        """Pixels of a window, including its gaps."""
        return _across_down(self.extents, 1)

    @property
    def dilation(self) -> Size2:
        """Distance between adjacent pixels that belong to a window."""
        return _across_down(self.dilations, 1)

    @property
    def stride(self) -> Size2:
        """Distance between windows."""
        return _across_down(self.strides, 1)

    @property
    def pads(self) -> Pads:
        """Pixels around the map."""
        (left, top), (right, bottom) = (
            _across_down(sizes, 0) for sizes in (self.before, self.after)
        )
        return Pads(left, top, right, bottom)

    def counts(self, size: int, axis: int, *, around: bool) -> NDArray[np.int64]:
        """Number of pixels of each window along an axis that belong to the map or, if ``around``,
        also to padding that ``ceil_mode`` has not added."""
        starts = np.arange(self.outputs(size, axis))[:, np.newaxis] * self.strides[axis]
        taps = starts + np.arange(self.kernel[axis]) * self.dilations[axis]
        first, last = self.before[axis], self.before[axis] + size
        if around:
            first, last = 0, last + self.after[axis] - self.added[axis]
        counts: NDArray[np.int64] = ((taps >= first) & (taps < last)).sum(1)
        return counts


def _across_down(sizes: list[int], default: int) -> Size2:
    return Size2(sizes[-1], sizes[0] if len(sizes) > 1 else default)


def numbers(node: GraphNode, name: str, count: int, *, least: int) -> list[int]:
    """The attribute ``name``: ``count`` numbers, at least ``least`` and this by default.

    Raises:
        ModelError: the count is wrong, or a number out of range.
    """
    values = [int(value) for value in node.attribute(name, None) or [least] * count]
    if len(values) != count or min(values) < least or max(values) > _MOST_NUMBER:
        raise node.refused(
            f"{name} must be {counted(count, 'number')} from {least} to {_MOST_NUMBER:,}, "
            f"not {values}"
        )
    return values


def positions(node: GraphNode, value: Value, kernel: tuple[int, ...]) -> Positions:
    """The windows of a node along each axis.

    Parameters:
        value: its input. kernel: pixels of a window along each axis after batch and channels.

    Raises:
        ModelError: attributes are out of range or contradict each other, a window does not fit, or
            there are too many windows.
    """
    rank = len(kernel)
    strides = numbers(node, "strides", rank, least=1)
    dilations = numbers(node, "dilations", rank, least=1)
    before_after = numbers(node, "pads", 2 * rank, least=0)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = value.shape[2:]
    auto = node.attribute("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        missing = [
            max((-(-size // s) - 1) * s + e - size, 0)
            for size, s, e in zip(sizes, strides, extents, strict=True)
        ]
        smaller, larger = [m // 2 for m in missing], [m - m // 2 for m in missing]
        before_after = smaller + larger if auto == "SAME_UPPER" else larger + smaller
    elif auto == "VALID":
        before_after = [0] * (2 * rank)
    elif auto != "NOTSET":
        raise node.refused(f"auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, not {auto}")
    before, after = before_after[:rank], before_after[rank:]
    added = [0] * rank
    if node.attribute("ceil_mode", 0):
        for axis, size in enumerate(sizes):
            free = size + before[axis] + after[axis] - extents[axis]
            count = -(-free // strides[axis]) + 1
            # A window that begins after the map and the padding before it does not count.
            if (count - 1) * strides[axis] >= size + before[axis]:
                count -= 1
            added[axis] = max((count - 1) * strides[axis] - free, 0)
            after[axis] += added[axis]
    for axis, size in enumerate(sizes):
        if extents[axis] > size + before[axis] + after[axis]:
            raise node.refused(
                f"a window of {extents[axis]} pixels does not fit {size} pixels with "
                f"{before[axis] + after[axis]} around them"
            )
    result = Positions(
        kernel=list(kernel),
        strides=strides,
        dilations=dilations,
        before=before,
        after=after,
        added=added,
    )
    windows = prod(result.outputs(size, axis) for axis, size in enumerate(sizes))
    if windows > _MOST_WINDOWS:
        raise node.refused(f"it has {windows:,} windows; at most {_MOST_WINDOWS:,} are allowed")
    return result


#: Integers up to this one are exact in the type that the kernels of all these operators support.
_MOST_EXACT = 1 << 24


def map_value(node: GraphNode) -> Value:
    """The node's first input as a map of its shape, with images along the first axis; elements of a
    reshaped tensor are moved.

    Raises:
        ModelError: the first axis is not a batch.
    """
    value = straight(node, node.value())
    node.check_images(value)
    if node.importer.map_of(value.shape) == value.size:
        return value
    return rearranged(node, [value], index_of(node, value))


#: Operators whose first and third inputs have elements of the output.
_SCATTERS = frozenset(("Scatter", "ScatterElements", "ScatterND"))


def movement(node: GraphNode) -> Value:
    """An operator whose outputs are elements of its inputs, or 0; all but the first are named."""
    if node.attribute("reduction", "none") != "none":
        raise node.refused(f"reduction must be none, not {node.attribute('reduction', '')}")
    operands: dict[str, Value] = {}
    for number, name in enumerate(node.inputs):
        if not name or name in operands:
            continue
        joined = node.op == "Concat" or (node.op in _SCATTERS and number != 1)
        if number > 0 and not joined:
            # Inputs after the data say where elements go, such as pads.
            node.constant(number)
        elif not node.is_constant(number):
            operands[name] = node.value(number)
        elif joined:
            operands[name] = node.constant_of(node.reals(number))
    if not operands:
        raise node.refused(
            "its data must depend on the model's inputs, and its indices be constant"
        )
    indices, values = _indices(node, operands), list(operands.values())
    first, *further = (rearranged(node, values, index) for index in indices)
    for name, value in zip(list(filter(None, node.outputs))[1:], further, strict=True):
        node.name_output(name, value)
    return first


def _indices(node: GraphNode, operands: Mapping[str, Value]) -> list[Index]:
    """For each output the numbers of an image's elements, from 1 on through all operands; 0: the
    constant 0.

    Raises:
        ModelError: an output mixes elements of several images, or does not move those of all images
            alike.
    """
    batch = node.batch
    elements: dict[str, Array] = {}
    first = 1
    for name, value in operands.items():
        index = index_of(node, value, first)
        first += index.size
        elements[name] = np.broadcast_to(index, value.shape)
    if first > _MOST_EXACT:
        raise node.refused(
            f"its inputs have {first - 1:,} elements per image; at most {_MOST_EXACT - 1:,} are "
            "allowed"
        )
    indices = _evaluated(node, elements)
    if batch == 1:
        return indices
    numbers = np.arange(1, batch + 1)
    images: dict[str, Array] = {
        name: np.broadcast_to(_by_image(numbers, len(value.shape)), value.shape)
        for name, value in operands.items()
    }
    for index, image in zip(indices, _evaluated(node, images), strict=True):
        if index.shape[:1] != (batch,):
            raise node.mixing(
                f"its output of shape {list(index.shape)} must keep the batch of {batch} first"
            )
        if (image != np.where(index, _by_image(numbers, index.ndim), 0)).any():
            raise node.mixing(f"it moves elements between the {batch} images of the batch")
        if (index != index[:1]).any():
            raise node.mixing(f"it moves elements of the {batch} images of the batch differently")
    return [index[:1] for index in indices]


def _by_image(numbers: Index, rank: int) -> Index:
    return numbers.reshape(-1, *(1,) * (rank - 1))


def _evaluated(node: GraphNode, integers: Mapping[str, Array]) -> list[Index]:
    """The node's outputs for integers up to :data:`_MOST_EXACT`."""
    names = [name for name in dict.fromkeys(node.inputs) if name]
    feeds = {
        name: integers[name].astype(np.float32) if name in integers else node.importer.folded[name]
        for name in names
    }
    try:
        results = evaluate(node.proto, feeds, node.importer.graph.opset)
    except MissingExtraError:
        raise
    except Exception as error:  # Any of an evaluator of another library.
        raise node.refused(f"its rearrangement can't be determined: {one_line(error)}") from error
    return [values.astype(np.int64) for values in results]


def window_results(node: GraphNode, value: Value, index: Index, *, mean: bool) -> Value:
    """Maximum or mean over the last axis of ``index``, whose axes are an image's channels, outputs,
    and pixels of a window."""
    channels, outputs, pixels = index.shape
    moved = rearranged(
        node,
        [value],
        index.reshape(1, channels, outputs, pixels),
        empty=ZERO if mean else LOWEST_ELEMENT,
    )
    place: dict[str, Any] = {
        "size": moved.size._replace(width=1),
        "shape": (*moved.shape[:-1], 1),
    }
    return node.apply(Pool, moved, **place, window=Size2(pixels, 1), stride=1, mean=mean)


#: Maximum elements of windows that are gathered one by one.
_MOST_GATHERED = 1 << 16


def gathered(node: GraphNode, value: Value, windows: Positions) -> Index:
    """Numbers of the elements in each window, 0 for padding; the axes are an image's channels,
    outputs along each axis, and pixels of a window.

    Raises:
        ModelError: there are too many.
    """
    index = index_of(node, value)
    around = list(zip(windows.before, windows.after, strict=True))
    padded = np.pad(index[0], [(0, 0), *around])
    axes = tuple(range(1, padded.ndim))
    views = np.lib.stride_tricks.sliding_window_view(padded, windows.extents, axes)
    rank = len(axes)
    places = [slice(None)]
    places += [slice(None, None, step) for step in windows.strides]
    places += [slice(None, None, step) for step in windows.dilations]
    chosen = views[tuple(places)]
    gathering: Index = chosen.reshape(*chosen.shape[: rank + 1], -1)
    if gathering.size > _MOST_GATHERED:
        raise node.refused(
            f"its windows have {gathering.size:,} pixels in all; {_MOST_GATHERED:,} are allowed "
            "with dilation, or with three dimensions"
        )
    return gathering
