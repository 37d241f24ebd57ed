"""Matrix products."""

from array import array
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from math import prod

import numpy as np

from isa.table import MAX_VL
from microkernels.common.fixed_point import Reals
from microkernels.networks.network import (
    MapSize,
    Product,
    Rearrange,
)
from microkernels.nn.product import MOST_INNER
from microkernels.onnx_models.importer import Importer
from microkernels.onnx_models.model import Value
from microkernels.onnx_models.read import GraphNode, attribute, mixing, refused

from .arrange import Index, adjacent, copied, index_of, rearranged, rows
from .elements import affine, combine, with_constant
from .linear import connect, pixel_conv

#: Mean elements per piece below which a product with the identity is the faster way to transpose.
_LONG_PIECE = 4
#: Maximum products of parts of rows to add up.
_MOST_PARTS = 8


def matmul(importer: Importer, node: GraphNode) -> None:
    """MatMul of an input and constant weights, or of two inputs."""
    if not importer.is_constant(node, 1) or importer.weights(node, 1).ndim != 2:
        product_of(importer, node, _operand(importer, node, 0), _operand(importer, node, 1))
        return
    weights = importer.weights(node, 1)
    value = importer.value(node)
    if len(value.shape) == 2 and value.size.elements == len(weights):
        connect(importer, node, weights.T)
    else:
        _pixels(importer, node, value, weights)


def _pixels(
    importer: Importer, node: GraphNode, value: Value, weights: Reals, *, last: bool = True
) -> Value:
    """Rows times inputs x outputs weights: a convolution with single pixels."""
    if len(importer.image_of(value.shape)) < 2 or value.shape[-1] != len(weights):
        raise refused(
            node,
            f"weights of shape {list(weights.shape)} do not fit an input of shape "
            f"{list(value.shape)}",
        )
    outputs = weights.shape[1]
    in_rows = rows(importer, node, value)
    shape = (*value.shape[:-1], outputs)
    bias = np.zeros(outputs)
    return pixel_conv(importer, node, in_rows, weights.T, bias, shape, last=last, turned=True)


def _operand(importer: Importer, node: GraphNode, number: int) -> Value | Reals:
    """An operand of a product: a tensor or constants."""
    if importer.is_constant(node, number):
        return importer.reals(node, number)
    return importer.value(node, number)


def _check_products(importer: Importer, node: GraphNode, operands: Sequence[Value | Reals]) -> None:
    """Refuse a product that sums over images, or whose first axis is not that of the images.

    Raises:
        MixedImagesError: it is such a product.
    """
    if importer.batch == 1:
        return
    first, second = operands
    ranks = [len(operand.shape) for operand in operands]
    inner = (isinstance(first, Value) and ranks[0] == 1) or (
        isinstance(second, Value) and ranks[1] <= 2
    )
    if inner:
        raise mixing(node, f"its sums are over the batch of {importer.batch}")
    if any(isinstance(operand, Value) and len(operand.shape) < max(ranks) for operand in operands):
        raise mixing(
            node,
            f"the batch of {importer.batch} is not the first axis of both inputs and of its output",
        )


def _image_operand(
    importer: Importer, node: GraphNode, operand: Value | Reals, rank: int
) -> tuple[Value, tuple[int, ...]]:
    """An operand of a product as a map, and its shape in the product of an image.

    Parameters:
        rank: of the larger operand. A constant of this rank, if more than a matrix's, also has
            images; any other constant is the same for all images.
    """
    if isinstance(operand, Value):
        return operand, importer.image_of(operand.shape)
    shape = operand.shape
    if importer.batch > 1:
        shape = operand.shape[1:] if operand.ndim == rank > 2 else operand.shape
        operand = np.broadcast_to(operand, (importer.batch, *shape))
    return importer.constant_of(node, operand, turned=True), shape


def _matrices(
    importer: Importer, value: Value, shape: tuple[int, ...], lead: tuple[int, ...]
) -> Index:
    """Numbers of an image's elements in matrices of ``shape``: one for all, or as many as ``lead``
    requires."""
    index = index_of(importer, value).reshape(shape)
    if prod(shape[:-2]) not in (1, prod(lead)):
        index = np.broadcast_to(index, (*lead, *shape[-2:]))
    return index[np.newaxis] if importer.batch > 1 else index


def product_of(
    importer: Importer,
    node: GraphNode,
    first: Value | Reals,
    second: Value | Reals,
    *,
    last: bool = True,
) -> Value:
    """The matrix product of two tensors.

    Parameters:
        last: it is the node's output.

    Raises:
        ModelError: they don't fit each other, or rows are too long.
    """
    ranks = [len(operand.shape) for operand in (first, second)]
    if not all(ranks):
        raise refused(node, "its inputs must be vectors or matrices")
    _check_products(importer, node, (first, second))
    shapes = [list(operand.shape) for operand in (first, second)]
    first, one = _image_operand(importer, node, first, max(ranks))
    second, other = _image_operand(importer, node, second, max(ranks))
    # A vector is a row of the first operand, and a column of the second.
    row, column = len(one) == 1, len(other) == 1
    one = (1, *one) if row else one
    other = (*other, 1) if column else other
    lead: tuple[int, ...] | None = None
    with suppress(ValueError):
        lead = np.broadcast_shapes(one[:-2], other[:-2])
    inner, columns = other[-2:]
    if lead is None or one[-1] != inner:
        raise refused(node, f"inputs of shapes {shapes[0]} and {shapes[1]} have no product")
    if inner > _MOST_PARTS * MOST_INNER:
        raise refused(
            node,
            f"its rows have {inner} elements; at most {_MOST_PARTS * MOST_INNER} are supported",
        )
    batch = (importer.batch,) if importer.batch > 1 else ()
    indices = [
        _matrices(importer, value, shape, lead) for value, shape in ((first, one), (second, other))
    ]
    size = MapSize(prod(lead), one[-2], columns)
    output = (*batch, *lead)
    output += () if row else (one[-2],)
    output += () if column else (columns,)
    parts = -(-inner // MOST_INNER)
    edges = [inner * part // parts for part in range(parts + 1)]
    total: Value | None = None
    for start, end in pairwise(edges):
        left = rearranged(importer, node, [first], indices[0][..., start:end], turned=True)
        right = _columns(importer, node, second, indices[1][..., start:end, :])
        left, right = (in_one_slice(importer, node, factor) for factor in (left, right))
        layer = Product(
            name=importer.unique(node.name), source=left.layer, other=right.layer, fraction=0
        )
        named = last and end == inner
        alone = total is None
        part = importer.add(node, layer, size, output, last=named and alone, turned=True)
        if total is not None:
            part = combine(importer, node, "add", total, part, last=named)
        total = part
    assert total is not None
    return total


def gemm(importer: Importer, node: GraphNode) -> None:
    """Gemm of rows and constant weights, or of two matrices."""
    alpha, beta = (float(attribute(node, name, 1.0)) for name in ("alpha", "beta"))
    swapped = [bool(attribute(node, name, 0)) for name in ("transA", "transB")]
    if importer.is_constant(node, 1) and not swapped[0]:
        weights = importer.weights(node, 1)
        if weights.ndim != 2:
            raise refused(node, f"weights must have 2 dimensions, not {weights.ndim}")
        if swapped[1]:
            weights = weights.T
        if alpha != 1:
            weights = weights * alpha
        value = importer.value(node)
        if value.shape[:1] == (importer.batch,):
            product = connect(importer, node, weights.T, last=False)
        else:
            product = _pixels(importer, node, value, weights, last=False)
    else:
        operands = [
            _matrix(importer, node, number, swap=swap) for number, swap in enumerate(swapped)
        ]
        product = product_of(importer, node, *operands, last=False)
        if alpha != 1:
            product = affine(importer, node, product, alpha, 0.0, last=False)
    if len(node.input) < 3 or not node.input[2]:
        importer.alias(node, product, product.shape)
    elif importer.is_constant(node, 2):
        bias = importer.reals(node, 2) * beta
        with_constant(importer, node, "add", product, bias, first=False)
    else:
        added = importer.value(node, 2)
        if beta != 1:
            added = affine(importer, node, added, beta, 0.0, last=False)
        combine(importer, node, "add", product, added)


def _matrix(importer: Importer, node: GraphNode, number: int, *, swap: bool) -> Value | Reals:
    """An operand of Gemm; ``swap``: transpose it."""
    operand = _operand(importer, node, number)
    if len(operand.shape) != 2:
        raise refused(node, f"input {number} must have 2 dimensions, not {len(operand.shape)}")
    if not swap:
        return operand
    if not isinstance(operand, Value):
        return operand.T
    if importer.batch > 1:
        raise mixing(node, f"trans{'AB'[number]} moves the batch of {importer.batch}")
    index = index_of(importer, operand).T
    return rearranged(importer, node, [operand], index, turned=True)


def _columns(importer: Importer, node: GraphNode, value: Value, index: Index) -> Value:
    """The columns of the matrices of ``index`` as rows."""
    turned = index.swapaxes(-1, -2)
    size = importer.rows_of(index.shape)
    short = adjacent(importer, value, turned) < _LONG_PIECE
    if not short or size.channels > MOST_INNER or min(size.height, size.channels) == 1:
        return rearranged(importer, node, [value], turned, turned=True)
    # Single elements move slowly; a product with the identity moves whole rows.
    lines = rearranged(importer, node, [value], index, turned=True)
    batch = (importer.batch,) if importer.batch > 1 else ()
    square = np.broadcast_to(np.eye(size.channels), (*batch, size.channels, size.channels))
    one = importer.constant_of(node, square, turned=True)
    layer = Product(
        name=importer.unique(f"{node.name}_turned"),
        source=one.layer,
        other=lines.layer,
        fraction=0,
    )
    turned_size = MapSize(size.width, size.channels, size.height)
    shape = (*batch, *turned.shape[1:]) if batch else turned.shape
    return importer.add(node, layer, turned_size, shape, last=False, turned=True)


def _connected(importer: Importer, name: str) -> bool:
    """Whether a map has the slices of a fully connected layer's outputs, which are distributed over
    a chip's vaults."""
    layer = importer.layers.get(name)
    if layer is None:
        return False
    if layer.keeps_slices and not layer.one_slice:
        return any(_connected(importer, source) for source in layer.sources)
    return layer.output_depth(1) is not None


def in_one_slice(importer: Importer, node: GraphNode, value: Value) -> Value:
    """``value`` in a map whose rows are in one piece, also on several vaults."""
    # Layers that write or read a map with more channels than a vector may need thinner slices.
    wide = value.size.channels > MAX_VL
    layer = importer.layers.get(value.layer)
    in_rows = layer is not None and (layer.one_slice or layer.copies)
    if in_rows or not (wide or _connected(importer, value.layer)):
        return value
    value = copied(importer, node, value)
    layer = Rearrange(
        name=importer.unique(f"{node.name}_rows"),
        inputs=(value.layer,),
        size=value.size,
        order=array("q", range(value.size.elements)),
    )
    return importer.add(node, layer, value.size, value.shape, last=False, turned=value.turned)
