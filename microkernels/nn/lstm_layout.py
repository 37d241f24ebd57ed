"""Memory layout of an LSTM layer on a chip, including its parameter block.

Inputs are stored in chunks. Each chunk of y and of the projection's inputs is in the vaults whose
parts compute it, an engine's vectors in one of them, contiguous, so most vaults read it over the
network; kernels load chunks in advance. There is no barrier: beside each chunk a flag of each part
that computes a piece of it (:class:`ChunkFlags`) contains the number of the last step whose piece
is in memory, and an engine looks at a chunk's flags before it loads the chunk. It begins with
chunks that are there already: x, and of the projection's inputs its own part's, if these are whole
chunks. Engines read and write the vectors of engines with their own number in other parts alone, so
the engines of a single part need no flags.

Every step has its own inputs x and outputs y in memory. Two things are overwritten in each step: c,
of which an engine reads and writes only its own part, and the projection's inputs. All engines have
read these when an engine overwrites them: it has loaded all of y, and each part's y was marked
after that part's projection.

An engine's part of the parameter block::

    0  address of the weights    1  of the initial sums    2  of the peepholes   3  of its part of c
    4  time steps                5  address of the common lists
    6  chunks of the inputs that are left when the last one of x is in use
       then for each step the addresses, for the engine's first vector: of each chunk of the inputs
       and of the chunk's flags, of each block of its outputs in y, of each flag that it marks then
       common lists: of each block of its cells in the inputs of the projection, of each flag that
       it marks then, of each chunk of these inputs and of the chunk's flags; without a projection
       these are empty; two words more

Where no part computes anything for another, lists have no flags.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from isa.program import NOTHING_DECLARED, Declared, Span
from microkernels.common.builder import WORD_BYTES
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES, ROW_BYTES, round_up
from microkernels.common.fixed_point import ELEMENT, ELEMENT_BYTES, Elements
from microkernels.common.memory import Readable, Writable
from microkernels.common.parameter_block import block_bytes, block_size
from microkernels.runtime.barrier import ALWAYS_FULL, FLAG_BYTES, FLAG_GROUP
from microkernels.runtime.ring import ChipEngines
from support.errors import counted

from .lstm_shape import GATES, PEEPHOLES, LstmPlan, LstmWeights, padded

#: Words of an engine's part before its lists.
_FIXED_WORDS = 7
#: The one with the address of the common lists.
_LISTS = 5
#: Rows before the data of a vault's first part, and between those of two, so that weights, chunks
#: and the weights of engines in lockstep are in different banks.
_BANKS, _FIRST_ROWS, _SKEW_ROWS = 16, 14, 6


class ChunkFlags:
    """Flags of the chunks of a phase's inputs, at the same offsets in each vault; those in the
    chunk's vault are used. For each chunk and engine of a part there is one for each part that
    computes a piece of the chunk.

    Parameters:
        plan: of the layer. share: elements that a part computes. chunks: number of chunks.
        base: offset of the first flag; a multiple of 32. initial: what flags contain at first.

    Attributes:
        count: flags to read for a chunk. marks: flags that an engine marks after a phase.
    """

    def __init__(self, plan: LstmPlan, share: int, chunks: int, *, base: int, initial: int) -> None:
        self.share, self.base, self._initial = share, base, initial
        self._sharers = plan.sharers
        parts = range(plan.parts)
        self._parts = [
            [part for part in parts if part * share < end and (part + 1) * share > end - plan.chunk]
            for end in range(plan.chunk, (chunks + 1) * plan.chunk, plan.chunk)
        ]
        self.count = max(map(len, self._parts), default=0)
        self._places = self.count if self.count <= FLAG_GROUP else round_up(self.count, FLAG_GROUP)
        self.marks = max(len(self._chunks(part)) for part in parts)

    def _chunks(self, part: int) -> list[int]:
        return [chunk for chunk, parts in enumerate(self._parts) if part in parts]

    @property
    def words(self) -> int:
        """Words of a chunk in a list."""
        return 1 + (self.count > 0)

    def offset(self, chunk: int, member: int) -> int:
        """Offset of the first flag of an engine's vectors in a chunk."""
        return self.base + (chunk * self._sharers + member) * self._places * FLAG_BYTES

    def of_part(self, part: int, member: int) -> list[tuple[int, int]]:
        """Chunk and offset of each flag that an engine of a part marks; the last one again if
        others mark more."""
        flags = [
            (chunk, self.offset(chunk, member) + self._parts[chunk].index(part) * FLAG_BYTES)
            for chunk in self._chunks(part)
        ]
        return flags + flags[-1:] * (self.marks - len(flags))

    @property
    def full(self) -> int:
        """Offset of flags that are always full, as many as for a chunk."""
        return self.offset(len(self._parts), 0)

    @property
    def end(self) -> int:
        """First offset after all flags."""
        return self.offset(len(self._parts), 1)

    def contents(self) -> bytes:
        """Initial flags of a vault. Those that no part marks are always full."""
        words = np.zeros(
            (len(self._parts) + 1, self._sharers, self._places, FLAG_BYTES // 8), "<i8"
        )
        words[..., 0] = ALWAYS_FULL
        for chunk, parts in enumerate(self._parts):
            words[chunk, :, : len(parts), 0] = self._initial
        return words.tobytes()[: self.end - self.base]


class LstmPart(NamedTuple):
    """Data that only one part uses.

    Attributes:
        plan: of the layer. number: of the part.
        base: first address; a multiple of 256.
    """

    plan: LstmPlan
    number: int
    base: int

    def state_of(self, member: int) -> int:
        """Address of an engine's part of c."""
        return self.base + member * self._state_bytes

    @property
    def _state_bytes(self) -> int:
        """Bytes of an engine's part of c."""
        return round_up(self.plan.groups * self.plan.group_bytes, COLUMN_BYTES)

    @property
    def starts(self) -> int:
        """Address of the initial sums: those of each group of cells, then zeros."""
        return round_up(self.state_of(self.plan.sharers), ROW_BYTES)

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
        size = self.plan.step_weights + self.plan.slots * self.plan.block_bytes
        return round_up(self.weights + size, ROW_BYTES)

    def store(self, memory: Writable, weights: LstmWeights, c: Elements) -> None:
        """Write the part of c, weights, peepholes and initial sums to ``memory``. After the weights
        come those of the first blocks again, which the next step finds in the ring.

        Parameters:
            weights: of the layer, checked. c: batch x cells elements.

        Raises:
            isa.image.ImageError: the data is outside the memory.
        """
        plan = self.plan
        for member, vectors in enumerate(plan.pieces(c, self.number, plan.cells)):
            self._write(memory, self.state_of(member), self._grouped(vectors))
        zeros = np.zeros(GATES * plan.group_elements, ELEMENT)
        starts = np.concatenate([self._expanded(weights.bias).ravel(), zeros])
        self._write(memory, self.starts, starts)
        self._write(memory, self.peepholes, self._expanded(weights.peepholes))
        stream = self._weight_stream(weights)
        again = stream[: (plan.slots - 1) * plan.block_elements]
        self._write(memory, self.weights, np.concatenate([stream, again]))

    def cells(self, memory: Readable) -> Elements:
        """The part of c, with padding: vectors x cells of a part."""
        plan = self.plan
        parts = []
        for member in range(plan.sharers):
            elements = np.frombuffer(
                memory.read(self.state_of(member), plan.groups * plan.group_bytes), ELEMENT
            ).reshape(plan.groups, plan.group_blocks, plan.vectors, plan.block)
            parts.append(elements.transpose(2, 0, 1, 3).reshape(plan.vectors, plan.cells))
        return np.concatenate(parts)

    @staticmethod
    def _write(memory: Writable, address: int, values: Elements) -> None:
        memory.write(address, np.ascontiguousarray(values, ELEMENT).tobytes())

    def _grouped(self, cells: Elements) -> Elements:
        """An engine's vectors x cells elements in the scratchpad's order, group by group."""
        plan = self.plan
        blocks = cells.reshape(len(cells), plan.groups, plan.group_blocks, plan.block)
        return blocks.transpose(1, 2, 0, 3)

    def _expanded(self, rows: Elements) -> Elements:
        """Rows x cells elements for every vector, in the scratchpad's order: group, row, cells."""
        plan, size = self.plan, self.plan.cells
        part = padded(rows[:, self.number * size : (self.number + 1) * size], size)
        repeated = np.repeat(part[:, np.newaxis], plan.vectors, axis=1)
        return np.stack([self._grouped(row) for row in repeated], axis=1)

    def _weight_stream(self, weights: LstmWeights) -> Elements:
        """Blocks of weights in order of use."""
        plan, outputs = self.plan, self.plan.shape.outputs
        matrix = plan.inputs(weights.gates[..., :outputs], weights.gates[..., outputs:])
        inputs = plan.input_order(self.number)
        gates = [self._blocks(rows, plan.cells, inputs, plan.groups) for rows in matrix]
        for blocks in gates:
            # Rows of the last chunk follow each other without padding.
            last = blocks[:, inputs.index(plan.input_chunks - 1)]
            rows = last[..., : plan.last_inputs].reshape(*last.shape[:2], -1)
            short = np.pad(rows, ((0, 0), (0, 0), (0, plan.block_elements - rows.shape[-1])))
            last[:] = short.reshape(last.shape)
        if not plan.shape.projected:
            return np.stack(gates, axis=2).ravel()
        cells = plan.order(self.number, plan.cell_chunks)
        projection = self._blocks(
            plan.cell_inputs(weights.projection), plan.outputs, cells, plan.output_groups
        )
        return np.concatenate([np.stack(gates, axis=2).ravel(), projection.ravel()])

    def _blocks(self, rows: Elements, size: int, order: list[int], groups: int) -> Elements:
        """The part's weights: group, chunk, block, row of the block, input."""
        plan = self.plan
        part = rows[self.number * size : (self.number + 1) * size]
        part = np.pad(part, ((0, size - len(part)), (0, 0)))
        split = part.reshape(groups, -1, plan.block, len(order), plan.chunk)
        return split[:, :, :, order].transpose(0, 3, 1, 2, 4)


@dataclass(frozen=True, kw_only=True)
class LstmLayout:
    """Addresses of a layer's data; see the module's text.

    Attributes:
        plan: of the layer.
        engines: of the chip.
        steps: at least 1.
        alone: the part that runs alone, a single step in a chip's only vault; what others compute
            before is in memory from the start. None: all run.

    Raises:
        KernelError: a plan for another number of engines, or data that do not fit a vault.
    """

    plan: LstmPlan
    engines: ChipEngines
    steps: int
    alone: int | None = None

    def __post_init__(self) -> None:
        CHECK.fields(self)
        CHECK.at_least("steps", self.steps, 1)
        plan, engines = self.plan, self.engines
        parts = 1 if self.alone is not None else plan.parts
        if parts % engines.vaults or plan.sharers * (parts // engines.vaults) != engines.pes:
            raise KernelError(
                f"{counted(parts, 'part')} of {counted(plan.sharers, 'engine')} are not the "
                f"{counted(engines.pes, 'engine')} of each of {counted(engines.vaults, 'vault')}"
            )
        if self.alone is not None:
            CHECK.within("vault", self.alone, 0, plan.parts - 1)
            if engines.vaults > 1 or self.steps > 1:
                raise KernelError("a part that runs alone takes one step on one vault")
        if self.end > (room := 1 << engines.address_bits):
            raise KernelError(
                f"the sequence needs {self.end} bytes in each vault "
                f"({counted(engines.vaults, 'vault')}), which has {room}: "
                "give more vaults, or fewer steps"
            )

    # Sizes.

    @property
    def _numbers(self) -> range:
        """The parts that run."""
        if self.alone is None:
            return range(self.plan.parts)
        return range(self.alone, self.alone + 1)

    @property
    def _in_vault(self) -> int:
        """Parts that run in a vault."""
        return self.engines.pes // self.plan.sharers

    @property
    def _slot_bytes(self) -> int:
        return round_up(self.plan.part_vectors * self.plan.chunk_bytes, ROW_BYTES)

    @property
    def _blocks(self) -> tuple[int, int]:
        """Blocks of a part's cells and of its outputs."""
        plan = self.plan
        return plan.cells // plan.block, plan.outputs // plan.block

    @property
    def step_words(self) -> int:
        """Words of a step's lists."""
        flags = self.y_flags
        return flags.words * self.plan.input_chunks + self._blocks[1] + flags.marks

    @property
    def _common_words(self) -> int:
        plan, flags = self.plan, self.m_flags
        if not plan.shape.projected:
            return 2
        return self._blocks[0] + flags.marks + flags.words * plan.cell_chunks + 2

    @property
    def _words(self) -> int:
        """Words of an engine's part of the parameter block."""
        return _FIXED_WORDS + self.steps * self.step_words + self._common_words

    # Offsets in every vault.

    @cached_property
    def y_flags(self) -> ChunkFlags:
        """Flags of the chunks of y, which count the steps that they precede."""
        plan = self.plan
        chunks = plan.y_chunks if len(self._numbers) > 1 and self.steps > 1 else 0
        return ChunkFlags(plan, plan.outputs, chunks, base=0, initial=1)

    @cached_property
    def m_flags(self) -> ChunkFlags:
        """Flags of the chunks of the projection's inputs, which count steps."""
        plan = self.plan
        chunks = plan.cell_chunks if len(self._numbers) > 1 and plan.shape.projected else 0
        return ChunkFlags(plan, plan.cells, chunks, base=self.y_flags.end, initial=0)

    @property
    def parameters(self) -> int:
        """Offset of the parameter block."""
        return round_up(self.m_flags.end, ROW_BYTES)

    @property
    def _parameter_bytes(self) -> int:
        return block_size([self._words] * self.engines.pes)

    @property
    def declared(self) -> Declared:
        """The memory that is fixed by a layer whose engines need no flags: the parameter block."""
        if len(self._numbers) > 1:
            return NOTHING_DECLARED
        block = Span(self.parameters, self._parameter_bytes)
        return Declared(constants=(block,), slots=self.engines.pes)

    @property
    def _y(self) -> int:
        return round_up(self.parameters + self._parameter_bytes, ROW_BYTES)

    @property
    def _x(self) -> int:
        return self._y + (self.steps + 1) * self.plan.y_chunks * self._slot_bytes

    @property
    def _m(self) -> int:
        plan = self.plan
        return self._x + self.steps * (plan.input_chunks - plan.y_chunks) * self._slot_bytes

    @property
    def _own(self) -> int:
        end = self._m + self.plan.cell_chunks * self._slot_bytes
        return round_up(end, _BANKS * ROW_BYTES) + _FIRST_ROWS * ROW_BYTES

    @cached_property
    def _part_bytes(self) -> int:
        size = LstmPart(self.plan, 0, 0).end
        return round_up(size, _BANKS * ROW_BYTES) + _SKEW_ROWS * ROW_BYTES

    @property
    def end(self) -> int:
        """First byte after the used part of each vault."""
        return self._own + self._in_vault * self._part_bytes

    def part(self, number: int) -> LstmPart:
        """The data used only by part ``number``."""
        vault, inside = divmod(self._numbers.index(number), self._in_vault)
        base = self.engines.address(vault, self._own + inside * self._part_bytes)
        return LstmPart(self.plan, number, base)

    # Chunks.

    def _place(self, vault: int, offset: int, member: int) -> int:
        """Address of a member's vectors in the chunk at ``offset`` of ``vault``."""
        shift = member * self.plan.vectors * self.plan.chunk_bytes
        return self.engines.address(vault, offset + shift)

    def _home(self, number: int, share: int, member: int) -> int:
        """The vault of a member's vectors in chunk ``number``: of the parts that compute the
        chunk, with ``share`` elements each, the members take one after the other."""
        plan = self.plan
        if self.alone is not None:
            return 0
        element = number * plan.chunk + member * plan.chunk // plan.sharers
        return min(element // share, plan.parts - 1) // self._in_vault

    def _y_chunk(self, step: int, number: int, member: int) -> int:
        plan = self.plan
        offset = self._y + (step * plan.y_chunks + number) * self._slot_bytes
        return self._place(self._home(number, plan.outputs, member), offset, member)

    def _x_chunk(self, step: int, number: int, member: int) -> int:
        plan = self.plan
        count = plan.input_chunks - plan.y_chunks
        piece = number * plan.sharers + member
        vault = piece * self.engines.vaults // (count * plan.sharers)
        return self._place(vault, self._x + (step * count + number) * self._slot_bytes, member)

    def _m_chunk(self, number: int, member: int) -> int:
        offset = self._m + number * self._slot_bytes
        return self._place(self._home(number, self.plan.cells, member), offset, member)

    def _input_chunk(self, step: int, number: int, member: int) -> int:
        first = self.plan.y_chunks
        if number < first:
            return self._y_chunk(step, number, member)
        return self._x_chunk(step, number - first, member)

    # Contents.

    def store(self, memory: Writable, weights: LstmWeights, c: Elements, y: Elements) -> None:
        """Write everything except the inputs x, and what other parts compute, to ``memory``.

        Parameters:
            weights: of the layer, checked.
            c, y: before the first step, batch x cells and batch x outputs elements.
        """
        ring, plan = self.engines, self.plan
        for vault in range(ring.vaults):
            for flags in (self.y_flags, self.m_flags):
                memory.write(ring.address(vault, flags.base), flags.contents())
            base = ring.address(vault, self.parameters)
            words = [self._of_engine(vault, slot) for slot in range(ring.pes)]
            memory.write(base, block_bytes(base, words))
        for number in self._numbers:
            self.part(number).store(memory, weights, c)
        # Places of a chunk without an output are 0.
        values = padded(y, plan.y_chunks * plan.chunk)
        for step in range(self.steps + 1):
            for chunk in range(plan.y_chunks):
                self._store_chunk(memory, partial(self._y_chunk, step, chunk), values, chunk)
            values = np.zeros_like(values)
        self.store_cells(memory, np.zeros((len(y), plan.shape.cells), ELEMENT))

    def store_inputs(self, memory: Writable, x: Elements) -> None:
        """Write steps x batch x inputs elements to ``memory``."""
        plan = self.plan
        count = plan.input_chunks - plan.y_chunks
        for step, values in enumerate(x):
            stored = padded(values, count * plan.chunk)
            for chunk in range(count):
                self._store_chunk(memory, partial(self._x_chunk, step, chunk), stored, chunk)

    def store_cells(self, memory: Writable, m: Elements) -> None:
        """Write the projection's inputs, batch x cells elements, to ``memory``, those of parts that
        run as zeros."""
        plan = self.plan
        values = plan.cell_inputs(m).copy()
        own = self._numbers
        values[:, own.start * plan.cells : own.stop * plan.cells] = 0
        for chunk in range(plan.cell_chunks if plan.shape.projected else 0):
            self._store_chunk(memory, partial(self._m_chunk, chunk), values, chunk)

    def _store_chunk(
        self, memory: Writable, place: Callable[[int], int], values: Elements, number: int
    ) -> None:
        """Write a chunk, member by member, to the addresses that ``place`` gives."""
        for member, vectors in enumerate(self.plan.pieces(values, number, self.plan.chunk)):
            memory.write(place(member), np.ascontiguousarray(vectors, ELEMENT).tobytes())

    def results(self, y: Elements, c: Elements) -> Elements:
        """What the parts that run compute, in one line: of steps x batch x outputs and of batch x
        cells elements."""
        plan, own = self.plan, self._numbers
        y_part, c_part = (
            values[..., own.start * size : own.stop * size]
            for values, size in ((y, plan.outputs), (c, plan.cells))
        )
        return np.concatenate([y_part.ravel(), c_part.ravel()])

    def outputs(self, memory: Readable) -> Elements:
        """:meth:`results` of y after each step and of c after the last."""
        plan = self.plan
        size = plan.vectors * plan.chunk_bytes
        values = [
            memory.read(self._y_chunk(step, chunk, member), size)
            for step in range(1, self.steps + 1)
            for member in range(plan.sharers)
            for chunk in range(plan.y_chunks)
        ]
        pieces = np.frombuffer(b"".join(values), ELEMENT)
        by_chunk = pieces.reshape(self.steps, plan.sharers, plan.y_chunks, plan.vectors, plan.chunk)
        y = by_chunk.transpose(0, 1, 3, 2, 4).reshape(self.steps, self.plan.part_vectors, -1)
        c = np.zeros((self.plan.part_vectors, plan.parts * plan.cells), ELEMENT)
        for number in self._numbers:
            part = slice(number * plan.cells, (number + 1) * plan.cells)
            c[:, part] = self.part(number).cells(memory)
        shape, batch = plan.shape, slice(plan.shape.batch)
        return self.results(y[:, batch, : shape.outputs], c[batch, : shape.cells])

    def _marks(self, flags: ChunkFlags, number: int, member: int) -> list[int]:
        """Addresses of the flags that an engine of a part marks."""
        return [
            self.engines.address(self._home(chunk, flags.share, member), offset)
            for chunk, offset in flags.of_part(number, member)
        ]

    def _of_engine(self, vault: int, slot: int) -> list[int]:
        plan, y_flags, m_flags = self.plan, self.y_flags, self.m_flags
        inside, member = divmod(slot, plan.sharers)
        number = self._numbers[vault * self._in_vault + inside]
        part = self.part(number)
        cell_blocks, output_blocks = self._blocks

        full = self.engines.address(vault, y_flags.full)

        def block(address: int, place: int) -> int:
            return address + place % plan.chunk * ELEMENT_BYTES

        def listed(address: int, flags: ChunkFlags, chunk: int | None) -> list[int]:
            """Words of a chunk; None: it is there from the start."""
            at = full
            if chunk is not None:
                home = self._home(chunk, flags.share, member)
                at = self.engines.address(home, flags.offset(chunk, member))
            return [address, at][: flags.words]

        words = [
            part.weights,
            part.starts,
            part.peepholes,
            part.state_of(member),
            self.steps,
            0,
            plan.left_at_last(number),
        ]
        for step in range(self.steps):
            for chunk in plan.input_order(number):
                waits = chunk if chunk < plan.y_chunks else None
                words += listed(self._input_chunk(step, chunk, member), y_flags, waits)
            for index in range(output_blocks):
                place = number * plan.outputs + index * plan.block
                words.append(block(self._y_chunk(step + 1, place // plan.chunk, member), place))
            words += self._marks(y_flags, number, member)
        start = self.parameters + WORD_BYTES * (self.engines.pes + slot * self._words)
        words[_LISTS] = self.engines.address(vault, start + WORD_BYTES * len(words))
        if plan.shape.projected:
            for index in range(cell_blocks):
                place = number * plan.cells + index * plan.block
                words.append(block(self._m_chunk(place // plan.chunk, member), place))
            words += self._marks(m_flags, number, member)
            for chunk in plan.order(number, plan.cell_chunks):
                words += listed(self._m_chunk(chunk, member), m_flags, chunk)
        return [*words, full, full]
