"""Fully connected layers: sizes, golden model, and division for an engine's scratchpad.

``out[b, o] = act(bias[o] + sum over i of weights[o, i] * inputs[b, i])`` (thesis equation 2.13) for
each vector ``b`` of a batch. The inputs are divided into *segments*, one per vault in a row of
vaults, and each of these into *chunks*. A chunk's products are one exact sum that is rounded;
chunks, and then the segments starting with the bias, are added with saturation (Figure 6.6).

An engine works on *row groups* of outputs. For each row group it processes all chunks of its
inputs, and for each chunk *blocks* of ``block`` outputs. The scratchpad contains::

    threshold    of the outputs
    bias         of the row group
    others       another segment's sums of the row group, for each vector of the batch
    sums         of the row group, for each vector
    products     two sets of the last block's sums of products, for each vector
    inputs       two chunks of each vector, or the only one
    weights      a ring of blocks

Loaded data starts at multiples of :data:`isa.limits.RANGE_BYTES`.

Inputs and weights may be signed bytes, stored in pairs (:mod:`microkernels.nn.window_shape`): a
plan's inputs and chunks count elements, and products are those of ``m.v.dot.add``, an optional
instruction. Outputs are 16-bit sums, or bytes in pairs: sums shifted right by ``narrow`` bits as
those of convolutions.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from isa.limits import RANGE_BYTES
from isa.table import BY_KEY, MAX_MR, MAX_VL
from isa.timing import VECTOR_LATENCY, WORD_BYTES, beats
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES, round_up
from microkernels.common.fixed_point import (
    ELEMENT_BYTES,
    NUMBERS,
    Elements,
    add,
    check_elements,
    check_fraction,
    dot,
)
from microkernels.common.scratchpad_plan import ScratchpadPlan

from .window_shape import check_shifts, narrowed, outputs_per_element, rounding_bias


def partial_sums(chunk: int, inputs: Elements, weights: Elements, *, fraction: int) -> Elements:
    """Golden model of the products: sums of one segment.

    Parameters:
        chunk: inputs per chunk, at least 1; of bytes, twice as many as the plan's elements.
        inputs: batch x inputs elements, or bytes.
        weights: outputs x inputs elements, or bytes.
        fraction: bits by which sums of products are shifted right, 0..15.

    Returns:
        batch x outputs elements.

    Raises:
        KernelError: an array of another shape, or values out of range.
    """
    check_fraction(fraction)
    CHECK.at_least("chunk", chunk, 1)
    weights = check_elements("weights", weights, ("outputs", "inputs"))
    outputs, length = weights.shape
    inputs = check_elements("inputs", inputs, ("batch", length))
    total = np.zeros((len(inputs), outputs), inputs.dtype)
    for first in range(0, length, chunk):
        part = slice(first, first + chunk)
        total = add(total, dot(inputs[:, part], weights[:, part].T, fraction))
    return total


def dense(sums: Elements, bias: Elements, *, relu: bool, narrow: int | None = None) -> Elements:
    """Golden model of the outputs, from the sums of all segments.

    Parameters:
        sums: segments x batch x outputs elements.
        bias: one element per output.
        relu: negative outputs become 0.
        narrow: bits by which sums are shifted right to become bytes, 0..8; None: the outputs are
            the sums.

    Returns:
        batch x outputs elements, or bytes.

    Raises:
        KernelError: an array of another shape, or values out of range.
    """
    if sums.ndim != 3:
        raise KernelError(f"sums must be segments x batch x outputs, not {sums.shape}")
    sums = check_elements("sums", sums, sums.shape)
    bias = rounding_bias(bias, sums.shape[2], narrow)
    total = np.broadcast_to(bias, sums.shape[1:])
    for segment in sums:
        total = add(total, segment)
    if relu:
        total = np.maximum(total, 0)
    return total if narrow is None else narrowed(total, narrow)


#: Blocks of weights in the ring: the minimum, enough to hide the memory's latency, and the maximum
#: (each is a load in flight).
_FEWEST_BLOCKS = 3
_GOOD_BLOCKS = 6
_MOST_BLOCKS = 12
#: Maximum partial sums per output.
_MOST_SEGMENTS = 64
#: Fraction of the scratchpad for all vectors' inputs, and for sums and biases.
_INPUT_SHARE = 4
_SUM_SHARE = 4
_PRODUCT = BY_KEY["m.v.mul.add[16]"]
#: Elements per word.
_LANES = WORD_BYTES // ELEMENT_BYTES


@dataclass(frozen=True, kw_only=True)
class DensePlan:
    """A division of a fully connected layer; see the module's text.

    Attributes:
        inputs, outputs: elements per input and output vector of the vault's part, at least 1.
        batch: number of vectors, at least 1.
        segments: partial sums per output, at least 1.
        sharers: engines per vault, at least 1.
        chunk: inputs per chunk, at most 256.
        block: outputs per block, at most 256.
        blocks: per row group.
        slots: blocks in the ring of weights.
        bits: of the numbers of inputs and weights, 16 or 8.
        narrow: outputs are bytes, two per element: sums shifted right by this many bits; None:
            outputs are sums.
    """

    inputs: int
    outputs: int
    batch: int
    segments: int
    sharers: int
    chunk: int
    block: int
    blocks: int
    slots: int
    bits: int = 16
    narrow: int | None = None

    @property
    def output_elements(self) -> int:
        """Elements per vector of outputs."""
        return -(-self.outputs // self.packed)

    @property
    def packed(self) -> int:
        """Outputs per element; an engine computes a multiple of it."""
        return outputs_per_element(self.narrow)

    @property
    def chunks(self) -> int:
        """Number of chunks of the inputs."""
        return -(-self.inputs // self.chunk)

    @property
    def group(self) -> int:
        """Outputs per row group."""
        return self.block * self.blocks

    @property
    def groups(self) -> int:
        """Row groups per engine."""
        return -(-self.outputs // (self.sharers * self.group))

    @property
    def pe_outputs(self) -> int:
        """Outputs per engine, including those that only pad its last row group."""
        return self.groups * self.group

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a vector's chunk in the scratchpad."""
        return round_up(self.chunk * ELEMENT_BYTES, RANGE_BYTES)

    @property
    def group_bytes(self) -> int:
        """Bytes of a vector's sums for a row group."""
        return self.group * ELEMENT_BYTES

    @property
    def product_bytes(self) -> int:
        """Bytes of a vector's sums of products for a block."""
        return self.block * ELEMENT_BYTES

    @property
    def block_bytes(self) -> int:
        """Bytes of a block's weights in memory."""
        return self.block * self.chunk * ELEMENT_BYTES

    @property
    def slot_bytes(self) -> int:
        """Bytes per slot of the ring of weights."""
        return round_up(self.block_bytes, RANGE_BYTES)

    @cached_property
    def places(self) -> ScratchpadPlan:
        """The scratchpad; see the module's text."""
        sums = self.batch * self.group_bytes
        plan = ScratchpadPlan({
            "threshold": RANGE_BYTES,
            "bias": self.group_bytes,
            "others": sums * (self.segments > 1),
            "sums": sums,
            "products": 2 * self.batch * self.product_bytes,
            "inputs": min(2, self.chunks) * self.batch * self.chunk_bytes,
        })  # fmt: skip
        plan.set_ring(plan.used, self.slot_bytes, self.slots, self.slot_bytes)
        return plan

    @property
    def spaced(self) -> bool:
        """Whether a product is long enough to avoid hazards between the instructions before and
        after it."""
        return beats(_PRODUCT, self.chunk, self.block) >= VECTOR_LATENCY


def _chunk_of(inputs: int, batch: int, chunk: int | None, scratchpad_bytes: int) -> int:
    """Inputs per chunk; parameters and errors as for :func:`plan_dense`."""
    if chunk is not None:
        if not 1 <= chunk <= MAX_VL:
            raise KernelError(f"chunk must be from 1 to {MAX_VL}, not {chunk}")
        return chunk
    share = scratchpad_bytes // _INPUT_SHARE // (2 * batch * ELEMENT_BYTES)
    most = min(MAX_VL, share // _LANES * _LANES)
    if most < 1:
        fitting = scratchpad_bytes // _INPUT_SHARE // (2 * _LANES * ELEMENT_BYTES)
        raise KernelError(
            f"a batch of {batch} vectors does not fit a scratchpad of "
            f"{scratchpad_bytes} bytes: at most {fitting} at a time"
        )
    return _best_chunk(inputs, most)


@CHECK.arguments
def plan_dense(
    *,
    inputs: int,
    outputs: int,
    batch: int = 1,
    segments: int = 1,
    sharers: int = 1,
    chunk: int | None = None,
    bits: int = 16,
    narrow: int | None = None,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> DensePlan:
    """A plan for a vault's part of a fully connected layer.

    Parameters:
        inputs, outputs, batch: as for :class:`DensePlan`.
        segments: partial sums per output, 1..64.
        sharers: engines per vault, at least 1.
        chunk: inputs per chunk, 1..256; None: choose automatically.
        bits, narrow: as for :class:`DensePlan`; ``narrow`` is 0..8.
        scratchpad_bytes: size of the scratchpad.

    Raises:
        KernelError: a value out of range, or a batch that does not fit; the message names one that
            would.
    """
    if not 1 <= segments <= _MOST_SEGMENTS:
        raise KernelError(f"segments must be from 1 to {_MOST_SEGMENTS}, not {segments}")
    CHECK.at_least("sharers", sharers, 1)
    CHECK.one_of("bits", bits, tuple(NUMBERS))
    for name, value in (("inputs", inputs), ("outputs", outputs), ("batch", batch)):
        CHECK.at_least(name, value, 1)
    chunk = _chunk_of(inputs, batch, chunk, scratchpad_bytes)
    if narrow is not None:
        check_shifts(0, narrow)
    # Outputs of bytes are computed in pairs.
    pair = outputs_per_element(narrow)
    each = round_up(-(-outputs // sharers), pair)
    # Sums of a vector, and another segment's; biases.
    places = batch * min(2, segments) + 1
    room = max(1, scratchpad_bytes // _SUM_SHARE // (places * ELEMENT_BYTES))
    # Row groups of equal size, of at most as many outputs as one instruction completes.
    group = round_up(-(-each // -(-each // min(room, MAX_VL))), pair)
    ringless = DensePlan(
        inputs=inputs,
        outputs=outputs,
        batch=batch,
        segments=segments,
        sharers=sharers,
        chunk=chunk,
        block=1,
        blocks=group,
        slots=0,
        bits=bits,
        narrow=narrow,
    )
    plans = _with_rings(ringless, scratchpad_bytes)
    if not plans:
        raise KernelError(
            f"a batch of {batch} vectors does not fit a scratchpad of {scratchpad_bytes} "
            f"bytes with chunks of {chunk} inputs: give fewer vectors, or shorter chunks"
        )
    return min(plans, key=_merit)


def _merit(plan: DensePlan) -> tuple[bool, int, bool, int]:
    """Criteria, the smallest is best: with several vectors, which use a block for longer than it
    takes to load, no drain after each product; little padding of outputs; enough blocks in flight;
    the longest blocks."""
    drains = plan.batch > 1 and not plan.spaced
    return drains, plan.pe_outputs, plan.slots < _GOOD_BLOCKS, -plan.block


def _with_rings(plan: DensePlan, scratchpad_bytes: int) -> list[DensePlan]:
    """``plan``, whose blocks have one output, with blocks of all lengths that fit."""
    plans = []
    for block in range(1, min(plan.group, MAX_MR) + 1):
        blocks = -(-plan.group // block)
        if block * blocks % plan.packed:
            blocks += 1
        longer = replace(plan, block=block, blocks=blocks)
        slots = min(_MOST_BLOCKS, (scratchpad_bytes - longer.places.ring) // longer.slot_bytes)
        if slots >= _FEWEST_BLOCKS:
            plans.append(replace(longer, slots=slots))
    return plans


def _best_chunk(inputs: int, limit: int) -> int:
    """Inputs per chunk, at most ``most``, for which a row of weights takes the fewest columns; the
    longest of those. If a chunk's row does not fill its columns, it shares one with the next row,
    and both load it."""

    def columns(chunk: int) -> int:
        size = chunk * ELEMENT_BYTES
        each = -(-size // COLUMN_BYTES) + (size % COLUMN_BYTES > 0)
        return -(-inputs // chunk) * each

    # Several rows of fewer inputs share a column.
    whole = COLUMN_BYTES // ELEMENT_BYTES
    longest = min(limit, round_up(inputs, whole if inputs > whole else _LANES))
    candidates: list[int] = [longest, *range(_LANES, longest, _LANES)]
    return min(candidates, key=lambda chunk: (columns(chunk), -chunk))
