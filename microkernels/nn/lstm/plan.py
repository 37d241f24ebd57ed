"""Partition of a vault's part of an LSTM layer so that it fits the scratchpads of its engines.

Each engine has its own vectors of the batch and takes them through all of the vault's cells and
outputs, so that the engines of a vault exchange no data. It works on *groups* of cells: their four
gates' sums stay in the scratchpad until the cells are computed. The scratchpad holds::

    sums         [gate][block of the group][vector][element of the block]
    products     two sets of a block's sums of products
    work         two chunks of inputs of all vectors; later c, three peepholes, intermediate results
    weights      a ring of blocks
"""

from dataclasses import dataclass, replace

from isa.table import BY_KEY, MAX_VL
from isa.timing import RANGE_BYTES, VECTOR_LATENCY, beats
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import round_up
from microkernels.common.fixed_point import ELEMENT_BYTES

from .shape import GATES, LstmCut, LstmShape

__all__ = ["LstmPlan", "plan_lstm"]

#: Shares of the scratchpad for the sums and for the inputs.
_SUM_SHARE = 4
_INPUT_SHARE = 4
#: Inputs in a chunk at most: more would only leave less room for blocks of weights.
_MOST_CHUNK = 64
#: Elements in a block, the best first.
_BLOCKS = (8, 4, 2, 1)
#: Fewest elements of a chunk.
_CHUNK_STEP = 4
#: Blocks of weights in the ring: at least and at most (each is a load in flight).
_FEWEST_SLOTS = 3
_MOST_SLOTS = 8
#: Vectors of a group's elements in the work area while the cells are computed.
_WORK_VECTORS = 5
_PRODUCT = BY_KEY["m.v.mul.add[16]"]
_ADD = BY_KEY["v.v.add[16]"]


@dataclass(frozen=True, kw_only=True)
class LstmPlan:
    """Partition of a vault's part of a layer; see the module's text.

    Attributes:
        cut: partition of the layer over vaults and into chunks.
        sharers: engines of the vault, at least 1.
        group_blocks: blocks of cells in a group.
        output_blocks: blocks of outputs in a group of the projection.
        slots: blocks in the ring of weights.
    """

    cut: LstmCut
    sharers: int
    group_blocks: int
    output_blocks: int
    slots: int

    @property
    def vectors(self) -> int:
        """Vectors of each engine, with those that only fill up the batch."""
        return -(-self.cut.shape.batch // self.sharers)

    @property
    def groups(self) -> int:
        """Groups of cells."""
        return self.cut.cells // (self.group_blocks * self.cut.block)

    @property
    def output_groups(self) -> int:
        """Groups of outputs."""
        return self.cut.outputs // (self.output_blocks * self.cut.block)

    @property
    def group_elements(self) -> int:
        """Elements of a group's cells, of all vectors of an engine."""
        return self.group_blocks * self.cut.block * self.vectors

    @property
    def group_bytes(self) -> int:
        """Bytes of a group's cells."""
        return self.group_elements * ELEMENT_BYTES

    @property
    def product_bytes(self) -> int:
        """Bytes of a set of products."""
        return round_up(self.cut.block * ELEMENT_BYTES, RANGE_BYTES)

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk of a vector."""
        return self.cut.chunk * ELEMENT_BYTES

    @property
    def block_elements(self) -> int:
        """Weights of a block."""
        return self.cut.block * self.cut.chunk

    @property
    def block_bytes(self) -> int:
        """Bytes of the weights of a block."""
        return self.block_elements * ELEMENT_BYTES

    @property
    def products(self) -> int:
        """Scratchpad address of the products."""
        return round_up(GATES * self.group_bytes, RANGE_BYTES)

    @property
    def work(self) -> int:
        """Scratchpad address of the work area."""
        return self.products + 2 * self.product_bytes

    @property
    def ring(self) -> int:
        """Scratchpad address of the ring of weights."""
        inputs = 2 * self.vectors * self.chunk_bytes
        size = max(inputs, _WORK_VECTORS * self.group_bytes)
        return round_up(self.work + size, RANGE_BYTES)

    @property
    def ring_end(self) -> int:
        """First byte after the ring."""
        return self.ring + self.slots * self.block_bytes

    @property
    def spaced_products(self) -> bool:
        """A product takes long enough to avoid hazards between the instructions before and after
        it."""
        return beats(_PRODUCT, self.cut.chunk, self.cut.block) >= VECTOR_LATENCY

    @property
    def spaced_cells(self) -> bool:
        """An element-wise operation on a group's cells takes long enough to avoid hazards with the
        next instruction."""
        return beats(_ADD, self.group_elements, 1) >= VECTOR_LATENCY


@CHECK.arguments
def plan_lstm(
    shape: LstmShape,
    *,
    vaults: int = 1,
    sharers: int = 1,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> LstmPlan:
    """A plan for each vault's part of a layer.

    Parameters:
        vaults: that share the layer. sharers: engines of each; at least 1 of both.
        scratchpad_bytes: size of the scratchpad.

    Raises:
        KernelError: a value outside its range, or a batch that does not fit; the message names
            one that would.
    """
    CHECK.at_least("sharers", sharers, 1)
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
        cut = LstmCut(shape=shape, vaults=vaults, block=block, chunk=chunk)
        group_blocks = _largest(cut.cells // block, most_elements // block)
        plan = LstmPlan(
            cut=cut,
            sharers=sharers,
            group_blocks=group_blocks,
            # The sums of the outputs use the area of the gates' sums.
            output_blocks=_largest(cut.outputs // block, GATES * group_blocks),
            slots=0,
        )
        slots = min(_MOST_SLOTS, (scratchpad_bytes - plan.ring) // plan.block_bytes)
        if slots >= _FEWEST_SLOTS:
            return replace(plan, slots=slots)
    fitting = scratchpad_bytes // _INPUT_SHARE // (2 * _CHUNK_STEP * ELEMENT_BYTES)
    raise KernelError(
        f"a batch of {shape.batch} vectors on {sharers} engines does not fit scratchpads of "
        f"{scratchpad_bytes} bytes: at most {fitting} vectors for each"
    )


def _largest(count: int, most: int) -> int:
    """The largest divisor of ``count`` that is at most ``most``."""
    return max(part for part in range(1, min(count, most) + 1) if count % part == 0)
