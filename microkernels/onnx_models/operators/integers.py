"""Layers of integers with their scales: they are computed with real numbers, as all others.

A tensor of integers stands for real numbers. Its map holds these, limited to what the integers can
say; their steps are left out, as elements have 16 bits.
"""

from dataclasses import replace
from typing import Any

from microkernels.onnx_models.graph import Node
from microkernels.onnx_models.importer import Importer
from microkernels.onnx_models.model import Reals

from .elements import dequantize, quantize
from .linear import conv
from .rows import matmul

__all__ = ["qlinear_conv", "qlinear_matmul"]


def _made(node: Node, op: str, inputs: list[str], output: str, **attributes: Any) -> Node:
    return Node(
        op=op, name=node.name, inputs=tuple(inputs), outputs=(output,), attributes=attributes
    )


def _with_constant(importer: Importer, name: str, values: Reals) -> str:
    constants = {**importer.graph.constants, name: values}
    importer.graph = replace(importer.graph, constants=constants)
    return name


def _real(importer: Importer, node: Node, number: int, axis: int) -> Reals:
    """Constant integers of the input ``number``, whose scale and zero point follow, as reals.

    Parameters:
        axis: of the integers, along which scales may differ.
    """
    held = importer.reals(node, number)
    parts = []
    for kind, part in (("scale", number + 1), ("zero point", number + 2)):
        given = importer.reals(node, part)
        if given.size == 1:
            parts.append(given.reshape(()))
            continue
        if given.shape != (held.shape[axis],):
            raise node.refused(
                f"input {part}, a {kind}, must have 1 or {held.shape[axis]} elements, not "
                f"{given.size}"
            )
        shape = [1] * held.ndim
        shape[axis] = -1
        parts.append(given.reshape(shape))
    scale, zero = parts
    found: Reals = (held - zero) * scale
    return found


def _dequantized(importer: Importer, node: Node, number: int) -> str:
    """The tensor of real numbers for the input ``number``, whose scale and zero point follow."""
    name = f"{node.outputs[0]} input {number}"
    inputs = list(node.inputs[number : number + 3])
    dequantize(importer, _made(node, "DequantizeLinear", inputs, name))
    return name


def _quantized(importer: Importer, node: Node, real: str) -> None:
    """The output, whose scale and zero point are inputs 6 and 7."""
    inputs = [real, *node.inputs[6:8]]
    quantize(importer, _made(node, "QuantizeLinear", inputs, node.outputs[0]))


def qlinear_conv(importer: Importer, node: Node) -> None:
    """QLinearConv with constant weights."""
    x = _dequantized(importer, node, 0)
    out = node.outputs[0]
    weights = _real(importer, node, 3, 0)
    inputs = [x, _with_constant(importer, f"{out} weights", weights)]
    if importer.constant(node, 8) is not None:
        step = importer.reals(node, 1).ravel()[0] * importer.reals(node, 4).ravel()
        bias = importer.reals(node, 8) * step
        inputs.append(_with_constant(importer, f"{out} bias", bias))
    made = _made(node, "Conv", inputs, f"{out} real", **node.attributes)
    conv(importer, made)
    _quantized(importer, node, made.outputs[0])


def qlinear_matmul(importer: Importer, node: Node) -> None:
    """QLinearMatMul."""
    out = node.outputs[0]
    inputs = []
    for number in (0, 3):
        if importer.is_constant(node, number):
            real = _real(importer, node, number, -1 if number else -2)
            inputs.append(_with_constant(importer, f"{out} constant {number}", real))
        else:
            inputs.append(_dequantized(importer, node, number))
    made = _made(node, "MatMul", inputs, f"{out} real")
    matmul(importer, made)
    _quantized(importer, node, made.outputs[0])
