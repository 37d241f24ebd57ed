"""Operators with truth values, which are the integers 0 and 1, and with steps.

Whether one number is greater than another is a step of their difference; all other comparisons, and
choices by truth values, follow from steps by sums and products.
"""

import numpy as np

from microkernels.common.fixed_point import Reals
from microkernels.onnx_models.model import Value
from microkernels.onnx_models.node import GraphNode, Tensor

from .parts import inverse, step

#: Operators without negative results.
_NOT_NEGATIVE = frozenset(
    ("Abs", "Exp", "ReduceL1", "ReduceL2", "ReduceSumSquare", "Relu", "Sigmoid", "Softmax", "Sqrt")
)


def _positive(node: GraphNode, value: Value, *, integers: bool) -> Value:
    """Whether elements are above 0.

    Parameters:
        integers: they are integers.
    """
    if integers:
        return node.part("Clip", value, min=0.0, max=1.0)
    return step(node, value)


def comparison(node: GraphNode, kind: str) -> Value:
    """An operator that compares.

    Parameters:
        kind: ``equal``, ``greater``, ``less``, ``at most`` or ``at least``.
    """
    first, second = node.inputs
    if kind in ("less", "at least"):
        first, second = second, first
    integers = any(name in node.importer.graph.integers for name in node.inputs)
    difference = node.part("Sub", first, second)
    if kind == "equal":
        difference = node.part("Abs", difference)
    above = _positive(node, difference, integers=integers)
    return above if kind in ("greater", "less") else node.part("Sub", 1.0, above)


def negation(node: GraphNode) -> Value:
    """Not."""
    return node.part("Sub", 1.0, node.inputs[0])


def exclusive(node: GraphNode) -> Value:
    """Xor."""
    return node.part("Abs", node.part("Sub", *node.inputs))


def sign(node: GraphNode) -> Value:
    """Sign."""
    x = node.value()
    if node.inputs[0] in node.importer.graph.integers:
        return node.part("Clip", x, min=-1.0, max=1.0)
    return node.part("Sub", step(node, x), step(node, node.part("Sub", 0.0, x)))


def shrink(node: GraphNode) -> Value:
    """Shrink, and ThresholdedRelu: elements beyond a threshold, moved towards 0; the others are
    0."""
    x = node.value()
    bias = float(node.attribute("bias", 0.0))
    limit = float(node.attribute("lambd", 0.5))
    if node.op == "ThresholdedRelu":
        limit = float(node.attribute("alpha", 1.0))
    moved = node.part("Sub", x, bias)
    above = node.part("Mul", moved, step(node, node.part("Sub", x, limit)))
    if node.op == "ThresholdedRelu":
        return above
    below = step(node, node.part("Sub", -limit, x))
    return node.part("Add", above, node.part("Mul", node.part("Add", x, bias), below))


def _quotient(node: GraphNode) -> tuple[Tensor, str] | None:
    """Dividend and divisor where a choice gives 0 for divisions by 0; None: it is another one."""
    graph = node.importer.graph
    makers, constants = graph.makers, graph.constants
    test, inverted = makers.get(node.inputs[0]), False
    while test is not None and test.op_type == "Not":
        test, inverted = makers.get(test.input[0]), not inverted
    if test is None or test.op_type != "Equal":
        return None
    division = makers.get(node.inputs[1 if inverted else 2])
    other = constants.get(node.inputs[2 if inverted else 1])
    if division is None or division.op_type not in ("Div", "Reciprocal"):
        return None
    if other is None or other.any():
        return None
    divisor = division.input[-1]
    dividend = division.input[0] if division.op_type == "Div" else 1.0
    zero = [constants.get(name) for name in test.input if name != divisor]
    if divisor not in test.input or len(zero) != 1 or zero[0] is None or zero[0].any():
        return None
    return dividend, divisor


def choice(node: GraphNode) -> Value:
    """Where: elements of one tensor or of another."""
    which, one, other = node.inputs
    if node.is_constant(0):
        return _constant_choice(node)
    if (quotient := _quotient(node)) is not None:
        dividend, divisor = quotient
        value = node.importer.values[divisor]
        maker = node.importer.graph.makers.get(divisor)
        if maker is not None and maker.op_type in _NOT_NEGATIVE:
            return node.part("Mul", dividend, inverse(node, value))
        magnitude = inverse(node, node.part("Abs", divisor))
        # Last, so that a large dividend of a small divisor is not limited before.
        return node.part("Mul", node.part("Mul", dividend, node.part("Sign", divisor)), magnitude)
    if node.is_constant(1) and node.is_constant(2):
        first, second = node.reals(1), node.reals(2)
        return node.part("Add", node.part("Mul", which, first - second), second)
    rest = other if node.is_constant(2) else node.value(2)
    return node.part("Add", node.part("Mul", node.part("Sub", one, rest), which), rest)


def _constant_choice(node: GraphNode) -> Value:
    """Where with a constant condition."""
    mask = node.reals(0) != 0
    operands = [node.reals(n) if node.is_constant(n) else node.value(n) for n in (1, 2)]
    shape = np.broadcast_shapes(mask.shape, *(operand.shape for operand in operands))
    fixed: Reals = np.zeros(1)
    chosen: list[Value] = []
    for number, operand, places in ((1, operands[0], mask), (2, operands[1], ~mask)):
        if not places.any():
            continue
        if not isinstance(operand, Value):
            fixed = fixed + np.where(places, operand, 0.0)
        elif places.all():
            chosen.append(operand)
        else:
            chosen.append(node.part("Mul", node.inputs[number], places.astype(float)))
    if not chosen:
        return node.constant_of(np.broadcast_to(fixed, shape))
    if len(chosen) > 1:
        return node.part("Add", *chosen)
    if fixed.any():
        return node.part("Add", chosen[0], np.broadcast_to(fixed, shape))
    if chosen[0].shape == shape:
        return node.part("Identity", chosen[0])
    return node.part("Expand", chosen[0], np.array(shape))


def argument(node: GraphNode, kind: str) -> Value:
    """ArgMax (``max``) or ArgMin (``min``): where the largest or smallest element of an axis is."""
    x: Tensor = node.inputs[0]
    shape = node.value().shape
    axis = node.axis(node.attribute("axis", 0), len(shape))
    if kind == "min":
        x = node.part("Sub", 0.0, x)
    count = shape[axis]
    largest = node.part("ReduceMax", x, axes=[axis])
    integers = node.inputs[0] in node.importer.graph.integers
    below = node.part("Sub", largest, x)
    other = _positive(node, below, integers=integers)
    places = np.arange(count).reshape([-1] + [1] * (len(shape) - 1 - axis))
    last = bool(node.attribute("select_last_index", 0))
    # Among the largest elements, the greatest number, or the greatest of their negatives.
    ranked = node.part("Add", node.part("Mul", other, -float(count)), places if last else -places)
    keepdims = int(node.attribute("keepdims", 1))
    best = node.part("ReduceMax", ranked, axes=[axis], keepdims=keepdims)
    return best if last else node.part("Sub", 0.0, best)
