"""Mapping of a graph onto layers, node by node.

:class:`Importer` has the state: the layers, and each tensor's
:class:`microkernels.onnx_models.model.Value`. Each function of
:mod:`microkernels.onnx_models.operators` maps one node.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.common.fixed_point import Reals
from microkernels.networks.curves import Function
from microkernels.networks.network import INPUT, ElementWise, Layer, MapSize, Rearrange, Source
from microkernels.networks.parameters import Weights
from microkernels.networks.rearrange import ZERO
from support.errors import clipped, printable

from .errors import ModelError, RefusedError
from .fold import Array, output_shape
from .model import MappedModel, Norm, Value, as_map, to_maps
from .read import GraphNode, OnnxGraph, mixing, refused

#: Maximum elements of a tensor without images that becomes one pixel, whose parts move fast.
_VECTOR = 2048
#: Operators that produce all outputs that are used.
_SEVERAL_OUTPUTS = frozenset({"Split", "LSTM", "GRU", "RNN", "ai.onnx.ml.LinearClassifier"})
#: Operators that work on the last axis of their inputs.
_ROWS = frozenset(
    {"GRU", "LSTM", "LayerNormalization", "MatMul", "RMSNormalization", "RNN", "Softmax"}
)
#: Nodes that pass on elements in the same order; look-ups of inputs see through them.
_VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Cast"})


#: Maximum elements of a rearranged map: each may be a separate move.
_MOST_ELEMENTS = 1 << 20
#: Maximum elements of a map from which some are taken.
_MOST_INDEXED = 1 << 24

Index = NDArray[np.int64]
Operator = Callable[["Importer", GraphNode], None]


class Importer:
    """A graph during its mapping.

    Parameters:
        graph: as read.
        batch: images along the first axis of all tensors. With 1 all tensors together are one
            image, whatever their first dimensions.
        mixed: why several images along first axes are not a batch, for messages; "" if there are
            none.

    Attributes:
        graph, batch: the parameters.
        inputs: of the model. values: by name of the tensor.
        shared: layers whose maps several nodes or tensors use.
        layers: by name, in order. sizes: of their maps, and of the inputs, by layer.
        real, bounds, affine, curves, epsilons, constants, origins, norms, rounded, steps,
            approximation: see :class:`microkernels.onnx_models.model.MappedModel`.
        operators: the supported ones, by type, of which others are made.
        mapped: number of nodes that are mapped, by type.
        refused: nodes that are not supported. Nodes that depend on them are neither mapped nor
            refused.
        model: the mapped model; None if a node is refused.
        scaled: tensors of integers that stand for real numbers.
        whole: layers of integers that are not tensors of the model.
    """

    def __init__(self, graph: OnnxGraph, *, batch: int, mixed: str = "") -> None:
        self.graph = graph
        self.batch = batch
        self._mixed = mixed
        self.values: dict[str, Value] = {}
        self.layers: dict[str, Layer] = {}
        self.sizes: dict[str, MapSize] = {}
        self.real: dict[str, Weights] = {}
        self.bounds: dict[str, tuple[float, float]] = {}
        self.affine: dict[str, tuple[float, float]] = {}
        self.curves: dict[str, Function] = {}
        self.epsilons: dict[str, float] = {}
        self.constants: dict[str, Reals] = {}
        self.origins: dict[str, str] = {}
        self.norms: dict[str, Norm] = {}
        self.rounded: set[str] = set()
        self.steps: dict[str, tuple[float, float]] = {}
        self.scaled: set[str] = set()
        self.whole: set[str] = set()
        self.shared: set[str] = set()
        self.approximation = graph.rounding
        self.operators: Mapping[str, Operator] = {}
        self.mapped: Counter[str] = Counter()
        self.refused: list[RefusedError] = []
        self.model: MappedModel | None = None
        self._uses = Counter(name for node in graph.nodes for name in node.input)
        self._uses.update(graph.outputs)
        self.inputs: list[Value] = []
        for number, name in enumerate(graph.inputs):
            self._add_input(number, name)

    def _add_input(self, number: int, name: str) -> None:
        shape = self.graph.shapes[name]
        seen = name
        size = self.map_of(shape)
        # The host writes a view of an input to memory.
        while self._uses[seen] == 1:
            node = next((node for node in self.graph.nodes if seen in node.input), None)
            if node is None or node.op_type not in _VIEWS or node.input[0] != seen:
                break
            seen = node.output[0]
            viewed = self.graph.shapes.get(seen)
            if viewed is not None and self.has_images(viewed):
                size = self.map_of(viewed)
        # Operators on rows need the last axis in channels.
        viewed = self.graph.shapes.get(seen, ())
        turned = any(seen in node.input and node.op_type in _ROWS for node in self.graph.nodes)
        turned = turned and len(viewed) > 1 and prod(viewed) == prod(shape)
        if turned and self.has_images(viewed):
            size = self.rows_of(viewed)
        layer = INPUT
        if number:
            layer = self.unique(name)
            self.layers[layer] = Source(name=layer, size=size)
        self.sizes[layer] = size
        if self._uses[name] != 1:
            self.shared.add(layer)
        self.values[name] = Value(layer=layer, size=size, shape=shape, turned=turned)
        self.inputs.append(self.port(name, self.values[name]))

    def port(self, tensor: str, value: Value) -> Value:
        """An input or output of the model: a tensor and its layer."""
        return replace(value, tensor=tensor, integers=tensor in self.graph.integers)

    def batched(self, shape: tuple[int, ...]) -> bool:
        """Whether the first axis of a tensor of this shape has several images."""
        return self.batch > 1 and len(shape) > 0

    def has_images(self, shape: tuple[int, ...]) -> bool:
        """Whether a tensor of this shape can be part of the model: all have the batch first."""
        return self.batch == 1 or shape[:1] == (self.batch,)

    def image_of(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of one image of a tensor."""
        return shape[1:] if self.batched(shape) else shape

    def check_images(self, node: GraphNode, value: Value) -> None:
        """Refuse a value whose first axis the node interprets as images if it is not a batch.

        Raises:
            ModelError: there are several images, which are not a batch.
        """
        if value.shape[:1] != (self.batch,):
            why = f": {self._mixed}" if self._mixed else ""
            raise refused(
                node,
                f"its input of shape {list(value.shape)} has several images, but the model has no "
                f"batch{why}",
            )

    def map_of(self, shape: tuple[int, ...]) -> MapSize:
        """Size of the map for an image of a tensor."""
        if self.batched(shape) or (len(shape) > 1 and shape[0] == 1):
            return as_map(shape[1:])
        elements = prod(shape)
        return MapSize(1, 1, elements) if elements <= _VECTOR else as_map(shape)

    def rows_of(self, shape: tuple[int, ...]) -> MapSize:
        """Size of the map for an image of a tensor with its last axis as channels."""
        inner = (1, 1, *self.image_of(shape))
        return MapSize(prod(inner[:-2]), inner[-2], inner[-1])

    # Queries by operators.

    def unique(self, name: str) -> str:
        """A unique name for a layer, derived from that of a node or tensor."""
        stem = clipped(printable("_".join(name.split()) or "layer"), 60).replace(" ", "_")
        candidate, number = stem, 1
        while candidate in self.layers or candidate == INPUT:
            number += 1
            candidate = f"{stem}_{number}"
        return candidate

    def value(self, node: GraphNode, number: int = 0) -> Value:
        """The node's input ``number``, not turned; it must depend on the model's inputs.

        Raises:
            ModelError: there is none, or it is constant.
        """
        return straight(self, node, self.held(node, number))

    def held(self, node: GraphNode, number: int = 0) -> Value:
        """Like :meth:`value`, but perhaps turned.

        Raises:
            ModelError: there is none, or it is constant.
        """
        name = node.input[number] if number < len(node.input) else ""
        if name not in self.values:
            raise refused(node, f"input {number} must depend on the model's inputs")
        return self.values[name]

    def used(self, tensor: str) -> bool:
        """Whether a node or the model uses a tensor; not "", which is none."""
        return bool(tensor) and self._uses[tensor] > 0

    def extra_outputs(self, node: GraphNode) -> str:
        """Name of an output in use, beyond the first, of an operator that produces only the first;
        "" if there is none."""
        if node.op_type in _SEVERAL_OUTPUTS:
            return ""
        return next((name for name in node.output[1:] if self._uses[name]), "")

    def is_input(self, value: Value) -> bool:
        """Whether the host writes a value to memory: an input or a constant."""
        return value.layer == INPUT or not self.layers[value.layer].computed

    def is_constant(self, node: GraphNode, number: int) -> bool:
        """Whether the node's input ``number`` is constant."""
        return number < len(node.input) and node.input[number] in self.graph.constants

    def constant(self, node: GraphNode, number: int) -> Array | None:
        """The node's input ``number``, which must be constant; None if it is missing.

        Raises:
            ModelError: it depends on the model's inputs.
        """
        name = node.input[number] if number < len(node.input) else ""
        if not name:
            return None
        if name not in self.graph.constants:
            raise refused(node, f"input {number} must be constant")
        return self.graph.constants[name]

    def reals(self, node: GraphNode, number: int) -> Reals:
        """Like :meth:`constant`, as finite real numbers; the input must not be missing.

        Raises:
            ModelError: it is missing, not constant, or not finite.
        """
        values = self.constant(node, number)
        if values is None:
            raise refused(node, f"input {number} is missing")
        return self._finite(node, number, values.astype(np.float64))

    def weights(self, node: GraphNode, number: int) -> Reals:
        """Like :meth:`reals`, but in their own type if this is a type of real numbers, since there
        may be many.

        Raises:
            ModelError: as for :meth:`reals`.
        """
        values = self.constant(node, number)
        if values is None or values.dtype != np.float32:
            return self.reals(node, number)
        return self._finite(node, number, values.view(np.float32))

    def _finite(self, node: GraphNode, number: int, values: Reals) -> Reals:
        if not np.isfinite(values).all():
            raise refused(node, f"input {number} has NaN or infinities")
        return values

    # Results of operators.

    def add(
        self,
        node: GraphNode,
        layer: Layer,
        size: MapSize,
        shape: tuple[int, ...],
        *,
        last: bool = True,
        turned: bool = False,
    ) -> Value:
        """Add a layer.

        Parameters:
            layer: with a name from :meth:`unique`.
            size: of its map. shape: of the tensor.
            last: it produces the node's first output.
            turned: as for :class:`Value`.
        """
        self.layers[layer.name] = layer
        self.sizes[layer.name] = size
        self.origins[layer.name] = node.name
        value = Value(layer=layer.name, size=size, shape=shape, turned=turned)
        return self.name_output(node, node.output[0], value) if last else value

    def apply(
        self,
        node: GraphNode,
        kind: Callable[..., Layer],
        value: Value,
        *,
        last: bool = True,
        **attributes: Any,
    ) -> Value:
        """Add a layer whose map is like ``value``, its first source.

        Parameters:
            kind: of the layer. attributes: its other attributes.
            last: as for :meth:`add`.
        """
        layer = kind(name=self.unique(node.name), source=value.layer, **attributes)
        return self.add(node, layer, value.size, value.shape, last=last, turned=value.turned)

    def weigh(
        self,
        node: GraphNode,
        kind: Callable[..., Layer],
        value: Value,
        real: Weights,
        shape: tuple[int, ...],
        *,
        size: MapSize | None = None,
        last: bool = True,
        turned: bool = False,
        **attributes: Any,
    ) -> Value:
        """Add a layer with weights of real numbers, without ReLU.

        Parameters:
            kind: of the layer. value: its source. attributes: its other attributes.
            shape: of the tensor. size: of its map; None: as for :meth:`map_of`.
            last, turned: as for :meth:`add`.
        """
        name = self.unique(node.name)
        layer = kind(name=name, source=value.layer, fraction=0, relu=False, **attributes)
        self.real[name] = real
        size = self.map_of(shape) if size is None else size
        return self.add(node, layer, size, shape, last=last, turned=turned)

    def alias(self, node: GraphNode, value: Value, shape: tuple[int, ...]) -> None:
        """Let the node's first output be the elements of ``value`` in their order."""
        self.name_output(node, node.output[0], replace(value, shape=shape))

    def name_output(self, node: GraphNode, tensor: str, value: Value) -> Value:
        """Name a tensor that a node produces: the elements and shape of ``value``.

        Raises:
            MixedImagesError: the shape does not have the batch first.
            ModelError: the tensor has another shape.
        """
        shape = value.shape
        if not self.has_images(shape):
            raise mixing(
                node,
                f"its output of shape {list(shape)} must keep the batch of {self.batch} first",
            )
        # For some windows, ONNX infers shapes that no implementation produces.
        if self.graph.shapes.get(tensor, shape) != shape != self._true_shape(node, tensor):
            raise refused(
                node,
                f"its output {clipped(printable(tensor), 60)} has the shape "
                f"{list(self.graph.shapes[tensor])}, but its layers make {list(shape)}, which is a "
                "bug in VIP",
            )
        if self._uses[tensor] != 1:
            self.shared.add(value.layer)
        self.values[tensor] = value
        return value

    def _true_shape(self, node: GraphNode, tensor: str) -> tuple[int, ...] | None:
        kinds, values = self.graph.integers, self.values
        feeds = {
            name: np.zeros(values[name].shape, kinds.get(name, "float32"))
            if name in values
            else self.graph.constants[name]
            for name in filter(None, node.input)
        }
        return output_shape(node, tensor, feeds, self.graph.opset)

    def constant_map(self, node: GraphNode, values: Reals, like: Value) -> Value:
        """A map of constants, broadcast to the shape of ``like``.

        Raises:
            ModelError: the constant does not fit.
        """
        try:
            spread = np.broadcast_to(values, like.shape)
        except ValueError:
            raise refused(
                node,
                f"a constant of shape {list(values.shape)} can't be broadcast to "
                f"{list(like.shape)}",
            ) from None
        name = self.unique(f"{node.name}_constant")
        turned = like.turned
        self.constants[name] = to_maps(name, spread, self.batch, like.size, turned=turned)
        layer = Source(name=name, size=like.size)
        return self.add(node, layer, like.size, like.shape, last=False, turned=turned)

    def constant_of(self, node: GraphNode, values: Reals, *, turned: bool = False) -> Value:
        """A map of constants in their own shape, which must have the batch first.

        Parameters:
            turned: as for :class:`Value`.
        """
        shape = values.shape
        if not self.has_images(shape):
            raise mixing(
                node,
                f"its constant of shape {list(shape)} must have the batch of {self.batch} first",
            )
        size = self.rows_of(shape) if turned else self.map_of(shape)
        like = Value(layer="", size=size, shape=shape, turned=turned)
        return self.constant_map(node, values, like)


def affine_layer(name: str, source: str) -> ElementWise:
    """A layer that multiplies and adds; factor, offset and fraction bits are set later."""
    return ElementWise(name=name, source=source, function="affine", factor=0, offset=0, fraction=0)


def copied(importer: Importer, node: GraphNode, value: Value) -> Value:
    """``value`` as the output of a layer, copied if it is an input of the network."""
    if value.layer != INPUT:
        return value
    layer = affine_layer(importer.unique(f"{node.name}_copy"), value.layer)
    importer.affine[layer.name] = (1.0, 0.0)
    return importer.add(node, layer, value.size, value.shape, last=False, turned=value.turned)


def index_of(importer: Importer, value: Value, first: int = 1) -> Index:
    """Numbers of an image's elements in ONNX's order, from ``first`` on, in the tensor's shape with
    a batch of 1.

    Raises:
        ModelError: too many elements.
    """
    shape = (1, *value.shape[1:]) if importer.batched(value.shape) else value.shape
    if prod(shape) > _MOST_INDEXED:
        raise ModelError(
            f"an image of {prod(shape):,} elements can't be rearranged; at most {_MOST_INDEXED:,}"
        )
    return np.arange(first, first + prod(shape), dtype=np.int64).reshape(shape)


def _map_index(importer: Importer, value: Value) -> Index:
    """Position in the map of each element of an image, in ONNX's order."""
    size = value.size
    places = np.arange(size.elements).reshape(size.height, size.width, size.channels)
    return places.transpose((1, 0, 2) if value.turned else (2, 0, 1)).ravel()


def rearranged(
    importer: Importer,
    node: GraphNode,
    values: Sequence[Value],
    index: Index,
    *,
    output: str = "",
    empty: int = ZERO,
    turned: bool = False,
) -> Value:
    """A layer with the elements of ``values`` that ``index`` selects.

    Parameters:
        index: numbers of elements, from 1 on through all values; 0: ``empty``. In the shape of an
            image, with a batch of 1.
        output: tensor that the layer produces; "" if not one of the model.
        empty: the constant for 0.
        turned: the last axis becomes channels.

    Raises:
        ModelError: there are too many elements, or none.
    """
    if not 0 < index.size <= _MOST_ELEMENTS:
        raise refused(
            node,
            f"its output has {index.size:,} elements per image; 1 to {_MOST_ELEMENTS:,} are "
            "allowed",
        )
    shape = index.shape
    if importer.batched(shape):
        shape = (importer.batch, *shape[1:])
    size = importer.rows_of(shape) if turned else importer.map_of(shape)
    sources = [copied(importer, node, value) for value in values]
    places, before = [], 0
    for value in sources:
        places.append(_map_index(importer, value) + before)
        before += value.size.elements
    every = np.concatenate(places)
    flat = index.ravel()
    order = np.where(flat == 0, empty, every[np.maximum(flat, 1) - 1])
    if turned:
        order = order.reshape(size.width, size.height, size.channels).transpose(1, 0, 2).ravel()
    else:
        order = order.reshape(size.channels, size.height, size.width).transpose(1, 2, 0).ravel()
    names, order = _composed(importer, [value.layer for value in sources], order)
    if len(names) == 1 and _same_place(importer, names[0], size, order):
        importer.shared.add(names[0])
        result = replace(sources[0], layer=names[0], size=size, shape=shape, turned=turned)
    else:
        layer = Rearrange(
            name=importer.unique(node.name),
            inputs=tuple(names),
            size=size,
            order=array("q", order.tobytes()),
        )
        result = importer.add(node, layer, size, shape, last=False, turned=turned)
    if output:
        importer.name_output(node, output, result)
    return result


def _composed(importer: Importer, names: list[str], order: Index) -> tuple[list[str], Index]:
    """Layers and order that bypass layers of moves: elements come directly from where these take
    them, as long as those layers are not smaller than the result."""
    firsts = np.cumsum([0, *(importer.sizes[name].elements for name in names)])
    into: list[str] = []
    composed = order.copy()
    for name, first, end in zip(names, firsts, firsts[1:], strict=False):
        of_layer = (order >= first) & (order < end)
        layer = importer.layers.get(name)
        inputs: tuple[str, ...] = (name,)
        chosen = order[of_layer] - first
        if isinstance(layer, Rearrange) and len(layer.order) >= len(order):
            inputs, chosen = layer.inputs, layer.index[chosen]
        places = np.cumsum([0, *(importer.sizes[source].elements for source in inputs)])
        moved = chosen.copy()
        for source, start, last in zip(inputs, places, places[1:], strict=False):
            if source not in into:
                into.append(source)
            base = sum(importer.sizes[before].elements for before in into[: into.index(source)])
            inside = (chosen >= start) & (chosen < last)
            moved[inside] = chosen[inside] - start + base
        composed[of_layer] = moved
    return into, composed


def _same_place(importer: Importer, name: str, size: MapSize, order: Index) -> bool:
    """Whether a map of ``size`` has a layer's elements in the same places."""
    return importer.sizes[name] == size and bool((order == np.arange(len(order))).all())


def _vector(value: Value) -> bool:
    """Whether an image is one pixel, so that its elements have only one order."""
    return value.size.width == value.size.height == 1


def straight(importer: Importer, node: GraphNode, value: Value) -> Value:
    """``value`` in a map with the order of its shape: channels, rows, columns."""
    if not value.turned:
        return value
    if _vector(value) and importer.map_of(value.shape) == value.size:
        return replace(value, turned=False)
    return rearranged(importer, node, [value], index_of(importer, value))


def rows(importer: Importer, node: GraphNode, value: Value) -> Value:
    """``value`` with its last axis as channels, the one before as rows, and others as columns."""
    if value.size == importer.rows_of(value.shape) and (value.turned or _vector(value)):
        return replace(value, turned=True)
    return rearranged(importer, node, [value], index_of(importer, value), turned=True)


def adjacent(importer: Importer, value: Value, index: Index) -> float:
    """Mean length of runs of adjacent elements in a source's map along the last axis.

    Parameters:
        index: of the elements, as for :func:`rearranged`.
    """
    order = _map_index(importer, value)[index.ravel() - 1]
    _, order = _composed(importer, [value.layer], order)
    steps = np.diff(order.reshape(-1, index.shape[-1]), axis=1) == 1
    return index.size / (index.size - int(np.count_nonzero(steps)))
