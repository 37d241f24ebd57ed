"""Small ONNX models for tests."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, NodeProto, helper, numpy_helper

__all__ = ["model", "reference"]

FLOAT = 1


def model(
    nodes: Sequence[NodeProto],
    shape: Sequence[int | str],
    constants: Mapping[str, Any] | None = None,
    *,
    inputs: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("y",),
    opset: int = 17,
) -> ModelProto:
    """A model with inputs of one shape; constants of real numbers become 32-bit ones."""
    held = []
    for name, values in (constants or {}).items():
        array = np.asarray(values)
        if np.issubdtype(array.dtype, np.floating):
            array = array.astype(np.float32)
        held.append(numpy_helper.from_array(array, name))
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name in inputs],
        [],
        held,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    made.graph.output.extend(_inferred(made, outputs))
    return made


def _inferred(made: ModelProto, outputs: Sequence[str]) -> list[Any]:
    from onnx import shape_inference

    work = ModelProto()
    work.CopyFrom(made)
    for name in outputs:
        value = work.graph.output.add()
        value.name = name
    found = shape_inference.infer_shapes(work).graph.output
    return [value for value in found if value.name in outputs]


def reference(made: ModelProto, x: Any) -> list[Any]:
    """onnxruntime's outputs."""
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, {"x": np.asarray(x, np.float32)}))
