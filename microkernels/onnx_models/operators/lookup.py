"""Operators that select by numbers that depend on the inputs: embeddings and one-hot vectors.

An element of a one-hot vector is 1 minus the distance of the number from the element's place, or 0
where that is negative, so numbers are exact; a table is multiplied by such vectors.
"""

import numpy as np

from microkernels.onnx_models.importer import Importer
from microkernels.onnx_models.read import GraphNode, attribute, refused

from .arrange import movement
from .parts import Parts, Tensor


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
    axis = int(attribute(node, "axis", -1))
    if not -rank <= axis < rank:
        raise refused(node, f"axis must be from {-rank} to {rank - 1}, not {axis}")
    chosen: Tensor = _selection(importer, parts, node.input[0], int(depth.ravel()[0]))
    off, on = (float(value) for value in values.ravel())
    if (off, on) != (0.0, 1.0):
        chosen = parts("Add", parts("Mul", chosen, on - off), off)
    if axis % rank == rank - 1:
        parts("Identity", chosen, last=True)
        return
    order = list(range(rank - 1))
    order.insert(axis % rank, rank - 1)
    parts("Transpose", chosen, perm=order, last=True)


def hardmax(importer: Importer, node: GraphNode) -> None:
    """Hardmax along one axis: 1 for the first of its largest elements."""
    parts = Parts(importer, node)
    (x,) = node.input
    shape = parts.shape(x)
    before = importer.graph.opset < 13
    axis = int(attribute(node, "axis", 1 if before else -1)) % len(shape)
    if before and axis != len(shape) - 1:
        raise refused(node, "axis must be the last one before opset 13")
    places = np.arange(float(shape[axis])).reshape([-1] + [1] * (len(shape) - 1 - axis))
    first = parts("ArgMax", x, axis=axis)
    distance = parts("Abs", parts("Sub", first, np.broadcast_to(places, shape)))
    parts("Clip", parts("Sub", 1.0, distance), min=0.0, max=1.0, last=True)
