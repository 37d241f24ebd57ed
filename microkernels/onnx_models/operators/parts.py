"""Operators that are made of others, as if the model had these instead: those that select by
numbers that depend on the inputs (embeddings, one-hot vectors), and those of the domain
``ai.onnx.ml``, as scikit-learn's models are exported.

An element of a one-hot vector is 1 minus the distance of the number from the element's place, or 0
where that is negative, so numbers are exact; a table is multiplied by such vectors.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.common.fixed_point import Reals
from microkernels.onnx_models.importer import Importer, Operator
from microkernels.onnx_models.model import Value
from microkernels.onnx_models.read import GraphNode, attribute, axis_of, refused

from .arrange import movement
from .elements import unary

#: A tensor's name, or a constant.
Tensor = str | NDArray[Any] | float
#: Parts that are not operators of ONNX: whether elements are above 0, and reciprocals, 0 of 0.
_PARTS: Mapping[str, Operator] = {"Inverse": unary("inverse"), "Step": unary("positive")}
#: What follows a linear model -> the operators that do it.
_AFTER = {"NONE": "Identity", "LOGISTIC": "Sigmoid", "SOFTMAX": "Softmax"}


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


def _selection(importer: Importer, parts: Parts, tensor: str, count: int) -> str:
    """One-hot vectors of ``count`` elements along a further axis: 0 for numbers beyond them."""
    shape = (*parts.shape(tensor), 1)
    column = parts("Reshape", tensor, np.array(shape))
    wide = parts("MatMul", column, np.ones((1, count)))
    distance = parts("Abs", parts("Sub", wide, np.arange(float(count))))
    return parts("Clip", parts("Sub", 1.0, distance), min=0.0, max=1.0)


def gather(importer: Importer, node: GraphNode) -> None:
    """Gather: by constant indices, or from a constant table by indices from 0 on."""
    if not importer.is_constant(node, 0):
        movement(importer, node)
        return
    table = importer.reals(node, 0)
    axis = int(attribute(node, "axis", 0))
    if axis not in (0, -table.ndim):
        raise refused(node, f"axis of a constant table must be 0, not {axis}")
    parts = Parts(importer, node)
    shape = (*parts.shape(node.input[1]), *table.shape[1:])
    chosen = _selection(importer, parts, node.input[1], len(table))
    rows = parts("MatMul", chosen, table.reshape(len(table), -1))
    parts("Reshape", rows, np.array(shape), last=True)


def extract(importer: Importer, node: GraphNode) -> None:
    """ArrayFeatureExtractor: elements of the last axis, or of a constant vector such as labels."""
    parts = Parts(importer, node)
    if importer.is_constant(node, 0):
        table = importer.reals(node, 0).reshape(-1, 1)
        shape = parts.shape(node.input[1])
        chosen = _selection(importer, parts, node.input[1], len(table))
        rows = parts("MatMul", chosen, table)
        parts("Reshape", rows, np.array((1, int(np.prod(shape)))), last=True)
        return
    places = importer.reals(node, 1).ravel().astype(np.int64)
    parts("Gather", node.input[0], places, axis=-1, last=True)


def one_hot(importer: Importer, node: GraphNode) -> None:
    """OneHot with constant depth and values, of numbers from 0 on."""
    depth, values = importer.reals(node, 1), importer.reals(node, 2)
    if depth.size != 1 or values.size != 2:
        raise refused(node, "depth must be one number, and values two")
    parts = Parts(importer, node)
    rank = len(parts.shape(node.input[0])) + 1
    axis = axis_of(node, -1, rank)
    chosen: Tensor = _selection(importer, parts, node.input[0], int(depth.ravel()[0]))
    off, on = (float(value) for value in values.ravel())
    if (off, on) != (0.0, 1.0):
        chosen = parts("Add", parts("Mul", chosen, on - off), off)
    if axis == rank - 1:
        parts("Identity", chosen, last=True)
        return
    order = list(range(rank - 1))
    order.insert(axis, rank - 1)
    parts("Transpose", chosen, perm=order, last=True)


def hardmax(importer: Importer, node: GraphNode) -> None:
    """Hardmax along one axis: 1 for the first of its largest elements."""
    parts = Parts(importer, node)
    (x,) = node.input
    shape = parts.shape(x)
    before = importer.graph.opset < 13
    axis = axis_of(node, 1 if before else -1, len(shape))
    if before and axis != len(shape) - 1:
        raise refused(node, "axis must be the last one before opset 13")
    places = np.arange(float(shape[axis])).reshape([-1] + [1] * (len(shape) - 1 - axis))
    first = parts("ArgMax", x, axis=axis)
    distance = parts("Abs", parts("Sub", first, np.broadcast_to(places, shape)))
    parts("Clip", parts("Sub", 1.0, distance), min=0.0, max=1.0, last=True)


def scaler(importer: Importer, node: GraphNode) -> None:
    """Scaler: elements minus an offset, times a factor."""
    parts = Parts(importer, node)
    offset, scale = (
        np.asarray(attribute(node, name, [default]), np.float64)
        for name, default in (("offset", 0.0), ("scale", 1.0))
    )
    parts("Mul", parts("Sub", node.input[0], offset), scale, last=True)


def binarizer(importer: Importer, node: GraphNode) -> None:
    """Binarizer: 1 for elements above a threshold, else 0."""
    parts = Parts(importer, node)
    threshold = float(attribute(node, "threshold", 0.0))
    parts("Step", parts("Sub", node.input[0], threshold), last=True)


def normalizer(importer: Importer, node: GraphNode) -> None:
    """Normalizer: rows divided by their L1 or L2 norm; rows of zeros stay."""
    parts = Parts(importer, node)
    (x,) = node.input
    norm = attribute(node, "norm", "MAX")
    if norm not in ("L1", "L2"):
        raise refused(node, f"norm must be L1 or L2, not {norm}")
    total = parts(f"Reduce{norm}", x, axes=[-1])
    parts("Mul", x, parts("Inverse", total), last=True)


def _scores(importer: Importer, node: GraphNode, parts: Parts, outputs: int, output: str) -> str:
    """A linear model and what follows it."""
    weights = np.asarray(attribute(node, "coefficients", []), np.float64)
    if not weights.size or weights.size % outputs:
        raise refused(node, f"{weights.size} coefficients do not fit {outputs} outputs")
    after = attribute(node, "post_transform", "NONE")
    if after not in _AFTER:
        raise refused(node, f"post_transform must be one of {', '.join(_AFTER)}, not {after}")
    bias = np.asarray(attribute(node, "intercepts", [0.0] * outputs), np.float64)
    product = parts("MatMul", node.input[0], weights.reshape(outputs, -1).T)
    sums = parts("Add", product, bias)
    if importer.used(output):
        parts(_AFTER[after], sums, output=output)
    return sums


def regressor(importer: Importer, node: GraphNode) -> None:
    """LinearRegressor."""
    outputs = int(attribute(node, "targets", 1))
    _scores(importer, node, Parts(importer, node), outputs, node.output[0])


def _labels(importer: Importer, node: GraphNode) -> Reals | None:
    """Labels of integers; None: nothing uses them."""
    if not importer.used(node.output[0]):
        return None
    labels = np.asarray(attribute(node, "classlabels_ints", []), np.float64)
    if not labels.size:
        scores = node.output[1] if len(node.output) > 1 else ""
        raise refused(
            node,
            f"its labels {node.output[0]} are text; vip nn compile --outputs {scores} compiles "
            "the scores alone",
        )
    return labels


def classifier(importer: Importer, node: GraphNode) -> None:
    """LinearClassifier with a score for each label."""
    labels = _labels(importer, node)
    names = attribute(node, "classlabels_ints", []) or attribute(node, "classlabels_strings", [])
    parts = Parts(importer, node)
    output = node.output[1] if len(node.output) > 1 else ""
    sums = _scores(importer, node, parts, len(names), output)
    if labels is None:
        return
    # Scores that are rounded to the same element are no longer the largest alone.
    best = parts("ArgMax", sums, axis=-1, keepdims=0)
    if (labels == np.arange(len(labels))).all():
        parts("Identity", best, last=True)
    else:
        parts("Gather", labels, best, last=True)
