"""Operators that leave the elements as they are."""

import numpy as np

from microkernels.onnx_models.graph import Node
from microkernels.onnx_models.importer import Importer, attribute

from .elements import affine

__all__ = ["cast", "dropout", "flatten", "identity", "reshape", "squeeze", "unsqueeze"]


#: Types of real numbers, by their number in ONNX.
_REALS = (1, 10, 11, 16)


def identity(importer: Importer, node: Node) -> None:
    """Identity, and Dropout at inference."""
    value = importer.held(node)
    importer.alias(node, value, value.shape)


def cast(importer: Importer, node: Node) -> None:
    """Cast to real numbers, or between integers, which is no change here."""
    whole = node.inputs[0] in importer.graph.integers
    kind = importer.graph.integers.get(node.outputs[0], "")
    if kind and not (whole and np.can_cast(importer.graph.integers[node.inputs[0]], kind)):
        raise node.refused("only casts to real numbers, and to wider integers, are supported")
    if not kind and int(attribute(node, "to", _REALS[0])) not in _REALS:
        raise node.refused("only casts to real numbers, and to wider integers, are supported")
    value = importer.held(node)
    if whole and not kind and importer.rounded:
        # Its map may have no bits for fractions.
        affine(importer, node, value, 1.0, 0.0)
        return
    identity(importer, node)


def dropout(importer: Importer, node: Node) -> None:
    """Dropout, which does nothing at inference."""
    training = importer.constant(node, 2)
    if training is not None and np.any(training):
        raise node.refused("training_mode must be false: export the model for inference")
    identity(importer, node)


def flatten(importer: Importer, node: Node) -> None:
    """Flatten from the first axis after the batch on."""
    value = importer.held(node)
    axis = int(attribute(node, "axis", 1))
    rank = len(value.shape)
    if not -rank <= axis <= rank:
        raise node.refused(f"axis must be from {-rank} to {rank}, not {axis}")
    axis += rank if axis < 0 else 0
    first = int(np.prod(value.shape[:axis]))
    importer.alias(node, value, (first, int(np.prod(value.shape)) // first))


def reshape(importer: Importer, node: Node) -> None:
    """Reshape that keeps the batch first."""
    value = importer.held(node)
    given = attribute(node, "shape", None)
    wanted = importer.constant(node, 1) if given is None else np.asarray(given)
    if wanted is None:
        raise node.refused("a shape is missing")
    sizes = [int(each) for each in wanted.ravel()]
    if not attribute(node, "allowzero", 0):
        sizes = [
            value.shape[axis] if size == 0 and axis < len(value.shape) else size
            for axis, size in enumerate(sizes)
        ]
    count = int(np.prod(value.shape))
    if sizes.count(-1) == 1:
        known = -int(np.prod(sizes))
        if known > 0 and count % known == 0:
            sizes[sizes.index(-1)] = count // known
    if any(size < 1 for size in sizes) or int(np.prod(sizes)) != count:
        raise node.refused(f"{list(value.shape)} can't become {[int(each) for each in wanted]}")
    importer.alias(node, value, tuple(sizes))


def _axes(importer: Importer, node: Node, rank: int) -> list[int] | None:
    given = attribute(node, "axes", None)
    held = importer.constant(node, 1) if given is None else np.asarray(given)
    if held is None:
        return None
    axes = [int(each) for each in held.ravel()]
    if any(not -rank <= axis < rank for axis in axes):
        raise node.refused(f"axes must be from {-rank} to {rank - 1}, not {axes}")
    return [axis % rank for axis in axes]


def squeeze(importer: Importer, node: Node) -> None:
    """Squeeze."""
    value = importer.held(node)
    axes = _axes(importer, node, len(value.shape))
    if axes is None:
        axes = [axis for axis, size in enumerate(value.shape) if size == 1]
    if any(value.shape[axis] != 1 for axis in axes):
        raise node.refused(f"axes {axes} of {list(value.shape)} are not all of size 1")
    shape = tuple(size for axis, size in enumerate(value.shape) if axis not in axes)
    importer.alias(node, value, shape)


def unsqueeze(importer: Importer, node: Node) -> None:
    """Unsqueeze."""
    value = importer.held(node)
    given = attribute(node, "axes", None)
    count = len(given) if given is not None else importer.reals(node, 1).size
    axes = _axes(importer, node, len(value.shape) + count) or []
    shape = list(value.shape)
    for axis in sorted(axes):
        shape.insert(axis, 1)
    importer.alias(node, value, tuple(shape))
