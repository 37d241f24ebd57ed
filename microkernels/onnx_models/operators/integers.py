"""Operators on integers.

There are two kinds of integer tensors. Between QuantizeLinear and layers that know its scale, a
tensor stands for real numbers: its map has these, limited to the range of the integers but not
rounded to their steps, since elements have 16 bits. Elsewhere, such as at inputs and outputs of the
model, the map has the integers themselves, and their sums and products are exact.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from microkernels.common.fixed_point import Reals
from microkernels.networks.maps import BYTE_BITS
from microkernels.onnx_models.importer import Importer
from microkernels.onnx_models.model import Value
from microkernels.onnx_models.read import GraphNode, attribute, attributes, refused

from .elements import affine, combine, limited
from .linear import conv
from .products import gemm, matmul

#: Operators that produce integers with a scale -> number of the scale's input; the zero point is
#: the next one.
_MAKES = {
    "QuantizeLinear": 1,
    "QLinearConv": 6,
    "QLinearMatMul": 6,
    "com.microsoft.QGemm": 7,
    "com.microsoft.QLinearAdd": 6,
}
#: Operators that accept such integers, and those that pass them on.
_TAKES = frozenset(_MAKES) - {"QuantizeLinear"} | {"DequantizeLinear"}
_PASSES = frozenset(
    ("Flatten", "Identity", "MaxPool", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
)


def _made(node: GraphNode, op: str, inputs: list[str], output: str, **attributes: Any) -> GraphNode:
    from onnx import helper

    return helper.make_node(op, inputs, [output], node.name, **attributes)


def _with_constant(importer: Importer, name: str, values: Reals) -> str:
    constants = {**importer.graph.constants, name: values}
    importer.graph = replace(importer.graph, constants=constants)
    return name


def _passed_on(importer: Importer, tensor: str) -> tuple[set[str], bool]:
    """A tensor of integers and those to which it is passed on, and whether only layers that know
    its scale use them, so that they stand for real numbers."""
    tensors, known = {tensor}, tensor not in importer.graph.outputs
    for node in importer.graph.nodes:
        if tensor in node.input and node.op_type in _PASSES:
            further, also = _passed_on(importer, node.output[0])
            tensors, known = tensors | further, known and also
        elif tensor in node.input:
            known = known and node.op_type in _TAKES
    return tensors, known


def _stands_for_reals(importer: Importer, tensor: str) -> bool:
    return _passed_on(importer, tensor)[1]


def _one(importer: Importer, node: GraphNode, number: int, label: str) -> float:
    """Input ``number``, which must be one number; a zero point may be missing."""
    if importer.constant(node, number) is None and label == "zero point":
        return 0.0
    values = importer.reals(node, number)
    if values.size != 1 or (label == "scale" and values.ravel()[0] <= 0):
        positive = "positive " if label == "scale" else ""
        raise refused(node, f"the {label} must be one {positive}number")
    return float(values.ravel()[0])


def _along(
    importer: Importer, node: GraphNode, number: int, values: Reals, axis: int, kind: str
) -> Reals:
    """Scales or zero points, which may differ along an axis of ``values``, ready to broadcast."""
    vector = importer.reals(node, number)
    if vector.size == 1:
        return vector.reshape(())
    if vector.shape != (values.shape[axis],):
        raise refused(
            node,
            f"input {number}, a {kind}, must have 1 or {values.shape[axis]} elements, not "
            f"{vector.size}",
        )
    shape = [1] * values.ndim
    shape[axis] = -1
    return vector.reshape(shape)


def _constant_integers(
    importer: Importer, node: GraphNode, number: int, zero: int, axis: int, scale: int | None = None
) -> Reals:
    """Constant integers minus their zero points, times their scales.

    Parameters:
        number, zero, scale: of the inputs. axis: of the integers, along which the others may
            differ.
    """
    values = importer.reals(node, number)
    scaled = values
    if importer.constant(node, zero) is not None:
        scaled = values - _along(importer, node, zero, values, axis, "zero point")
    if scale is not None:
        scaled = scaled * _along(importer, node, scale, values, axis, "scale")
    return scaled


def _less_zero(importer: Importer, node: GraphNode, number: int, zero: float) -> str:
    """A tensor of an input's integers minus their zero point."""
    tensor: str = node.input[number]
    if not zero:
        return tensor
    moved = affine(importer, node, importer.value(node, number), 1.0, -zero, last=False)
    importer.whole.add(moved.layer)
    name = f"{node.output[0]} input {number}"
    importer.name_output(node, name, moved)
    return name


def _operand(importer: Importer, node: GraphNode, number: int) -> tuple[str, float]:
    """An input with scale and zero point in the next inputs: a tensor, and the remaining factor
    that turns it into real numbers."""
    tensor = node.input[number]
    if tensor in importer.scaled:
        name = f"{node.output[0]} input {number}"
        inputs = list(node.input[number : number + 3])
        dequantize(importer, _made(node, "DequantizeLinear", inputs, name))
        return name, 1.0
    scale = _one(importer, node, number + 1, "scale")
    return _less_zero(importer, node, number, _one(importer, node, number + 2, "zero point")), scale


def conv_integer(importer: Importer, node: GraphNode) -> None:
    """ConvInteger with constant weights; exact if the sums fit elements."""
    x = _less_zero(importer, node, 0, _one(importer, node, 2, "zero point"))
    weights = _constant_integers(importer, node, 1, 3, 0)
    name = _with_constant(importer, f"{node.output[0]} weights", weights)
    conv(importer, _made(node, "Conv", [x, name], node.output[0], **attributes(node)))


def matmul_integer(importer: Importer, node: GraphNode) -> None:
    """MatMulInteger; exact if the sums fit elements."""
    inputs = []
    for number in (0, 1):
        if importer.is_constant(node, number):
            axis = -1 if number else -2
            constant = _constant_integers(importer, node, number, number + 2, axis)
            name = f"{node.output[0]} constant {number}"
            inputs.append(_with_constant(importer, name, constant))
        else:
            zero = _one(importer, node, number + 2, "zero point")
            inputs.append(_less_zero(importer, node, number, zero))
    matmul(importer, _made(node, "MatMul", inputs, node.output[0]))


def _output_factor(importer: Importer, node: GraphNode) -> float:
    """Factor for results, which are real numbers: it counts steps of integers if the output has
    integers."""
    scale = _one(importer, node, _MAKES[node.op_type], "scale")
    return 1.0 if _stands_for_reals(importer, node.output[0]) else 1 / scale


def _finished(importer: Importer, node: GraphNode, tensor: str) -> None:
    """The output from a tensor of real numbers or steps."""
    first = _MAKES[node.op_type]
    inputs = [tensor, *node.input[first : first + 2]]
    rounding = _made(node, "QuantizeLinear", inputs, node.output[0])
    if _stands_for_reals(importer, node.output[0]):
        quantize(importer, rounding)
    else:
        _rounded(importer, rounding, importer.value(rounding))


def qlinear_conv(importer: Importer, node: GraphNode) -> None:
    """QLinearConv with constant weights."""
    x, left = _operand(importer, node, 0)
    out = node.output[0]
    factor = _output_factor(importer, node)
    weights = _constant_integers(importer, node, 3, 5, 0, 4) * left * factor
    inputs = [x, _with_constant(importer, f"{out} weights", weights)]
    if importer.constant(node, 8) is not None:
        step = importer.reals(node, 1).ravel()[0] * importer.reals(node, 4).ravel() * factor
        bias = importer.reals(node, 8) * step
        inputs.append(_with_constant(importer, f"{out} bias", bias))
    real_node = _made(node, "Conv", inputs, f"{out} real", **attributes(node))
    conv(importer, real_node)
    _finished(importer, node, real_node.output[0])


def qlinear_matmul(importer: Importer, node: GraphNode) -> None:
    """QLinearMatMul."""
    out = node.output[0]
    inputs = []
    left = _output_factor(importer, node)
    constants = {}
    for number in (0, 3):
        if importer.is_constant(node, number):
            axis = -1 if number else -2
            constants[number] = _constant_integers(
                importer, node, number, number + 2, axis, number + 1
            )
            inputs.append(f"{out} constant {number}")
        else:
            tensor, factor = _operand(importer, node, number)
            inputs.append(tensor)
            left *= factor
    for number, constant in constants.items():
        _with_constant(importer, f"{out} constant {number}", constant * left)
    real_node = _made(node, "MatMul", inputs, f"{out} real")
    matmul(importer, real_node)
    if not constants and left != 1:
        scaled = affine(importer, node, importer.values[real_node.output[0]], left, 0.0, last=False)
        importer.name_output(node, real_node.output[0], scaled)
    _finished(importer, node, real_node.output[0])


def qlinear_add(importer: Importer, node: GraphNode) -> None:
    """onnxruntime's QLinearAdd."""
    out = node.output[0]
    left = _output_factor(importer, node)
    terms = []
    for number in (0, 3):
        tensor, factor = _operand(importer, node, number)
        value = importer.values.get(tensor)
        if value is None:
            raise refused(node, f"input {number} must depend on the model's inputs")
        scaled = factor * left != 1
        terms.append(
            affine(importer, node, value, factor * left, 0.0, last=False) if scaled else value
        )
    importer.name_output(node, f"{out} real", combine(importer, node, "add", *terms, last=False))
    _finished(importer, node, f"{out} real")


def qgemm(importer: Importer, node: GraphNode) -> None:
    """onnxruntime's QGemm with constant weights."""
    x, left = _operand(importer, node, 0)
    out, last = node.output[0], len(node.input) > _MAKES[node.op_type]
    alpha = float(attribute(node, "alpha", 1.0)) * (_output_factor(importer, node) if last else 1.0)
    axis = 0 if attribute(node, "transB", 0) else -1
    weights = _constant_integers(importer, node, 3, 5, axis, 4) * left * alpha
    inputs = [x, _with_constant(importer, f"{out} weights", weights)]
    if importer.constant(node, 6) is not None:
        step = importer.reals(node, 1).ravel()[0] * importer.reals(node, 4).ravel() * alpha
        bias = importer.reals(node, 6) * step
        inputs.append(_with_constant(importer, f"{out} bias", bias))
    sides = {name: attribute(node, name, 0) for name in ("transA", "transB")}
    real = f"{out} real" if last else out
    gemm(importer, _made(node, "Gemm", inputs, real, **sides))
    if last:
        _finished(importer, node, real)


def _limits(importer: Importer, node: GraphNode) -> tuple[float, float, float]:
    """Zero point, smallest and largest integer of a node that quantises."""
    zero = importer.constant(node, 2)
    kind = np.dtype(np.uint8) if zero is None else zero.dtype
    if zero is None and attribute(node, "output_dtype", 0):
        raise refused(node, "output_dtype needs a zero point of that type")
    if kind.name not in ("uint8", "int8", "uint16", "int16"):
        raise refused(node, f"integers must have 8 or 16 bits, not {kind.name}")
    ends = np.iinfo(kind.name)
    # Without rounding to steps, or with halves rounded up.
    importer.approximation = max(importer.approximation, 1 / (int(ends.max) - int(ends.min)))
    return _one(importer, node, 2, "zero point"), float(ends.min), float(ends.max)


def _rounded(importer: Importer, node: GraphNode, steps: Value) -> None:
    """The integers of a tensor that counts their steps from the zero point."""
    zero, low, high = _limits(importer, node)
    inside = limited(importer, node, steps, low - zero, high - zero, last=False)
    result = affine(importer, node, inside, 1.0, zero)
    importer.rounded.add(result.layer)


def quantize(importer: Importer, node: GraphNode) -> None:
    """QuantizeLinear: limited real numbers if the tensor stands for them; otherwise integers,
    rounded to nearest with halves up."""
    value = importer.value(node)
    scale = _one(importer, node, 1, "scale")
    zero, low, high = _limits(importer, node)
    real = _stands_for_reals(importer, node.output[0])
    ends = ((low - zero) * scale, (high - zero) * scale)
    inside = limited(importer, node, value, *ends, last=real)
    if real:
        importer.scaled |= _passed_on(importer, node.output[0])[0]
        if high - low < 1 << BYTE_BITS:
            importer.steps[inside.layer] = (scale, zero - (low + high + 1) / 2)
    else:
        _rounded(importer, node, affine(importer, node, inside, 1 / scale, 0.0, last=False))


def dequantize(importer: Importer, node: GraphNode) -> None:
    """DequantizeLinear: real numbers from integers."""
    value = importer.value(node)
    if node.input[0] not in importer.scaled:
        scale, zero = _one(importer, node, 1, "scale"), _one(importer, node, 2, "zero point")
        affine(importer, node, value, scale, -zero * scale)
        return
    tensor, maker = node.input[0], node
    while maker.op_type not in _MAKES:
        maker = next(item for item in importer.graph.nodes if tensor in item.output)
        tensor = maker.input[0]
    first = _MAKES[maker.op_type]
    for number in (1, 2):
        one, other = (
            np.zeros(1) if item is None else item.astype(np.float64).ravel()
            for item in (
                importer.constant(maker, first + number - 1),
                importer.constant(node, number),
            )
        )
        if not np.array_equal(one, other):
            raise refused(node, "scale and zero point must be those of QuantizeLinear")
    importer.alias(node, value, value.shape)
