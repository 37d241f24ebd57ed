"""Operators that move elements, and others after elements have been moved.

Where each element comes from is found by ONNX's own reference implementation, which is run on
numbers of elements in place of values: 0 stands for the constant 0.
"""

from typing import Any

import numpy as np

from microkernels.networks.network import (
    Pool,
    Source,
)
from microkernels.networks.pairs import Pair
from microkernels.networks.rearrange import LOWEST_ELEMENT, ZERO
from microkernels.onnx_models.errors import one_line
from microkernels.onnx_models.graph import Node
from microkernels.onnx_models.importer import Importer, Value, attribute
from microkernels.onnx_models.model import to_maps
from microkernels.onnx_models.moved import Index, index_of, rearranged

__all__ = [
    "Index",
    "index_of",
    "map_value",
    "movement",
    "rearranged",
    "window_results",
]


def map_value(importer: Importer, node: Node) -> Value:
    """The node's first input as a map of its shape; a tensor that was reshaped is moved."""
    value = importer.value(node)
    if importer.map_of(value.shape)[1] == value.size:
        return value
    return rearranged(importer, node, [value], index_of(importer, value))


def _source(importer: Importer, node: Node, number: int) -> Value:
    """A constant operand as a map."""
    constant = importer.reals(node, number)
    shape = constant.shape
    batch, size = importer.map_of(shape)
    if batch not in (1, importer.batch):
        raise node.refused(f"constant {number} of shape {list(shape)} does not fit the batch")
    name = importer.unique(f"{node.name}_constant")
    values = to_maps(name, constant, batch, size)
    wanted = (importer.batch, *values.shape[1:])
    importer.constants[name] = np.broadcast_to(values, wanted)
    shape = (importer.batch, *shape[1:]) if importer.batched(shape) else shape
    return importer.add(node, Source(name=name, size=size), size, shape, last=False)


def _evaluated(importer: Importer, node: Node, given: dict[str, Any]) -> list[Any]:
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    names = [name for name in dict.fromkeys(node.inputs) if name]
    feeds = {name: given.get(name, importer.graph.constants.get(name)) for name in names}
    proto = helper.make_node(node.op, node.inputs, node.outputs, **node.attributes)
    graph = helper.make_graph(
        [proto],
        "move",
        [helper.make_empty_tensor_value_info(name) for name in names],
        [helper.make_empty_tensor_value_info(name) for name in node.outputs if name],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", importer.graph.opset)])
    try:
        return list(ReferenceEvaluator(model).run(None, feeds))
    except Exception as error:  # Any of an evaluator of another library.
        raise node.refused(f"its order can't be found: {one_line(error)}") from error


def movement(importer: Importer, node: Node) -> None:
    """An operator whose outputs are elements of its inputs, or 0."""
    for number, name in enumerate(node.inputs):
        # Integers after the data say where elements go, such as pads.
        place = number > 0 and node.op != "Concat" and name in importer.graph.integers
        if place and name in importer.values:
            raise node.refused(f"input {number} must be constant")
    if node.op == "Resize" and attribute(node, "mode", "nearest") != "nearest":
        raise node.refused("mode must be nearest")
    if node.op == "Pad":
        fill = importer.constant(node, 2)
        given_fill = float(attribute(node, "value", 0.0))
        if given_fill != 0 or (fill is not None and np.any(fill != 0)):
            raise node.refused("the value around must be 0")
    values: list[Value] = []
    given: dict[str, Any] = {}
    first = 1
    for number, name in enumerate(node.inputs):
        if not name or name in given:
            continue
        if importer.is_constant(node, number):
            if node.op != "Concat":
                continue
            value = _source(importer, node, number)
        else:
            value = importer.held(node, number)
        values.append(value)
        given[name] = index_of(importer, value, first)
        first += given[name].size
    if not values:
        raise node.refused(
            "its data must depend on the model's inputs, and its indices be constant"
        )
    outputs = [name for name in node.outputs if name]
    for name, index in zip(outputs, _evaluated(importer, node, given), strict=True):
        found = np.asarray(index, np.int64)
        real = importer.graph.shapes.get(name)
        wanted = (
            (importer.batch, *found.shape[1:]) if importer.batched(found.shape) else found.shape
        )
        outside = importer.batched(found.shape) and len(found) != 1
        if real != wanted or outside:
            raise node.refused(f"it must keep the batch of {importer.batch} first")
        rearranged(importer, node, values, found, output=name)


def window_results(
    importer: Importer, node: Node, value: Value, index: Index, *, mean: bool
) -> Value:
    """Maximum or mean over the last axis of ``index``, which has the axes of an image's channels,
    outputs and pixels of a window."""
    channels, outputs, pixels = index.shape
    moved = rearranged(
        importer,
        node,
        [value],
        index.reshape(1, channels, outputs, pixels),
        empty=ZERO if mean else LOWEST_ELEMENT,
    )
    layer = Pool(
        name=importer.unique(node.name),
        source=moved.layer,
        window=Pair(pixels, 1),
        stride=1,
        mean=mean,
    )
    size = moved.size._replace(width=1)
    shape = (*moved.shape[:-1], 1)
    return importer.add(node, layer, size, shape, last=False)
