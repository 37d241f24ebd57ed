"""An LSTM layer divided over vaults: sizes, golden model of a time step (thesis eq. 6.1), division.

``y``, ``c``: the previous step's output and state. ``W`` multiplies the inputs, which are ``y``
followed by ``x``; the peepholes ``w`` are diagonal::

    f = sigmoid(W_f [y, x] + w_f * c + b_f)        i = sigmoid(W_i [y, x] + w_i * c + b_i)
    g = tanh(W_g [y, x] + b_g)                     c' = i * g + f * c
    o = sigmoid(W_o [y, x] + w_o * c' + b_o)       y' = W_y (o * tanh(c'))

Without a projection, ``y' = o * tanh(c')``. Weights and peepholes have their own fraction bits; all
other numbers, including biases, share theirs. A sum starts with its bias; the products of a *chunk*
of the inputs are one exact sum that is rounded, and chunks are added with saturation, in an order
that depends on the part (:class:`LstmPlan`). Then comes the product with the peephole.

Cells and outputs are divided into *parts*: each vault has one or more, and the engines of a part
share the batch. Each engine takes its own vectors through all of the part's cells and outputs, so
these engines exchange no data. It works on *groups* of cells: their four gates' sums stay in the
scratchpad until the cells are computed (:attr:`LstmPlan.places`). There, sums are by gate, block of
the group, vector and element of the block; the cells' peepholes and intermediate results take the
place of chunks of inputs.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from math import gcd

import numpy as np

from isa.table import BY_KEY, MAX_VL
from isa.timing import VECTOR_LATENCY, beats
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import round_up
from microkernels.common.fixed_point import (
    ELEMENT_BYTES,
    Elements,
    add,
    check_elements,
    check_fraction,
    dot,
)
from microkernels.common.scratchpad_plan import ScratchpadPlan
from microkernels.runtime.ring import ChipEngines

from .recurrent import CELLS, FixedMath, RecurrentShape, lstm_with_peepholes

_CELL = "lstm_peepholes"
#: The cell's gates and peepholes in the order of weights and biases, and their numbers.
GATE_ORDER = ("f", "i", "g", "o")
PEEPHOLE_ORDER = ("fc", "ic", "oc")
GATES, PEEPHOLES = len(GATE_ORDER), len(PEEPHOLE_ORDER)


@dataclass(frozen=True, kw_only=True)
class LstmShape:
    """Sizes of an LSTM layer.

    Attributes:
        inputs: elements of x. cells: of c. outputs: of y. batch: number of independent sequences.
            All at least 1.
        projected: there is a projection; otherwise the number of outputs equals that of cells.

    Raises:
        KernelError: a value out of range.
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
                f"without a projection, outputs must equal cells ({self.cells}), not {self.outputs}"
            )

    @property
    def operations(self) -> int:
        """Operations per time step: two per weight, plus those of the cells; a function counts as
        one."""
        products = GATES * self.cells * (self.outputs + self.inputs)
        products += self.outputs * self.cells * self.projected
        # With a sum of each gate and its bias.
        return self.batch * (2 * products + (GATES + CELLS[_CELL].operations) * self.cells)


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
        """The same weights, checked to fit a layer of ``shape``.

        Raises:
            KernelError: an array of another shape, or values beyond 16 bits.
        """
        sizes = {
            "gates": (GATES, shape.cells, shape.outputs + shape.inputs),
            "bias": (GATES, shape.cells),
            "peepholes": (PEEPHOLES, shape.cells),
            "projection": (shape.outputs * shape.projected, shape.cells),
        }
        return replace(
            self,
            **{name: check_elements(name, getattr(self, name), s) for name, s in sizes.items()},
        )


def usual_weights(shape: LstmShape, draw: Callable[..., Elements]) -> LstmWeights:
    """Random weights, scaled so that the functions of a layer of ``shape`` are neither nearly
    linear nor flat: a sum of products of inputs around 1 is as large as 1.5.

    Parameters:
        draw: draws elements around 0 with the standard deviation of its first argument, of the size
            of the others.
    """
    width = shape.outputs + shape.inputs
    return LstmWeights(
        gates=draw(1.5 / np.sqrt(width), GATES, shape.cells, width),
        bias=draw(0.5, GATES, shape.cells),
        peepholes=draw(0.3, PEEPHOLES, shape.cells),
        projection=draw(1.5 / np.sqrt(shape.cells), shape.outputs * shape.projected, shape.cells),
    )


@dataclass(frozen=True, kw_only=True)
class LstmState:
    """State after a step: ``c``, batch x cells, and ``y``, batch x outputs, the next step's
    inputs."""

    c: Elements
    y: Elements

    @classmethod
    def start(cls, shape: LstmShape) -> "LstmState":
        """All 0, before the first step."""
        return cls(
            c=np.zeros((shape.batch, shape.cells), np.int16),
            y=np.zeros((shape.batch, shape.outputs), np.int16),
        )

    def checked(self, shape: LstmShape) -> "LstmState":
        """The same state, checked to fit a layer of ``shape``.

        Raises:
            KernelError: an array of another shape, or values beyond 16 bits.
        """
        return LstmState(
            c=check_elements("c of the state", self.c, (shape.batch, shape.cells)),
            y=check_elements("y of the state", self.y, (shape.batch, shape.outputs)),
        )


@dataclass(frozen=True, kw_only=True)
class LstmPlan:
    """A division of a layer into parts and chunks, and of a part over its engines; see the module's
    text.

    All parts have the same number of cells and of outputs, in whole blocks, one part after the
    other; cells and outputs beyond the layer's are 0. Inputs are divided into chunks of equal
    length, and x starts at a chunk boundary. The parts' first chunks are spread evenly, and each
    part goes round from there (:meth:`order`).

    Attributes:
        shape: of the layer.
        parts: number that share the layer, at least 1.
        block: cells or outputs per block, at least 1.
        chunk: inputs per chunk, a multiple of ``block``.
        sharers: engines per part, at least 1.
        group_blocks: blocks of cells per group, at least 1.
        output_blocks: blocks of outputs per group of the projection, at least 1.
        slots: blocks in the ring of weights.

    Raises:
        KernelError: a value out of range.
    """

    shape: LstmShape
    parts: int
    block: int
    chunk: int
    sharers: int
    group_blocks: int
    output_blocks: int
    slots: int

    def __post_init__(self) -> None:
        CHECK.fields(self)
        for name in ("parts", "sharers", "group_blocks", "output_blocks"):
            CHECK.at_least(name, getattr(self, name), 1)
        CHECK.at_least("slots", self.slots, 0)
        if self.block < 1 or self.chunk < 1 or self.chunk % self.block:
            raise KernelError(
                f"chunk must be a multiple of block, both at least 1, not {self.chunk} and "
                f"{self.block}"
            )

    @property
    def cells(self) -> int:
        """Cells per part."""
        return round_up(-(-self.shape.cells // self.parts), self.block)

    @property
    def outputs(self) -> int:
        """Outputs per part."""
        return round_up(-(-self.shape.outputs // self.parts), self.block)

    @property
    def y_chunks(self) -> int:
        """Chunks of y."""
        return -(-self.parts * self.outputs // self.chunk)

    @property
    def input_chunks(self) -> int:
        """Chunks of y and x."""
        return self.y_chunks - (-self.shape.inputs // self.chunk)

    @property
    def last_inputs(self) -> int:
        """Inputs in the last chunk of x, in whole 64-bit words: products with the others are 0."""
        count = (self.shape.inputs - 1) % self.chunk + 1
        return min(round_up(count, _CHUNK_STEP), self.chunk)

    @property
    def cell_chunks(self) -> int:
        """Chunks of the inputs of the projection."""
        return -(-self.parts * self.cells // self.chunk)

    def order(self, part: int, chunks: int) -> list[int]:
        """The order in which ``part`` processes ``chunks`` chunks: even parts go round down, odd
        ones up, in strides of three or the next number that meets them all. So vaults read
        different chunks at the same time, in both directions of the torus, and after a turn that
        fills its links comes one that does not."""
        first = part * chunks // self.parts
        stride = next(step for step in count(3) if gcd(step, chunks) == 1)
        step = stride if part % 2 else -stride
        return [(first + step * turn) % chunks for turn in range(chunks)]

    def input_order(self, part: int) -> list[int]:
        """The order in which ``part`` processes the chunks of x, then those of y, which other
        parts may compute in the meantime."""
        first = self.y_chunks
        x = self.order(part, self.input_chunks - first)
        return [*(first + chunk for chunk in x), *self.order(part, first)]

    def left_at_last(self, part: int) -> int:
        """Chunks of the inputs that ``part`` has not processed when it begins with the last chunk
        of x."""
        return self.input_chunks - self.input_order(part).index(self.input_chunks - 1)

    def inputs(self, y: Elements, x: Elements) -> Elements:
        """y and x as stored in the chunks: the last axis has all positions."""
        return np.concatenate(
            [
                padded(y, self.y_chunks * self.chunk),
                padded(x, (self.input_chunks - self.y_chunks) * self.chunk),
            ],
            axis=-1,
        )

    def cell_inputs(self, m: Elements) -> Elements:
        """The projection's inputs as stored in the chunks."""
        return padded(m, self.cell_chunks * self.chunk)

    @property
    def vectors(self) -> int:
        """Vectors per engine, including those that only pad the batch."""
        return -(-self.shape.batch // self.sharers)

    @property
    def part_vectors(self) -> int:
        """Vectors of all engines of a part, including those that only pad the batch."""
        return self.vectors * self.sharers

    def pieces(self, values: Elements, number: int, size: int) -> list[Elements]:
        """Of each engine of a part, piece ``number`` of its vectors: ``size`` elements of each row
        of ``values``, with zeros after their ends."""
        piece = padded(values[:, number * size : (number + 1) * size], size)
        rows = self.part_vectors - len(piece)
        return np.split(np.pad(piece, ((0, rows), (0, 0))), self.sharers)

    @property
    def groups(self) -> int:
        """Groups of cells."""
        return self.cells // (self.group_blocks * self.block)

    @property
    def output_groups(self) -> int:
        """Groups of outputs."""
        return self.outputs // (self.output_blocks * self.block)

    @property
    def group_elements(self) -> int:
        """Elements of a group's cells for all vectors of an engine."""
        return self.group_blocks * self.block * self.vectors

    @property
    def group_bytes(self) -> int:
        """Bytes of a group's cells."""
        return self.group_elements * ELEMENT_BYTES

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk of a vector."""
        return self.chunk * ELEMENT_BYTES

    @property
    def block_elements(self) -> int:
        """Weights per block."""
        return self.block * self.chunk

    @property
    def block_bytes(self) -> int:
        """Bytes of a block's weights."""
        return self.block_elements * ELEMENT_BYTES

    @property
    def step_weights(self) -> int:
        """Bytes of a part's weights of a time step."""
        gates = GATES * self.cells * self.input_chunks
        outputs = self.outputs * self.cell_chunks if self.shape.projected else 0
        return (gates + outputs) // self.block * self.block_bytes

    @cached_property
    def places(self) -> ScratchpadPlan:
        """The scratchpad: sums, two sets of products, two chunks of inputs around c, the ring."""
        # The chunks' places are used for two numbers of each cell, too.
        chunk = max(self.vectors * self.chunk_bytes, 2 * self.group_bytes)
        product = self.block * ELEMENT_BYTES
        plan = ScratchpadPlan({
            "sums": GATES * self.group_bytes, "made": product, "ready": product,
            "now": chunk, "c": self.group_bytes, "then": chunk,
        })  # fmt: skip
        plan.set_ring(plan.used, self.block_bytes, self.slots, self.block_bytes)
        return plan

    @property
    def spaced_products(self) -> bool:
        """Whether a product is long enough to avoid hazards between the instructions before and
        after it."""
        return beats(_PRODUCT, self.last_inputs, self.block) >= VECTOR_LATENCY

    @property
    def spaced_cells(self) -> bool:
        """Whether an element-wise operation on a group's cells is long enough to avoid hazards with
        the next instruction."""
        return beats(_ADD, self.group_elements, 1) >= VECTOR_LATENCY


def cell_shape(plan: LstmPlan, fraction: int, weight_fraction: int | None) -> RecurrentShape:
    """The cell whose arithmetic follows the sums of products (:mod:`microkernels.nn.recurrent`);
    fractions and errors as for :func:`lstm_step`."""
    weight_fraction = fraction if weight_fraction is None else weight_fraction
    check_fraction(fraction)
    check_fraction(weight_fraction)
    return RecurrentShape(
        kind=_CELL, cells=plan.cells, gate=fraction, state=fraction, weights=weight_fraction,
        unit=True,
    )  # fmt: skip


def padded(values: Elements, length: int) -> Elements:
    """``values`` with zeros at the end of the last axis, which then has ``length`` elements."""
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
    plan: LstmPlan,
    weights: LstmWeights,
    x: Elements,
    state: LstmState,
    *,
    fraction: int,
    weight_fraction: int | None = None,
) -> tuple[LstmState, Elements]:
    """Golden model of a time step: the state after it, and the inputs of the projection, batch x
    cells.

    Parameters:
        plan: how the layer is divided.
        x: batch x inputs elements.
        state: of the previous step.
        fraction: fraction bits of all numbers except weights and peepholes, 0..15.
        weight_fraction: of weights and peepholes; None: the same.

    Raises:
        KernelError: an array of another shape, or values out of range.
    """
    shape, math = plan.shape, FixedMath(cell_shape(plan, fraction, weight_fraction))
    of_weights = math.shape.weights
    weights = weights.checked(shape)
    x = check_elements("x", x, (shape.batch, shape.inputs))
    state = state.checked(shape)
    inputs = plan.inputs(state.y, x)
    matrix = plan.inputs(weights.gates[..., : shape.outputs], weights.gates[..., shape.outputs :])
    cells = []
    for number in range(plan.parts):
        part = slice(number * plan.cells, (number + 1) * plan.cells)
        order = plan.input_order(number)
        gates = [
            _sums(weights.bias[gate, part], inputs, matrix[gate, part], order, of_weights)
            for gate in range(GATES)
        ]
        math.values = dict(zip(GATE_ORDER, gates, strict=True)) | {"c": state.c[:, part]}
        math.values |= dict(zip(PEEPHOLE_ORDER, weights.peepholes[:, part], strict=True))
        lstm_with_peepholes(math)
        cells.append((math.values["c"], math.values["o"]))
    new, m = (np.concatenate(parts, axis=1) for parts in zip(*cells, strict=True))
    if not shape.projected:
        return LstmState(c=new, y=m), m
    cell_inputs = plan.cell_inputs(m)
    projection = plan.cell_inputs(weights.projection)
    outputs = []
    for number in range(plan.parts):
        part = slice(number * plan.outputs, (number + 1) * plan.outputs)
        order = plan.order(number, plan.cell_chunks)
        start = np.zeros(1, np.int16)
        outputs.append(_sums(start, cell_inputs, projection[part], order, of_weights))
    return LstmState(c=new, y=np.concatenate(outputs, axis=1)), m


#: Fractions of the scratchpad for the sums and for the inputs.
_SUM_SHARE = 4
_INPUT_SHARE = 4
#: Maximum inputs per chunk: more would only leave less room for blocks of weights.
_MOST_CHUNK = 64
#: Elements per block, the best first.
_BLOCKS = (8, 4, 2, 1)
#: Minimum elements per chunk.
_CHUNK_STEP = 4
#: Minimum and maximum blocks of weights in the ring (each is a load in flight).
_FEWEST_SLOTS = 3
_MOST_SLOTS = 8
#: Cycles per iteration besides its beats, and bytes per cycle of a vault's memory; used only for
#: choosing.
_TURN, _BUS_BYTES = 12, 6.5
_PRODUCT = BY_KEY["m.v.mul.add[16]"]
_ADD = BY_KEY["v.v.add[16]"]


@CHECK.arguments
def plan_lstm(shape: LstmShape, engines: ChipEngines, *, vaults: int | None = None) -> LstmPlan:
    """The plan with the smallest predicted time per step.

    Parameters:
        engines: of the chip, each of which works.
        vaults: number that share the layer, at least 1, each with one part and with the engines of
            one vault of the chip; None: those of the chip.

    Raises:
        KernelError: a value out of range, or a batch that does not fit; the message names one that
            would.
    """
    if vaults is not None:
        CHECK.at_least("vaults", vaults, 1)
        return _plan(shape, vaults, engines.pes, engines.scratchpad_bytes)
    plans = []
    failure: KernelError | None = None
    # If a batch has fewer sequences than a vault has engines, more parts keep all engines busy.
    for parts in (parts for parts in range(1, engines.pes + 1) if engines.pes % parts == 0):
        sharers = engines.pes // parts
        try:
            plan = _plan(shape, engines.vaults * parts, sharers, engines.scratchpad_bytes)
        except KernelError as error:
            failure = failure or error
            continue
        plans.append((_cycles(plan, engines.pes), parts, plan))
    if not plans:
        assert failure is not None
        raise failure
    return min(plans, key=lambda option: option[:2])[2]


def _cycles(plan: LstmPlan, engines: int) -> float:
    """Predicted cycles of a time step with ``engines`` in a vault."""
    turn = plan.vectors * (plan.block * -(-plan.chunk // 4) + _TURN) + _TURN
    work = plan.step_weights / plan.block_bytes * turn
    return max(work, plan.step_weights * engines / _BUS_BYTES)


def _plan(shape: LstmShape, parts: int, sharers: int, scratchpad_bytes: int) -> LstmPlan:
    """The plan for ``parts`` with ``sharers`` engines each."""
    vectors = -(-shape.batch // sharers)
    most_inputs = scratchpad_bytes // _INPUT_SHARE // (2 * vectors * ELEMENT_BYTES)
    chunk = min(_MOST_CHUNK, most_inputs // _CHUNK_STEP * _CHUNK_STEP)
    longest = max(shape.inputs, shape.cells, shape.outputs)
    chunk = min(chunk, round_up(longest, max(_BLOCKS)))
    most_sums = scratchpad_bytes // _SUM_SHARE // (GATES * vectors * ELEMENT_BYTES)
    most_elements = min(most_sums, MAX_VL // vectors)
    for block in _BLOCKS:
        if chunk < 1 or chunk % block or most_elements < block:
            continue
        ungrouped = LstmPlan(
            shape=shape,
            parts=parts,
            block=block,
            chunk=chunk,
            sharers=sharers,
            group_blocks=1,
            output_blocks=1,
            slots=0,
        )
        group_blocks = _largest(ungrouped.groups, most_elements // block)
        plan = replace(
            ungrouped,
            group_blocks=group_blocks,
            # The outputs' sums use the area of the gates' sums.
            output_blocks=_largest(ungrouped.output_groups, GATES * group_blocks),
        )
        slots = min(_MOST_SLOTS, (scratchpad_bytes - plan.places.ring) // plan.block_bytes)
        if slots >= _FEWEST_SLOTS:
            return replace(plan, slots=slots)
    fitting = scratchpad_bytes // _INPUT_SHARE // (2 * _CHUNK_STEP * ELEMENT_BYTES)
    raise KernelError(
        f"a batch of {shape.batch} vectors on {sharers} engines does not fit scratchpads of "
        f"{scratchpad_bytes} bytes: at most {fitting} vectors for each"
    )


def _largest(count: int, limit: int) -> int:
    """The largest divisor of ``count`` that is at most ``limit``."""
    return max(part for part in range(1, min(count, limit) + 1) if count % part == 0)
