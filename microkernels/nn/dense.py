"""Layout and kernel of fully connected layers (thesis section 6.3). Arithmetic:
:mod:`microkernels.nn.dense_plan`.

An engine's part of the parameter block::

    0  address of its weights
    1  outputs that it computes; 0: none
    2  number of the first one

All other data are at fixed distances from the parameter block: launches of small layers wait for
each word that they read.

Each engine multiplies the inputs by its rows of the weight matrix. It streams the weights once, in
memory order, through a ring of blocks, which it refills while blocks are left. In a block's turn
its rows are multiplied by the chunk of each vector, and after each product the previous block's
sums are added. After the last block of a row group, the engine adds the bias and the sums of other
segments, applies ReLU, and stores the outputs. Outputs of bytes are shifted to their elements' high
bytes before, with saturation, and packed. The following rules, and those in
:mod:`microkernels.bp.kernel`, keep the program correct for any timing of the memory:

- *Vector after vector*: a product separates an addition from the instruction that produced its
  operands; a ``v.drain`` follows products shorter than the vector unit's latency.
- *Load after vector*: a block is loaded over the previous turn's, and a chunk of inputs over the
  previous chunk, after a product and an addition of this turn have been issued.
- Before a row group's first product, its sums, and the products that are added first, are 0.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from isa.program import Program
from isa.table import MAX_VL
from microkernels.common.builder import KernelBuilder, launch_registers
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import (
    COLUMN_BYTES,
    ROW_BYTES,
    FeatureMap,
    round_up,
    vectors,
)
from microkernels.common.fixed_point import (
    ELEMENT,
    ELEMENT_BYTES,
    LOWEST,
    Elements,
    check_elements,
    check_fraction,
)
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import block_bytes
from support.errors import counted

from .dense_plan import DensePlan
from .line import BlockLayout
from .window_shape import MOST_NARROW

#: Words of an engine's part of the parameter block.
_WORDS = 3

#: Places of the threshold; of a factor and a vector for outputs of bytes.
_THRESHOLD, _FACTOR, _PICK = (number * ELEMENT_BYTES for number in range(3))


@dataclass(frozen=True, kw_only=True)
class DenseLayout(BlockLayout):
    """Addresses of a vault's part of a fully connected layer; see the module's text.

    Attributes:
        plan: partition of the layer.
        target: the outputs: vectors (:func:`microkernels.common.feature_map.vectors`).
        fraction: bits by which sums of products are shifted right, 0..15.
        relu: negative outputs become 0.
        base: first address of all other data; a multiple of 32.
        source: the inputs, elsewhere in memory; None: they follow the biases.

    Raises:
        KernelError: vectors that do not fit the layer, or a value out of range.
    """

    plan: DensePlan
    fraction: int
    relu: bool = True
    source: FeatureMap | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction(self.fraction)
        plan = self.plan
        for name, row, length in (
            ("target", self.target, plan.output_elements),
            ("source", self.inputs, plan.inputs),
        ):
            row.check_size(name, plan.batch, 1, length)
            if row.slices > 1:
                raise KernelError(f"{name} must have one slice, not {row.slices}")

    @property
    def _parts(self) -> list[int]:
        return [_WORDS] * self.plan.sharers

    @property
    def limits(self) -> int:
        """Address of the outputs' lower limit; for outputs of bytes, then of the factor that shifts
        a sum to the high byte, and the bytes that select this one."""
        return self._block_end

    @property
    def bias(self) -> int:
        """Address of the biases."""
        return self.limits + COLUMN_BYTES

    @property
    def inputs(self) -> FeatureMap:
        """The inputs. Weights of zero multiply what follows a vector in its last chunk."""
        plan = self.plan
        if self.source is not None:
            return self.source
        room = round_up(plan.chunks * plan.chunk * ELEMENT_BYTES, COLUMN_BYTES)
        return vectors(self._bias_end, plan.inputs, plan.batch, pitch=room)

    @property
    def _bias_end(self) -> int:
        return self.bias + round_up(self.plan.outputs * ELEMENT_BYTES, COLUMN_BYTES)

    def sums(self, segment: int) -> FeatureMap:
        """Another segment's sums, from 1."""
        plan = self.plan
        end = self.inputs.end if self.source is None else self._bias_end
        first = vectors(end, plan.outputs, plan.batch)
        return replace(first, base=first.base + (segment - 1) * (first.end - first.base))

    def weights(self, member: int) -> int:
        """Address of the first block of weights of the engine in slot ``member``. Its next block
        follows the first ones of all engines: these read the same DRAM rows at about the same
        time."""
        first = round_up(self.sums(self.plan.segments).base, ROW_BYTES)
        return first + member * self.plan.block_bytes

    @property
    def end(self) -> int:
        plan = self.plan
        blocks = plan.groups * plan.chunks * plan.blocks * plan.sharers
        return round_up(self.weights(0) + blocks * plan.block_bytes, COLUMN_BYTES)

    def store(self, memory: Writable, weights: Elements, bias: Elements) -> None:
        """Write everything except inputs and other segments' sums to ``memory``.

        Parameters:
            weights: outputs x inputs elements.
            bias: one element per output; for outputs of bytes, that of
                :func:`microkernels.nn.window_shape.rounding_bias`.

        Raises:
            KernelError: arrays of another shape, or values beyond 16 bits.
            isa.image.ImageError: the layout is outside the memory.
        """
        plan = self.plan
        weights = check_elements("weights", weights, (plan.outputs, plan.inputs))
        bias = check_elements("bias", bias, (plan.outputs,))
        limits = [0 if self.relu else LOWEST]
        if plan.narrow is not None:
            limits += [1 << MOST_NARROW - plan.narrow, 1 << MOST_NARROW]
        memory.write(self.limits, np.array(limits, ELEMENT).tobytes())
        biases = np.pad(bias, (0, -plan.outputs % plan.packed))
        memory.write(self.bias, biases.astype(ELEMENT).tobytes())
        padding = (0, plan.sharers * plan.pe_outputs - plan.outputs)
        filled = np.pad(weights, (padding, (0, plan.chunks * plan.chunk - plan.inputs)))
        blocks = filled.reshape(
            plan.sharers, plan.groups, plan.blocks, plan.block, plan.chunks, plan.chunk
        ).transpose(1, 4, 2, 0, 3, 5)
        memory.write(self.weights(0), np.ascontiguousarray(blocks, ELEMENT).tobytes())
        memory.write(self.parameters, self.block(self.parameters))

    def block(self, address: int) -> bytes:
        return block_bytes(address, [self._words(member) for member in range(self.plan.sharers)])

    def _words(self, member: int) -> list[int]:
        plan = self.plan
        first = member * plan.pe_outputs
        outputs = max(0, min(plan.pe_outputs, plan.output_elements * plan.packed - first))
        return [self.weights(member), outputs, first]


@CHECK.arguments
@lru_cache(maxsize=64)
def dense_program(layout: DenseLayout, *, vault_bits: int | None = None) -> Program:
    """The program of a vault's part of a fully connected layer; ``vault_bits`` as for
    :func:`microkernels.nn.line.line_program`."""
    plan = layout.plan
    name = f"dense_{plan.inputs}x{plan.outputs}x{plan.batch}.s"
    return _DenseKernel(layout, vault_bits).build().program(name)


class _DenseKernel:
    def __init__(self, layout: DenseLayout, vault_bits: int | None) -> None:
        self.plan = plan = layout.plan
        self.layout = layout
        self.vault_bits = vault_bits
        self.batch = plan.batch
        self.writer = w = KernelBuilder(
            f"Fully connected: {plan.inputs} inputs, {plan.outputs} outputs, batch "
            f"{plan.batch}; thesis section 6.3.",
            "Generated by microkernels.nn.dense, which explains the schedule and its safety.",
            f"Chunks of {plan.chunk} inputs, blocks of {plan.block} outputs, {plan.blocks} blocks "
            f"in a row group; {counted(plan.segments, 'segment')}.",
            "",
            *plan.places.listing,
            launch=launch_registers(vault_bits),
        )
        reg = w.register
        self.weights = reg("weights", "address of the next block of weights")
        self.blocks_ahead = reg("blocks_ahead", "blocks of weights left to load")
        self.chunks_ahead = reg("chunks_ahead", "chunks left to load")
        self.outputs = reg("outputs", "outputs left")
        self.first = reg("first", "number of the first one")
        self.inputs = reg("inputs", "address of the inputs")
        self.at = (
            reg("at0", "temporary"),
            reg("at1", "temporary"),
            reg("at2", "temporary"),
            reg("at3", "temporary"),
        )
        self.count = reg("count", "temporary count; then outputs of the row group")
        self.vectors = reg("vectors", "vectors left")
        self.chunks = reg("chunks", "chunks left in the row group")
        self.blocks = reg("blocks", "blocks left in the chunk")
        self.input = reg("input", "where the next chunk is")
        self.inputs_end = reg("inputs_end", "end of the first vector's chunks")
        self.use = reg("use", "block of weights in use")
        self.fill = reg("fill", "block of weights to load next")
        self.now = reg("now", "chunk of inputs in use")
        self.then = reg("then", "the other one")
        self.made = reg("made", "sums of products being made")
        self.ready = reg("ready", "those to add")
        self.total = reg("total", "sums that they belong to")
        self.next_total = reg("next_total", "sums of the block in use")
        self.chunk = w.constant("chunk", plan.chunk, "inputs in a chunk")
        self.block = w.constant("outputs_at_once", plan.block, "outputs in a block")
        self.block_count = w.constant("block_count", plan.blocks, "blocks in a row group")
        self.block_size = w.constant("block_size", plan.block * plan.chunk, "weights of a block")
        self.ring = w.constant("ring", plan.places.ring, "ring of weights")
        self.ring_end = w.constant("ring_end", plan.places.used, "its end")

    def build(self) -> KernelBuilder:
        """Write the complete program."""
        w = self.writer
        words = (self.weights, self.outputs, self.first)
        w.start(words, self.at[0], vault_bits=self.vault_bits)
        w.op("beq", self.outputs, w.zero, "idle")
        self._begin()
        with w.loop("group"):
            self._multiply()
            self._complete()
            w.op("bne", self.outputs, w.zero, "group")
        w.label("idle")
        w.op("halt")
        return w

    @contextmanager
    def _each_vector(self, label: str, *steps: tuple[str, int]) -> Iterator[None]:
        """Repeat the code of a ``with`` statement for all vectors of the batch, and advance these
        registers by the given number of bytes after each."""
        with self.writer.times(label, self.vectors, self.batch):
            yield
            for register, distance in steps if self.batch > 1 else ():
                if distance:
                    self.writer.offset(register, register, distance)

    def _find(self, register: str, address: int) -> None:
        """Set ``register`` to an address of the layout."""
        self.writer.offset(register, "parameters", address - self.layout.parameters)

    def _find_output(self, register: str, address: int, size: int = ELEMENT_BYTES) -> None:
        """Set ``register`` to the place of the row group's first output among all outputs at
        ``address``, of ``size`` bytes each."""
        self._find(register, address)
        for _ in range(size):
            self.writer.op("add", register, register, self.first)

    def _begin(self) -> None:
        w, plan, layout = self.writer, self.plan, self.layout
        w.note("The first chunk of inputs, and the ring but for one block.")
        chunks = plan.groups * plan.chunks
        w.op("li", self.chunks_ahead, chunks)
        w.op("li", self.blocks_ahead, chunks * plan.blocks)
        self._find(self.inputs, layout.inputs.base)
        w.op("mov", self.input, self.inputs)
        w.offset(self.inputs_end, self.inputs, plan.chunks * plan.chunk * ELEMENT_BYTES)
        w.op("li", self.now, plan.places["inputs"])
        w.op("li", self.then, plan.places["inputs"])
        self._load_chunk("first_chunk")
        if plan.chunks > 1:
            w.op("li", self.then, plan.places["inputs"] + self.batch * plan.chunk_bytes)
        w.op("mov", self.fill, self.ring)
        w.op("mov", self.use, self.ring)
        w.op("li", self.count, plan.slots - 1)
        with w.loop("fill_ring", self.count):
            self._load_block()
        w.op("li", self.at[0], _THRESHOLD)
        self._find(self.at[1], layout.limits)
        w.op("li", self.at[2], 1 if plan.narrow is None else 3)
        w.load(self.at[0], self.at[1], self.at[2], note="threshold")

    def _multiply(self) -> None:
        w, plan = self.writer, self.plan
        w.note("A row group: its biases; sums and products are 0.")
        w.op("li", self.count, plan.group)
        with w.unless("bge", self.outputs, self.count):
            w.op("mov", self.count, self.outputs)
        w.op("li", self.at[0], plan.places["bias"])
        self._find_output(self.at[1], self.layout.bias)
        w.load(self.at[0], self.at[1], self.count, note="biases")
        self._clear()
        w.op("li", self.at[0], self.layout.fraction)
        w.op("set.fx", self.at[0])
        w.op("set.mr", self.block)
        w.op("li", self.made, plan.places["products"])
        w.op("li", self.ready, plan.places["products"] + self.batch * plan.product_bytes)
        w.op("li", self.total, plan.places["sums"])
        w.op("li", self.chunks, plan.chunks)
        with w.loop("chunks_loop", self.chunks):
            w.op("li", self.next_total, plan.places["sums"])
            w.op("mov", self.blocks, self.block_count)
            w.note("A block's turn.")
            w.label("turn")
            self._turn()
            w.op("bne", self.blocks, w.zero, "turn")
            if plan.chunks > 1:
                w.swap(self.now, self.then, self.at[0])

    def _clear(self) -> None:
        w, start, end = self.writer, self.plan.places["sums"], self.plan.places["inputs"]
        for first in range(start, end, MAX_VL * ELEMENT_BYTES):
            w.op("li", self.at[0], first)
            w.op("li", self.at[1], min(MAX_VL, (end - first) // ELEMENT_BYTES))
            w.op("set.vl", self.at[1])
            w.vector("v.v.sub", self.at[0], self.at[0], self.at[0])
        w.op("v.drain")

    def _turn(self) -> None:
        w, plan = self.writer, self.plan
        product, chunk, ready, total = self.at
        for pointer, start in zip(
            self.at, (self.made, self.now, self.ready, self.total), strict=True
        ):
            w.op("mov", pointer, start)
        with self._each_vector(
            "products",
            (product, plan.product_bytes),
            (chunk, plan.chunk_bytes),
            (ready, plan.product_bytes),
            (total, plan.group_bytes),
        ):
            w.op("set.vl", self.chunk)
            multiply = "m.v.dot.add" if plan.bits < 16 else "m.v.mul.add"
            w.vector(multiply, product, self.use, chunk, note="product")
            w.op("set.vl", self.block)
            if not plan.spaced:
                w.op("v.drain")
            w.vector("v.v.add", total, total, ready, note="add the sums of the block before")
        self._load_block()
        if plan.chunks > 1:
            with w.unless("bne", self.blocks, self.block_count):
                self._load_chunk("next_chunk")
        w.advance_ring(self.use, plan.slot_bytes, self.ring, self.ring_end)
        w.swap(self.made, self.ready, self.at[0])
        w.op("mov", self.total, self.next_total)
        w.offset(self.next_total, self.next_total, plan.block * ELEMENT_BYTES)
        w.op("sub", self.blocks, self.blocks, 1)

    def _load_block(self) -> None:
        """Load the next block of weights, if any is left."""
        w, plan = self.writer, self.plan
        with w.unless("beq", self.blocks_ahead, w.zero):
            w.load(self.fill, self.weights, self.block_size, note="block of weights")
            w.offset(self.weights, self.weights, plan.sharers * plan.block_bytes)
            w.advance_ring(self.fill, plan.slot_bytes, self.ring, self.ring_end)
            w.op("sub", self.blocks_ahead, self.blocks_ahead, 1)

    def _load_chunk(self, label: str) -> None:
        """Load each vector's next chunk, if any is left; the first chunk follows the last one."""
        w, plan = self.writer, self.plan
        with w.unless("beq", self.chunks_ahead, w.zero):
            w.op("mov", self.at[0], self.then)
            w.op("mov", self.at[1], self.input)
            steps = ((self.at[0], plan.chunk_bytes), (self.at[1], self.layout.inputs.x_step))
            with self._each_vector(label, *steps):
                w.load(self.at[0], self.at[1], self.chunk, note="chunk of inputs")
            w.offset(self.input, self.input, plan.chunk * ELEMENT_BYTES)
            with w.unless("bne", self.input, self.inputs_end):
                w.op("mov", self.input, self.inputs)
            w.op("sub", self.chunks_ahead, self.chunks_ahead, 1)

    def _complete(self) -> None:
        w, plan = self.writer, self.plan
        w.note("The row group's last products, bias, the sums of other segments, threshold.")
        w.op("v.drain")
        steps = ((self.total, plan.group_bytes), (self.ready, plan.product_bytes))
        with self._each_vector("last_products", *steps):
            w.vector("v.v.add", self.total, self.total, self.ready)
        w.op("set.vl", self.count)
        w.op("li", self.at[1], plan.places["bias"])
        self._each("v.v.add [16-bit]", "add_bias", "bias")
        for segment in range(1, plan.segments):
            self._add_segment(segment)
        w.op("li", self.at[1], _THRESHOLD)
        self._each("v.s.max [16-bit]", "raise_sums", "raise to the threshold")
        if plan.narrow is not None:
            self._narrow()
        w.op("v.drain")
        self._find_output(self.at[0], self.layout.target.base, ELEMENT_BYTES // plan.packed)
        w.op("li", self.at[1], plan.places["sums"])
        elements = self.count
        if plan.narrow is not None:
            elements = self.at[2]
            w.op("srl", elements, self.count, 1)
        steps = ((self.at[0], self.layout.target.x_step), (self.at[1], plan.group_bytes))
        with self._each_vector("store_outputs", *steps):
            w.store(self.at[0], self.at[1], elements)
        w.op("add", self.first, self.first, self.count)
        w.op("sub", self.outputs, self.outputs, self.count)

    def _narrow(self) -> None:
        """Pack the sums' bytes."""
        w = self.writer
        w.op("set.fx", w.zero)
        w.op("li", self.at[1], _FACTOR)
        self._each("v.s.mul [16-bit]", "shift_sums", "shift to the high byte")
        w.op("set.mr", self.count)
        w.op("li", self.at[1], ELEMENT_BYTES)
        w.op("set.vl", self.at[1])
        w.op("li", self.at[1], _PICK)
        self._each("m.v.mul.add [8-bit]", "pick_bytes", "pick the high bytes")

    def _each(self, mnemonic: str, label: str, note: str, step: int = 0) -> None:
        """When the vector unit is idle, compute each vector's sums from them and the operand at
        ``at1``, which advances by ``step`` bytes."""
        w = self.writer
        w.op("v.drain")
        w.op("li", self.at[0], self.plan.places["sums"])
        with self._each_vector(label, (self.at[0], self.plan.group_bytes), (self.at[1], step)):
            w.op(mnemonic, self.at[0], self.at[0], self.at[1], note=note)

    def _add_segment(self, segment: int) -> None:
        w, plan = self.writer, self.plan
        others = self.layout.sums(segment)
        w.op("v.drain")
        w.op("li", self.at[1], plan.places["others"])
        self._find_output(self.at[2], others.base)
        steps = ((self.at[1], plan.group_bytes), (self.at[2], others.x_step))
        with self._each_vector(f"segment_{segment}", *steps):
            w.load(self.at[1], self.at[2], self.count, note=f"sums of segment {segment}")
        w.op("li", self.at[1], plan.places["others"])
        self._each("v.v.add [16-bit]", f"add_segment_{segment}", "add them", plan.group_bytes)
