"""Operators that are made of others, as if the model had these instead."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.onnx_models.importer import Importer, Operator
from microkernels.onnx_models.model import Value
from microkernels.onnx_models.read import GraphNode, refused

from .elements import unary

#: A tensor's name, or a constant.
Tensor = str | NDArray[Any] | float
#: Parts that are not operators of ONNX: whether elements are above 0, and reciprocals, 0 of 0.
_PARTS: Mapping[str, Operator] = {"Inverse": unary("inverse"), "Step": unary("positive")}


class Parts:
    """Nodes instead of one.

    Parameters:
        node: that is replaced.
    """

    def __init__(self, importer: Importer, node: GraphNode) -> None:
        self._importer = importer
        self._node = node
        self._count = 0

    def __call__(
        self, op: str, *inputs: Tensor, last: bool = False, output: str = "", **attributes: Any
    ) -> str:
        """Add a node; returns the name of its output.

        Parameters:
            op: an operator, or one of the further parts. inputs: at least one depends on the
                model's inputs.
            last: it makes the first output of the node that is replaced.
            output: that it makes; "": the first one, or a further tensor.
        """
        from onnx import helper

        name = output or (self._node.output[0] if last else self._name())
        names = tuple(each if isinstance(each, str) else self.constant(each) for each in inputs)
        node = helper.make_node(op, names, [name], self._node.name, **attributes)
        (_PARTS.get(op) or self._importer.operators[op])(self._importer, node)
        return name

    def constant(self, values: NDArray[Any] | float) -> str:
        """The name of a tensor of constants."""
        name = self._name()
        graph = self._importer.graph
        constants = {**graph.constants, name: np.asarray(values)}
        self._importer.graph = replace(graph, constants=constants)
        return name

    def value(self, tensor: str) -> Value:
        """A tensor that depends on the model's inputs.

        Raises:
            ModelError: it is constant.
        """
        if tensor not in self._importer.values:
            raise refused(self._node, f"its input {tensor} must depend on the model's inputs")
        return self._importer.values[tensor]

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Shape of such a tensor."""
        return self.value(tensor).shape

    def _name(self) -> str:
        self._count += 1
        return f"{self._node.output[0]} {self._count}"
