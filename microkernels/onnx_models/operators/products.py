"""Matrix products."""

from array import array
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from isa.table import MAX_VL
from microkernels.common.fixed_point import Reals
from microkernels.networks.network import (
    MapSize,
    Product,
    Rearrange,
)
from microkernels.nn.product import MOST_INNER
from microkernels.onnx_models.model import Value
from microkernels.onnx_models.node import GraphNode

from .arrange import Index, adjacent, copied, index_of, rearranged, rows
from .elements import combine, with_constant
from .linear import connect, pixel_conv

#: Mean elements per piece below which a product with the identity is the faster way to transpose.
_LONG_PIECE = 4
#: Maximum products of parts of rows to add up.
_MOST_PARTS = 8


def matmul(node: GraphNode) -> Value:
    """MatMul of an input and constant weights, or of two inputs."""
    operands = [_operand(node, number) for number in (0, 1)]
    if not node.is_constant(1) or len(operands[0].shape) < 2 or len(operands[1].shape) != 2:
        return product_of(node, *operands)
    weights = node.weights(1)
    value = node.value()
    if len(value.shape) == 2 and value.size.elements == len(weights):
        return connect(node, weights.T)
    return _pixels(node, value, weights)


def _pixels(node: GraphNode, value: Value, weights: Reals) -> Value:
    """Rows times inputs x outputs weights: a convolution with single pixels."""
    if len(node.importer.image_of(value.shape)) < 2 or value.shape[-1] != len(weights):
        raise node.refused(
            f"weights of shape {list(weights.shape)} do not fit an input of shape "
            f"{list(value.shape)}"
        )
    outputs = weights.shape[1]
    in_rows = rows(node, value)
    shape = (*value.shape[:-1], outputs)
    bias = np.zeros(outputs)
    return pixel_conv(node, in_rows, weights.T, bias, shape, turned=True)


def _operand(node: GraphNode, number: int) -> Value | Reals:
    """An operand of a product: a tensor or constants."""
    if node.is_constant(number):
        return node.reals(number)
    return node.value(number)


def _check_products(node: GraphNode, operands: Sequence[Value | Reals]) -> None:
    """Refuse a product that sums over images, or whose first axis is not that of the images.

    Raises:
        MixedImagesError: it is such a product.
    """
    if node.batch == 1:
        return
    first, second = operands
    ranks = [len(operand.shape) for operand in operands]
    inner = (isinstance(first, Value) and ranks[0] == 1) or (
        isinstance(second, Value) and ranks[1] <= 2
    )
    if inner:
        raise node.mixing(f"its sums are over the batch of {node.batch}")
    if any(isinstance(operand, Value) and len(operand.shape) < max(ranks) for operand in operands):
        raise node.mixing(
            f"the batch of {node.batch} is not the first axis of both inputs and of its output"
        )


def _image_operand(
    node: GraphNode, operand: Value | Reals, rank: int
) -> tuple[Value, tuple[int, ...]]:
    """An operand of a product as a map, and its shape in the product of an image.

    Parameters:
        rank: of the larger operand. A constant of this rank, if more than a matrix's, also has
            images; any other constant is the same for all images.
    """
    if isinstance(operand, Value):
        return operand, node.importer.image_of(operand.shape)
    shape = operand.shape
    if node.batch > 1:
        shape = operand.shape[1:] if operand.ndim == rank > 2 else operand.shape
        operand = np.broadcast_to(operand, (node.batch, *shape))
    return node.constant_of(operand, turned=True), shape


def _matrices(
    node: GraphNode, value: Value, shape: tuple[int, ...], lead: tuple[int, ...]
) -> Index:
    """Numbers of an image's elements in matrices of ``shape``: one for all, or as many as ``lead``
    requires."""
    index = index_of(node, value).reshape(shape)
    if prod(shape[:-2]) not in (1, prod(lead)):
        index = np.broadcast_to(index, (*lead, *shape[-2:]))
    return index[np.newaxis] if node.batch > 1 else index


def product_of(node: GraphNode, first: Value | Reals, second: Value | Reals) -> Value:
    """The matrix product of two tensors.

    Raises:
        ModelError: they don't fit each other, or rows are too long.
    """
    ranks = [len(operand.shape) for operand in (first, second)]
    if not all(ranks):
        raise node.refused("its inputs must be vectors or matrices")
    _check_products(node, (first, second))
    shapes = [list(operand.shape) for operand in (first, second)]
    first, one = _image_operand(node, first, max(ranks))
    second, other = _image_operand(node, second, max(ranks))
    # A vector is a row of the first operand, and a column of the second.
    row, column = len(one) == 1, len(other) == 1
    one = (1, *one) if row else one
    other = (*other, 1) if column else other
    lead: tuple[int, ...] | None = None
    with suppress(ValueError):
        lead = np.broadcast_shapes(one[:-2], other[:-2])
    inner, columns = other[-2:]
    if lead is None or one[-1] != inner:
        raise node.refused(f"inputs of shapes {shapes[0]} and {shapes[1]} have no product")
    if inner > _MOST_PARTS * MOST_INNER:
        raise node.refused(
            f"its rows have {inner} elements; at most {_MOST_PARTS * MOST_INNER} are supported"
        )
    batch = (node.batch,) if node.batch > 1 else ()
    indices = [
        _matrices(node, value, shape, lead) for value, shape in ((first, one), (second, other))
    ]
    size = MapSize(prod(lead), one[-2], columns)
    output = (*batch, *lead)
    output += () if row else (one[-2],)
    output += () if column else (columns,)
    parts = -(-inner // MOST_INNER)
    edges = [inner * part // parts for part in range(parts + 1)]
    total: Value | None = None
    for start, end in pairwise(edges):
        left = rearranged(node, [first], indices[0][..., start:end], turned=True)
        right = _columns(node, second, indices[1][..., start:end, :])
        left, right = (in_one_slice(node, factor) for factor in (left, right))
        place: dict[str, Any] = {"size": size, "shape": output, "turned": True}
        part = node.apply(Product, left, **place, other=right.layer, fraction=0)
        total = part if total is None else combine(node, "add", total, part)
    assert total is not None
    return total


def gemm(node: GraphNode) -> Value:
    """Gemm of rows and constant weights, or of two matrices."""
    alpha, beta = (float(node.attribute(name, 1.0)) for name in ("alpha", "beta"))
    swapped = [bool(node.attribute(name, 0)) for name in ("transA", "transB")]
    if node.is_constant(1) and not swapped[0]:
        weights = node.weights(1)
        if weights.ndim != 2:
            raise node.refused(f"weights must have 2 dimensions, not {weights.ndim}")
        if swapped[1]:
            weights = weights.T
        if alpha != 1:
            weights = weights * alpha
        value = node.value()
        if value.shape[:1] == (node.batch,):
            product = connect(node, weights.T)
        else:
            product = _pixels(node, value, weights)
    else:
        operands = [_matrix(node, number, swap=swap) for number, swap in enumerate(swapped)]
        product = product_of(node, *operands)
        if alpha != 1:
            product = node.affine(product, alpha, 0.0)
    if not node.has_input(2):
        return product
    if node.is_constant(2):
        return with_constant(node, "add", product, node.reals(2) * beta, first=False)
    added = node.value(2)
    if beta != 1:
        added = node.affine(added, beta, 0.0)
    return combine(node, "add", product, added)


def _matrix(node: GraphNode, number: int, *, swap: bool) -> Value | Reals:
    """An operand of Gemm; ``swap``: transpose it."""
    operand = _operand(node, number)
    if len(operand.shape) != 2:
        raise node.refused(f"input {number} must have 2 dimensions, not {len(operand.shape)}")
    if not swap:
        return operand
    if not isinstance(operand, Value):
        return operand.T
    if node.batch > 1:
        raise node.mixing(f"trans{'AB'[number]} moves the batch of {node.batch}")
    index = index_of(node, operand).T
    return rearranged(node, [operand], index, turned=True)


def _columns(node: GraphNode, value: Value, index: Index) -> Value:
    """The columns of the matrices of ``index`` as rows."""
    turned = index.swapaxes(-1, -2)
    size = node.importer.rows_of(index.shape)
    short = adjacent(node, value, turned) < _LONG_PIECE
    if not short or size.channels > MOST_INNER or min(size.height, size.channels) == 1:
        return rearranged(node, [value], turned, turned=True)
    # Single elements move slowly; a product with the identity moves whole rows.
    lines = rearranged(node, [value], index, turned=True)
    batch = (node.batch,) if node.batch > 1 else ()
    square = np.broadcast_to(np.eye(size.channels), (*batch, size.channels, size.channels))
    one = node.constant_of(square, turned=True)
    place: dict[str, Any] = {
        "size": MapSize(size.width, size.channels, size.height),
        "shape": (*batch, *turned.shape[1:]) if batch else turned.shape,
    }
    return node.apply(Product, one, **place, suffix="_turned", other=lines.layer, fraction=0)


def _connected(node: GraphNode, name: str) -> bool:
    """Whether a map has the slices of a fully connected layer's outputs, which are distributed over
    a chip's vaults."""
    layer = node.importer.layers.get(name)
    if layer is None:
        return False
    if layer.keeps_slices and not layer.one_slice:
        return any(_connected(node, source) for source in layer.sources)
    return layer.output_depth(1) is not None


def in_one_slice(node: GraphNode, value: Value) -> Value:
    """``value`` in a map whose rows are in one piece, also on several vaults."""
    # Layers that write or read a map with more channels than a vector may need thinner slices.
    wide = value.size.channels > MAX_VL
    layer = node.importer.layers.get(value.layer)
    in_rows = layer is not None and (layer.one_slice or layer.copies)
    if in_rows or not (wide or _connected(node, value.layer)):
        return value
    value = copied(node, value)
    layer = Rearrange(
        name=node.importer.unique(f"{node.name}_rows"),
        inputs=(value.layer,),
        size=value.size,
        order=array("q", range(value.size.elements)),
    )
    return node.add(layer, value.size, value.shape, turned=value.turned)
