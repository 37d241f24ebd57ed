"""The state of a graph's mapping: the layers, and each tensor's
:class:`microkernels.onnx_models.model.Value`."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from microkernels.common.fixed_point import Reals
from microkernels.networks.curves import Function
from microkernels.networks.network import INPUT, Layer, MapSize, Source
from microkernels.networks.parameters import Weights

from .errors import RefusedError, label
from .fold import Array
from .model import MappedModel, Norm, Value, as_map
from .read import OnnxGraph

#: Maximum elements of a tensor without images that becomes one pixel, whose parts move fast.
_VECTOR = 2048


@dataclass(frozen=True)
class Operator:
    """How nodes of a type are mapped.

    Attributes:
        maps: a :class:`microkernels.onnx_models.node.GraphNode` -> its first output; None: the
            function has named all of its outputs.
        integers: it accepts integers: its results for these are integers, or it is meant for them.
        several: it produces all outputs that are used, not only the first.
        rows: it works on the last axis of its inputs.
        view: it passes on elements in the same order; look-ups of inputs see through it.
    """

    maps: Callable[[Any], Value | None]
    integers: bool = False
    several: bool = False
    rows: bool = False
    view: bool = False


class Importer:
    """A graph during its mapping.

    Parameters:
        graph: as read. operators: the supported ones, by type.
        batch: images along the first axis of all tensors. With 1 all tensors together are one
            image, whatever their first dimensions.
        mixed: why several images along first axes are not a batch, for messages; "" if there are
            none.

    Attributes:
        graph, operators, batch, mixed: the parameters. Some operators are made of others.
        folded: tensors that don't depend on the inputs, by name.
        inputs: of the model. values: by name of the tensor. uses: number of them, likewise.
        shared: layers whose maps several nodes or tensors use.
        layers: by name, in order. sizes: of their maps, and of the inputs, by layer.
        real, bounds, affine, curves, epsilons, constants, origins, norms, rounded, steps,
            approximation: see :class:`microkernels.onnx_models.model.MappedModel`.
        mapped: number of nodes that are mapped, by type.
        refused: nodes that are not supported. Nodes that depend on them are neither mapped nor
            refused.
        model: the mapped model; None if a node is refused.
        scaled: tensors of integers that stand for real numbers.
        whole: layers of integers that are not tensors of the model.
    """

    def __init__(
        self,
        graph: OnnxGraph,
        operators: Mapping[str, Operator],
        *,
        batch: int,
        mixed: str = "",
    ) -> None:
        self.graph = graph
        self.operators = operators
        self.batch = batch
        self.mixed = mixed
        self.folded: dict[str, Array] = dict(graph.constants)
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
        self.mapped: Counter[str] = Counter()
        self.refused: list[RefusedError] = []
        self.model: MappedModel | None = None
        self.uses = Counter(name for node in graph.nodes for name in node.input)
        self.uses.update(graph.outputs)
        self.inputs: list[Value] = []
        for number, name in enumerate(graph.inputs):
            self._add_input(number, name)

    def _add_input(self, number: int, name: str) -> None:
        shape = self.graph.shapes[name]
        seen = name
        size = self.map_of(shape)
        views = {name for name, operator in self.operators.items() if operator.view}
        on_rows = {name for name, operator in self.operators.items() if operator.rows}
        # The host writes a view of an input to memory.
        while self.uses[seen] == 1:
            node = next((node for node in self.graph.nodes if seen in node.input), None)
            if node is None or node.op_type not in views or node.input[0] != seen:
                break
            seen = node.output[0]
            viewed = self.graph.shapes.get(seen)
            if viewed is not None and self.has_images(viewed):
                size = self.map_of(viewed)
        # Operators on rows need the last axis in channels.
        viewed = self.graph.shapes.get(seen, ())
        turned = any(seen in node.input and node.op_type in on_rows for node in self.graph.nodes)
        turned = turned and len(viewed) > 1 and prod(viewed) == prod(shape)
        if turned and self.has_images(viewed):
            size = self.rows_of(viewed)
        layer = INPUT
        if number:
            layer = self.unique(name)
            self.layers[layer] = Source(name=layer, size=size)
        self.sizes[layer] = size
        if self.uses[name] != 1:
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

    def unique(self, name: str) -> str:
        """A unique name for a layer, derived from that of a node or tensor."""
        stem = label("_".join(name.split()) or "layer").replace(" ", "_")
        candidate, number = stem, 1
        while candidate in self.layers or candidate == INPUT:
            number += 1
            candidate = f"{stem}_{number}"
        return candidate

    def used(self, tensor: str) -> bool:
        """Whether a node or the model uses a tensor; not "", which is none."""
        return bool(tensor) and self.uses[tensor] > 0

    def is_input(self, value: Value) -> bool:
        """Whether the host writes a value to memory: an input or a constant."""
        return value.layer == INPUT or not self.layers[value.layer].computed
