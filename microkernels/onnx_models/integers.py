"""Tensors of integers of a graph: which layers hold them, and where they must be exact."""

from collections.abc import Mapping

import numpy as np

from microkernels.common.fixed_point import HIGHEST

from .errors import ModelError
from .graph import Node
from .importer import Importer
from .model import Model

__all__ = ["check_integers", "exact_layers", "integer_layers", "refused_integers"]

#: Operators that take integers: those whose results of integers are integers, and others.
_TAKES = frozenset(
    (
        "Abs", "Add", "Cast", "CastLike", "CenterCropPad", "Clip", "Compress", "Concat",
        "ConvInteger", "DepthToSpace", "DequantizeLinear", "Dropout", "Expand", "Flatten", "Gather",
        "GatherElements", "GatherND", "GlobalMaxPool", "Identity", "MatMul", "MatMulInteger", "Max",
        "MaxPool", "Min", "Mul", "Neg", "Pad", "QLinearConv", "QLinearMatMul", "ReduceMax",
        "ReduceMin", "Relu", "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Sub", "Sum",
        "Tile", "Transpose", "Trilu", "Unsqueeze",
    )
)  # fmt: skip


def refused_integers(importer: Importer, node: Node) -> str:
    """Why an operator that takes real numbers does not take those of the node; "": it does."""
    kinds = importer.graph.integers
    names = [name for name in node.inputs if name in importer.values and name in kinds]
    if node.op in _TAKES or not names:
        return ""
    return f"its input {names[0]} has integers; make real numbers of them by Cast before"


def integer_layers(importer: Importer) -> set[str]:
    """Layers, and inputs, that hold integers and nothing else."""
    integers: set[str] = set(importer.whole)
    reals: set[str] = set()
    for name, value in importer.values.items():
        is_integer = name in importer.graph.integers and name not in importer.scaled
        (integers if is_integer else reals).add(value.layer)
    return integers - (reals - importer.whole)


def exact_layers(importer: Importer) -> dict[str, tuple[str, str]]:
    """Layers, and inputs, on whose integers outputs of integers depend -> the tensor, and the type
    of its integers."""
    kinds = importer.graph.integers
    exact = {name for name in importer.graph.outputs if name in kinds}
    for node in reversed(importer.graph.nodes):
        if exact.intersection(node.outputs):
            names = [name for name in node.inputs if name in kinds and name in importer.values]
            exact.update(name for name in names if name not in importer.scaled)
    return {importer.values[name].layer: (name, kinds[name]) for name in sorted(exact)}


def check_integers(
    model: Model, ends: Mapping[str, tuple[float, float]], largest: Mapping[str, float]
) -> None:
    """Refuse integers that must be exact and are beyond their type, or beyond elements.

    Parameters:
        ends: least and greatest number of each layer, and input. largest: magnitude of what is
            computed on the way to them, too.

    Raises:
        ModelError: there are some.
    """
    for layer, (tensor, kind) in model.exact.items():
        low, high = ends[layer]
        limits = np.iinfo(kind)
        if low < limits.min or high > limits.max:
            raise ModelError(
                f"tensor {tensor}: on the calibration data its integers are from {low:,.0f} to "
                f"{high:,.0f}, which {kind} does not hold"
            )
        if largest[layer] > HIGHEST:
            raise ModelError(
                f"tensor {tensor}: on the calibration data its integers need {largest[layer]:,.0f}"
                f"; elements hold up to {HIGHEST:,}: end the model in real numbers, by Cast"
            )
