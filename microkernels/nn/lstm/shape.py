"""A time step of an LSTM layer: its sizes and its golden model (thesis eq. 6.1).

``y``, ``c``: output and state of the previous step. ``W`` multiplies the inputs, which are ``y``
followed by ``x``; the peepholes ``w`` are diagonal::

    f = sigmoid(W_f [y, x] + w_f * c + b_f)        i = sigmoid(W_i [y, x] + w_i * c + b_i)
    g = tanh(W_g [y, x] + b_g)                     c' = i * g + f * c
    o = sigmoid(W_o [y, x] + w_o * c' + b_o)       y' = W_y (o * tanh(c'))

Without a projection, ``y' = o * tanh(c')``. Weights and peepholes have fraction bits of their own;
all other numbers, the biases too, have the same. A sum begins with its bias; the products of a
*chunk* of the inputs are one exact sum that is rounded, and chunks are added with saturation, in an
order that depends on the vault (:class:`LstmCut`). Then comes the product with the peephole.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import round_up
from microkernels.common.fixed_point import (
    Elements,
    add,
    check_elements,
    check_fraction,
    dot,
    multiply,
)
from microkernels.common.logistic import sigmoid, tanh

__all__ = [
    "GATES",
    "LstmCut",
    "LstmShape",
    "LstmState",
    "LstmWeights",
    "lstm_step",
    "usual_weights",
]

#: Gates in the order in which weights and biases have them: f, i, g, o.
GATES = 4
#: Peepholes: f, i, o.
_PEEPHOLES = 3
#: Operations for a cell beside the products with its gates' weights: with three peepholes and
#: biases ten, five functions of them, and four products and sums of their results.
_CELL_OPERATIONS = 19


@dataclass(frozen=True, kw_only=True)
class LstmShape:
    """Sizes of a layer of LSTM.

    Attributes:
        inputs: elements of x. cells: of c. outputs: of y. batch: independent sequences. At least 1.
        projected: there is a projection; otherwise there are as many outputs as cells.

    Raises:
        KernelError: a value outside its range.
    """

    inputs: int
    cells: int
    outputs: int
    batch: int = 1
    projected: bool = True

    def __post_init__(self) -> None:
        CHECK.fields(self)
        for name in ("inputs", "cells", "outputs", "batch"):
            CHECK.at_least(name, getattr(self, name), 1)
        if not self.projected and self.outputs != self.cells:
            raise KernelError(
                f"without a projection there are as many outputs as cells: {self.cells}, "
                f"not {self.outputs}"
            )

    @property
    def operations(self) -> int:
        """Operations of a time step: two for each weight, and those of the cells; a function counts
        as one."""
        products = GATES * self.cells * (self.outputs + self.inputs)
        products += self.outputs * self.cells * self.projected
        return self.batch * (2 * products + _CELL_OPERATIONS * self.cells)


@dataclass(frozen=True, kw_only=True)
class LstmWeights:
    """Weights of a layer, 16-bit elements.

    Attributes:
        gates: 4 x cells x (outputs + inputs), for f, i, g, o.
        bias: 4 x cells.
        peepholes: 3 x cells, for f, i, o.
        projection: outputs x cells; 0 x cells without a projection.
    """

    gates: Elements
    bias: Elements
    peepholes: Elements
    projection: Elements

    def checked(self, shape: LstmShape) -> "LstmWeights":
        """The same weights, checked to be elements of a layer of ``shape``.

        Raises:
            KernelError: an array of another shape, or values beyond 16 bits.
        """
        sizes = {
            "gates": (GATES, shape.cells, shape.outputs + shape.inputs),
            "bias": (GATES, shape.cells),
            "peepholes": (_PEEPHOLES, shape.cells),
            "projection": (shape.outputs * shape.projected, shape.cells),
        }
        return replace(
            self,
            **{name: check_elements(name, getattr(self, name), s) for name, s in sizes.items()},
        )


class Draw(Protocol):
    """Draws elements of the given size around 0, with the standard deviation ``scale``."""

    def __call__(self, scale: float, *size: int) -> Elements: ...


def usual_weights(shape: LstmShape, draw: Draw) -> LstmWeights:
    """Random weights, scaled so that the functions of a layer of ``shape`` are neither nearly
    linear nor flat: a sum of products of inputs around 1 is as large as 1.5."""
    width = shape.outputs + shape.inputs
    return LstmWeights(
        gates=draw(1.5 / np.sqrt(width), GATES, shape.cells, width),
        bias=draw(0.5, GATES, shape.cells),
        peepholes=draw(0.3, _PEEPHOLES, shape.cells),
        projection=draw(1.5 / np.sqrt(shape.cells), shape.outputs * shape.projected, shape.cells),
    )


@dataclass(frozen=True, kw_only=True)
class LstmState:
    """State after a step: ``c``, batch x cells, and ``y``, batch x outputs, the inputs of the next
    step; and ``m``, batch x cells, from which ``y`` was computed."""

    c: Elements
    y: Elements
    m: Elements

    @classmethod
    def start(cls, shape: LstmShape) -> "LstmState":
        """All 0, before the first step."""
        cells = np.zeros((shape.batch, shape.cells), np.int16)
        return cls(c=cells, y=np.zeros((shape.batch, shape.outputs), np.int16), m=cells)


@dataclass(frozen=True, kw_only=True)
class LstmCut:
    """Partition of a layer over vaults and into chunks.

    All vaults have the same number of cells and of outputs, in whole blocks, one vault after the
    other; cells and outputs beyond those of the layer are 0. Inputs are cut into chunks of equal
    length, and x begins at the start of a chunk. The first chunks of the vaults are spread evenly,
    and each vault goes round from there, so that not all vaults read the same chunk at a time.

    Attributes:
        shape: of the layer.
        vaults: vaults that share the layer, at least 1.
        block: cells or outputs in a block, at least 1.
        chunk: inputs in a chunk, a multiple of ``block``.

    Raises:
        KernelError: a value outside its range.
    """

    shape: LstmShape
    vaults: int
    block: int
    chunk: int

    def __post_init__(self) -> None:
        CHECK.fields(self)
        CHECK.at_least("vaults", self.vaults, 1)
        if self.block < 1 or self.chunk < 1 or self.chunk % self.block:
            raise KernelError(
                f"chunk must be a multiple of block, both at least 1, not {self.chunk} and "
                f"{self.block}"
            )

    @property
    def cells(self) -> int:
        """Cells of a vault."""
        return round_up(-(-self.shape.cells // self.vaults), self.block)

    @property
    def outputs(self) -> int:
        """Outputs of a vault."""
        return round_up(-(-self.shape.outputs // self.vaults), self.block)

    @property
    def y_chunks(self) -> int:
        """Chunks of y."""
        return -(-self.vaults * self.outputs // self.chunk)

    @property
    def input_chunks(self) -> int:
        """Chunks of y and x."""
        return self.y_chunks - (-self.shape.inputs // self.chunk)

    @property
    def cell_chunks(self) -> int:
        """Chunks of the inputs of the projection."""
        return -(-self.vaults * self.cells // self.chunk)

    def order(self, vault: int, chunks: int) -> list[int]:
        """The order in which ``vault`` processes ``chunks`` chunks."""
        first = vault * chunks // self.vaults
        return [(first + number) % chunks for number in range(chunks)]

    def inputs(self, y: Elements, x: Elements) -> Elements:
        """y and x as they lie in the chunks: the last axis has all positions."""
        return np.concatenate(
            [
                _filled(y, self.y_chunks * self.chunk),
                _filled(x, (self.input_chunks - self.y_chunks) * self.chunk),
            ],
            axis=-1,
        )

    def cell_inputs(self, m: Elements) -> Elements:
        """The projection's inputs as they lie in the chunks."""
        return _filled(m, self.cell_chunks * self.chunk)


def _filled(values: Elements, length: int) -> Elements:
    """``values``, padded with zeros at the end of the last axis."""
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, length - values.shape[-1])])


def _sums(
    start: Elements, inputs: Elements, weights: Elements, order: list[int], fraction: int
) -> Elements:
    """``start`` plus the products of all chunks, added in this order."""
    chunk = inputs.shape[-1] // len(order)
    total = np.broadcast_to(start, (len(inputs), len(weights)))
    for number in order:
        part = slice(number * chunk, (number + 1) * chunk)
        total = add(total, dot(inputs[:, part], weights[:, part].T, fraction))
    return total


def lstm_step(
    cut: LstmCut,
    weights: LstmWeights,
    x: Elements,
    state: LstmState,
    *,
    fraction: int,
    weight_fraction: int | None = None,
) -> LstmState:
    """Golden model of a time step.

    Parameters:
        cut: how the layer is cut.
        x: batch x inputs elements.
        state: of the step before.
        fraction: fraction bits of all numbers but weights and peepholes, 0..15.
        weight_fraction: of these; None: as many.

    Raises:
        KernelError: an array of another shape, or values outside their range.
    """
    check_fraction(fraction)
    of_weights = fraction if weight_fraction is None else weight_fraction
    check_fraction(of_weights)
    shape = cut.shape
    weights = weights.checked(shape)
    x = check_elements("x", x, (shape.batch, shape.inputs))
    y = check_elements("y", state.y, (shape.batch, shape.outputs))
    c = check_elements("c", state.c, (shape.batch, shape.cells))
    inputs = cut.inputs(y, x)
    matrix = cut.inputs(weights.gates[..., : shape.outputs], weights.gates[..., shape.outputs :])
    cells = []
    for vault in range(cut.vaults):
        own = slice(vault * cut.cells, (vault + 1) * cut.cells)
        order = cut.order(vault, cut.input_chunks)
        f, i, g, o = (
            _sums(weights.bias[gate, own], inputs, matrix[gate, own], order, of_weights)
            for gate in range(GATES)
        )
        peep_f, peep_i, peep_o = weights.peepholes[:, own]
        old = c[:, own]
        f = sigmoid(add(f, multiply(peep_f, old, of_weights)), fraction)
        i = sigmoid(add(i, multiply(peep_i, old, of_weights)), fraction)
        new = add(multiply(f, old, fraction), multiply(i, tanh(g, fraction), fraction))
        o = sigmoid(add(o, multiply(peep_o, new, of_weights)), fraction)
        cells.append((new, multiply(o, tanh(new, fraction), fraction)))
    new, m = (np.concatenate(parts, axis=1) for parts in zip(*cells, strict=True))
    if not shape.projected:
        return LstmState(c=new, y=m, m=m)
    cell_inputs = cut.cell_inputs(m)
    projection = cut.cell_inputs(weights.projection)
    outputs = []
    for vault in range(cut.vaults):
        own = slice(vault * cut.outputs, (vault + 1) * cut.outputs)
        order = cut.order(vault, cut.cell_chunks)
        start = np.zeros(1, np.int16)
        outputs.append(_sums(start, cell_inputs, projection[own], order, of_weights))
    return LstmState(c=new, y=np.concatenate(outputs, axis=1), m=m)
