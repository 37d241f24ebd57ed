"""A part of an ONNX model: some of its outputs, and sizes that it leaves open."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microkernels.onnx_models.errors import ModelError
from microkernels.onnx_models.read import load_proto
from support.errors import unknown

if TYPE_CHECKING:
    from onnx import ModelProto


def part_of(
    model: Path, outputs: Sequence[str], shapes: Mapping[str, Sequence[int]]
) -> Path | bytes:
    """The contents of a model with these outputs alone, what they need, and these shapes of inputs;
    the file itself if nothing is chosen.

    Parameters:
        outputs: names of tensors, also of those within the model; none: as the model has them.
        shapes: of inputs, by name.

    Raises:
        ModelError: no such output or input, or another shape than the model's.
    """
    if not outputs and not shapes:
        return model
    proto = load_proto(model)
    if outputs:
        _keep(proto, outputs)
    for name, shape in shapes.items():
        _fix(proto, name, shape)
    content: bytes = proto.SerializeToString()
    return content


def _keep(proto: "ModelProto", outputs: Sequence[str]) -> None:
    from onnx import TensorProto, helper, shape_inference

    graph = proto.graph
    declared = {item.name: item for item in graph.output}
    tensors = {name for node in graph.node for name in node.output if name}
    for name in outputs:
        if any(name == item.name for item in graph.input):
            raise ModelError(
                f"output {name} is an input of the model, so there is nothing to compute; name a "
                f"node's output, such as {', '.join(declared)}"
            )
        if name not in tensors:
            raise ModelError(unknown("output", name, sorted(declared)))
    inner = {item.name: item for item in shape_inference.infer_shapes(proto).graph.value_info}
    # Operators without inference have real numbers there.
    chosen = [
        declared.get(name)
        or inner.get(name)
        or helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        for name in outputs
    ]
    needed = set(outputs)
    nodes = []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            nodes.append(node)
            needed.update(node.input)
            needed.update(_inside(node))
    kept: list[tuple[Any, list[Any]]] = [
        (graph.node, nodes[::-1]),
        (graph.output, chosen),
        (graph.input, [item for item in graph.input if item.name in needed]),
        (graph.initializer, [item for item in graph.initializer if item.name in needed]),
    ]
    for field, items in kept:
        copies = [type(item).FromString(item.SerializeToString()) for item in items]
        del field[:]
        field.extend(copies)


def _inside(node: Any) -> set[str]:
    """Tensors that the graphs within a node may use."""
    return {
        name
        for attribute in node.attribute
        for graph in (attribute.g, *attribute.graphs)
        for inner in graph.node
        for name in (*inner.input, *_inside(inner))
    }


def _fix(proto: "ModelProto", name: str, shape: Sequence[int]) -> None:
    inputs = {item.name: item for item in proto.graph.input}
    if name not in inputs:
        raise ModelError(unknown("input", name, sorted(inputs)))
    dims = inputs[name].type.tensor_type.shape.dim
    text = "x".join(map(str, shape))
    if len(dims) != len(shape):
        raise ModelError(
            f"input {name} has {len(dims)} dimensions; the shape {text} has {len(shape)}"
        )
    for number, (dim, size) in enumerate(zip(dims, shape, strict=True)):
        if dim.dim_value > 0 and dim.dim_value != size:
            raise ModelError(
                f"input {name} has the size {dim.dim_value} along dimension {number}, which the "
                f"shape {text} can't change"
            )
        dim.dim_value = size
    # Their sizes may follow from those that were open.
    del proto.graph.value_info[:]
    for output in proto.graph.output:
        output.type.tensor_type.ClearField("shape")
