"""A node during the mapping of its graph: what an operator asks of it, and what it adds."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from microkernels.common.fixed_point import Reals
from microkernels.networks.curves import UNFITTED, Function
from microkernels.networks.network import ElementWise, Layer, MapSize, Source
from microkernels.networks.parameters import Weights

from .errors import MixedImagesError, RefusedError, label
from .fold import Array, output_shape
from .importer import Importer
from .model import Value, to_maps

if TYPE_CHECKING:
    from onnx import NodeProto

#: An operand: a tensor of the graph by its name, one that was mapped, or constants.
Tensor = str | Value | NDArray[Any] | float


class GraphNode:
    """A node that is being mapped.

    Parameters:
        importer: of the graph. proto: the node.

    Attributes:
        importer, proto: the parameters.
        op, name: type of its operator, and its name. inputs, outputs: names of tensors.
        output: name of the first output that has one.
        batch: as for :class:`microkernels.onnx_models.importer.Importer`.
    """

    def __init__(self, importer: Importer, proto: "NodeProto") -> None:
        self.importer = importer
        self.proto = proto
        self.op, self.name = proto.op_type, proto.name
        self.inputs, self.outputs = list(proto.input), list(proto.output)
        self.output = next(filter(None, self.outputs), "")
        self.batch = importer.batch

    def refused(self, why: str) -> RefusedError:
        """An exception that refuses the node."""
        return RefusedError(self.op, self.name, why)

    def mixing(self, why: str) -> MixedImagesError:
        """An exception that refuses the node in a model with a batch."""
        return MixedImagesError(self.op, self.name, why)

    # Attributes and inputs.

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        """By name, as Python values."""
        from onnx import helper

        return {item.name: helper.get_attribute_value(item) for item in self.proto.attribute}

    def attribute(self, name: str, default: Any) -> Any:
        """An attribute; bytes are decoded to text."""
        value = self.attributes.get(name, default)
        return value.decode(errors="replace") if isinstance(value, bytes) else value

    def axis(self, axis: int, rank: int) -> int:
        """An axis, counted from the first of ``rank`` axes.

        Raises:
            RefusedError: there is no such axis.
        """
        if not -rank <= axis < rank:
            raise self.refused(f"axis must be from {-rank} to {rank - 1}, not {axis}")
        return axis % rank

    def has_input(self, number: int) -> bool:
        """Whether the input ``number`` is not left out."""
        return number < len(self.inputs) and bool(self.inputs[number])

    def value(self, number: int = 0) -> Value:
        """Input ``number``, perhaps turned; it must depend on the model's inputs.

        Raises:
            ModelError: there is none, or it is constant.
        """
        name = self.inputs[number] if self.has_input(number) else ""
        if name not in self.importer.values:
            raise self.refused(f"input {number} must depend on the model's inputs")
        return self.importer.values[name]

    def is_constant(self, number: int) -> bool:
        """Whether input ``number`` is constant."""
        return self.has_input(number) and self.inputs[number] in self.importer.folded

    def constant(self, number: int) -> Array | None:
        """Input ``number``, which must be constant; None if it is missing.

        Raises:
            ModelError: it depends on the model's inputs.
        """
        if not self.has_input(number):
            return None
        if not self.is_constant(number):
            raise self.refused(f"input {number} must be constant")
        return self.importer.folded[self.inputs[number]]

    def reals(self, number: int) -> Reals:
        """Like :meth:`constant`, as finite real numbers; the input must not be missing.

        Raises:
            ModelError: it is missing, not constant, or not finite.
        """
        values = self.constant(number)
        if values is None:
            raise self.refused(f"input {number} is missing")
        return self._finite(number, values.astype(np.float64))

    def weights(self, number: int) -> Reals:
        """Like :meth:`reals`, but in their own type if this is a type of real numbers, since there
        may be many.

        Raises:
            ModelError: as for :meth:`reals`.
        """
        values = self.constant(number)
        if values is None or values.dtype != np.float32:
            return self.reals(number)
        return self._finite(number, values.view(np.float32))

    def _finite(self, number: int, values: Reals) -> Reals:
        if not np.isfinite(values).all():
            raise self.refused(f"input {number} has NaN or infinities")
        return values

    def setting(self, name: str, number: int) -> Array | None:
        """What old opsets have in the attribute ``name``, and new ones in the constant input
        ``number``; None if it is missing."""
        in_attribute = self.attribute(name, None)
        return self.constant(number) if in_attribute is None else np.asarray(in_attribute)

    def check_images(self, value: Value) -> None:
        """Refuse a value whose first axis the node interprets as images if it is not a batch.

        Raises:
            ModelError: there are several images, which are not a batch.
        """
        if value.shape[:1] != (self.batch,):
            why = f": {self.importer.mixed}" if self.importer.mixed else ""
            raise self.refused(
                f"its input of shape {list(value.shape)} has several images, but the model has no "
                f"batch{why}"
            )

    def check_result(self, value: Value) -> Value:
        """Refuse a result that has not the batch first.

        Raises:
            MixedImagesError: it has not.
        """
        if not self.importer.has_images(value.shape):
            raise self.mixing(
                f"its output of shape {list(value.shape)} must keep the batch of {self.batch} first"
            )
        return value

    # Outputs.

    def name_output(self, tensor: str, value: Value) -> None:
        """Name a tensor that the node produces: the elements and shape of ``value``.

        Raises:
            MixedImagesError: the shape does not have the batch first.
            ModelError: the tensor has another shape.
        """
        importer, shape = self.importer, self.check_result(value).shape
        # For some windows, ONNX infers shapes that no implementation produces.
        if importer.graph.shapes.get(tensor, shape) != shape != self._true_shape(tensor):
            raise self.refused(
                f"its output {label(tensor)} has the shape "
                f"{list(importer.graph.shapes[tensor])}, but its layers make {list(shape)}, which "
                "is a bug in VIP"
            )
        if importer.uses[tensor] != 1:
            importer.shared.add(value.layer)
        importer.values[tensor] = value

    def inferred_shape(self) -> tuple[int, ...] | None:
        """Shape of the node's output, as ONNX infers it; None: it can't be inferred."""
        return self.importer.graph.shapes.get(self.output) or self._true_shape(self.output)

    def _true_shape(self, tensor: str) -> tuple[int, ...] | None:
        graph, values = self.importer.graph, self.importer.values
        feeds = {
            name: np.zeros(values[name].shape, graph.integers.get(name, "float32"))
            if name in values
            else self.importer.folded[name]
            for name in filter(None, self.inputs)
        }
        return output_shape(self.proto, tensor, feeds, graph.opset)

    # Layers.

    def add(
        self, layer: Layer, size: MapSize, shape: tuple[int, ...], *, turned: bool = False
    ) -> Value:
        """Add a layer; returns its map.

        Parameters:
            layer: with a name from :meth:`microkernels.onnx_models.importer.Importer.unique`.
            size: of its map. shape: of the tensor.
            turned: as for :class:`microkernels.onnx_models.model.Value`.
        """
        self.importer.layers[layer.name] = layer
        self.importer.sizes[layer.name] = size
        self.importer.origins[layer.name] = self.name
        return Value(layer=layer.name, size=size, shape=shape, turned=turned)

    def apply(
        self,
        kind: Callable[..., Layer],
        value: Value,
        *,
        size: MapSize | None = None,
        shape: tuple[int, ...] | None = None,
        turned: bool | None = None,
        suffix: str = "",
        **attributes: Any,
    ) -> Value:
        """Add a layer.

        Parameters:
            kind: of the layer. value: its first source. attributes: its other attributes.
            size, shape, turned: as for :meth:`add`; None: like those of ``value``.
            suffix: of its name.
        """
        name = self.importer.unique(self.name + suffix)
        return self.add(
            kind(name=name, source=value.layer, **attributes),
            value.size if size is None else size,
            value.shape if shape is None else shape,
            turned=value.turned if turned is None else turned,
        )

    def weigh(
        self,
        kind: Callable[..., Layer],
        value: Value,
        real: Weights,
        shape: tuple[int, ...],
        *,
        size: MapSize | None = None,
        turned: bool = False,
        **attributes: Any,
    ) -> Value:
        """Add a layer with weights of real numbers, without ReLU.

        Parameters:
            kind, value, attributes: as for :meth:`apply`.
            shape: of the tensor. size: of its map; None: as for
                :meth:`microkernels.onnx_models.importer.Importer.map_of`.
            turned: as for :meth:`add`.
        """
        size = self.importer.map_of(shape) if size is None else size
        place: dict[str, Any] = {"size": size, "shape": shape, "turned": turned}
        result = self.apply(kind, value, **place, fraction=0, relu=False, **attributes)
        self.importer.real[result.layer] = real
        return result

    def affine(self, value: Value, factor: float, offset: float, *, suffix: str = "") -> Value:
        """``factor`` times the elements plus ``offset``; ``suffix`` as for :meth:`apply`."""
        numbers: dict[str, Any] = {"factor": 0, "offset": 0, "fraction": 0}
        result = self.apply(ElementWise, value, suffix=suffix, function="affine", **numbers)
        self.importer.affine[result.layer] = (factor, offset)
        return result

    def limited(self, value: Value, low: float, high: float) -> Value:
        """The elements, limited to two bounds."""
        result = self.apply(ElementWise, value, function="clip", low=0, high=0)
        self.importer.bounds[result.layer] = (low, high)
        return result

    def curve(self, value: Value, function: Function) -> Value:
        """A function of each element."""
        result = self.apply(ElementWise, value, function="curve", curve=UNFITTED)
        self.importer.curves[result.layer] = function
        return result

    def constant_map(self, values: Reals, like: Value) -> Value:
        """A map of constants, broadcast to the shape of ``like``.

        Raises:
            ModelError: the constant does not fit.
        """
        try:
            spread = np.broadcast_to(values, like.shape)
        except ValueError:
            raise self.refused(
                f"a constant of shape {list(values.shape)} can't be broadcast to {list(like.shape)}"
            ) from None
        name, turned = self.importer.unique(f"{self.name}_constant"), like.turned
        maps = to_maps(name, spread, self.batch, like.size, turned=turned)
        self.importer.constants[name] = maps
        return self.add(Source(name=name, size=like.size), like.size, like.shape, turned=turned)

    def constant_of(self, values: Reals, *, turned: bool = False) -> Value:
        """A map of constants in their own shape, which must have the batch first.

        Parameters:
            turned: as for :class:`microkernels.onnx_models.model.Value`.
        """
        shape, importer = values.shape, self.importer
        if not importer.has_images(shape):
            raise self.mixing(
                f"its constant of shape {list(shape)} must have the batch of {self.batch} first"
            )
        size = importer.rows_of(shape) if turned else importer.map_of(shape)
        return self.constant_map(values, Value(layer="", size=size, shape=shape, turned=turned))

    # Other nodes instead of this one.

    def part(self, op: str, *inputs: Tensor, **attributes: Any) -> Value:
        """The first output of another node; as an operand of a further one it is a tensor of real
        numbers, whatever type this node's output has.

        Parameters:
            op: an operator. inputs: at least one depends on the model's inputs.
        """
        from onnx import helper

        names = [self._named(tensor) for tensor in inputs]
        proto = helper.make_node(op, names, [self._tensor()], self.name, **attributes)
        part = GraphNode(self.importer, proto)
        value = self.importer.operators[op].maps(part)
        assert value is not None
        return part.check_result(value)

    def _tensor(self) -> str:
        """A name for another tensor."""
        number, uses = 1, self.importer.uses
        while (name := f"{self.output} {number}") in uses:
            number += 1
        uses[name] += 1
        return name

    def _named(self, tensor: Tensor) -> str:
        """The name of a tensor; a part that is the only use of one by its name may be merged into
        the layer before."""
        if isinstance(tensor, str):
            return tensor
        name = self._tensor()
        if isinstance(tensor, Value):
            self.importer.values[name] = tensor
            self.importer.shared.add(tensor.layer)
        else:
            self.importer.folded[name] = np.asarray(tensor)
        return name
