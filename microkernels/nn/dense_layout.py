"""Memory layout of a fully connected layer in a vault, including its parameter block.

An engine's part of the parameter block::

    0  address of its weights
    1  outputs that it computes; 0: none
    2  number of the first one

All other data are at fixed distances from the parameter block: launches of small layers wait for
each word that they read.
"""

from dataclasses import dataclass, replace

import numpy as np

from isa.declared import Declared, Span
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES, ROW_BYTES, round_up
from microkernels.common.fixed_point import ELEMENT, ELEMENT_BYTES, LOWEST, Elements, check_elements
from microkernels.common.memory import Readable, Writable
from microkernels.common.parameter_block import block_bytes, block_size

from .conv_shape import MOST_NARROW
from .dense_plan import DensePlan

_WORDS = 3


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
        target: the outputs.
        base: first address of all other data; a multiple of 32.
        source: the inputs, elsewhere in memory; None: they follow the biases.

    Raises:
        KernelError: vectors that do not fit the layer, or a value out of range.
    """

    plan: DensePlan
    target: Vectors
    base: int
    source: Vectors | None = None

    def __post_init__(self) -> None:
        CHECK.fields(self)
        shape = self.plan.shape
        if self.base < 0 or self.base % COLUMN_BYTES:
            raise KernelError(f"base must be a multiple of {COLUMN_BYTES}, not {self.base}")
        target, length = self.target, self.plan.output_elements
        if (target.batch, target.length) != (shape.batch, length):
            raise KernelError(
                f"target must be {shape.batch} vectors of {length} elements, not "
                f"{target.batch} of {target.length}"
            )
        source = self.source
        if source is not None and (source.batch, source.length) != (shape.batch, shape.inputs):
            raise KernelError(
                f"source must be {shape.batch} vectors of {shape.inputs} elements, not "
                f"{source.batch} of {source.length}"
            )

    @property
    def parameters(self) -> int:
        """Address of the parameter block."""
        return self.base

    @property
    def declared(self) -> Declared:
        """The memory that is fixed by the layer: the parameter block."""
        block = Span(self.parameters, self._parameter_bytes)
        return Declared(constants=(block,), slots=self.plan.sharers)

    @property
    def _parameter_bytes(self) -> int:
        return block_size([_WORDS] * self.plan.sharers)

    @property
    def limits(self) -> int:
        """Address of the outputs' lower limit; for outputs of bytes, then of the factor that shifts
        a sum to the high byte, and the bytes that select this one."""
        return round_up(self.base + self._parameter_bytes, COLUMN_BYTES)

    @property
    def bias(self) -> int:
        """Address of the biases."""
        return self.limits + COLUMN_BYTES

    @property
    def inputs(self) -> Vectors:
        """The inputs. Weights of zero multiply what follows a vector in its last chunk."""
        plan, shape = self.plan, self.plan.shape
        if self.source is not None:
            return self.source
        return Vectors(
            base=self._bias_end,
            length=shape.inputs,
            batch=shape.batch,
            pitch=round_up(plan.chunks * plan.chunk * ELEMENT_BYTES, COLUMN_BYTES),
        )

    @property
    def _bias_end(self) -> int:
        return self.bias + round_up(self.plan.shape.outputs * ELEMENT_BYTES, COLUMN_BYTES)

    def sums(self, segment: int) -> Vectors:
        """Another segment's sums, from 1."""
        shape = self.plan.shape
        end = self.inputs.end if self.source is None else self._bias_end
        first = Vectors.packed(end, shape.outputs, shape.batch)
        return replace(first, base=first.base + (segment - 1) * (first.end - first.base))

    def weights(self, member: int) -> int:
        """Address of the first block of weights of the engine in slot ``member``. Its next block
        follows the first ones of all engines: these read the same DRAM rows at about the same
        time."""
        first = round_up(self.sums(self.plan.segments).base, ROW_BYTES)
        return first + member * self.plan.block_bytes

    @property
    def end(self) -> int:
        """First byte after all data that this layout adds to the vectors."""
        plan = self.plan
        blocks = plan.groups * plan.chunks * plan.blocks * plan.sharers
        return round_up(self.weights(0) + blocks * plan.block_bytes, COLUMN_BYTES)

    def store(self, memory: Writable, weights: Elements, bias: Elements, *, relu: bool) -> None:
        """Write everything except inputs and other segments' sums to ``memory``.

        Parameters:
            weights: outputs x inputs elements.
            bias: one element per output; for outputs of bytes, that of
                :func:`microkernels.nn.conv_shape.rounding_bias`.
            relu: negative outputs become 0.

        Raises:
            KernelError: arrays of another shape, or values beyond 16 bits.
            isa.image.ImageError: the layout is outside the memory.
        """
        plan, shape = self.plan, self.plan.shape
        weights = check_elements("weights", weights, (shape.outputs, shape.inputs))
        bias = check_elements("bias", bias, (shape.outputs,))
        limits = [0 if relu else LOWEST]
        if plan.narrow is not None:
            limits += [1 << MOST_NARROW - plan.narrow, 1 << MOST_NARROW]
        memory.write(self.limits, np.array(limits, ELEMENT).tobytes())
        biases = np.pad(bias, (0, -shape.outputs % plan.packed))
        memory.write(self.bias, biases.astype(ELEMENT).tobytes())
        padding = (0, plan.sharers * plan.pe_outputs - shape.outputs)
        filled = np.pad(weights, (padding, (0, plan.chunks * plan.chunk - shape.inputs)))
        blocks = filled.reshape(
            plan.sharers, plan.groups, plan.blocks, plan.block, plan.chunks, plan.chunk
        ).transpose(1, 4, 2, 0, 3, 5)
        memory.write(self.weights(0), np.ascontiguousarray(blocks, ELEMENT).tobytes())
        words = [self._words(member) for member in range(plan.sharers)]
        memory.write(self.parameters, block_bytes(self.parameters, words))

    def _words(self, member: int) -> list[int]:
        plan = self.plan
        first = member * plan.pe_outputs
        outputs = max(0, min(plan.pe_outputs, plan.output_elements * plan.packed - first))
        return [self.weights(member), outputs, first]
