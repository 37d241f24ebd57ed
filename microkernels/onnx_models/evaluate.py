"""Single nodes on arrays, by onnxruntime."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from support.extras import need

from .graph import Array

if TYPE_CHECKING:
    from onnx import NodeProto

__all__ = ["evaluate", "output_shape"]

#: Kernels of onnxruntime begin with this opset.
_OLDEST_OPSET = 7
_ERRORS_ALONE = 4


def evaluate(node: "NodeProto", feeds: Mapping[str, Array], opset: int) -> list[Array]:
    """Outputs of a node for these inputs; where onnxruntime does not take their types, those of
    ONNX's reference implementation.

    Parameters:
        node: of one of ONNX's own operators. feeds: its inputs, by name.

    Raises:
        MissingExtraError: onnxruntime is not installed.
        Exception: any of another library.
    """
    need("onnxruntime", "models")
    import onnxruntime  # type: ignore[import-untyped]
    from onnx import helper
    from onnx.reference import ReferenceEvaluator
    from onnxruntime.capi.onnxruntime_pybind11_state import (  # type: ignore[import-untyped]
        NotImplemented as NoKernelError,
    )

    feeds = {name: np.asarray(values) for name, values in feeds.items()}
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(values.dtype), values.shape
        )
        for name, values in feeds.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "node", inputs, outputs)
    version = helper.make_opsetid("", max(opset, _OLDEST_OPSET))
    model = helper.make_model(graph, opset_imports=[version], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ERRORS_ALONE
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        # NumPy has no such type: onnxruntime takes none of those that a package adds, as bfloat16.
        if any(values.dtype.kind == "V" for values in feeds.values()):
            raise NoKernelError("types of another package")
        results = session.run(None, feeds)
    except NoKernelError:
        results = ReferenceEvaluator(model).run(None, feeds)
    return [np.asarray(values) for values in results]


def output_shape(
    node: "NodeProto", tensor: str, feeds: Mapping[str, Array], opset: int
) -> tuple[int, ...] | None:
    """Shape of an output of a node; None: it can't be computed.

    Parameters:
        feeds, opset: as of :func:`evaluate`.
    """
    try:
        results = evaluate(node, feeds, opset)
    except Exception:  # Any of another library.
        return None
    return results[[name for name in node.output if name].index(tensor)].shape
