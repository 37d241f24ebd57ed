"""Mapping of a graph onto layers, node by node, and the nodes that are not supported.

:class:`Importer` has the state: the layers, and each tensor's
:class:`microkernels.onnx_models.model.Value`. Each function of
:mod:`microkernels.onnx_models.operators` maps one node.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from math import prod
from typing import Any, TypeVar

import numpy as np

from microkernels.common.fixed_point import Reals
from microkernels.networks.curves import Function
from microkernels.networks.network import INPUT, ElementWise, Layer, MapSize, Network, Source
from microkernels.networks.parameters import Weights
from support.errors import VipError, clipped, printable

from .errors import MixedImagesError, ModelError, RefusedError
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

#: Operators that accept integers: those with integer results for integers, and others.
_TAKES = frozenset(
    (
        "Abs", "Add", "And", "ArgMax", "ArgMin", "Cast", "CastLike", "CenterCropPad", "Clip",
        "Compress", "Concat", "ConvInteger", "CumSum", "DepthToSpace", "DequantizeLinear",
        "Dropout", "Equal", "Expand", "Flatten", "Gather", "GatherElements", "GatherND",
        "GlobalMaxPool", "Greater", "GreaterOrEqual", "Hardmax", "Identity", "Less", "LessOrEqual",
        "MatMul", "MatMulInteger", "Max", "MaxPool", "Min", "Mul", "Neg", "Not", "OneHot", "Or",
        "Pad", "QLinearConv", "QLinearMatMul", "ReduceMax", "ReduceMin", "Relu", "Reshape",
        "Resize", "ReverseSequence", "Scatter", "ScatterElements", "ScatterND", "Sign", "Slice",
        "SpaceToDepth", "Split", "Squeeze", "Sub", "Sum", "Tile", "Transpose", "Trilu",
        "Unsqueeze", "Where", "Xor", "ai.onnx.ml.ArrayFeatureExtractor", "ai.onnx.ml.Binarizer",
        "ai.onnx.ml.LinearClassifier", "ai.onnx.ml.LinearRegressor", "ai.onnx.ml.Scaler",
        "com.microsoft.QGemm", "com.microsoft.QLinearAdd",
    )
)  # fmt: skip

Operator = Callable[["Importer", GraphNode], None]
ValueT = TypeVar("ValueT")


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
        """The node's input ``number``, perhaps turned; it must depend on the model's inputs.

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


def map_graph(graph: OnnxGraph, operators: Mapping[str, Operator]) -> Importer:
    """Map a graph: its importer, which has the mapped model, or refused nodes.

    The batch is that declared by the graph. If it declares none, the first axis is a batch if all
    inputs have the same size above 1 along it and no node mixes images, which each operator checks.
    Otherwise all tensors together are one image.

    Parameters:
        operators: the supported ones, by type.

    Raises:
        ModelError: the model has no inputs, or an input without the batch.
    """
    if not graph.inputs:
        raise ModelError("the model has no input")
    if graph.batch is not None:
        return _mapped(Importer(graph, batch=graph.batch), operators)
    shapes = [graph.shapes[name] for name in graph.inputs]
    # A vector is not a batch of numbers.
    sizes = {shape[0] if len(shape) > 1 else 1 for shape in shapes}
    if len(sizes) > 1 or sizes == {1}:
        return _mapped(Importer(graph, batch=1), operators)
    try:
        return _mapped(Importer(graph, batch=sizes.pop()), operators)
    except MixedImagesError as error:
        return _mapped(Importer(graph, batch=1, mixed=str(error)), operators)


def _mapped(importer: Importer, operators: Mapping[str, Operator]) -> Importer:
    importer.operators = operators
    graph = importer.graph
    available = set(graph.constants) | set(importer.values) | {""}
    for node in graph.nodes:
        operator = operators.get(node.op_type)
        why = ""
        if operator is None:
            why = "the operator is not supported"
        elif unknown := importer.extra_outputs(node):
            why = f"its output {unknown} is not supported"
        elif unlike := _refused_integers(importer, node):
            why = unlike
        elif available.issuperset(node.input):
            try:
                operator(importer, node)
                importer.mapped[node.op_type] += 1
                available.update(name for name in node.output if name in importer.values)
            except RefusedError as error:
                if isinstance(error, MixedImagesError) and graph.batch is None:
                    raise
                importer.refused.append(error)
            except VipError as error:
                why = str(error)
        if why:
            importer.refused.append(refused(node, why))
    if not importer.refused:
        importer.model = _model(importer)
    return importer


def _model(importer: Importer) -> MappedModel:
    """The mapped model.

    Raises:
        ModelError: no layer computes an output.
    """
    outputs = []
    for name in importer.graph.outputs:
        if name not in importer.values:
            importer.values[name] = _constant(importer, name)
        value = importer.values[name]
        if importer.is_input(value):
            value = importer.values[name] = _copy(importer, name, value)
        outputs.append(importer.port(name, value))
    layers = _needed(importer, {port.layer for port in (*outputs, *importer.inputs)})

    def of_layers(values: Mapping[str, ValueT]) -> dict[str, ValueT]:
        return {name: value for name, value in values.items() if name in layers}

    return MappedModel(
        network=Network(input=importer.inputs[0].size, layers=tuple(layers.values())),
        batch=importer.batch,
        real=of_layers(importer.real),
        bounds=of_layers(importer.bounds),
        affine=of_layers(importer.affine),
        curves=of_layers(importer.curves),
        epsilons=of_layers(importer.epsilons),
        constants=of_layers(importer.constants),
        inputs=tuple(importer.inputs),
        outputs=tuple(outputs),
        origins=importer.origins,
        norms=of_layers(importer.norms),
        integers=frozenset(_integer_layers(importer) & {INPUT, *layers}),
        rounded=frozenset(importer.rounded & set(layers)),
        steps=of_layers(importer.steps),
        exact=_exact_layers(importer),
        inner=_inner(importer, layers),
        approximation=importer.approximation,
    )


def _constant(importer: Importer, tensor: str) -> Value:
    """A constant that is an output."""
    from onnx import helper

    node = helper.make_node("Constant", [], [tensor], tensor)
    values = importer.graph.constants[tensor]
    if values.dtype.kind in "OSU":
        raise refused(node, "an output must be of numbers, not of text")
    real = values.astype(np.float64)
    if not np.isfinite(real).all():
        raise refused(node, "an output that is constant must be finite")
    return importer.constant_of(node, real)


def _copy(importer: Importer, tensor: str, value: Value) -> Value:
    """A layer that copies an input that is also an output."""
    layer = affine_layer(importer.unique(tensor), value.layer)
    importer.layers[layer.name] = layer
    importer.affine[layer.name] = (1.0, 0.0)
    return replace(value, layer=layer.name)


def _needed(importer: Importer, names: set[str]) -> dict[str, Layer]:
    """These layers and all layers that they depend on."""
    needed = set(names)
    for layer in reversed(importer.layers.values()):
        if layer.name in needed:
            needed.update(layer.sources)
    return {name: layer for name, layer in importer.layers.items() if name in needed}


def _inner(importer: Importer, layers: Collection[str]) -> tuple[Value, ...]:
    """Tensors of real numbers that are outputs of these layers: the last one of each, since earlier
    ones may lack nodes merged into the layer."""
    graph = importer.graph
    tensors = {name for node in graph.nodes for name in node.output} - set(graph.integers)
    last = {
        value.layer: name
        for name, value in importer.values.items()
        if name in tensors and value.layer in layers
    }
    return tuple(importer.port(name, importer.values[name]) for name in last.values())


def _refused_integers(importer: Importer, node: GraphNode) -> str:
    """Why an operator on real numbers does not accept the node's inputs; "" if it does."""
    kinds = importer.graph.integers
    names = [name for name in node.input if name in importer.values and name in kinds]
    if node.op_type in _TAKES or not names:
        return ""
    return f"its input {names[0]} has integers; convert them to real numbers by Cast before"


def _integer_layers(importer: Importer) -> set[str]:
    """Layers and inputs that have only integers."""
    integers: set[str] = set(importer.whole)
    reals: set[str] = set()
    for name, value in importer.values.items():
        is_integer = name in importer.graph.integers and name not in importer.scaled
        (integers if is_integer else reals).add(value.layer)
    return integers - (reals - importer.whole)


def _exact_layers(importer: Importer) -> dict[str, tuple[str, str]]:
    """Layers and inputs whose integers affect integer outputs -> the tensor, and the type of its
    integers."""
    kinds = importer.graph.integers
    exact = {name for name in importer.graph.outputs if name in kinds}
    for node in reversed(importer.graph.nodes):
        if exact.intersection(node.output):
            names = [name for name in node.input if name in kinds and name in importer.values]
            exact.update(name for name in names if name not in importer.scaled)
    return {importer.values[name].layer: (name, kinds[name]) for name in sorted(exact)}
