"""Values whose elements are moved into another order or another map."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from microkernels.networks.network import INPUT, Activation, MapSize, Rearrange
from microkernels.networks.rearrange import ZERO

from .errors import ModelError
from .graph import Node
from .values import Value

if TYPE_CHECKING:
    from .importer import Importer

__all__ = [
    "Index",
    "adjacent",
    "affine_layer",
    "copied",
    "index_of",
    "rearranged",
    "rows",
    "straight",
]

#: Elements of a map that is rearranged, at most: each may be a move of its own.
_MOST_ELEMENTS = 1 << 20
#: Elements of a map of which some are taken, at most.
_MOST_INDEXED = 1 << 24

Index = NDArray[np.int64]


def affine_layer(name: str, source: str) -> Activation:
    """A layer that multiplies and adds, with a place for factor, offset and fraction bits."""
    return Activation(name=name, source=source, function="affine", factor=0, offset=0, fraction=0)


def copied(importer: "Importer", node: Node, value: Value) -> Value:
    """``value`` as the output of a layer: the network's input is none."""
    if value.layer != INPUT:
        return value
    layer = affine_layer(importer.unique(f"{node.name}_copy"), value.layer)
    importer.affine[layer.name] = (1.0, 0.0)
    return importer.add(node, layer, value.size, value.shape, last=False, turned=value.turned)


def index_of(importer: "Importer", value: Value, first: int = 1) -> Index:
    """Numbers of an image's elements in the order of ONNX, from ``first`` on, in the tensor's shape
    with a batch of 1.

    Raises:
        ModelError: too many elements.
    """
    shape = (1, *value.shape[1:]) if importer.batched(value.shape) else value.shape
    if prod(shape) > _MOST_INDEXED:
        raise ModelError(
            f"an image of {prod(shape):,} elements can't be rearranged; at most {_MOST_INDEXED:,}"
        )
    return np.arange(first, first + prod(shape), dtype=np.int64).reshape(shape)


def _map_index(importer: "Importer", value: Value) -> Index:
    """Position in the map of each of an image's elements in the order of ONNX."""
    size = value.size
    places = np.arange(size.elements).reshape(size.height, size.width, size.channels)
    return places.transpose((1, 0, 2) if value.turned else (2, 0, 1)).ravel()


def rearranged(
    importer: "Importer",
    node: Node,
    values: Sequence[Value],
    index: Index,
    *,
    output: str = "",
    empty: int = ZERO,
    turned: bool = False,
) -> Value:
    """A layer whose elements are those of ``values`` with these numbers.

    Parameters:
        index: of the elements of all values, one after the other, from 1 on; 0: ``empty``. In the
            shape of an image, with a batch of 1.
        output: tensor that the layer makes; "": none of the model's.
        empty: the constant for 0.
        turned: the last axis becomes channels.

    Raises:
        ModelError: too many elements, or none.
    """
    if not 0 < index.size <= _MOST_ELEMENTS:
        raise node.refused(
            f"it makes {index.size:,} elements an image; from 1 to {_MOST_ELEMENTS:,} are allowed"
        )
    shape = index.shape
    if importer.batched(shape):
        shape = (importer.batch, *shape[1:])
    size = importer.rows_of(shape) if turned else importer.map_of(shape)
    held = [copied(importer, node, value) for value in values]
    places, before = [], 0
    for value in held:
        places.append(_map_index(importer, value) + before)
        before += value.size.elements
    every = np.concatenate(places)
    flat = index.ravel()
    order = np.where(flat == 0, empty, every[np.maximum(flat, 1) - 1])
    if turned:
        order = order.reshape(size.width, size.height, size.channels).transpose(1, 0, 2).ravel()
    else:
        order = order.reshape(size.channels, size.height, size.width).transpose(1, 2, 0).ravel()
    names, order = _composed(importer, [value.layer for value in held], order)
    if len(names) == 1 and _same_place(importer, names[0], size, order):
        found = replace(held[0], layer=names[0], size=size, shape=shape, alone=False, turned=turned)
    else:
        layer = Rearrange(
            name=importer.unique(node.name),
            inputs=tuple(names),
            size=size,
            order=tuple(order.tolist()),
        )
        found = importer.add(node, layer, size, shape, last=False, turned=turned)
    if output:
        importer.name_output(node, output, found)
    return found


def _composed(importer: "Importer", names: list[str], order: Index) -> tuple[list[str], Index]:
    """Layers and order with elements that layers of moves take from others taken from there, as
    long as these layers are not smaller than the result."""
    firsts = np.cumsum([0, *(importer.sizes[name].elements for name in names)])
    into: list[str] = []
    found = order.copy()
    for name, first, end in zip(names, firsts, firsts[1:], strict=False):
        own = (order >= first) & (order < end)
        layer = importer.layers.get(name)
        inputs: tuple[str, ...] = (name,)
        chosen = order[own] - first
        if isinstance(layer, Rearrange) and len(layer.order) >= len(order):
            inputs, chosen = layer.inputs, np.asarray(layer.order)[chosen]
        places = np.cumsum([0, *(importer.sizes[each].elements for each in inputs)])
        moved = chosen.copy()
        for each, start, last in zip(inputs, places, places[1:], strict=False):
            if each not in into:
                into.append(each)
            base = sum(importer.sizes[held].elements for held in into[: into.index(each)])
            inside = (chosen >= start) & (chosen < last)
            moved[inside] = chosen[inside] - start + base
        found[own] = moved
    return into, found


def _same_place(importer: "Importer", name: str, size: MapSize, order: Index) -> bool:
    """Whether a map of ``size`` has the elements of a layer in their places."""
    return importer.sizes[name] == size and bool((order == np.arange(len(order))).all())


def _vector(value: Value) -> bool:
    """Whether an image is one pixel, so that its elements have one order."""
    return value.size.width == value.size.height == 1


def straight(importer: "Importer", node: Node, value: Value) -> Value:
    """``value`` with its elements in a map of its shape's order: channels, rows, columns."""
    if not value.turned:
        return value
    if _vector(value) and importer.map_of(value.shape) == value.size:
        return replace(value, turned=False)
    return rearranged(importer, node, [value], index_of(importer, value))


def rows(importer: "Importer", node: Node, value: Value) -> Value:
    """``value`` with its last axis as channels, the axis before as rows, all others as columns."""
    if value.size == importer.rows_of(value.shape) and (value.turned or _vector(value)):
        return replace(value, turned=True)
    return rearranged(importer, node, [value], index_of(importer, value), turned=True)


def adjacent(importer: "Importer", value: Value, index: Index) -> float:
    """How many elements follow each other in a source's map, on average, along the last axis.

    Parameters:
        index: of the elements, as of :func:`rearranged`.
    """
    order = _map_index(importer, value)[index.ravel() - 1]
    _, order = _composed(importer, [value.layer], order)
    steps = np.diff(order.reshape(-1, index.shape[-1]), axis=1) == 1
    return index.size / (index.size - int(np.count_nonzero(steps)))
