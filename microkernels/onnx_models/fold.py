"""Constant folding of ONNX graphs, with limits."""

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from support.extras import MissingExtraError, need

from .errors import RefusedError, one_line

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

#: A constant of a graph or a tensor.
Array = NDArray[np.generic]

#: The first opset for which onnxruntime has kernels.
_OLDEST_OPSET = 7
_ERRORS_ALONE = 4


def evaluate(node: "NodeProto", feeds: Mapping[str, Array], opset: int) -> list[Array]:
    """Outputs of a node for these inputs, from ONNX's reference implementation if onnxruntime does
    not support their types.

    Parameters:
        node: with one of ONNX's own operators. feeds: its inputs, by name.

    Raises:
        MissingExtraError: onnxruntime is not installed.
        Exception: any exception of another library.
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
        # onnxruntime supports only NumPy's own types, not those that packages add, like bfloat16.
        if any(values.dtype.kind == "V" for values in feeds.values()):
            raise NoKernelError("types of another package")
        results = session.run(None, feeds)
    except NoKernelError:
        results = ReferenceEvaluator(model).run(None, feeds)
    return [np.asarray(values) for values in results]


def output_shape(
    node: "NodeProto", tensor: str, feeds: Mapping[str, Array], opset: int
) -> tuple[int, ...] | None:
    """Shape of an output of a node; None if it can't be computed.

    Parameters:
        feeds, opset: as for :func:`evaluate`.
    """
    try:
        results = evaluate(node, feeds, opset)
    except Exception:  # Any of another library.
        return None
    return results[[name for name in node.output if name].index(tensor)].shape


#: Maximum elements of a folded tensor, of all folded tensors, and of a tensor passed to shape
#: inference.
_MOST_FOLDED = 1 << 28
_MOST_FOLDED_IN_ALL = 1 << 29
_SMALL = 16
#: Operators whose results are not determined by their inputs.
_RANDOM = frozenset(
    (
        "Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
        "RandomUniformLike",
    )
)  # fmt: skip
#: Operators whose results are not larger than what :func:`_growth` says.
_BOUNDED = frozenset(
    (
        "Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Concat", "Constant", "ConstantOfShape",
        "DequantizeLinear", "Div", "Equal", "Expand", "Flatten", "Floor", "Gather", "Greater",
        "Identity", "Less", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow", "Range",
        "Reciprocal", "ReduceProd", "Reshape", "Shape", "Size", "Slice", "Split", "Sqrt", "Squeeze",
        "Sub", "Tile", "Transpose", "Unsqueeze", "Where",
    )
)  # fmt: skip


def fold(
    model: "ModelProto",
    constants: dict[str, Array],
    opset: int,
    shapes: Mapping[str, tuple[int, ...] | None],
    kinds: Mapping[str, int],
) -> bool:
    """Evaluate nodes with constant inputs, adding the results to ``constants`` and to the model.

    Parameters:
        shapes, kinds: of tensors, where they are known; types by their numbers in ONNX.

    Returns:
        whether there were such nodes.
    """
    from onnx import TensorProto, helper, numpy_helper

    room = _MOST_FOLDED_IN_ALL
    before = len(constants)
    for node in model.graph.node:
        outputs = [name for name in node.output if name]
        if node.domain not in ("", "ai.onnx") or node.op_type in _RANDOM:
            continue
        if all(name in constants for name in outputs):
            continue
        source = shapes.get(node.input[0]) if node.input else None
        if node.op_type in ("Shape", "Size") and source is not None:
            constants[outputs[0]] = _measured(node, source)
        elif all(name in constants for name in node.input if name) and _is_bounded(node, shapes):
            room -= _growth(node, constants, shapes)
            if room < 0:
                raise _refused(node, "the constants of the model are too large")
            constants.update(zip(outputs, _computed(node, constants, opset), strict=False))
        elif node.op_type == "CastLike" and node.input[0] in constants and node.input[1] in kinds:
            kind = kinds[node.input[1]]
            kind = TensorProto.FLOAT if kind == TensorProto.BFLOAT16 else kind
            numbers = helper.tensor_dtype_to_np_dtype(kind)
            constants[outputs[0]] = constants[node.input[0]].astype(numbers)
        else:
            continue
        for name in outputs:
            if constants[name].size <= _SMALL:
                model.graph.initializer.append(numpy_helper.from_array(constants[name], name))
    return len(constants) > before


def _measured(node: "NodeProto", shape: tuple[int, ...]) -> Array:
    """The output of Shape or Size."""
    if node.op_type == "Size":
        return np.array(prod(shape), np.int64)
    first = next((a.i for a in node.attribute if a.name == "start"), None)
    last = next((a.i for a in node.attribute if a.name == "end"), None)
    return np.array(shape[first:last], np.int64)


def _is_bounded(node: "NodeProto", shapes: Mapping[str, tuple[int, ...] | None]) -> bool:
    """Whether the size of a node's results is known before they are computed."""
    graphs = any(item.HasField("g") or item.graphs for item in node.attribute)
    sized = all(shapes.get(name) is not None for name in node.output if name)
    return not graphs and (sized or node.op_type in _BOUNDED)


def _growth(
    node: "NodeProto",
    constants: Mapping[str, Array],
    shapes: Mapping[str, tuple[int, ...] | None],
) -> int:
    """Maximum number of elements that folding a node creates."""
    tensors = [constants[name] for name in node.input if name]
    size = max((tensor.size for tensor in tensors), default=1)
    if node.op_type not in _BOUNDED:
        size = sum(prod(shapes.get(name) or ()) for name in node.output)
    elif node.op_type in ("ConstantOfShape", "Expand"):
        size = max(size, prod(max(int(tensor), 1) for tensor in tensors[-1].ravel()[:_SMALL]))
    elif node.op_type == "Tile":
        size *= prod(max(int(tensor), 1) for tensor in tensors[-1].ravel()[:_SMALL])
    elif node.op_type == "Range":
        start, limit, delta = (float(tensor.ravel()[0]) for tensor in tensors[:3])
        size = int(abs((limit - start) / delta)) + 1 if delta else _MOST_FOLDED + 1
    elif len(tensors) > 1:
        operands = [tensor.shape for tensor in tensors]
        try:
            size = max(size, prod(np.broadcast_shapes(*operands)))
        except ValueError:
            size = sum(tensor.size for tensor in tensors)
    if size > _MOST_FOLDED:
        raise _refused(
            node, f"it makes a constant of {size:,} elements; at most {_MOST_FOLDED:,} are allowed"
        )
    return size


def _computed(node: "NodeProto", constants: Mapping[str, Array], opset: int) -> list[Array]:
    try:
        return evaluate(node, {name: constants[name] for name in node.input if name}, opset)
    except MissingExtraError:
        raise
    except Exception as error:  # Any of an evaluator of another library.
        raise _refused(node, f"its constants can't be computed: {one_line(error)}") from error


def _refused(node: "NodeProto", why: str) -> RefusedError:
    return RefusedError(node.op_type, node.name or node.output[0], why)
