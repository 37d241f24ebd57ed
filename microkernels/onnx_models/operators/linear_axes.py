"""Operators that are a matrix along an axis: sums from one end on, and interpolation."""

from typing import Any

import numpy as np

from microkernels.common.fixed_point import Reals
from microkernels.onnx_models.errors import one_line
from microkernels.onnx_models.fold import evaluate
from microkernels.onnx_models.model import Value
from microkernels.onnx_models.node import GraphNode, Tensor

from .arrange import movement

#: Maximum pixels of which each result is computed by moves and products; of more, by a matrix.
_MOST_TAPS = 4
#: Maximum elements along an axis that is interpolated.
_MOST_RESIZED = 2048
#: The first opset of Resize in its form of today, and that with all of its attributes.
_RESIZE_OPSET, _NEWEST_RESIZE = 11, 19


def _by_matrix(node: GraphNode, tensor: Tensor, matrix: Reals, axis: int, rank: int) -> Value:
    """A matrix of inputs x outputs along an axis."""
    if axis == rank - 1:
        return node.part("MatMul", tensor, matrix)
    order = [number for number in range(rank) if number != axis] + [axis]
    product = node.part("MatMul", node.part("Transpose", tensor, perm=order), matrix)
    return node.part("Transpose", product, perm=np.argsort(order).tolist())


def cumulated(node: GraphNode) -> Value:
    """CumSum along a constant axis."""
    shape = node.value().shape
    axis = node.axis(int(node.reals(1).ravel()[0]), len(shape))
    if node.importer.batched(shape) and axis == 0:
        raise node.mixing(f"its sums are over the batch of {node.batch}")
    matrix = np.triu(np.ones((shape[axis], shape[axis])), int(node.attribute("exclusive", 0)))
    matrix = matrix.T if node.attribute("reverse", 0) else matrix
    return _by_matrix(node, node.inputs[0], matrix, axis, len(shape))


def resize(node: GraphNode) -> Value:
    """Resize and Upsample: moves for the nearest element, else a matrix along each axis."""
    if float(node.attribute("extrapolation_value", 0.0)) != 0:
        raise node.refused("extrapolation_value must be 0")
    if node.attribute("mode", "nearest") == "nearest":
        return movement(node)
    result = node.value()
    shape = result.shape
    matrices = {
        axis: matrix
        for axis, matrix in _matrices(node, shape).items()
        if matrix.shape[0] != matrix.shape[1] or (matrix != np.eye(len(matrix))).any()
    }
    if node.importer.batched(shape) and 0 in matrices:
        raise node.mixing(f"it resizes the batch of {node.batch}")
    for axis, matrix in sorted(matrices.items(), reverse=True):
        result = _interpolated(node, result, matrix, axis, len(shape))
    return node.part("Identity", result)


def _interpolated(node: GraphNode, value: Value, matrix: Reals, axis: int, rank: int) -> Value:
    """A matrix with few numbers in each column along an axis: sums of moved elements."""
    taps = int((matrix != 0).sum(axis=0).max(initial=1))
    if taps > _MOST_TAPS:
        return _by_matrix(node, value, matrix, axis, rank)
    places = np.sort(np.argsort(-np.abs(matrix), axis=0, kind="stable")[:taps], axis=0)
    total: Value | None = None
    for row in places:
        weights = np.take_along_axis(matrix, row[np.newaxis], axis=0)
        moved = node.part("Gather", value, row, axis=axis)
        term = node.part("Mul", moved, weights.reshape([-1] + [1] * (rank - 1 - axis)))
        total = term if total is None else node.part("Add", total, term)
    assert total is not None
    return total


def _matrices(node: GraphNode, shape: tuple[int, ...]) -> dict[int, Reals]:
    """The matrix along each axis, inputs x outputs."""
    from onnx import helper

    rank = len(shape)
    options = dict(node.attributes)
    scales, sizes = _extents(node, shape)
    axes = [int(axis) % rank for axis in options.pop("axes", range(rank))]
    policy = node.attribute("keep_aspect_ratio_policy", "stretch")
    for name in ("keep_aspect_ratio_policy", "scales", "extrapolation_value"):
        options.pop(name, None)
    if node.importer.graph.opset < _RESIZE_OPSET or node.op == "Upsample":
        options["coordinate_transformation_mode"] = "asymmetric"
    region = node.constant(1) if len(node.inputs) > 2 else None
    if sizes is not None and policy != "stretch":
        ratios = [size / shape[axis] for size, axis in zip(sizes, axes, strict=True)]
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        scales, sizes = [ratio] * len(axes), None
        sizes = [int(np.floor(ratio * shape[axis] + 0.5)) for axis in axes]
    matrices: dict[int, Reals] = {}
    for number, axis in enumerate(axes):
        count = shape[axis]
        if count > _MOST_RESIZED:
            raise node.refused(f"{count:,} elements along an axis; at most {_MOST_RESIZED:,}")
        ends = np.array([0, 0, 0, 0, 1, 1, 1, 1], np.float32)
        if region is not None and region.size == 2 * len(axes):
            ends[[2, 6]] = region.ravel()[[number, number + len(axes)]]
        feeds: dict[str, Any] = {"x": np.eye(count, dtype=np.float32)[:, np.newaxis, :, np.newaxis]}
        feeds["roi"] = ends
        names = ["x", "roi", "scales"]
        if sizes is not None:
            feeds["sizes"] = np.array([count, 1, sizes[number], 1], np.int64)
            names = ["x", "roi", "", "sizes"]
        else:
            feeds["scales"] = np.array([1, 1, scales[number], 1], np.float32)
        single = helper.make_node("Resize", names, ["y"], node.name, **options)
        try:
            (result,) = evaluate(single, feeds, _NEWEST_RESIZE)
        except Exception as error:  # Any of an evaluator of another library.
            raise node.refused(f"its weights can't be determined: {one_line(error)}") from error
        matrices[axis] = result[:, 0, :, 0].astype(np.float64)
    return matrices


def _extents(node: GraphNode, shape: tuple[int, ...]) -> tuple[list[float], list[int] | None]:
    """Scales, or sizes of the output, along the axes that change."""
    old = node.importer.graph.opset < _RESIZE_OPSET or node.op == "Upsample"
    in_attribute = node.attribute("scales", None)
    if in_attribute is not None:
        return [float(scale) for scale in in_attribute], None
    values = node.constant(1 if old else 2)
    if values is not None and values.size:
        return [float(scale) for scale in values.ravel()], None
    sizes = node.constant(3)
    if sizes is None:
        raise node.refused("scales or sizes are missing")
    return [], [int(size) for size in sizes.ravel()]
