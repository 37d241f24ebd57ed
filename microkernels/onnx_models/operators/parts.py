"""Operators that are made of others, as if the model had these instead."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.onnx_models.importer import Importer, Operator, Value
from microkernels.onnx_models.read import GraphNode

from .arrange import movement
from .axes import reduction
from .elements import cast, clip, combined, function, identity, reshape, unary
from .products import matmul

__all__ = ["Parts", "Tensor"]

#: A tensor's name, or a constant.
Tensor = str | NDArray[Any] | float


#: Parts of which operators can be made: names of operators, and of functions that are none.
_PARTS: Mapping[str, Operator] = {
    "Abs": function("absolute"),
    "Add": combined("add"),
    "Cast": cast,
    "Clip": clip,
    "Expand": movement,
    "Identity": identity,
    "Inverse": unary("inverse"),
    "MatMul": matmul,
    "Max": combined("maximum"),
    "Min": combined("minimum"),
    "Mul": combined("multiply"),
    "ReduceMax": reduction("max"),
    "Reshape": reshape,
    "Step": unary("positive"),
    "Sub": combined("subtract"),
    "Transpose": movement,
}


class Parts:
    """Nodes in place of one.

    Parameters:
        node: whose first output the last of them makes.
    """

    def __init__(self, importer: Importer, node: GraphNode) -> None:
        self._importer = importer
        self._node = node
        self._count = 0

    def __call__(self, op: str, *inputs: Tensor, last: bool = False, **attributes: Any) -> str:
        """Add a node; returns the name of its output.

        Parameters:
            op: one of the parts. inputs: at least one depends on the model's inputs.
            last: it makes the output of the node that is replaced.
        """
        name = self._node.outputs[0] if last else self._name()
        names = tuple(each if isinstance(each, str) else self.constant(each) for each in inputs)
        node = replace(self._node, op=op, inputs=names, outputs=(name,), attributes=attributes)
        _PARTS[op](self._importer, node)
        return name

    def constant(self, values: NDArray[Any] | float) -> str:
        """The name of a tensor of constants."""
        name = self._name()
        graph = self._importer.graph
        constants = {**graph.constants, name: np.asarray(values)}
        self._importer.graph = replace(graph, constants=constants)
        return name

    def value(self, tensor: str) -> Value:
        """A tensor that depends on the model's inputs."""
        return self._importer.values[tensor]

    def _name(self) -> str:
        self._count += 1
        return f"{self._node.outputs[0]} {self._count}"
