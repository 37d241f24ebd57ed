"""Operators that move elements, and others after elements have been moved.

Where each element comes from is found by onnxruntime, which runs the operator on numbers of
elements in place of values: 0 stands for the constant 0.
"""

from collections.abc import Mapping

import numpy as np

from microkernels.networks.network import Pool
from microkernels.networks.rearrange import LOWEST_ELEMENT, ZERO
from microkernels.networks.sizes import Size2
from microkernels.onnx_models.errors import one_line
from microkernels.onnx_models.evaluate import evaluate
from microkernels.onnx_models.graph import Array, Node
from microkernels.onnx_models.importer import (
    Importer,
    Index,
    Value,
    attribute,
    index_of,
    rearranged,
)
from support.extras import MissingExtraError

__all__ = [
    "Index",
    "index_of",
    "map_value",
    "movement",
    "rearranged",
    "window_results",
]

#: Integers up to this one are exact in the type that the kernels of all these operators take.
_MOST_EXACT = 1 << 24


def map_value(importer: Importer, node: Node) -> Value:
    """The node's first input as a map of its shape, of which the node takes the first axis for
    images; a tensor that was reshaped is moved.

    Raises:
        ModelError: the first axis is no batch.
    """
    value = importer.value(node)
    importer.check_images(node, value)
    if importer.map_of(value.shape) == value.size:
        return value
    return rearranged(importer, node, [value], index_of(importer, value))


def movement(importer: Importer, node: Node) -> None:
    """An operator whose outputs are elements of its inputs, or 0."""
    if node.op in ("Resize", "Upsample") and attribute(node, "mode", "nearest") != "nearest":
        raise node.refused("mode must be nearest")
    if float(attribute(node, "extrapolation_value", 0.0)) != 0:
        raise node.refused("extrapolation_value must be 0")
    if node.op == "Pad":
        fill = importer.constant(node, 2)
        given_fill = float(attribute(node, "value", 0.0))
        if given_fill != 0 or (fill is not None and np.any(fill != 0)):
            raise node.refused("the value around must be 0")
    operands: dict[str, Value] = {}
    for number, name in enumerate(node.inputs):
        if not name or name in operands:
            continue
        if number > 0 and node.op != "Concat":
            # What follows the data says where elements go, such as pads.
            importer.constant(node, number)
        elif not importer.is_constant(node, number):
            operands[name] = importer.held(node, number)
        elif node.op == "Concat":
            operands[name] = importer.constant_of(node, importer.reals(node, number))
    if not operands:
        raise node.refused(
            "its data must depend on the model's inputs, and its indices be constant"
        )
    outputs = [name for name in node.outputs if name]
    values = list(operands.values())
    for name, index in zip(outputs, _indices(importer, node, operands), strict=True):
        rearranged(importer, node, values, index, output=name)


def _indices(importer: Importer, node: Node, operands: Mapping[str, Value]) -> list[Index]:
    """For each output the numbers of an image's elements, those of all operands one after the
    other, from 1 on; 0: the constant 0.

    Raises:
        ModelError: an image of an output has elements of others, or not those of all images in the
            same places.
    """
    batch = importer.batch
    elements: dict[str, Array] = {}
    first = 1
    for name, value in operands.items():
        index = index_of(importer, value, first)
        first += index.size
        elements[name] = np.broadcast_to(index, value.shape)
    if first > _MOST_EXACT:
        raise node.refused(
            f"its inputs have {first - 1:,} elements an image; {_MOST_EXACT - 1:,} are allowed"
        )
    indices = _evaluated(importer, node, elements)
    if batch == 1:
        return indices
    numbers = np.arange(1, batch + 1)
    images: dict[str, Array] = {
        name: np.broadcast_to(_by_image(numbers, len(value.shape)), value.shape)
        for name, value in operands.items()
    }
    for index, image in zip(indices, _evaluated(importer, node, images), strict=True):
        if index.shape[:1] != (batch,):
            raise node.mixing(
                f"its output of shape {list(index.shape)} must keep the batch of {batch} first"
            )
        if (image != np.where(index, _by_image(numbers, index.ndim), 0)).any():
            raise node.mixing(f"it moves elements between the {batch} images of the batch")
        if (index != index[:1]).any():
            raise node.mixing(f"it moves elements of the {batch} images of the batch differently")
    return [index[:1] for index in indices]


def _by_image(numbers: Index, rank: int) -> Index:
    return numbers.reshape(-1, *(1,) * (rank - 1))


def _evaluated(importer: Importer, node: Node, integers: Mapping[str, Array]) -> list[Index]:
    """The node's outputs for integers up to :data:`_MOST_EXACT`."""
    names = [name for name in dict.fromkeys(node.inputs) if name]
    feeds = {
        name: integers[name].astype(np.float32)
        if name in integers
        else importer.graph.constants[name]
        for name in names
    }
    try:
        results = evaluate(node.proto(), feeds, importer.graph.opset)
    except MissingExtraError:
        raise
    except Exception as error:  # Any of an evaluator of another library.
        raise node.refused(f"its order can't be found: {one_line(error)}") from error
    return [values.astype(np.int64) for values in results]


def window_results(
    importer: Importer, node: Node, value: Value, index: Index, *, mean: bool
) -> Value:
    """Maximum or mean over the last axis of ``index``, which has the axes of an image's channels,
    outputs and pixels of a window."""
    channels, outputs, pixels = index.shape
    moved = rearranged(
        importer,
        node,
        [value],
        index.reshape(1, channels, outputs, pixels),
        empty=ZERO if mean else LOWEST_ELEMENT,
    )
    layer = Pool(
        name=importer.unique(node.name),
        source=moved.layer,
        window=Size2(pixels, 1),
        stride=1,
        mean=mean,
    )
    size = moved.size._replace(width=1)
    shape = (*moved.shape[:-1], 1)
    return importer.add(node, layer, size, shape, last=False)
