"""Operators with truth values, which are the integers 0 and 1, and with steps.

Whether one number is greater than another is a step of their difference; all other comparisons, and
choices by truth values, follow from steps by sums and products.
"""

from collections.abc import Callable

import numpy as np

from microkernels.common.fixed_point import Reals
from microkernels.onnx_models.importer import Importer
from microkernels.onnx_models.read import GraphNode, attribute, refused

from .parts import Parts, Tensor

#: Operators without negative results.
_NOT_NEGATIVE = frozenset(
    ("Abs", "Exp", "ReduceL1", "ReduceL2", "ReduceSumSquare", "Relu", "Sigmoid", "Softmax", "Sqrt")
)


def _inverted(parts: Parts, tensor: Tensor, *, last: bool = False) -> str:
    """The opposite truth values."""
    return parts("Sub", 1.0, tensor, last=last)


def _positive(parts: Parts, tensor: str, *, integers: bool, last: bool = False) -> str:
    """Whether elements are above 0.

    Parameters:
        integers: they are integers.
    """
    if integers:
        return parts("Clip", tensor, last=last, min=0.0, max=1.0)
    return parts("Step", tensor, last=last)


def comparison(kind: str) -> Callable[[Importer, GraphNode], None]:
    """The function of an operator that compares.

    Parameters:
        kind: ``equal``, ``greater``, ``less``, ``at most`` or ``at least``.
    """

    def operator(importer: Importer, node: GraphNode) -> None:
        parts = Parts(importer, node)
        first, second = node.input
        if kind in ("less", "at least"):
            first, second = second, first
        integers = any(name in importer.graph.integers for name in node.input)
        difference = parts("Sub", first, second)
        if kind == "equal":
            difference = parts("Abs", difference)
        plain = kind in ("greater", "less")
        above = _positive(parts, difference, integers=integers, last=plain)
        if not plain:
            _inverted(parts, above, last=True)

    return operator


def negation(importer: Importer, node: GraphNode) -> None:
    """Not."""
    _inverted(Parts(importer, node), node.input[0], last=True)


def exclusive(importer: Importer, node: GraphNode) -> None:
    """Xor."""
    parts = Parts(importer, node)
    parts("Abs", parts("Sub", *node.input), last=True)


def sign(importer: Importer, node: GraphNode) -> None:
    """Sign."""
    parts = Parts(importer, node)
    (x,) = node.input
    if x in importer.graph.integers:
        parts("Clip", x, last=True, min=-1.0, max=1.0)
        return
    parts("Sub", parts("Step", x), parts("Step", parts("Sub", 0.0, x)), last=True)


def shrink(importer: Importer, node: GraphNode) -> None:
    """Shrink, and ThresholdedRelu: elements beyond a threshold, moved towards 0; the others are
    0."""
    parts = Parts(importer, node)
    (x,) = node.input
    bias = float(attribute(node, "bias", 0.0))
    limit = float(attribute(node, "lambd", 0.5))
    if node.op_type == "ThresholdedRelu":
        limit = float(attribute(node, "alpha", 1.0))
    above = parts("Mul", parts("Sub", x, bias), parts("Step", parts("Sub", x, limit)))
    if node.op_type == "ThresholdedRelu":
        parts("Identity", above, last=True)
        return
    below = parts("Step", parts("Sub", -limit, x))
    parts("Add", above, parts("Mul", parts("Add", x, bias), below), last=True)


def _quotient(importer: Importer, node: GraphNode) -> tuple[Tensor, str] | None:
    """Dividend and divisor where a choice gives 0 for divisions by 0; None: it is another one."""
    makers = {name: maker for maker in importer.graph.nodes for name in maker.output}
    test, inverted = makers.get(node.input[0]), False
    while test is not None and test.op_type == "Not":
        test, inverted = makers.get(test.input[0]), not inverted
    if test is None or test.op_type != "Equal":
        return None
    division = makers.get(node.input[1 if inverted else 2])
    other = importer.graph.constants.get(node.input[2 if inverted else 1])
    if division is None or division.op_type not in ("Div", "Reciprocal"):
        return None
    if other is None or other.any():
        return None
    divisor = division.input[-1]
    dividend = division.input[0] if division.op_type == "Div" else 1.0
    zero = [importer.graph.constants.get(name) for name in test.input if name != divisor]
    if divisor not in test.input or len(zero) != 1 or zero[0] is None or zero[0].any():
        return None
    return dividend, divisor


def _never_negative(importer: Importer, tensor: str) -> bool:
    """Whether the operator that makes a tensor gives no negative numbers."""
    makers = {name: maker for maker in importer.graph.nodes for name in maker.output}
    return tensor in makers and makers[tensor].op_type in _NOT_NEGATIVE


def choice(importer: Importer, node: GraphNode) -> None:
    """Where: elements of one tensor or of another."""
    parts = Parts(importer, node)
    which, one, other = node.input
    constants = importer.graph.constants
    if which in constants:
        _constant_choice(importer, node, parts)
        return
    if (quotient := _quotient(importer, node)) is not None:
        dividend, divisor = quotient
        if _never_negative(importer, divisor):
            parts("Mul", dividend, parts("Inverse", divisor), last=True)
            return
        magnitude = parts("Inverse", parts("Abs", divisor))
        # Last, so that a large dividend of a small divisor is not limited before.
        parts("Mul", parts("Mul", dividend, parts("Sign", divisor)), magnitude, last=True)
        return
    if one in constants and other in constants:
        first, second = importer.reals(node, 1), importer.reals(node, 2)
        parts("Add", parts("Mul", which, first - second), second, last=True)
        return
    parts("Add", parts("Mul", parts("Sub", one, other), which), other, last=True)


def _constant_choice(importer: Importer, node: GraphNode, parts: Parts) -> None:
    """Where with a constant condition."""
    mask = importer.reals(node, 0) != 0
    tensors = node.input[1:]
    shapes = [
        importer.reals(node, number).shape
        if importer.is_constant(node, number)
        else importer.value(node, number).shape
        for number in (1, 2)
    ]
    shape = np.broadcast_shapes(mask.shape, *shapes)
    fixed: Reals = np.zeros(1)
    chosen: list[str] = []
    for number, places in ((1, mask), (2, ~mask)):
        if not places.any():
            continue
        if importer.is_constant(node, number):
            fixed = fixed + np.where(places, importer.reals(node, number), 0.0)
        elif places.all():
            chosen.append(tensors[number - 1])
        else:
            chosen.append(parts("Mul", tensors[number - 1], places.astype(float)))
    if not chosen:
        constant = importer.constant_of(node, np.broadcast_to(fixed, shape))
        importer.name_output(node, node.output[0], constant)
    elif len(chosen) > 1:
        parts("Add", *chosen, last=True)
    elif fixed.any():
        parts("Add", chosen[0], np.broadcast_to(fixed, shape), last=True)
    elif parts.value(chosen[0]).shape == shape:
        parts("Identity", chosen[0], last=True)
    else:
        parts("Expand", chosen[0], np.array(shape), last=True)


def argument(kind: str) -> Callable[[Importer, GraphNode], None]:
    """The function of ArgMax (``max``) or ArgMin (``min``): where the largest or smallest element
    of an axis is."""

    def operator(importer: Importer, node: GraphNode) -> None:
        parts = Parts(importer, node)
        (x,) = node.input
        shape = importer.value(node).shape
        axis = int(attribute(node, "axis", 0))
        if not -len(shape) <= axis < len(shape):
            raise refused(node, f"axis must be from {-len(shape)} to {len(shape) - 1}, not {axis}")
        axis %= len(shape)
        if kind == "min":
            x = parts("Sub", 0.0, x)
        count = shape[axis]
        largest = parts("ReduceMax", x, axes=[axis])
        integers = node.input[0] in importer.graph.integers
        below = parts("Sub", largest, x)
        other = _positive(parts, below, integers=integers)
        places = np.arange(count).reshape([-1] + [1] * (len(shape) - 1 - axis))
        last = bool(attribute(node, "select_last_index", 0))
        # Among the largest elements, the greatest number, or the greatest of their negatives.
        ranked = parts("Add", parts("Mul", other, -float(count)), places if last else -places)
        keepdims = int(attribute(node, "keepdims", 1))
        best = parts("ReduceMax", ranked, last=last, axes=[axis], keepdims=keepdims)
        if not last:
            parts("Sub", 0.0, best, last=True)

    return operator
