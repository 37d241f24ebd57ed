"""A sequence of time steps of an LSTM layer on all engines of a chip, in one launch.

The layer's cells and outputs are divided into *parts*
(:class:`microkernels.nn.lstm_shape.LstmPlan`): each vault has one or more, and the engines of a
part share the batch. If a batch has fewer sequences than a vault has engines, more parts keep all
engines busy.

Inputs are stored in chunks. Each chunk of y and of the projection's inputs is in the vaults whose
parts compute it, an engine's vectors in one of them, so most vaults read it over the network;
kernels load chunks in advance. There is no barrier: beside each chunk a flag of each part that
computes a piece of it (:mod:`microkernels.networks.chunk_flags`) contains the number of the last
step whose piece is in memory, and an engine looks at a chunk's flags before it loads the chunk. It
begins with chunks that are there already: x, and of the projection's inputs its own part's, if
these are whole chunks. Engines read and write the vectors of engines with their own number in other
parts alone.

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

The phases of a step are those of :mod:`microkernels.nn.lstm_kernel`. The stream of weights
continues from step to step: after the last block come the first ones again, so the ring is full
when the next step begins.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from isa.program import Program
from isa.run import Launch
from microkernels.common.builder import WORD_BYTES, KernelBuilder
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import ROW_BYTES, round_up
from microkernels.common.fixed_point import (
    ELEMENT,
    ELEMENT_BYTES,
    Elements,
    check_elements,
    check_fraction,
)
from microkernels.common.memory import Readable, Writable
from microkernels.common.parameter_block import block_bytes
from microkernels.nn.lstm_kernel import LstmCode, program_name
from microkernels.nn.lstm_layout import LstmLayout
from microkernels.nn.lstm_shape import (
    GATES,
    PEEPHOLES,
    LstmPlan,
    LstmShape,
    LstmState,
    LstmWeights,
    lstm_step,
    plan_lstm,
)
from microkernels.runtime.job import Golden, KernelJob
from microkernels.runtime.ring import ChipEngines
from support.errors import counted

from .chunk_flags import ChunkFlags

#: Words of an engine's part before its lists.
_FIXED_WORDS = 7
#: The one with the address of the common lists.
_LISTS = 5
#: Rows between the data of two parts of a vault, so that engines in lockstep use different banks.
_BANKS, _SKEW_ROWS = 16, 5
#: Cycles per iteration besides its beats, and bytes per cycle of a vault's memory; used only for
#: choosing.
_TURN, _BUS_BYTES = 12, 6.5


def _cycles(plan: LstmPlan, parts: int) -> float:
    """Predicted cycles of a time step with ``parts`` of them in one vault."""
    blocks = plan.cells * 4 * plan.input_chunks
    if plan.shape.projected:
        blocks += plan.outputs * plan.cell_chunks
    turn = plan.vectors * (plan.block * -(-plan.chunk // 4) + _TURN) + _TURN
    work = blocks / plan.block * turn
    moved = blocks / plan.block * plan.block_bytes * plan.sharers * parts
    return max(work, moved / _BUS_BYTES)


@CHECK.arguments
def plan_sequence(shape: LstmShape, engines: ChipEngines) -> tuple[LstmPlan, int]:
    """The plan of a part, and the number of parts per vault, with the smallest predicted time per
    step.

    Raises:
        KernelError: no plan fits; the message names a batch that would.
    """
    options = []
    failure: KernelError | None = None
    for parts in range(1, engines.pes + 1):
        if engines.pes % parts:
            continue
        try:
            plan = plan_lstm(
                shape,
                vaults=engines.vaults * parts,
                sharers=engines.pes // parts,
                scratchpad_bytes=engines.scratchpad_bytes,
            )
        except KernelError as error:
            failure = failure or error
            continue
        options.append((_cycles(plan, parts), parts, plan))
    if not options:
        assert failure is not None
        raise failure
    _, parts, plan = min(options, key=lambda option: option[:2])
    return plan, parts


@dataclass(frozen=True, kw_only=True)
class SequenceLayout:
    """Addresses of a sequence; see the module's text.

    Attributes:
        plan: of a part. parts: per vault, at least 1.
        engines: of the chip.
        steps: at least 1.

    Raises:
        KernelError: a plan for another number of engines, or data that do not fit a vault.
    """

    plan: LstmPlan
    parts: int
    engines: ChipEngines
    steps: int

    def __post_init__(self) -> None:
        CHECK.fields(self)
        CHECK.at_least("steps", self.steps, 1)
        if self.plan.sharers * self.parts != self.engines.pes:
            raise KernelError(
                f"{counted(self.parts, 'part')} of {self.plan.sharers} engines are not the "
                f"{self.engines.pes} engines of a vault"
            )
        if self.end > (room := 1 << self.engines.address_bits):
            raise KernelError(
                f"the sequence needs {self.end} bytes in each vault "
                f"({counted(self.engines.vaults, 'vault')}), which has {room}: "
                "give more vaults, or fewer steps"
            )

    # Sizes.

    @property
    def _vectors(self) -> int:
        """Vectors of all engines of a part."""
        return self.plan.vectors * self.plan.sharers

    @property
    def _slot_bytes(self) -> int:
        return round_up(self._vectors * self.plan.chunk_bytes, ROW_BYTES)

    @property
    def _blocks(self) -> tuple[int, int]:
        """Blocks of a part's cells and of its outputs."""
        plan = self.plan
        return plan.cells // plan.block, plan.outputs // plan.block

    @property
    def step_words(self) -> int:
        """Words of a step's lists."""
        return 2 * self.plan.input_chunks + self._blocks[1] + self.y_flags.marks

    @property
    def _common_words(self) -> int:
        plan = self.plan
        if not plan.shape.projected:
            return 2
        return self._blocks[0] + self.m_flags.marks + 2 * plan.cell_chunks + 2

    @property
    def _words(self) -> int:
        """Words of an engine's part of the parameter block."""
        return _FIXED_WORDS + self.steps * self.step_words + self._common_words

    # Offsets in every vault.

    @cached_property
    def y_flags(self) -> ChunkFlags:
        """Flags of the chunks of y, which count the steps that they precede."""
        plan = self.plan
        return ChunkFlags(plan, plan.outputs, plan.y_chunks, base=0, initial=1)

    @cached_property
    def m_flags(self) -> ChunkFlags:
        """Flags of the chunks of the projection's inputs, which count steps."""
        plan = self.plan
        chunks = plan.cell_chunks if plan.shape.projected else 0
        return ChunkFlags(plan, plan.cells, chunks, base=self.y_flags.end, initial=0)

    @property
    def parameters(self) -> int:
        """Offset of the parameter block."""
        return round_up(self.m_flags.end, ROW_BYTES)

    @property
    def _y(self) -> int:
        size = 8 * self.engines.pes * (1 + self._words)
        return round_up(self.parameters + size, ROW_BYTES)

    @property
    def _x(self) -> int:
        return self._y + (self.steps + 1) * self.plan.y_chunks * self._slot_bytes

    @property
    def _m(self) -> int:
        plan = self.plan
        return self._x + self.steps * (plan.input_chunks - plan.y_chunks) * self._slot_bytes

    @property
    def _own(self) -> int:
        return round_up(self._m + self.plan.cell_chunks * self._slot_bytes, _BANKS * ROW_BYTES)

    @cached_property
    def _part_bytes(self) -> int:
        size = LstmLayout(plan=self.plan).end
        return round_up(size, _BANKS * ROW_BYTES) + _SKEW_ROWS * ROW_BYTES

    @property
    def end(self) -> int:
        """First byte after the used part of each vault."""
        return self._own + self.parts * self._part_bytes

    def part(self, number: int) -> LstmLayout:
        """The data used only by part ``number``."""
        vault, inside = divmod(number, self.parts)
        base = self.engines.address(vault, self._own + inside * self._part_bytes)
        return LstmLayout(plan=self.plan, vault=number, base=base)

    # Chunks.

    def _place(self, vault: int, offset: int, member: int) -> int:
        """Address of a member's vectors in the chunk at ``offset`` of ``vault``."""
        shift = member * self.plan.vectors * self.plan.chunk_bytes
        return self.engines.address(vault, offset + shift)

    def _home(self, number: int, share: int, member: int) -> int:
        """The vault of a member's vectors in chunk ``number``: of the parts that compute the
        chunk, with ``share`` elements each, the members take one after the other."""
        plan = self.plan
        element = number * plan.chunk + member * plan.chunk // plan.sharers
        return min(element // share, plan.vaults - 1) // self.parts

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
        """Write everything except the inputs x to ``memory``.

        Parameters:
            weights: of the layer, checked.
            c, y: before the first step, batch x cells and batch x outputs elements.
        """
        ring, plan = self.engines, self.plan
        for vault in range(ring.vaults):
            for flags in (self.y_flags, self.m_flags):
                memory.write(ring.address(vault, flags.base), flags.contents())
            base = ring.address(vault, self.parameters)
            words = [self._of_engine(vault, slot) for slot in range(self.engines.pes)]
            memory.write(base, block_bytes(base, words))
        for number in range(plan.vaults):
            self.part(number).store_own(memory, weights, c, repeats=True)
        # Places of a chunk without an output are 0.
        values = np.zeros((len(y), plan.y_chunks * plan.chunk), ELEMENT)
        for step in range(self.steps + 1):
            if step == 0:
                values[:, : y.shape[1]] = y
            for chunk in range(plan.y_chunks):
                self._store_chunk(memory, partial(self._y_chunk, step, chunk), values, chunk)
            values[:] = 0
        for chunk in range(plan.cell_chunks if plan.shape.projected else 0):
            empty = np.zeros((1, plan.cell_chunks * plan.chunk), ELEMENT)
            self._store_chunk(memory, partial(self._m_chunk, chunk), empty, chunk)

    def store_inputs(self, memory: Writable, x: Elements) -> None:
        """Write steps x batch x inputs elements to ``memory``."""
        plan = self.plan
        count = plan.input_chunks - plan.y_chunks
        for step, values in enumerate(x):
            filled = np.pad(values, ((0, 0), (0, count * plan.chunk - values.shape[1])))
            for chunk in range(count):
                self._store_chunk(memory, partial(self._x_chunk, step, chunk), filled, chunk)

    def _store_chunk(
        self, memory: Writable, place: Callable[[int], int], values: Elements, number: int
    ) -> None:
        """Write a chunk, member by member, to the addresses that ``place`` gives."""
        chunk = self.plan.chunk
        part = values[:, number * chunk : (number + 1) * chunk]
        filled = np.pad(part, ((0, self._vectors - len(part)), (0, 0)))
        for member, vectors in enumerate(np.split(filled, self.plan.sharers)):
            memory.write(place(member), np.ascontiguousarray(vectors, ELEMENT).tobytes())

    def outputs(self, memory: Readable) -> Elements:
        """y after each step: steps x batch x outputs elements."""
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
        y = by_chunk.transpose(0, 1, 3, 2, 4).reshape(self.steps, self._vectors, -1)
        return y[:, : plan.shape.batch, : plan.shape.outputs]

    def cells(self, memory: Readable) -> Elements:
        """c after the last step: batch x cells elements."""
        parts = [self.part(number).cells(memory) for number in range(self.plan.vaults)]
        return np.concatenate(parts, axis=1)

    def _of_engine(self, vault: int, slot: int) -> list[int]:
        plan = self.plan
        inside, member = divmod(slot, plan.sharers)
        number = vault * self.parts + inside
        part = self.part(number)
        cell_blocks, output_blocks = self._blocks

        def block(address: int, place: int) -> int:
            return address + place % plan.chunk * ELEMENT_BYTES

        words = [
            part.weights,
            part.starts,
            part.peepholes,
            part.state_of(member),
            self.steps,
            0,
            plan.left_at_last(number),
        ]
        ring, full = self.engines, self.engines.address(vault, self.y_flags.full)
        y_marks, m_marks = (
            [
                ring.address(self._home(chunk, flags.share, member), offset)
                for chunk, offset in flags.of_part(number, member)
            ]
            for flags in (self.y_flags, self.m_flags)
        )

        def chunk_flags(flags: ChunkFlags, chunk: int) -> int:
            offset = flags.offset(chunk, member)
            return ring.address(self._home(chunk, flags.share, member), offset)

        for step in range(self.steps):
            for chunk in plan.input_order(number):
                words.append(self._input_chunk(step, chunk, member))
                known = chunk >= plan.y_chunks
                words.append(full if known else chunk_flags(self.y_flags, chunk))
            for index in range(output_blocks):
                place = number * plan.outputs + index * plan.block
                words.append(block(self._y_chunk(step + 1, place // plan.chunk, member), place))
            words += y_marks
        start = self.parameters + 8 * (self.engines.pes + slot * self._words)
        words[_LISTS] = ring.address(vault, start + 8 * len(words))
        if plan.shape.projected:
            for index in range(cell_blocks):
                place = number * plan.cells + index * plan.block
                words.append(block(self._m_chunk(place // plan.chunk, member), place))
            words += m_marks
            for chunk in plan.order(number, plan.cell_chunks):
                words += [self._m_chunk(chunk, member), chunk_flags(self.m_flags, chunk)]
        return [*words, full, full]


@CHECK.arguments
def lstm_sequence_program(
    layout: SequenceLayout, *, fraction: int, weight_fraction: int | None = None
) -> Program:
    """The program for a sequence.

    Parameters:
        layout: sizes.
        fraction: fraction bits of all numbers except weights and peepholes, 0..15.
        weight_fraction: of weights and peepholes; None: the same.

    Raises:
        KernelError: a fraction out of range.
    """
    check_fraction(fraction)
    check_fraction(fraction if weight_fraction is None else weight_fraction)
    code = _Sequence(layout, fraction, weight_fraction)
    return code.build().program(program_name(layout.plan))


class _Sequence(LstmCode):
    def __init__(self, layout: SequenceLayout, fraction: int, weight_fraction: int | None) -> None:
        super().__init__(
            layout.plan,
            fraction,
            weight_fraction=weight_fraction,
            vault_bits=layout.engines.address_bits,
        )
        self._layout = layout
        w = self.writer
        self._steps = w.register("steps", "time steps left")
        self._record = w.register("record", "lists of the step")
        self._lists = w.register("lists", "lists of all steps")

    def read_chunk(self) -> None:
        super().read_chunk()
        self.writer.read(self.flags, self.cursor)

    def _flags(self, name: str) -> ChunkFlags:
        return self._layout.m_flags if name == "projection" else self._layout.y_flags

    def request_chunk(self, name: str) -> None:
        self.barrier.request(self.flags, self._flags(name).count)

    def await_chunk(self, name: str) -> None:
        self.barrier.wait_requested(self.flags, self._flags(name).count, self.flags_end)

    def _mark(self, flags: ChunkFlags) -> None:
        """Tell the readers of what a phase has stored; the addresses are next in the list."""
        w = self.writer
        for first in range(0, flags.marks, len(self.at)):
            at = self.at[: flags.marks - first]
            for flag in at:
                w.read(flag, self.results)
            if first == 0:
                w.op("memfence")
            for flag in at:
                self.barrier.mark(flag)

    def build(self) -> KernelBuilder:
        """Write the complete program."""
        w, plan, layout = self.writer, self.plan, self._layout
        words = (
            *(self.weights, self.starts, self.peepholes, self.state),
            *(self._steps, self._lists, self.short),
        )
        w.start(words, self._record, vault_bits=self.vault_bits)
        w.op("li", self.event, 1)
        w.op("li", self.at[0], self.weight_fraction)
        w.op("set.fx", self.at[0])
        w.op("set.mr", self.block)
        w.op("mov", self.inputs, self._record)
        self.fill()
        w.note("A time step.")
        with w.loop("step", self._steps):
            if plan.shape.projected:
                w.op("mov", self.results, self._lists)
                self.cells_phase()
                self._mark(layout.m_flags)
                w.op("mov", self.inputs, self.results)
                w.offset(self.results, self._record, 2 * plan.input_chunks * WORD_BYTES)
                self.projection_phase()
            else:
                w.offset(self.results, self._record, 2 * plan.input_chunks * WORD_BYTES)
                self.cells_phase("y")
            self.barrier.count()
            self._mark(layout.y_flags)
            w.offset(self._record, self._record, layout.step_words * WORD_BYTES)
            w.op("mov", self.inputs, self._record)
            w.offset(self.weights, self.weights, -layout.part(0).step_weights)
            for pointer, rows in ((self.peepholes, PEEPHOLES), (self.state, 1)):
                w.offset(pointer, pointer, -plan.groups * rows * plan.group_bytes)
            w.offset(self.starts, self.starts, -(plan.groups + 1) * GATES * plan.group_bytes)
            self.first_inputs()
            self.start_sums()
        w.op("halt")
        return w


def _checked_state(shape: LstmShape, state: LstmState | None) -> LstmState:
    """A state whose arrays have the right shape; None: all 0."""
    before = LstmState.start(shape) if state is None else state
    return replace(
        before,
        c=check_elements("c of the state", before.c, (shape.batch, shape.cells)),
        y=check_elements("y of the state", before.y, (shape.batch, shape.outputs)),
    )


@CHECK.arguments
def lstm_sequence_job(
    shape: LstmShape,
    weights: LstmWeights,
    x: Elements,
    state: LstmState | None = None,
    *,
    fraction: int,
    weight_fraction: int | None = None,
    engines: ChipEngines | None = None,
) -> KernelJob:
    """Run a sequence of time steps on all engines of a chip, in one launch.

    The job's outputs are y after each step, then c after the last one.

    Parameters:
        weights: of the layer.
        x: steps x batch x inputs elements, at least one step.
        state: before the first step; None: all 0.
        fraction: fraction bits of all numbers except weights and peepholes, 0..15.
        weight_fraction: of weights and peepholes; None: the same.
        engines: of the chip; None: four of one vault.

    Raises:
        KernelError: a shape that does not fit the chip, or data that do not fit the shape.
    """
    machine = engines or ChipEngines()
    weights = weights.checked(shape)
    x = check_elements("x", x, ("steps", shape.batch, shape.inputs))
    steps = len(x)
    before = _checked_state(shape, state)
    plan, parts = plan_sequence(shape, machine)
    layout = SequenceLayout(plan=plan, parts=parts, engines=machine, steps=steps)
    program = lstm_sequence_program(layout, fraction=fraction, weight_fraction=weight_fraction)

    def prepare(memory: Writable) -> None:
        layout.store(memory, weights, before.c, before.y)
        layout.store_inputs(memory, x)

    def outputs(memory: Readable) -> Elements:
        return np.concatenate([layout.outputs(memory).ravel(), layout.cells(memory).ravel()])

    def model() -> Elements:
        results, state = [], before
        for inputs in x:
            state = lstm_step(
                plan,
                weights,
                inputs,
                state,
                fraction=fraction,
                weight_fraction=weight_fraction,
            )
            results.append(state.y.ravel())
        return np.concatenate([*results, state.c.ravel()])

    return KernelJob(
        name="LSTM sequence",
        launches=(Launch(program=program, parameters=layout.parameters),),
        prepare=prepare,
        outputs=outputs,
        golden=Golden(model, lazy=True),
        end=layout.end,
        pes=machine.pes,
        ring=machine,
        operations=steps * shape.operations,
    )
