"""An ONNX graph as plain data: nodes, constants, shapes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from support.errors import clipped, printable

from .errors import MixedImagesError, ModelError

if TYPE_CHECKING:
    from onnx import NodeProto

__all__ = ["Array", "Graph", "Node", "attribute"]

#: A constant of a graph, or a tensor.
Array = NDArray[np.generic]

_MOST_SHOWN = 60


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node.

    Attributes:
        op: type of the operator, with its domain if it is another than ONNX's own.
        name: of the node; its first output's, or its number, if it has none.
        inputs, outputs: names of tensors; "" for an optional one that is left out.
        attributes: by name, as Python values.
    """

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    def proto(self) -> "NodeProto":
        """The node as ONNX has it."""
        from onnx import helper

        return helper.make_node(self.op, self.inputs, self.outputs, **self.attributes)

    def refused(self, why: str) -> ModelError:
        """The exception that refuses this node."""
        return ModelError(self._message(why))

    def mixing(self, why: str) -> MixedImagesError:
        """The exception that refuses this node in a model with a batch."""
        return MixedImagesError(self._message(why))

    def _message(self, why: str) -> str:
        name = clipped(printable(self.name), _MOST_SHOWN)
        return f"node {name} ({clipped(printable(self.op), _MOST_SHOWN)}): {why}"


def attribute(node: Node, name: str, default: Any) -> Any:
    """An attribute of a node; text as text."""
    value = node.attributes.get(name, default)
    return value.decode(errors="replace") if isinstance(value, bytes) else value


@dataclass(frozen=True, kw_only=True)
class Graph:
    """A graph whose sizes are all known.

    Attributes:
        nodes: those that depend on the inputs, each after those whose outputs it takes.
        constants: tensors that do not depend on the inputs, by name.
        shapes: of all tensors whose shape is known, by name.
        inputs, outputs: names of tensors.
        opset: version of ONNX's operators.
        integers: tensors of integers, by name, with the name of their type.
        rounding: largest share by which the types of its real numbers round.
        open_inputs: those whose first size the model leaves open, and the caller too; none where a
            constant shape says that there is one image.
        batch: images along the first axis, if the model or the caller declares that axis a batch;
            None: the operators must show whether it is one.
    """

    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    shapes: Mapping[str, tuple[int, ...]]
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    integers: Mapping[str, str]
    rounding: float
    open_inputs: tuple[str, ...]
    batch: int | None
