"""Operators that are made of others, as if the model had these instead: those that select by
numbers that depend on the inputs (embeddings, one-hot vectors), and those of the domain
``ai.onnx.ml``, as scikit-learn's models are exported.

An element of a one-hot vector is 1 minus the distance of the number from the element's place, or 0
where that is negative, so numbers are exact; a table is multiplied by such vectors.
"""

from dataclasses import replace
from math import prod

import numpy as np

from microkernels.common.fixed_point import Reals
from microkernels.networks.curves import Function
from microkernels.onnx_models.model import Value
from microkernels.onnx_models.node import GraphNode

from .arrange import movement

#: What follows a linear model -> the operators that do it.
_AFTER = {"NONE": "Identity", "LOGISTIC": "Sigmoid", "SOFTMAX": "Softmax"}


def step(node: GraphNode, value: Value) -> Value:
    """1 for elements above 0, else 0."""
    return node.curve(value, Function("positive"))


def inverse(node: GraphNode, value: Value) -> Value:
    """Reciprocals, of 0 0."""
    return node.curve(value, Function("inverse"))


def _at(node: GraphNode, distance: Value) -> Value:
    """1 where a number has no distance from a place, 0 where it has 1 or more."""
    nearness = node.part("Sub", 1.0, node.part("Abs", distance))
    return node.part("Clip", nearness, min=0.0, max=1.0)


def _selection(node: GraphNode, numbers: Value, count: int) -> Value:
    """One-hot vectors of ``count`` elements along a further axis: 0 for numbers beyond them."""
    column = replace(numbers, shape=(*numbers.shape, 1))
    wide = node.part("MatMul", column, np.ones((1, count)))
    return _at(node, node.part("Sub", wide, np.arange(float(count))))


def gather(node: GraphNode) -> Value:
    """Gather: by constant indices, or from a constant table by indices from 0 on."""
    if not node.is_constant(0):
        return movement(node)
    table = node.reals(0)
    axis = int(node.attribute("axis", 0))
    if axis not in (0, -table.ndim):
        raise node.refused(f"axis of a constant table must be 0, not {axis}")
    numbers = node.value(1)
    chosen = _selection(node, numbers, len(table))
    rows = node.part("MatMul", chosen, table.reshape(len(table), -1))
    return replace(rows, shape=(*numbers.shape, *table.shape[1:]))


def extract(node: GraphNode) -> Value:
    """ArrayFeatureExtractor: elements of the last axis, or of a constant vector such as labels."""
    if node.is_constant(0):
        table, numbers = node.reals(0).reshape(-1, 1), node.value(1)
        rows = node.part("MatMul", _selection(node, numbers, len(table)), table)
        return replace(rows, shape=(1, prod(numbers.shape)))
    places = node.reals(1).ravel().astype(np.int64)
    return node.part("Gather", node.inputs[0], places, axis=-1)


def one_hot(node: GraphNode) -> Value:
    """OneHot with constant depth and values, of numbers from 0 on."""
    depth, values = node.reals(1), node.reals(2)
    if depth.size != 1 or values.size != 2:
        raise node.refused("depth must be one number, and values two")
    numbers = node.value()
    rank = len(numbers.shape) + 1
    axis = node.axis(node.attribute("axis", -1), rank)
    chosen = _selection(node, numbers, int(depth.ravel()[0]))
    off, on = (float(value) for value in values.ravel())
    if (off, on) != (0.0, 1.0):
        chosen = node.part("Add", node.part("Mul", chosen, on - off), off)
    if axis == rank - 1:
        return node.part("Identity", chosen)
    order = list(range(rank - 1))
    order.insert(axis, rank - 1)
    return node.part("Transpose", chosen, perm=order)


def hardmax(node: GraphNode) -> Value:
    """Hardmax along one axis: 1 for the first of its largest elements."""
    shape = node.value().shape
    before = node.importer.graph.opset < 13
    axis = node.axis(node.attribute("axis", 1 if before else -1), len(shape))
    if before and axis != len(shape) - 1:
        raise node.refused("axis must be the last one before opset 13")
    places = np.arange(float(shape[axis])).reshape([-1] + [1] * (len(shape) - 1 - axis))
    first = node.part("ArgMax", node.inputs[0], axis=axis)
    return _at(node, node.part("Sub", first, np.broadcast_to(places, shape)))


def scaler(node: GraphNode) -> Value:
    """Scaler: elements minus an offset, times a factor."""
    offset, scale = (
        np.asarray(node.attribute(name, [default]), np.float64)
        for name, default in (("offset", 0.0), ("scale", 1.0))
    )
    return node.part("Mul", node.part("Sub", node.inputs[0], offset), scale)


def binarizer(node: GraphNode) -> Value:
    """Binarizer: 1 for elements above a threshold, else 0."""
    threshold = float(node.attribute("threshold", 0.0))
    return step(node, node.part("Sub", node.inputs[0], threshold))


def normalizer(node: GraphNode) -> Value:
    """Normalizer: rows divided by their L1 or L2 norm; rows of zeros stay."""
    norm = node.attribute("norm", "MAX")
    if norm not in ("L1", "L2"):
        raise node.refused(f"norm must be L1 or L2, not {norm}")
    total = node.part(f"Reduce{norm}", node.inputs[0], axes=[-1])
    return node.part("Mul", node.inputs[0], inverse(node, total))


def _scores(node: GraphNode, outputs: int) -> tuple[Value, str]:
    """A linear model, and the operator that follows it."""
    weights = np.asarray(node.attribute("coefficients", []), np.float64)
    if not weights.size or weights.size % outputs:
        raise node.refused(f"{weights.size} coefficients do not fit {outputs} outputs")
    after = node.attribute("post_transform", "NONE")
    if after not in _AFTER:
        raise node.refused(f"post_transform must be one of {', '.join(_AFTER)}, not {after}")
    bias = np.asarray(node.attribute("intercepts", [0.0] * outputs), np.float64)
    product = node.part("MatMul", node.inputs[0], weights.reshape(outputs, -1).T)
    return node.part("Add", product, bias), _AFTER[after]


def regressor(node: GraphNode) -> Value:
    """LinearRegressor."""
    sums, after = _scores(node, int(node.attribute("targets", 1)))
    return node.part(after, sums)


def _labels(node: GraphNode) -> Reals | None:
    """Labels of integers; None: nothing uses them."""
    if not node.importer.used(node.outputs[0]):
        return None
    labels = np.asarray(node.attribute("classlabels_ints", []), np.float64)
    if not labels.size:
        scores = node.outputs[1] if len(node.outputs) > 1 else ""
        raise node.refused(
            f"its labels {node.outputs[0]} are text; vip nn compile --outputs {scores} compiles "
            "the scores alone"
        )
    return labels


def classifier(node: GraphNode) -> Value | None:
    """LinearClassifier with a score for each label."""
    labels = _labels(node)
    names = node.attribute("classlabels_ints", []) or node.attribute("classlabels_strings", [])
    sums, after = _scores(node, len(names))
    for output in filter(node.importer.used, node.outputs[1:]):
        node.name_output(output, node.part(after, sums))
    if labels is None:
        return None
    # Scores that are rounded to the same element are no longer the largest alone.
    best = node.part("ArgMax", sums, axis=-1, keepdims=0)
    if (labels == np.arange(len(labels))).all():
        return node.part("Identity", best)
    return node.part("Gather", labels, best)
