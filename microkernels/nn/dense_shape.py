"""A fully connected layer: its sizes and its golden model.

``out[b, o] = act(bias[o] + sum over i of weights[o, i] * inputs[b, i])`` (thesis equation 2.13) for
each vector ``b`` of a batch. The inputs are cut into *segments*, one for each vault of a row of
vaults, and each of these into *chunks*. The products of a chunk are one exact sum that is rounded;
chunks, and then the segments beginning with the bias, are added with saturation (Figure 6.6).
"""

from dataclasses import dataclass

import numpy as np

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import Elements, add, check_elements, check_fraction, dot

__all__ = ["DenseShape", "dense", "partial_sums"]


@dataclass(frozen=True, kw_only=True)
class DenseShape:
    """Sizes of a fully connected layer, or of the part of one that a vault works on.

    Attributes:
        inputs, outputs: elements of an input and of an output vector, at least 1.
        batch: vectors, at least 1.

    Raises:
        KernelError: a value outside its range.
    """

    inputs: int
    outputs: int
    batch: int = 1

    def __post_init__(self) -> None:
        CHECK.fields(self)
        for name in ("inputs", "outputs", "batch"):
            CHECK.at_least(name, getattr(self, name), 1)


def partial_sums(
    shape: DenseShape, chunk: int, inputs: Elements, weights: Elements, *, fraction: int
) -> Elements:
    """Golden model of the second phase: sums of the products of one segment.

    Parameters:
        shape: of the segment.
        chunk: inputs in a chunk, at least 1.
        inputs: batch x inputs elements.
        weights: outputs x inputs elements.
        fraction: bits by which sums of products are shifted right, 0..15.

    Returns:
        batch x outputs elements.

    Raises:
        KernelError: an array of another shape, or values outside their range.
    """
    check_fraction(fraction)
    CHECK.at_least("chunk", chunk, 1)
    inputs = check_elements("inputs", inputs, (shape.batch, shape.inputs))
    weights = check_elements("weights", weights, (shape.outputs, shape.inputs))
    total = np.zeros((shape.batch, shape.outputs), inputs.dtype)
    for first in range(0, shape.inputs, chunk):
        part = slice(first, first + chunk)
        total = add(total, dot(inputs[:, part], weights[:, part].T, fraction))
    return total


def dense(sums: Elements, bias: Elements, *, relu: bool) -> Elements:
    """Golden model of the third phase: outputs from the sums of all segments.

    Parameters:
        sums: segments x batch x outputs elements.
        bias: an element for each output.
        relu: negative outputs become 0.

    Returns:
        batch x outputs elements.

    Raises:
        KernelError: an array of another shape, or values beyond 16 bits.
    """
    if sums.ndim != 3:
        raise KernelError(f"sums must be segments x batch x outputs, not {sums.shape}")
    sums = check_elements("sums", sums, sums.shape)
    bias = check_elements("bias", bias, sums.shape[2:])
    total = np.broadcast_to(bias, sums.shape[1:])
    for segment in sums:
        total = add(total, segment)
    return np.maximum(total, 0) if relu else total
