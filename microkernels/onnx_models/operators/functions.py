"""Operators that are functions of single elements, by curves."""

from collections.abc import Callable

from microkernels.networks.curves import UNFITTED, Function
from microkernels.networks.network import Activation
from microkernels.onnx_models.graph import Node
from microkernels.onnx_models.importer import Importer, Value, attribute

__all__ = ["curve_value", "elu", "unary"]


def curve_value(
    importer: Importer, node: Node, value: Value, function: Function, *, last: bool = False
) -> Value:
    """A function of each element.

    Parameters:
        last: it makes the node's first output.
    """
    layer = Activation(
        name=importer.unique(node.name), source=value.layer, function="curve", curve=UNFITTED
    )
    importer.curves[layer.name] = function
    return importer.add(node, layer, value.size, value.shape, last=last, turned=value.turned)


def unary(name: str) -> Callable[[Importer, Node], None]:
    """The function of an operator without attributes.

    Parameters:
        name: in :data:`microkernels.onnx_models.curves.FUNCTIONS`.
    """

    def operator(importer: Importer, node: Node) -> None:
        curve_value(importer, node, importer.held(node), Function(name), last=True)

    return operator


def elu(importer: Importer, node: Node) -> None:
    """Elu, Celu and Selu: x above 0, an exponential less 1 below."""
    alpha, gamma = 1.0, 1.0
    if node.op == "Selu":
        alpha, gamma = 1.6732632423543772, 1.0507009873554805
    alpha = float(attribute(node, "alpha", alpha))
    gamma = float(attribute(node, "gamma", gamma))
    width = alpha if node.op == "Celu" else 1.0
    if width == 0:
        raise node.refused("alpha must not be 0")
    function = Function("elu", (alpha, gamma, width))
    curve_value(importer, node, importer.held(node), function, last=True)
