"""Operators on integers.

There are two kinds of integer tensors. Between QuantizeLinear and layers that know its scale, a
tensor stands for real numbers: its map has these, limited to the range of the integers but not
rounded to their steps, since elements have 16 bits. Elsewhere, such as at inputs and outputs of the
model, the map has the integers themselves, and their sums and products are exact.
"""

from typing import Any

import numpy as np

from microkernels.common.fixed_point import Reals
from microkernels.networks.maps import BYTE_BITS
from microkernels.onnx_models.model import Value
from microkernels.onnx_models.node import GraphNode, Tensor

from .elements import combine

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


def _passed_on(node: GraphNode, tensor: str) -> tuple[set[str], bool]:
    """A tensor of integers and those to which it is passed on, and whether only layers that know
    its scale use them, so that they stand for real numbers."""
    graph = node.importer.graph
    tensors, real = {tensor}, tensor not in graph.outputs
    for user in graph.nodes:
        if tensor in user.input and user.op_type in _PASSES:
            further, also = _passed_on(node, user.output[0])
            tensors, real = tensors | further, real and also
        elif tensor in user.input:
            real = real and user.op_type in _TAKES
    return tensors, real


def _stands_for_reals(node: GraphNode) -> bool:
    """Whether the node's output does."""
    return _passed_on(node, node.output)[1]


def _one(node: GraphNode, number: int, label: str) -> float:
    """Input ``number``, which must be one number; a zero point may be missing."""
    if node.constant(number) is None and label == "zero point":
        return 0.0
    values = node.reals(number)
    if values.size != 1 or (label == "scale" and values.ravel()[0] <= 0):
        positive = "positive " if label == "scale" else ""
        raise node.refused(f"the {label} must be one {positive}number")
    return float(values.ravel()[0])


def _along(node: GraphNode, number: int, values: Reals, axis: int, kind: str) -> Reals:
    """Scales or zero points, which may differ along an axis of ``values``, ready to broadcast."""
    vector = node.reals(number)
    if vector.size == 1:
        return vector.reshape(())
    if vector.shape != (values.shape[axis],):
        raise node.refused(
            f"input {number}, a {kind}, must have 1 or {values.shape[axis]} elements, not "
            f"{vector.size}"
        )
    shape = [1] * values.ndim
    shape[axis] = -1
    return vector.reshape(shape)


def _constant_integers(
    node: GraphNode, number: int, zero: int, axis: int, scale: int | None = None
) -> Reals:
    """Constant integers minus their zero points, times their scales.

    Parameters:
        number, zero, scale: of the inputs. axis: of the integers, along which the others may
            differ.
    """
    values = node.reals(number)
    scaled = values
    if node.constant(zero) is not None:
        scaled = values - _along(node, zero, values, axis, "zero point")
    if scale is not None:
        scaled = scaled * _along(node, scale, values, axis, "scale")
    return scaled


def _less_zero(node: GraphNode, number: int, zero: float) -> Tensor:
    """An input's integers minus their zero point."""
    if not zero:
        tensor: str = node.inputs[number]
        return tensor
    moved = node.affine(node.value(number), 1.0, -zero)
    node.importer.whole.add(moved.layer)
    return moved


def _operand(node: GraphNode, number: int) -> tuple[Tensor, float]:
    """An input with scale and zero point in the next inputs: a tensor, and the remaining factor
    that turns it into real numbers."""
    if node.inputs[number] in node.importer.scaled:
        return _real_numbers(node, number), 1.0
    scale = _one(node, number + 1, "scale")
    return _less_zero(node, number, _one(node, number + 2, "zero point")), scale


def conv_integer(node: GraphNode) -> Value:
    """ConvInteger with constant weights; exact if the sums fit elements."""
    x = _less_zero(node, 0, _one(node, 2, "zero point"))
    return node.part("Conv", x, _constant_integers(node, 1, 3, 0), **node.attributes)


def matmul_integer(node: GraphNode) -> Value:
    """MatMulInteger; exact if the sums fit elements."""
    factors: list[Tensor] = []
    for number in (0, 1):
        if node.is_constant(number):
            axis = -1 if number else -2
            factors.append(_constant_integers(node, number, number + 2, axis))
        else:
            factors.append(_less_zero(node, number, _one(node, number + 2, "zero point")))
    return node.part("MatMul", *factors)


def _output_factor(node: GraphNode) -> float:
    """Factor for results, which are real numbers: it counts steps of integers if the output has
    integers."""
    scale = _one(node, _MAKES[node.op], "scale")
    return 1.0 if _stands_for_reals(node) else 1 / scale


def _finished(node: GraphNode, value: Value) -> Value:
    """The output from real numbers or steps."""
    return _scaled(node, value) if _stands_for_reals(node) else _rounded(node, value)


def _weighted(
    node: GraphNode, op: str, axis: int, bias: int, factor: float, **attributes: Any
) -> Value:
    """Products with constant weights by an operator on real numbers, times ``factor``.

    Parameters:
        axis: of the weights, along which scales may differ. bias: number of its input.
        attributes: of the operator.
    """
    x, left = _operand(node, 0)
    inputs = [x, _constant_integers(node, 3, 5, axis, 4) * left * factor]
    if node.constant(bias) is not None:
        step = node.reals(1).ravel()[0] * node.reals(4).ravel() * factor
        inputs.append(node.reals(bias) * step)
    return node.part(op, *inputs, **attributes)


def qlinear_conv(node: GraphNode) -> Value:
    """QLinearConv with constant weights."""
    factor = _output_factor(node)
    return _finished(node, _weighted(node, "Conv", 0, 8, factor, **node.attributes))


def qlinear_matmul(node: GraphNode) -> Value:
    """QLinearMatMul."""
    left = _output_factor(node)
    factors: list[Tensor] = []
    for number in (0, 3):
        if node.is_constant(number):
            axis = -1 if number else -2
            factors.append(_constant_integers(node, number, number + 2, axis, number + 1))
        else:
            tensor, factor = _operand(node, number)
            factors.append(tensor)
            left *= factor
    constant = any(isinstance(factor, np.ndarray) for factor in factors)
    product = node.part(
        "MatMul",
        *(factor * left if isinstance(factor, np.ndarray) else factor for factor in factors),
    )
    if not constant and left != 1:
        product = node.affine(product, left, 0.0)
    return _finished(node, product)


def qlinear_add(node: GraphNode) -> Value:
    """onnxruntime's QLinearAdd."""
    left = _output_factor(node)
    terms = []
    for number in (0, 3):
        tensor, factor = _operand(node, number)
        value = node.value(number) if isinstance(tensor, str) else tensor
        assert isinstance(value, Value)
        scaled = factor * left != 1
        terms.append(node.affine(value, factor * left, 0.0) if scaled else value)
    return _finished(node, combine(node, "add", *terms))


def qgemm(node: GraphNode) -> Value:
    """onnxruntime's QGemm with constant weights."""
    quantised = len(node.inputs) > _MAKES[node.op]
    alpha = float(node.attribute("alpha", 1.0)) * (_output_factor(node) if quantised else 1.0)
    sides = {name: node.attribute(name, 0) for name in ("transA", "transB")}
    sums = _weighted(node, "Gemm", 0 if sides["transB"] else -1, 6, alpha, **sides)
    return _finished(node, sums) if quantised else sums


def _limits(node: GraphNode) -> tuple[float, float, float]:
    """Zero point, smallest and largest integer of a node that quantises."""
    number = _MAKES[node.op] + 1
    zero = node.constant(number)
    kind = np.dtype(np.uint8) if zero is None else zero.dtype
    if zero is None and node.attribute("output_dtype", 0):
        raise node.refused("output_dtype needs a zero point of that type")
    if kind.name not in ("uint8", "int8", "uint16", "int16"):
        raise node.refused(f"integers must have 8 or 16 bits, not {kind.name}")
    ends = np.iinfo(kind.name)
    # Without rounding to steps, or with halves rounded up.
    node.importer.approximation = max(
        node.importer.approximation, 1 / (int(ends.max) - int(ends.min))
    )
    return _one(node, number, "zero point"), float(ends.min), float(ends.max)


def _rounded(node: GraphNode, steps: Value) -> Value:
    """The integers of a tensor that counts their steps from the zero point."""
    zero, low, high = _limits(node)
    inside = node.limited(steps, low - zero, high - zero)
    result = node.affine(inside, 1.0, zero)
    node.importer.rounded.add(result.layer)
    return result


def _inside(node: GraphNode, value: Value) -> Value:
    """Real numbers, limited to the range of the integers that they become."""
    scale = _one(node, _MAKES[node.op], "scale")
    zero, low, high = _limits(node)
    return node.limited(value, (low - zero) * scale, (high - zero) * scale)


def _scaled(node: GraphNode, value: Value) -> Value:
    """The output, which stands for real numbers, from these."""
    inside = _inside(node, value)
    node.importer.scaled |= _passed_on(node, node.output)[0]
    zero, low, high = _limits(node)
    if high - low < 1 << BYTE_BITS:
        scale = _one(node, _MAKES[node.op], "scale")
        node.importer.steps[inside.layer] = (scale, zero - (low + high + 1) / 2)
    return inside


def quantize(node: GraphNode) -> Value:
    """QuantizeLinear: limited real numbers if the tensor stands for them; otherwise integers,
    rounded to nearest with halves up."""
    if _stands_for_reals(node):
        return _scaled(node, node.value())
    inside = _inside(node, node.value())
    return _rounded(node, node.affine(inside, 1 / _one(node, 1, "scale"), 0.0))


def _real_numbers(node: GraphNode, number: int) -> Value:
    """An input that stands for real numbers; scale and zero point are the next inputs."""
    graph = node.importer.graph
    maker = graph.makers[node.inputs[number]]
    while maker.op_type not in _MAKES:
        maker = graph.makers[maker.input[0]]
    first, of_maker = _MAKES[maker.op_type], GraphNode(node.importer, maker)
    for offset in (0, 1):
        one, other = (
            np.zeros(1) if item is None else item.astype(np.float64).ravel()
            for item in (of_maker.constant(first + offset), node.constant(number + 1 + offset))
        )
        if not np.array_equal(one, other):
            raise node.refused("scale and zero point must be those of QuantizeLinear")
    return node.value(number)


def dequantize(node: GraphNode) -> Value:
    """DequantizeLinear: real numbers from integers."""
    value = node.value()
    if node.inputs[0] in node.importer.scaled:
        return _real_numbers(node, 0)
    scale, zero = _one(node, 1, "scale"), _one(node, 2, "zero point")
    return node.affine(value, scale, -zero * scale)
