"""Memory layout of a fully connected layer in a vault, including its parameter block.

An engine's part of the parameter block::

    0  address of the input elements that it copies     1  where to     2  elements of each vector
    3  address of its weights                           4  address of the copied inputs
    5  address of its sums
    6  outputs that it completes                        7  their sums in the first segment
    8  their biases                                     9  where they go
    10 address of the threshold                         11 address of its flag
    12 first and 13 end of the flags to wait for
"""

from dataclasses import dataclass

import numpy as np

from isa.declared import Declared, Span
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES, ROW_BYTES, round_up
from microkernels.common.fixed_point import ELEMENT, ELEMENT_BYTES, LOWEST, Elements, check_elements
from microkernels.common.memory import Readable, Writable
from microkernels.common.parameter_block import block_bytes, block_size
from microkernels.runtime.barrier import FlagTable

from .dense_plan import DensePlan

__all__ = ["DenseLayout", "Vectors"]

_WORDS = 14
#: Banks per vault (thesis, section 5.2). The weights of engine n start n quarters of the banks
#: further on, so that engines that read in lockstep use different banks.
_BANKS = 16
_SKEW_ROWS = 4


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """A batch of vectors in DRAM, one after the other.

    Attributes:
        base: address of the first element; even.
        length: elements per vector, at least 1.
        batch: number of vectors, at least 1.
        pitch: bytes from one vector to the next; even, and no less than a vector.

    Raises:
        KernelError: a value out of range.
    """

    base: int
    length: int
    batch: int
    pitch: int

    def __post_init__(self) -> None:
        CHECK.fields(self)
        if self.base < 0 or self.base % ELEMENT_BYTES:
            raise KernelError(f"base must be an even address, not {self.base}")
        if self.length < 1 or self.batch < 1:
            raise KernelError(
                f"at least one vector of one element is needed, not {self.batch} of {self.length}"
            )
        if self.pitch < self.length * ELEMENT_BYTES or self.pitch % ELEMENT_BYTES:
            raise KernelError(
                f"pitch must be even and at least {self.length * ELEMENT_BYTES}, not {self.pitch}"
            )

    @classmethod
    def packed(cls, base: int, length: int, batch: int) -> "Vectors":
        """Vectors that start at DRAM columns, as close together as possible."""
        pitch = round_up(length * ELEMENT_BYTES, COLUMN_BYTES)
        return cls(base=base, length=length, batch=batch, pitch=pitch)

    @property
    def end(self) -> int:
        """First byte after the vectors."""
        return self.base + self.batch * self.pitch

    def store(self, memory: Writable, values: Elements) -> None:
        """Put batch x length elements into ``memory``.

        Raises:
            KernelError: values of another shape or beyond 16 bits.
            isa.image.ImageError: they are outside the memory.
        """
        values = check_elements("vectors", values, (self.batch, self.length))
        for number, vector in enumerate(values):
            memory.write(self.base + number * self.pitch, vector.astype(ELEMENT).tobytes())

    def load(self, memory: Readable) -> Elements:
        """The batch x length elements in ``memory``.

        Raises:
            isa.image.ImageError: they are outside the memory.
        """
        size = self.length * ELEMENT_BYTES
        return np.stack(
            [
                np.frombuffer(memory.read(self.base + number * self.pitch, size), ELEMENT)
                for number in range(self.batch)
            ]
        )


@dataclass(frozen=True, kw_only=True)
class DenseLayout:
    """Addresses of a vault's part of a fully connected layer; see the module's text.

    Attributes:
        plan: partition of the layer.
        source: inputs of the first segment, the vault's; None: other engines write them to
            :attr:`copied`.
        target: the outputs.
        base: first address of all other data; a multiple of 32.

    Raises:
        KernelError: vectors that do not fit the layer, or a value out of range.
    """

    plan: DensePlan
    source: Vectors | None
    target: Vectors
    base: int

    def __post_init__(self) -> None:
        CHECK.fields(self)
        shape = self.plan.shape
        if self.base < 0 or self.base % COLUMN_BYTES:
            raise KernelError(f"base must be a multiple of {COLUMN_BYTES}, not {self.base}")
        for name, vectors, length in (
            ("source", self.source, shape.inputs),
            ("target", self.target, shape.outputs),
        ):
            if vectors is not None and (vectors.batch, vectors.length) != (shape.batch, length):
                raise KernelError(
                    f"{name} must be {shape.batch} vectors of {length} elements, not "
                    f"{vectors.batch} of {vectors.length}"
                )

    @property
    def parameters(self) -> int:
        """Address of the parameter block."""
        return self.base

    @property
    def declared(self) -> Declared:
        """The memory that is fixed by the layer: parameter block and flags."""
        block = Span(self.parameters, block_size([_WORDS] * self.plan.sharers))
        return Declared(constants=(block,), numbers=self.flags.numbers, slots=self.plan.sharers)

    @property
    def flags(self) -> FlagTable:
        """Flags of the barriers between the phases."""
        size = block_size([_WORDS] * self.plan.sharers)
        return FlagTable(base=round_up(self.base + size, COLUMN_BYTES), members=self.plan.sharers)

    @property
    def threshold(self) -> int:
        """Address of the element that is the outputs' lower limit."""
        return self.flags.end

    @property
    def bias(self) -> int:
        """Address of the biases."""
        return self.threshold + COLUMN_BYTES

    @property
    def copied(self) -> Vectors:
        """The copied inputs; their last chunk is padded with zeros."""
        base = round_up(self.bias + self.plan.shape.outputs * ELEMENT_BYTES, COLUMN_BYTES)
        return Vectors.packed(base, self.plan.chunks * self.plan.chunk, self.plan.shape.batch)

    @property
    def sums_pitch(self) -> int:
        """Bytes from one vector's sums to the next one's in a segment."""
        return round_up(self.plan.sharers * self.plan.pe_outputs * ELEMENT_BYTES, COLUMN_BYTES)

    def sums(self, segment: int) -> Vectors:
        """A segment's sums, without padding."""
        shape = self.plan.shape
        return Vectors(
            base=self.copied.end + segment * shape.batch * self.sums_pitch,
            length=shape.outputs,
            batch=shape.batch,
            pitch=self.sums_pitch,
        )

    @property
    def _pe_weights(self) -> int:
        """Bytes of an engine's weights, including those prefetched beyond the end."""
        plan = self.plan
        blocks = plan.groups * plan.chunks * plan.blocks + plan.slots
        return round_up(blocks * plan.block_bytes, _BANKS * ROW_BYTES)

    def weights(self, member: int) -> int:
        """Address of the weights of the engine in slot ``member``."""
        first = round_up(self.sums(self.plan.segments).base, _BANKS * ROW_BYTES)
        return first + member * (self._pe_weights + _SKEW_ROWS * ROW_BYTES)

    @property
    def end(self) -> int:
        """First byte after all data that this layout adds to the vectors."""
        return self.weights(self.plan.sharers)

    def store(self, memory: Writable, weights: Elements, bias: Elements, *, relu: bool) -> None:
        """Write everything except inputs and other segments' sums to ``memory``.

        Parameters:
            weights: outputs x inputs elements.
            bias: one element per output.
            relu: negative outputs become 0.

        Raises:
            KernelError: arrays of another shape, or values beyond 16 bits.
            isa.image.ImageError: the layout is outside the memory.
        """
        plan, shape = self.plan, self.plan.shape
        weights = check_elements("weights", weights, (shape.outputs, shape.inputs))
        bias = check_elements("bias", bias, (shape.outputs,))
        memory.write(self.flags.base, self.flags.words())
        memory.write(self.threshold, np.array([0 if relu else LOWEST], ELEMENT).tobytes())
        memory.write(self.bias, bias.astype(ELEMENT).tobytes())
        copied = self.copied
        copied.store(memory, np.zeros((copied.batch, copied.length), ELEMENT))
        padding = (0, plan.sharers * plan.pe_outputs - shape.outputs)
        filled = np.pad(weights, (padding, (0, copied.length - shape.inputs)))
        blocks = filled.reshape(
            plan.sharers, plan.groups, plan.blocks, plan.block, plan.chunks, plan.chunk
        ).transpose(0, 1, 4, 2, 3, 5)
        for member in range(plan.sharers):
            memory.write(
                self.weights(member), np.ascontiguousarray(blocks[member], ELEMENT).tobytes()
            )
        words = [self._words(member) for member in range(plan.sharers)]
        memory.write(self.parameters, block_bytes(self.parameters, words))

    def _words(self, member: int) -> list[int]:
        plan, shape, flags = self.plan, self.plan.shape, self.flags
        source = self.source
        copy = range(0) if source is None else _share(shape.inputs, plan.sharers, member)
        done = _share(shape.outputs, plan.sharers, member)
        own_sums = member * plan.pe_outputs * ELEMENT_BYTES
        return [
            0 if source is None else source.base + copy.start * ELEMENT_BYTES,
            self.copied.base + copy.start * ELEMENT_BYTES,
            len(copy),
            self.weights(member),
            self.copied.base,
            self.sums(0).base + own_sums,
            len(done),
            self.sums(0).base + done.start * ELEMENT_BYTES,
            self.bias + done.start * ELEMENT_BYTES,
            self.target.base + done.start * ELEMENT_BYTES,
            self.threshold,
            flags.arrival(member),
            *flags.everyone,
        ]


def _share(length: int, sharers: int, member: int) -> range:
    """Elements of a vector that an engine takes, in whole DRAM columns."""
    columns = -(-length * ELEMENT_BYTES // COLUMN_BYTES)
    per_column = COLUMN_BYTES // ELEMENT_BYTES
    first, last = (
        min(length, (member + more) * columns // sharers * per_column) for more in (0, 1)
    )
    return range(first, last)
