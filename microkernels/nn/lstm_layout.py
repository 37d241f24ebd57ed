"""Memory layout of a vault's part of an LSTM layer, including its parameter block.

An engine's part of the parameter block::

    0  address of the weights, the same for all         1  of the initial sums
    2  of the peepholes                                 3  of the engine's part of c
    4  address of its flag                              5  first and 6 end of the flags it waits for
    7  chunks of the inputs that are left when the last one of x is in use
    then addresses, for the engine's first vector: of each chunk of the inputs, of each block of
    cells in the inputs of the projection, of each chunk of these, of each block of outputs in y

Chunks may be in any vault; this layout puts them in one, as for a vault that runs alone. A chunk's
vectors are contiguous.
"""

from dataclasses import dataclass

import numpy as np

from isa.program import Declared, Span
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES, ROW_BYTES, round_up
from microkernels.common.fixed_point import ELEMENT, ELEMENT_BYTES, Elements, check_elements
from microkernels.common.memory import Readable, Writable
from microkernels.common.parameter_block import block_bytes, block_size
from microkernels.runtime.barrier import FlagTable

from .lstm_shape import GATES, PEEPHOLES, LstmPlan, LstmState, LstmWeights

#: Words of an engine's part before the lists of addresses.
FIXED_WORDS = 8


@dataclass(frozen=True, kw_only=True)
class LstmLayout:
    """Addresses of a vault's part of a layer; see the module's text.

    Attributes:
        plan: partition of the layer.
        vault: index of this vault among the layer's vaults.
        base: first address of all data; a multiple of 256.

    Raises:
        KernelError: a value out of range.
    """

    plan: LstmPlan
    vault: int = 0
    base: int = 0

    def __post_init__(self) -> None:
        CHECK.fields(self)
        if self.base < 0 or self.base % ROW_BYTES:
            raise KernelError(f"base must be a multiple of {ROW_BYTES}, not {self.base}")
        if not 0 <= self.vault < self.plan.vaults:
            raise KernelError(f"vault must be from 0 to {self.plan.vaults - 1}, not {self.vault}")

    @property
    def _vectors(self) -> int:
        """Number of vectors of all engines."""
        return self.plan.vectors * self.plan.sharers

    @property
    def _tables(self) -> int:
        """Number of addresses in an engine's lists, including one that is read beyond the lists and
        not used."""
        plan = self.plan
        blocks = (plan.cells + plan.outputs) // plan.block
        return plan.input_chunks + plan.cell_chunks + blocks + 1

    @property
    def parameters(self) -> int:
        """Address of the parameter block."""
        return self.base

    @property
    def declared(self) -> Declared:
        """The memory that is fixed by the layer: parameter block and flags."""
        size = block_size([FIXED_WORDS + self._tables] * self.plan.sharers)
        return Declared(
            constants=(Span(self.parameters, size),),
            numbers=self.flags.numbers,
            slots=self.plan.sharers,
        )

    @property
    def flags(self) -> FlagTable:
        """Flags of the barrier before the projection."""
        size = block_size([FIXED_WORDS + self._tables] * self.plan.sharers)
        return FlagTable(base=round_up(self.base + size, COLUMN_BYTES), members=self.plan.sharers)

    @property
    def _slot_bytes(self) -> int:
        return round_up(self._vectors * self.plan.chunk_bytes, COLUMN_BYTES)

    @property
    def inputs(self) -> int:
        """Address of the first chunk of the inputs."""
        return round_up(self.flags.end, ROW_BYTES)

    @property
    def cell_inputs(self) -> int:
        """Address of the first chunk of the projection's inputs."""
        return round_up(self.inputs + self.plan.input_chunks * self._slot_bytes, ROW_BYTES)

    @property
    def outputs(self) -> int:
        """Address of the first chunk of the new y."""
        return round_up(self.cell_inputs + self.plan.cell_chunks * self._slot_bytes, ROW_BYTES)

    @property
    def states(self) -> int:
        """Address of c."""
        return round_up(self.outputs + self.plan.y_chunks * self._slot_bytes, ROW_BYTES)

    def state_of(self, member: int) -> int:
        """Address of an engine's part of c."""
        return self.states + member * self._state_bytes

    @property
    def _state_bytes(self) -> int:
        """Bytes of an engine's part of c."""
        return round_up(self.plan.groups * self.plan.group_bytes, COLUMN_BYTES)

    @property
    def starts(self) -> int:
        """Address of the initial sums: those of each group of cells, then zeros."""
        return round_up(self.states + self.plan.sharers * self._state_bytes, ROW_BYTES)

    @property
    def peepholes(self) -> int:
        """Address of the peepholes."""
        size = (self.plan.groups + 1) * GATES * self.plan.group_bytes
        return round_up(self.starts + size, ROW_BYTES)

    @property
    def weights(self) -> int:
        """Address of the weights."""
        size = self.plan.groups * PEEPHOLES * self.plan.group_bytes
        return round_up(self.peepholes + size, ROW_BYTES)

    @property
    def end(self) -> int:
        """First byte after all data, including what is prefetched beyond the weights."""
        size = self.step_weights + self.plan.slots * self.plan.block_bytes
        return round_up(self.weights + size, ROW_BYTES)

    @property
    def step_weights(self) -> int:
        """Bytes of the weights of a time step."""
        plan = self.plan
        gates = GATES * plan.cells * plan.input_chunks
        outputs = plan.outputs * plan.cell_chunks if plan.shape.projected else 0
        return (gates + outputs) // plan.block * plan.block_bytes

    def store(
        self, memory: Writable, weights: LstmWeights, x: Elements, state: LstmState, m: Elements
    ) -> None:
        """Write everything to ``memory``.

        Parameters:
            weights: of the layer.
            x: batch x inputs elements. state: of the previous step.
            m: batch x cells elements; only the elements of other vaults are used.

        Raises:
            KernelError: arrays of another shape, or values beyond 16 bits.
            isa.image.ImageError: the layout is outside the memory.
        """
        plan, shape = self.plan, self.plan.shape
        weights = weights.checked(shape)
        x = check_elements("x", x, (shape.batch, shape.inputs))
        y = check_elements("y", state.y, (shape.batch, shape.outputs))
        c = check_elements("c", state.c, (shape.batch, shape.cells))
        cells = slice(self.vault * plan.cells, (self.vault + 1) * plan.cells)
        rest = np.array(check_elements("m", m, (shape.batch, shape.cells)))
        rest[:, cells] = 0
        memory.write(self.flags.base, self.flags.words())
        self._store_chunks(memory, self.inputs, plan.inputs(y, x))
        self._store_chunks(memory, self.cell_inputs, plan.cell_inputs(rest))
        self.store_own(memory, weights, c)
        words = [self._words(member) for member in range(self.plan.sharers)]
        memory.write(self.parameters, block_bytes(self.parameters, words))

    def store_own(
        self, memory: Writable, weights: LstmWeights, c: Elements, *, repeats: bool = False
    ) -> None:
        """Write what only this vault uses to ``memory``: its part of c, weights, peepholes and
        initial sums.

        Parameters:
            weights: of the layer, checked. c: batch x cells elements.
            repeats: more time steps follow. The weights are then followed by those of the first
                blocks again, which the next step finds in the ring.

        Raises:
            isa.image.ImageError: the layout is outside the memory.
        """
        cells = self._of_vault(c)
        for member in range(self.plan.sharers):
            part = cells[member * self.plan.vectors : (member + 1) * self.plan.vectors]
            self._write(memory, self.state_of(member), self._grouped(part))
        self._write(memory, self.starts, self._expanded(weights.bias))
        zeros = np.zeros(GATES * self.plan.group_elements, ELEMENT)
        self._write(memory, self._zeros, zeros)
        self._write(memory, self.peepholes, self._expanded(weights.peepholes))
        stream = self._weight_stream(weights)
        if repeats:
            again = stream[: (self.plan.slots - 1) * self.plan.block_elements]
            stream = np.concatenate([stream, again])
        self._write(memory, self.weights, stream)

    def cells(self, memory: Readable) -> Elements:
        """The vault's part of c without padding: batch x cells elements."""
        plan, shape = self.plan, self.plan.shape
        parts = []
        for member in range(plan.sharers):
            found = np.frombuffer(
                memory.read(self.state_of(member), plan.groups * plan.group_bytes), ELEMENT
            ).reshape(plan.groups, plan.group_blocks, plan.vectors, plan.block)
            parts.append(found.transpose(2, 0, 1, 3).reshape(plan.vectors, plan.cells))
        return np.concatenate(parts)[: shape.batch, : self._real(shape.cells, plan.cells)]

    def state(self, memory: Readable) -> Elements:
        """The vault's part of the new c, followed by its part of the new y, without padding: batch
        x (cells + outputs) elements."""
        plan, shape = self.plan, self.plan.shape
        cells = self.cells(memory)
        size = self._vectors * self.plan.chunk_bytes
        chunks = [
            np.frombuffer(
                memory.read(self.outputs + number * self._slot_bytes, size), ELEMENT
            ).reshape(self._vectors, plan.chunk)
            for number in range(plan.y_chunks)
        ]
        y = np.concatenate(chunks, axis=1)[: shape.batch]
        first = self.vault * plan.outputs
        vault_y = y[:, first : first + self._real(shape.outputs, plan.outputs)]
        return np.concatenate([cells, vault_y], axis=1)

    def own(self, state: LstmState) -> Elements:
        """The expected result of :meth:`state`, taken from the whole layer's state."""
        plan = self.plan
        c, y = (
            values[:, self.vault * size : (self.vault + 1) * size]
            for values, size in ((state.c, plan.cells), (state.y, plan.outputs))
        )
        return np.concatenate([c, y], axis=1)

    def _real(self, total: int, size: int) -> int:
        """Number of the vault's cells or outputs that belong to the layer."""
        return max(0, min(size, total - self.vault * size))

    @property
    def _zeros(self) -> int:
        """Address of the initial sums of the outputs."""
        return self.starts + self.plan.groups * GATES * self.plan.group_bytes

    @staticmethod
    def _write(memory: Writable, address: int, values: Elements) -> None:
        memory.write(address, np.ascontiguousarray(values, ELEMENT).tobytes())

    def _store_chunks(self, memory: Writable, base: int, values: Elements) -> None:
        """Store vectors x positions elements chunk by chunk."""
        filled = np.pad(values, ((0, self._vectors - len(values)), (0, 0)))
        for number in range(values.shape[1] // self.plan.chunk):
            first = number * self.plan.chunk
            part = filled[:, first : first + self.plan.chunk]
            self._write(memory, base + number * self._slot_bytes, part)

    def _of_vault(self, cells: Elements) -> Elements:
        """The vault's part of vectors x cells elements, padded with zeros."""
        size = self.plan.cells
        part = cells[:, self.vault * size : (self.vault + 1) * size]
        return np.pad(part, ((0, self._vectors - len(part)), (0, size - part.shape[1])))

    def _grouped(self, cells: Elements) -> Elements:
        """An engine's vectors x cells elements in the scratchpad's order, group by group."""
        plan = self.plan
        blocks = cells.reshape(len(cells), plan.groups, plan.group_blocks, plan.block)
        return blocks.transpose(1, 2, 0, 3)

    def _expanded(self, rows: Elements) -> Elements:
        """Rows x cells elements for every vector, in the scratchpad's order: group, row, cells."""
        plan, size = self.plan, self.plan.cells
        part = rows[:, self.vault * size : (self.vault + 1) * size]
        part = np.pad(part, ((0, 0), (0, size - part.shape[1])))
        repeated = np.repeat(part[:, np.newaxis], plan.vectors, axis=1)
        return np.stack([self._grouped(row) for row in repeated], axis=1)

    def _weight_stream(self, weights: LstmWeights) -> Elements:
        """Blocks of weights in order of use."""
        plan, outputs = self.plan, self.plan.shape.outputs
        matrix = plan.inputs(weights.gates[..., :outputs], weights.gates[..., outputs:])
        inputs = plan.input_order(self.vault)
        gates = [self._blocks(rows, plan.cells, inputs, plan.groups) for rows in matrix]
        for blocks in gates:
            # Rows of the last chunk follow each other without padding.
            last = blocks[:, inputs.index(plan.input_chunks - 1)]
            rows = last[..., : plan.last_inputs].reshape(*last.shape[:2], -1)
            short = np.pad(rows, ((0, 0), (0, 0), (0, plan.block_elements - rows.shape[-1])))
            last[:] = short.reshape(last.shape)
        if not plan.shape.projected:
            return np.stack(gates, axis=2).ravel()
        cells = plan.order(self.vault, plan.cell_chunks)
        projection = self._blocks(
            plan.cell_inputs(weights.projection), plan.outputs, cells, plan.output_groups
        )
        return np.concatenate([np.stack(gates, axis=2).ravel(), projection.ravel()])

    def _blocks(self, rows: Elements, size: int, order: list[int], groups: int) -> Elements:
        """The vault's weights: group, chunk, block, row of the block, input."""
        plan = self.plan
        part = rows[self.vault * size : (self.vault + 1) * size]
        part = np.pad(part, ((0, size - len(part)), (0, 0)))
        split = part.reshape(groups, -1, plan.block, len(order), plan.chunk)
        return split[:, :, :, order].transpose(0, 3, 1, 2, 4)

    def _words(self, member: int) -> list[int]:
        plan, flags = self.plan, self.flags
        shift = member * self.plan.vectors * self.plan.chunk_bytes

        def chunks(base: int, order: list[int]) -> list[int]:
            return [base + number * self._slot_bytes + shift for number in order]

        def blocks(base: int, size: int) -> list[int]:
            first = self.vault * size
            return [
                base
                + place // plan.chunk * self._slot_bytes
                + place % plan.chunk * ELEMENT_BYTES
                + shift
                for place in range(first, first + size, plan.block)
            ]

        return [
            self.weights,
            self.starts,
            self.peepholes,
            self.state_of(member),
            flags.arrival(member),
            *flags.everyone,
            plan.left_at_last(self.vault),
            *chunks(self.inputs, plan.input_order(self.vault)),
            *blocks(self.cell_inputs, plan.cells),
            *chunks(self.cell_inputs, plan.order(self.vault, plan.cell_chunks)),
            *blocks(self.outputs, plan.outputs),
            0,
        ]
