"""Operators that are a matrix along an axis: sums from one end on, and interpolation."""

from typing import Any

import numpy as np

from microkernels.common.fixed_point import Reals
from microkernels.onnx_models.errors import one_line
from microkernels.onnx_models.fold import evaluate
from microkernels.onnx_models.importer import Importer
from microkernels.onnx_models.read import GraphNode, attribute, attributes, mixing, refused

from .arrange import movement
from .parts import Parts

#: Maximum pixels of which each result is computed by moves and products; of more, by a matrix.
_MOST_TAPS = 4
#: Maximum elements along an axis that is interpolated.
_MOST_RESIZED = 2048
#: The first opset of Resize in its form of today, and that with all of its attributes.
_RESIZE_OPSET, _NEWEST_RESIZE = 11, 19


def _by_matrix(
    parts: Parts, tensor: str, matrix: Reals, axis: int, rank: int, *, last: bool
) -> str:
    """A matrix of inputs x outputs along an axis."""
    if axis == rank - 1 and rank > 1:
        return parts("MatMul", tensor, matrix, last=last)
    order = [number for number in range(rank) if number != axis] + [axis]
    turned = parts("Transpose", tensor, perm=order) if rank > 1 else tensor
    if rank == 1:
        return parts("MatMul", tensor, matrix, last=last)
    product = parts("MatMul", turned, matrix)
    return parts("Transpose", product, perm=np.argsort(order).tolist(), last=last)


def cumulated(importer: Importer, node: GraphNode) -> None:
    """CumSum along a constant axis."""
    parts = Parts(importer, node)
    shape = parts.shape(node.input[0])
    axis = int(importer.reals(node, 1).ravel()[0])
    if not -len(shape) <= axis < len(shape):
        raise refused(node, f"axis must be from {-len(shape)} to {len(shape) - 1}, not {axis}")
    axis %= len(shape)
    if importer.batched(shape) and axis == 0:
        raise mixing(node, f"its sums are over the batch of {importer.batch}")
    matrix = np.triu(np.ones((shape[axis], shape[axis])), int(attribute(node, "exclusive", 0)))
    matrix = matrix.T if attribute(node, "reverse", 0) else matrix
    _by_matrix(parts, node.input[0], matrix, axis, len(shape), last=True)


def resize(importer: Importer, node: GraphNode) -> None:
    """Resize and Upsample: moves for the nearest element, else a matrix along each axis."""
    if attribute(node, "mode", "nearest") == "nearest":
        movement(importer, node)
        return
    parts = Parts(importer, node)
    tensor = node.input[0]
    shape = parts.shape(tensor)
    matrices = {
        axis: matrix
        for axis, matrix in _matrices(importer, node, shape).items()
        if matrix.shape[0] != matrix.shape[1] or (matrix != np.eye(len(matrix))).any()
    }
    if importer.batched(shape) and 0 in matrices:
        raise mixing(node, f"it resizes the batch of {importer.batch}")
    for axis, matrix in sorted(matrices.items(), reverse=True):
        tensor = _interpolated(parts, tensor, matrix, axis, len(shape))
    parts("Identity", tensor, last=True)


def _interpolated(parts: Parts, tensor: str, matrix: Reals, axis: int, rank: int) -> str:
    """A matrix with few numbers in each column along an axis: sums of moved elements."""
    taps = int((matrix != 0).sum(axis=0).max(initial=1))
    if taps > _MOST_TAPS:
        return _by_matrix(parts, tensor, matrix, axis, rank, last=False)
    places = np.sort(np.argsort(-np.abs(matrix), axis=0, kind="stable")[:taps], axis=0)
    total = ""
    for row in places:
        weights = np.take_along_axis(matrix, row[np.newaxis], axis=0)
        moved = parts("Gather", tensor, row, axis=axis)
        along = weights.reshape([-1] + [1] * (rank - 1 - axis))
        term = parts("Mul", moved, along)
        total = parts("Add", total, term) if total else term
    return total


def _matrices(importer: Importer, node: GraphNode, shape: tuple[int, ...]) -> dict[int, Reals]:
    """The matrix along each axis, inputs x outputs."""
    from onnx import helper

    rank = len(shape)
    options = attributes(node)
    scales, sizes = _extents(importer, node, shape)
    axes = [int(axis) % rank for axis in options.pop("axes", range(rank))]
    policy = attribute(node, "keep_aspect_ratio_policy", "stretch")
    options.pop("keep_aspect_ratio_policy", None)
    options.pop("scales", None)
    if importer.graph.opset < _RESIZE_OPSET or node.op_type == "Upsample":
        options["coordinate_transformation_mode"] = "asymmetric"
    if float(options.pop("extrapolation_value", 0.0)) != 0:
        raise refused(node, "extrapolation_value must be 0")
    region = importer.constant(node, 1) if len(node.input) > 2 else None
    if sizes is not None and policy != "stretch":
        ratios = [size / shape[axis] for size, axis in zip(sizes, axes, strict=True)]
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        scales, sizes = [ratio] * len(axes), None
        sizes = [int(np.floor(ratio * shape[axis] + 0.5)) for axis in axes]
    matrices: dict[int, Reals] = {}
    for number, axis in enumerate(axes):
        count = shape[axis]
        if count > _MOST_RESIZED:
            raise refused(node, f"{count:,} elements along an axis; at most {_MOST_RESIZED:,}")
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
            raise refused(node, f"its weights can't be determined: {one_line(error)}") from error
        matrices[axis] = result[:, 0, :, 0].astype(np.float64)
    return matrices


def _extents(
    importer: Importer, node: GraphNode, shape: tuple[int, ...]
) -> tuple[list[float], list[int] | None]:
    """Scales, or sizes of the output, along the axes that change."""
    old = importer.graph.opset < _RESIZE_OPSET or node.op_type == "Upsample"
    in_attribute = attribute(node, "scales", None)
    if in_attribute is not None:
        return [float(scale) for scale in in_attribute], None
    values = importer.constant(node, 1 if old else 2)
    if values is not None and values.size:
        return [float(scale) for scale in values.ravel()], None
    sizes = importer.constant(node, 3)
    if sizes is None:
        raise refused(node, "scales or sizes are missing")
    return [], [int(size) for size in sizes.ravel()]
