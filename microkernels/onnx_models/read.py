"""Reading of ONNX models: limits, checks, shapes, constant folding, and parts of models.

A model is refused before memory is allocated for contents that it only claims to have: the elements
of each constant are compared with the bytes present, and the results of constant nodes are limited.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.errors import clipped, unknown
from support.extras import need, together
from support.files import read_bytes

from .errors import ModelError, RefusedError, label, one_line
from .fold import Array, fold

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto


@dataclass(frozen=True, kw_only=True)
class OnnxGraph:
    """A graph of which all sizes are known.

    Attributes:
        nodes: those that depend on the inputs, each after those whose outputs it uses. The type of
            an operator has its domain if this is not ONNX's own; the name of a node that had none
            is that of its first output, or its number.
        constants: tensors that don't depend on the inputs, by name.
        shapes: of all tensors with known shape, by name.
        inputs, outputs: names of tensors.
        opset: version of ONNX's operators.
        integers: tensors of integers, by name -> name of their type.
        rounding: maximum relative rounding error of its types of real numbers.
        open_inputs: inputs whose first size neither the model nor the caller fixes; none if a
            constant shape implies one image.
        batch: images along the first axis, if the model or the caller declares it a batch; None:
            the operators must show whether it is one.
    """

    nodes: tuple["NodeProto", ...]
    constants: Mapping[str, Array]
    shapes: Mapping[str, tuple[int, ...]]
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    integers: Mapping[str, str]
    rounding: float
    open_inputs: tuple[str, ...]
    batch: int | None

    @cached_property
    def makers(self) -> Mapping[str, "NodeProto"]:
        """Name of each tensor that depends on the inputs, but for these -> the node that makes
        it."""
        return {name: node for node in self.nodes for name in node.output}


#: Maximum bytes of a file (a limit of protocol buffers), elements and dimensions of a tensor, and
#: nodes.
_MOST_BYTES = (1 << 31) - 1
_MOST_ELEMENTS = 1 << 30
_MOST_NODES = 50_000
_MOST_RANK = 16
_OLDEST_OPSET = 6
#: That of a model without any of ONNX's own operators.
_USUAL_OPSET = 17
#: What some exporters write for an open size, where others write 0.
_OPEN = -1
#: Maximum elements of a constant that shape inference may use.
_SMALL = 256
#: Types of inputs, by their number in ONNX: real numbers of 32, 16 and 64 bits, and bfloat16;
#: integers of 8, 16, 32 and 64 bits; truth values, which are the integers 0 and 1.
REALS = (1, 10, 11, 16)
_INTEGERS = {2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64"} | {
    9: "bool", 12: "uint32", 13: "uint64"
}  # fmt: skip
#: Operators that are replaced by the nodes by which ONNX defines them, and those of which this
#: happens if more than their first output is needed.
EXPANDED = frozenset(
    (
        "Attention", "CausalConvWithState", "MeanVarianceNormalization",
        "NegativeLogLikelihoodLoss", "RotaryEmbedding", "SoftmaxCrossEntropyLoss", "SwiGLU",
    )
)  # fmt: skip
_EXPANDED_WITH_OUTPUTS = frozenset(("LayerNormalization",))
#: Maximum rounds of inferring shapes and folding constants, each of which may enable the other.
_MOST_ROUNDS = 16
#: Relative rounding error of types of real numbers.
_ROUNDING = {10: 2.0**-11, 16: 2.0**-8}


def need_onnx() -> None:
    """Check that what reads and runs ONNX models is installed.

    Raises:
        MissingExtraError: ``onnx`` or ``onnxruntime`` is not.
    """
    with together():
        for package in ("onnx", "onnxruntime"):
            need(package, "models")


def load_proto(path: Path | bytes) -> "ModelProto":
    """The model in a file, or in contents of one, unchecked.

    Raises:
        ModelError: the file is not a model.
        MissingExtraError: as :func:`need_onnx`.
        OSError: the file can't be read.
    """
    need_onnx()
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from onnx import ModelProto

    content = path if isinstance(path, bytes) else read_bytes(path, _MOST_BYTES)
    place = "the model" if isinstance(path, bytes) else path
    model = ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        raise ModelError(f"{place}: not an ONNX model, or truncated") from error
    if not model.graph.node and not model.graph.output:
        raise ModelError(f"{place}: not an ONNX model: it has no graph")
    return model


def read_graph(
    model: "ModelProto", *, batch: int | None = None, frozen: Mapping[str, Array] | None = None
) -> OnnxGraph:
    """The graph of a model, with all shapes known and constants folded.

    Parameters:
        model: not modified.
        batch: size of the first dimension of inputs, which is then a batch; None: 1 if the model
            leaves it open.
        frozen: inputs to be replaced by constants, by name.

    Raises:
        ModelError: the model is invalid or too large, or has unknown shapes.
    """
    from onnx import numpy_helper

    _check_limits(model)
    constants = {item.name: _array(item) for item in model.graph.initializer}
    constants |= frozen or {}
    work = _without_data(model, constants)
    for name, values in (frozen or {}).items():
        work.graph.initializer.append(numpy_helper.from_array(values, name))
    work, opset = _checked(work)
    inputs = [item for item in work.graph.input if item.name not in constants]
    opened = _fix_batch(inputs, batch)
    _drop_shapes(work)
    written = {item.name for item in work.graph.initializer}
    written |= {node.output[0] for node in work.graph.node if node.op_type == "Constant"}
    kinds: dict[str, int] = {}
    fold(work, constants, opset, {item.name: _dims(item) for item in inputs}, kinds)
    for _ in range(_MOST_ROUNDS):
        tensors = _inferred(work)
        shapes = {name: array.shape for name, array in constants.items()}
        shapes |= {value.name: dims for value in tensors if (dims := _dims(value)) is not None}
        kinds = {
            value.name: value.type.tensor_type.elem_type
            for value in tensors
            if value.name not in constants
        }
        if not fold(work, constants, opset, shapes, kinds):
            break
    nodes = [
        _named(number, node)
        for number, node in enumerate(work.graph.node)
        if not all(name in constants for name in node.output if name)
    ]
    nodes = _needed(nodes, [item.name for item in work.graph.output])
    # A constant shape of one image, not determined by the size of an input.
    targets = [node.input[1] for node in nodes if node.op_type == "Reshape" and len(node.input) > 1]
    alone = any(name in written and constants[name].ravel()[:1].tolist() == [1] for name in targets)
    return OnnxGraph(
        nodes=tuple(nodes),
        constants=constants,
        shapes=shapes,
        opset=opset,
        inputs=tuple(item.name for item in inputs),
        outputs=tuple(item.name for item in work.graph.output),
        integers={name: _INTEGERS[kind] for name, kind in kinds.items() if kind in _INTEGERS},
        rounding=max((_ROUNDING.get(kind, 0.0) for kind in kinds.values()), default=0.0),
        open_inputs=() if alone or batch is not None else tuple(opened),
        batch=1 if opened and batch is None else batch,
    )


def _inferred(model: "ModelProto") -> list[Any]:
    """Descriptions of all tensors, with types and shapes inferred from those of the inputs.

    Raises:
        ModelError: shapes are inconsistent.
    """
    from onnx import shape_inference

    try:
        inferred = shape_inference.infer_shapes(model, strict_mode=False, data_prop=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError) as error:
        raise ModelError(f"the model's shapes are inconsistent: {one_line(error)}") from error
    graph = inferred.graph
    return [*graph.input, *graph.value_info, *graph.output]


def _without_data(model: "ModelProto", constants: Mapping[str, Array]) -> "ModelProto":
    """A copy of ``model`` with large constants as inputs: checks need only their shapes, and copy
    the model several times."""
    import onnx

    work = onnx.ModelProto()
    graph = model.graph
    for field, value in model.ListFields():
        if field.name != "graph":
            part = onnx.ModelProto(**{field.name: value})
            work.MergeFrom(part)
    for field, value in graph.ListFields():
        if field.name != "initializer":
            work.graph.MergeFrom(onnx.GraphProto(**{field.name: value}))
    small = [tensor for tensor in graph.initializer if constants[tensor.name].size <= _SMALL]
    work.graph.initializer.extend(small)
    _describe(work.graph, graph.initializer, {tensor.name for tensor in small})
    return work


def _describe(graph: Any, tensors: Iterable["TensorProto"], others: Collection[str] = ()) -> None:
    """Add inputs that have the types and shapes of constants, but for ``others``."""
    from onnx import helper

    described = {item.name for item in graph.input}.union(others)
    for tensor in tensors:
        if tensor.name not in described:
            kind, dims = tensor.data_type, list(tensor.dims)
            graph.input.append(helper.make_tensor_value_info(tensor.name, kind, dims))


def _checked(model: "ModelProto") -> tuple["ModelProto", int]:
    """A model that ONNX's checker accepts, with its functions inlined, and its opset."""
    from onnx import checker, defs, inliner

    for value in model.graph.output:
        # The checker requires a shape, which inference determines again.
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.shape.SetInParent()
    try:
        checker.check_model(model)
        if model.functions:
            model = inliner.inline_local_functions(model)
    except (checker.ValidationError, ValueError, TypeError, RuntimeError) as error:
        raise ModelError(f"the model is not valid: {one_line(error)}") from error
    model = _replaced(model)
    opset = next(
        (entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")),
        _USUAL_OPSET,
    )
    newest = defs.onnx_opset_version()
    if not _OLDEST_OPSET <= opset <= newest:
        raise ModelError(
            f"the model must use an opset of ONNX from {_OLDEST_OPSET} to {newest}, not {opset}"
        )
    return model, opset


def _replaced(model: "ModelProto") -> "ModelProto":
    """A model with other nodes instead of those that are expanded.

    Raises:
        ModelError: an operator can't be expanded.
    """
    from onnx import defs, inliner, shape_inference

    before: list[str] = []
    # A definition may have operators that are replaced themselves.
    while (names := sorted(set(map(_expanded, model.graph.node)) - {""})) != before:
        # An expansion may depend on the types of tensors; those of constants are known as inputs'.
        _describe(model.graph, model.graph.initializer)
        for node in filter(_expanded, model.graph.node):
            # Definitions do not have the defaults of their operators.
            usual = defs.get_schema(node.op_type).attributes
            missing = usual.keys() - {attribute.name for attribute in node.attribute}
            node.attribute.extend(
                usual[name].default_value
                for name in sorted(missing)
                if usual[name].default_value.name
            )
        try:
            model = inliner.inline_selected_functions(
                shape_inference.infer_shapes(model),
                [("", name) for name in names],
                inline_schema_functions=True,
            )
        except (RuntimeError, ValueError) as error:
            raise ModelError(
                f"{' and '.join(names)} can't be replaced by the operators that define it, as "
                "where an optional input is left out before another one; name all of its inputs"
            ) from error
        before = names
    return model


def _expanded(node: "NodeProto") -> str:
    """The operator of a node that others replace; "" if none do."""
    several = node.op_type in _EXPANDED_WITH_OUTPUTS and any(node.output[1:])
    return node.op_type if several or node.op_type in EXPANDED else ""


def _check_limits(model: "ModelProto") -> None:
    graph = model.graph
    if len(graph.node) > _MOST_NODES:
        raise ModelError(
            f"the model has {len(graph.node)} nodes; at most {_MOST_NODES} are allowed"
        )
    tensors = list(graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g") or attribute.graphs:
                raise RefusedError(
                    node.op_type,
                    node.name or node.output[0],
                    "operators with graphs within (If, Loop, Scan) are not supported; export the "
                    "model with them unrolled",
                )
            if attribute.HasField("t"):
                tensors.append(attribute.t)
    if graph.sparse_initializer:
        raise ModelError("sparse constants are not supported; export them dense")
    for tensor in tensors:
        _check_tensor(tensor)
    for value in (*graph.input, *graph.output, *graph.value_info):
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        _check_dims(value.name, [0 if size == _OPEN else size for size in dims])


def _check_dims(name: str, dims: Iterable[int]) -> None:
    sizes = list(dims)
    tensor = f"tensor {label(name)}"
    if len(sizes) > _MOST_RANK:
        raise ModelError(f"{tensor} has {len(sizes)} dimensions; at most {_MOST_RANK} are allowed")
    if any(size < 0 for size in sizes):
        raise ModelError(f"{tensor} has a negative size: {sizes}")
    if prod(max(size, 1) for size in sizes) > _MOST_ELEMENTS:
        raise ModelError(
            f"{tensor} of shape {clipped(str(sizes), 80)} has more than {_MOST_ELEMENTS:,} elements"
        )


def _check_tensor(tensor: "TensorProto") -> None:
    from onnx import TensorProto, external_data_helper, helper

    name = label(tensor.name or "of a Constant node")
    if external_data_helper.uses_external_data(tensor):
        raise ModelError(
            f"tensor {name} is stored in another file; save the model with all tensors in one file"
        )
    _check_dims(name, tensor.dims)
    if tensor.data_type == TensorProto.STRING:
        return
    try:
        kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
        field = helper.tensor_dtype_to_field(tensor.data_type)
    except (KeyError, TypeError, ValueError):
        raise ModelError(f"tensor {name} has the unknown type {tensor.data_type}") from None
    count = prod(tensor.dims)
    if tensor.HasField("raw_data"):
        packed = kind.name in ("int4", "uint4", "float4_e2m1fn", "int2", "uint2")
        present, needed = len(tensor.raw_data), count * kind.itemsize
        if present != needed and not packed:
            raise ModelError(
                f"tensor {name} of shape {list(tensor.dims)} needs {needed:,} bytes, but has "
                f"{present:,}"
            )
    elif len(getattr(tensor, field)) < count / 8:
        raise ModelError(
            f"tensor {name} of shape {list(tensor.dims)} has {len(getattr(tensor, field)):,} values"
        )


def _array(tensor: "TensorProto") -> Array:
    from onnx import numpy_helper

    try:
        array: Array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise ModelError(f"tensor {label(tensor.name)}: {one_line(error)}") from error
    return array


def _dims(value: Any) -> tuple[int, ...] | None:
    """Shape of a value; None if it is not a tensor, or a size is unknown."""
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
        return None
    sizes = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim]
    return None if any(size < 0 for size in sizes) else tuple(sizes)


def _fix_batch(inputs: Iterable[Any], batch: int | None) -> list[str]:
    """Set the first dimension of inputs that leave it open to the batch; returns their names."""
    opened = []
    for value in inputs:
        name = label(value.name)
        if not value.type.HasField("tensor_type"):
            raise ModelError(f"input {name} is not a tensor")
        if value.type.tensor_type.elem_type not in (*REALS, *_INTEGERS):
            raise ModelError(
                f"input {name} must be of a floating-point or an integer type, or of truth values"
            )
        if not value.type.tensor_type.HasField("shape"):
            raise ModelError(f"input {name} has no shape; export the model with fixed sizes")
        for number, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_value not in (0, _OPEN):
                continue
            if number > 0:
                raise ModelError(
                    f"input {name} leaves dimension {number} open"
                    f"{' as ' + repr(clipped(dim.dim_param, 40)) if dim.dim_param else ''}; only "
                    "the first, the batch, may be: export the model with fixed sizes"
                )
            dim.dim_value = batch or 1
            opened.append(value.name)
        shape = _dims(value)
        if batch is not None and shape is not None and shape[:1] != (batch,):
            raise ModelError(
                f"input {name} of shape {list(shape)} must have the batch of {batch} as its first "
                "dimension"
            )
    return opened


def _drop_shapes(model: "ModelProto") -> None:
    """Remove shapes that may belong to other inputs; inference determines them again."""
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")


def _named(number: int, node: "NodeProto") -> "NodeProto":
    """The node with the names that it has in a graph."""
    if node.domain not in ("", "ai.onnx"):
        node.op_type = f"{node.domain}.{node.op_type}"
    node.ClearField("domain")
    node.name = node.name or next((name for name in node.output if name), "") or f"number {number}"
    return node


def _needed(nodes: Sequence["NodeProto"], outputs: Iterable[str]) -> list["NodeProto"]:
    """The nodes that the outputs depend on."""
    needed = set(outputs)
    ordered = []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed.update(_inputs(node))
            ordered.append(node)
    return ordered[::-1]


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
    nodes = _needed(graph.node, outputs)
    needed = set(outputs).union(*map(_inputs, nodes))
    parts: list[tuple[Any, list[Any]]] = [
        (graph.node, nodes),
        (graph.output, chosen),
        (graph.input, [item for item in graph.input if item.name in needed]),
        (graph.initializer, [item for item in graph.initializer if item.name in needed]),
    ]
    for field, items in parts:
        copies = [type(item).FromString(item.SerializeToString()) for item in items]
        del field[:]
        field.extend(copies)


def _inputs(node: Any) -> set[str]:
    """Tensors that a node uses, or the graphs within it may."""
    graphs = [graph for one in node.attribute for graph in (one.g, *one.graphs)]
    return set(node.input).union(*(_inputs(inner) for graph in graphs for inner in graph.node))


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
    _drop_shapes(proto)
