"""A graph that is being mapped onto layers, node by node.

:class:`Importer` holds what is known so far: the layers, and for each tensor its :class:`Value`.
The functions of :mod:`microkernels.onnx_models.operators` map one node each.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from microkernels.networks.network import INPUT, Layer, MapSize, Source
from support.errors import clipped, printable

from .curves import Function
from .evaluate import output_shape
from .graph import Array, Graph, Node, attribute
from .model import Norm, Port, Real, Reals, as_map, to_maps
from .moved import straight
from .values import Value

__all__ = ["Importer", "Operator", "Value", "attribute"]

#: Elements of a tensor, not of one image, that are one pixel, whose parts are moved fast.
_VECTOR = 2048
#: Operators that make all outputs that are used.
_SEVERAL_OUTPUTS = frozenset({"Split", "LSTM", "GRU"})
#: Operators that work on the last axis of their inputs.
_ROWS = frozenset({"LayerNormalization", "MatMul", "RMSNormalization", "Softmax"})
#: Nodes whose output holds the same elements in the same order; an input is looked at through them.
_VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Cast"})


Operator = Callable[["Importer", Node], None]


class Importer:
    """A graph that is being mapped.

    Parameters:
        graph: as read.
        batch: images along the first axis of all tensors. With 1 all tensors together are one
            image, whatever their first dimensions.
        mixed: why several images along first axes are no batch, for messages; "": there are none.

    Attributes:
        graph, batch: as given.
        inputs: of the model. values: by name of the tensor.
        layers: by name, in order. sizes: of their maps, and of the inputs, by layer.
        real, bounds, affine, curves, epsilons, constants, origins, norms, rounded: as of
            :class:`microkernels.onnx_models.model.Model`.
        scaled: tensors of integers that stand for real numbers.
        whole: layers that hold integers and no tensor of the model.
        approximation: as of :class:`microkernels.onnx_models.model.Model`.
    """

    def __init__(self, graph: Graph, *, batch: int, mixed: str = "") -> None:
        self.graph = graph
        self.batch = batch
        self._mixed = mixed
        self.values: dict[str, Value] = {}
        self.layers: dict[str, Layer] = {}
        self.sizes: dict[str, MapSize] = {}
        self.real: dict[str, Real] = {}
        self.bounds: dict[str, tuple[float, float]] = {}
        self.affine: dict[str, tuple[float, float]] = {}
        self.curves: dict[str, Function] = {}
        self.epsilons: dict[str, float] = {}
        self.constants: dict[str, Reals] = {}
        self.origins: dict[str, str] = {}
        self.norms: dict[str, Norm] = {}
        self.rounded: set[str] = set()
        self.scaled: set[str] = set()
        self.whole: set[str] = set()
        self.approximation = graph.rounding
        self._uses = Counter(name for node in graph.nodes for name in node.inputs)
        self._uses.update(graph.outputs)
        self.inputs: list[Port] = []
        for number, name in enumerate(graph.inputs):
            self._add_input(number, name)

    def _add_input(self, number: int, name: str) -> None:
        shape = self.graph.shapes[name]
        seen, alone = name, self._uses[name] == 1
        size = self.map_of(shape)
        # A view of an input is what the host puts into memory.
        while self._uses[seen] == 1:
            node = next((node for node in self.graph.nodes if seen in node.inputs), None)
            if node is None or node.op not in _VIEWS or node.inputs[0] != seen:
                break
            seen = node.outputs[0]
            viewed = self.graph.shapes.get(seen)
            if viewed is not None and self.has_images(viewed):
                size = self.map_of(viewed)
        # Operators that work on rows want the last axis in channels.
        viewed = self.graph.shapes.get(seen, ())
        turned = any(seen in node.inputs and node.op in _ROWS for node in self.graph.nodes)
        turned = turned and len(viewed) > 1 and prod(viewed) == prod(shape)
        if turned and self.has_images(viewed):
            size = self.rows_of(viewed)
        layer = INPUT
        if number:
            layer = self.unique(name)
            self.layers[layer] = Source(name=layer, size=size)
        self.sizes[layer] = size
        self.values[name] = Value(layer=layer, size=size, shape=shape, alone=alone, turned=turned)
        self.inputs.append(self.port(name, self.values[name]))

    def port(self, tensor: str, value: Value) -> Port:
        """A tensor and the layer that holds it."""
        return Port(
            tensor=tensor,
            shape=value.shape,
            layer=value.layer,
            size=value.size,
            turned=value.turned,
            integers=tensor in self.graph.integers,
        )

    def batched(self, shape: tuple[int, ...]) -> bool:
        """Whether the first axis of a tensor of this shape holds several images."""
        return self.batch > 1 and len(shape) > 0

    def has_images(self, shape: tuple[int, ...]) -> bool:
        """Whether a tensor of this shape may be one of the model: all have the batch first."""
        return self.batch == 1 or shape[:1] == (self.batch,)

    def image_of(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of one image of a tensor."""
        return shape[1:] if self.batched(shape) else shape

    def check_images(self, node: Node, value: Value) -> None:
        """Refuse a value whose first axis a node takes for images where that is no batch.

        Raises:
            ModelError: there are several images, which are no batch.
        """
        if value.shape[:1] != (self.batch,):
            why = f": {self._mixed}" if self._mixed else ""
            raise node.refused(
                f"its input of shape {list(value.shape)} has several images, but the model has no "
                f"batch{why}"
            )

    def map_of(self, shape: tuple[int, ...]) -> MapSize:
        """Size of the map that holds an image of a tensor."""
        if self.batched(shape) or (len(shape) > 1 and shape[0] == 1):
            return as_map(shape[1:])
        elements = prod(shape)
        return MapSize(1, 1, elements) if elements <= _VECTOR else as_map(shape)

    def rows_of(self, shape: tuple[int, ...]) -> MapSize:
        """Size of the map that holds an image of a tensor with its last axis as channels."""
        inner = (1, 1, *self.image_of(shape))
        return MapSize(prod(inner[:-2]), inner[-2], inner[-1])

    # What operators ask for.

    def unique(self, name: str) -> str:
        """A name for a layer, after that of a node or tensor."""
        stem = clipped(printable("_".join(name.split()) or "layer"), 60).replace(" ", "_")
        found, number = stem, 1
        while found in self.layers or found == INPUT:
            number += 1
            found = f"{stem}_{number}"
        return found

    def value(self, node: Node, number: int = 0) -> Value:
        """The node's input of this number, which must depend on the model's inputs; not turned.

        Raises:
            ModelError: there is none, or it is constant.
        """
        return straight(self, node, self.held(node, number))

    def held(self, node: Node, number: int = 0) -> Value:
        """Likewise, turned or not.

        Raises:
            ModelError: there is none, or it is constant.
        """
        name = node.inputs[number] if number < len(node.inputs) else ""
        if name not in self.values:
            raise node.refused(f"input {number} must depend on the model's inputs")
        return self.values[name]

    def extra_outputs(self, node: Node) -> str:
        """A further output that something uses, of an operator that makes none but the first; "":
        there is none."""
        if node.op in _SEVERAL_OUTPUTS:
            return ""
        return next((name for name in node.outputs[1:] if self._uses[name]), "")

    def is_constant(self, node: Node, number: int) -> bool:
        """Whether the node's input of this number is a constant."""
        return number < len(node.inputs) and node.inputs[number] in self.graph.constants

    def constant(self, node: Node, number: int) -> Array | None:
        """The node's input of this number, which must be constant; None: there is none.

        Raises:
            ModelError: it depends on the model's inputs.
        """
        name = node.inputs[number] if number < len(node.inputs) else ""
        if not name:
            return None
        if name not in self.graph.constants:
            raise node.refused(f"input {number} must be constant")
        return self.graph.constants[name]

    def reals(self, node: Node, number: int) -> Reals:
        """Likewise, as finite real numbers; there must be one.

        Raises:
            ModelError: it is none.
        """
        found = self.constant(node, number)
        if found is None:
            raise node.refused(f"input {number} is missing")
        return self._finite(node, number, found.astype(np.float64))

    def weights(self, node: Node, number: int) -> Reals:
        """Likewise, in the type that they have, if it is one of real numbers: they may be many.

        Raises:
            ModelError: there are none.
        """
        found = self.constant(node, number)
        if found is None or found.dtype != np.float32:
            return self.reals(node, number)
        return self._finite(node, number, found.view(np.float32))

    def _finite(self, node: Node, number: int, values: Reals) -> Reals:
        if not np.isfinite(values).all():
            raise node.refused(f"input {number} has NaN or infinities")
        return values

    # What operators make.

    def add(
        self,
        node: Node,
        layer: Layer,
        size: MapSize,
        shape: tuple[int, ...],
        *,
        last: bool = True,
        turned: bool = False,
    ) -> Value:
        """Add a layer.

        Parameters:
            layer: with a name of :meth:`unique`.
            size: of its map. shape: of the tensor.
            last: it makes the node's first output.
            turned: as of :class:`Value`.
        """
        self.layers[layer.name] = layer
        self.sizes[layer.name] = size
        self.origins[layer.name] = node.name
        value = Value(layer=layer.name, size=size, shape=shape, alone=True, turned=turned)
        return self.name_output(node, node.outputs[0], value) if last else value

    def alias(self, node: Node, value: Value, shape: tuple[int, ...]) -> None:
        """The node's first output holds the elements of ``value`` in their order."""
        self.name_output(node, node.outputs[0], replace(value, shape=shape))

    def name_output(self, node: Node, tensor: str, value: Value) -> Value:
        """The elements of ``value``, in its shape, are a tensor that a node makes.

        Raises:
            MixedImagesError: the shape does not have the batch first.
            ModelError: the tensor has another shape.
        """
        shape = value.shape
        if not self.has_images(shape):
            raise node.mixing(
                f"its output of shape {list(shape)} must keep the batch of {self.batch} first"
            )
        # ONNX infers shapes of some windows that no implementation has.
        if self.graph.shapes.get(tensor, shape) != shape != self._true_shape(node, tensor):
            raise node.refused(
                f"its output {clipped(printable(tensor), 60)} has the shape "
                f"{list(self.graph.shapes[tensor])}, but its layers make {list(shape)}, which is a "
                "fault of this program"
            )
        named = replace(value, alone=value.alone and self._uses[tensor] == 1)
        self.values[tensor] = named
        return named

    def _true_shape(self, node: Node, tensor: str) -> tuple[int, ...] | None:
        kinds, held = self.graph.integers, self.values
        feeds = {
            name: np.zeros(held[name].shape, kinds.get(name, "float32"))
            if name in held
            else self.graph.constants[name]
            for name in filter(None, node.inputs)
        }
        return output_shape(node.proto(), tensor, feeds, self.graph.opset)

    def constant_map(self, node: Node, values: Reals, like: Value) -> Value:
        """A map of constants, spread to the shape of ``like``.

        Raises:
            ModelError: the constant does not fit.
        """
        try:
            spread = np.broadcast_to(values, like.shape)
        except ValueError:
            raise node.refused(
                f"a constant of shape {list(values.shape)} can't be spread to {list(like.shape)}"
            ) from None
        name = self.unique(f"{node.name}_constant")
        turned = like.turned
        self.constants[name] = to_maps(name, spread, self.batch, like.size, turned=turned)
        layer = Source(name=name, size=like.size)
        return self.add(node, layer, like.size, like.shape, last=False, turned=turned)

    def constant_of(self, node: Node, values: Reals, *, turned: bool = False) -> Value:
        """A map of constants in their own shape, which must have the batch first.

        Parameters:
            turned: as of :class:`Value`.
        """
        shape = values.shape
        if not self.has_images(shape):
            raise node.mixing(
                f"its constant of shape {list(shape)} must have the batch of {self.batch} first"
            )
        size = self.rows_of(shape) if turned else self.map_of(shape)
        like = Value(layer="", size=size, shape=shape, alone=False, turned=turned)
        return self.constant_map(node, values, like)
