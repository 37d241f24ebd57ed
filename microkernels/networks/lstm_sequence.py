"""A sequence of time steps of an LSTM layer on all engines of a chip: cut and addresses.

The layer's cells and outputs are cut into *parts* (:class:`microkernels.nn.lstm_shape.LstmCut`): a
vault has one or more, and the engines of a part share the batch. With fewer sequences in a batch
than engines in a vault, more parts keep all engines at work.

An input lies in chunks. Each chunk of y and of the inputs of the projection lies in the vault whose
part computes its first element, so most vaults read it over the network; kernels load chunks ahead.
Every step has inputs x and outputs y of its own in memory, so one barrier after each phase is
enough: no engine reads before it what another writes in the phase. Two things are written anew in
each step: c, of which an engine reads and writes its own part alone, and the inputs of the
projection, which all engines have read when they pass the barrier after the projection.

An engine's part of the parameter block::

    0  address of the weights    1  of the initial sums    2  of the peepholes   3  of its part of c
    4  time steps                5  address of the common lists
    6  words of the barrier (:class:`microkernels.runtime.chip_barrier.ChipFlags`)
       then for each step the addresses, for the engine's first vector, of each chunk of the inputs
       and of each block of its outputs in y
       common lists: of each block of its cells in the inputs of the projection, of each chunk of
       these; empty without a projection; one word more
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import ROW_BYTES, round_up
from microkernels.common.fixed_point import ELEMENT, ELEMENT_BYTES, Elements
from microkernels.common.memory import Readable, Writable
from microkernels.common.parameter_block import block_bytes
from microkernels.nn.lstm_layout import LstmLayout
from microkernels.nn.lstm_shape import LstmPlan, LstmShape, LstmWeights, plan_lstm
from microkernels.runtime.chip_barrier import ChipFlags
from microkernels.runtime.ring import ChipEngines

__all__ = ["FIXED_WORDS", "SequenceLayout", "plan_sequence"]

#: Words of an engine's part before those of the barrier.
FIXED_WORDS = 6
#: Rows between the data of two parts of a vault, so that engines in step use different banks.
_BANKS, _SKEW_ROWS = 16, 4
#: Cycles of a turn besides its beats, and bytes that a vault's memory gives in a cycle: for
#: choosing alone.
_TURN, _BUS_BYTES = 12, 6.5


def _cycles(plan: LstmPlan, parts: int) -> float:
    """Predicted cycles of a time step; ``parts`` of them lie in one vault."""
    cut = plan.cut
    blocks = cut.cells * 4 * cut.input_chunks
    if cut.shape.projected:
        blocks += cut.outputs * cut.cell_chunks
    turn = plan.vectors * (cut.block * -(-cut.chunk // 4) + _TURN) + _TURN
    work = blocks / cut.block * turn
    moved = blocks / cut.block * plan.block_bytes * plan.sharers * parts
    return max(work, moved / _BUS_BYTES)


@CHECK.arguments
def plan_sequence(shape: LstmShape, engines: ChipEngines) -> tuple[LstmPlan, int]:
    """The plan of a part, and the number of parts in a vault, for which a step is fastest, by
    prediction.

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
                vaults=engines.ring.vaults * parts,
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
        plan: of a part. parts: in each vault, at least 1.
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
                f"{self.parts} part(s) of {self.plan.sharers} engines are not the "
                f"{self.engines.pes} engines of a vault"
            )
        if self.end > (room := 1 << self.engines.ring.address_bits):
            raise KernelError(
                f"the sequence needs {self.end} bytes in each of {self.engines.ring.vaults} "
                f"vault(s), which have {room}: give more vaults, or fewer steps"
            )

    # Sizes.

    @property
    def _vectors(self) -> int:
        """Vectors of all engines of a part."""
        return self.plan.vectors * self.plan.sharers

    @property
    def _slot_bytes(self) -> int:
        """Bytes of a chunk of all vectors."""
        return round_up(self._vectors * self.plan.chunk_bytes, ROW_BYTES)

    @property
    def _blocks(self) -> tuple[int, int]:
        """Blocks of a part's cells and of its outputs."""
        cut = self.plan.cut
        return cut.cells // cut.block, cut.outputs // cut.block

    @property
    def step_words(self) -> int:
        """Words of a step's lists."""
        return self.plan.cut.input_chunks + self._blocks[1]

    @property
    def _common_words(self) -> int:
        cut = self.plan.cut
        lists = self._blocks[0] + cut.cell_chunks if cut.shape.projected else 0
        return lists + 1

    @property
    def _words(self) -> int:
        """Words of an engine's part of the parameter block."""
        return FIXED_WORDS + self.flags.words + self.steps * self.step_words + self._common_words

    # Offsets in every vault.

    @property
    def flags(self) -> ChipFlags:
        """Flags of the barrier."""
        return ChipFlags(0, self.engines.pes, self.engines.ring)

    @property
    def parameters(self) -> int:
        """Offset of the parameter block."""
        return round_up(self.flags.end, ROW_BYTES)

    @property
    def _y(self) -> int:
        size = 8 * self.engines.pes * (1 + self._words)
        return round_up(self.parameters + size, ROW_BYTES)

    @property
    def _x(self) -> int:
        return self._y + (self.steps + 1) * self.plan.cut.y_chunks * self._slot_bytes

    @property
    def _m(self) -> int:
        cut = self.plan.cut
        return self._x + self.steps * (cut.input_chunks - cut.y_chunks) * self._slot_bytes

    @property
    def _own(self) -> int:
        return round_up(self._m + self.plan.cut.cell_chunks * self._slot_bytes, _BANKS * ROW_BYTES)

    @cached_property
    def _part_bytes(self) -> int:
        size = LstmLayout(plan=self.plan).end
        return round_up(size, _BANKS * ROW_BYTES) + _SKEW_ROWS * ROW_BYTES

    @property
    def end(self) -> int:
        """First byte after the part of each vault that is used."""
        return self._own + self.parts * self._part_bytes

    def part(self, number: int) -> LstmLayout:
        """What part ``number`` alone uses."""
        vault, inside = divmod(number, self.parts)
        base = self.engines.ring.address(vault, self._own + inside * self._part_bytes)
        return LstmLayout(plan=self.plan, vault=number, base=base)

    # Chunks.

    def _home(self, element: int, share: int) -> int:
        """Vault of the part that computes ``element``, where each part has so many."""
        return min(element // share, self.plan.cut.vaults - 1) // self.parts

    def _y_chunk(self, step: int, number: int) -> int:
        cut = self.plan.cut
        offset = self._y + (step * cut.y_chunks + number) * self._slot_bytes
        return self.engines.ring.address(self._home(number * cut.chunk, cut.outputs), offset)

    def _x_chunk(self, step: int, number: int) -> int:
        cut = self.plan.cut
        count = cut.input_chunks - cut.y_chunks
        vault = number * self.engines.ring.vaults // count
        offset = self._x + (step * count + number) * self._slot_bytes
        return self.engines.ring.address(vault, offset)

    def _m_chunk(self, number: int) -> int:
        cut = self.plan.cut
        offset = self._m + number * self._slot_bytes
        return self.engines.ring.address(self._home(number * cut.chunk, cut.cells), offset)

    def _input_chunk(self, step: int, number: int) -> int:
        first = self.plan.cut.y_chunks
        if number < first:
            return self._y_chunk(step, number)
        return self._x_chunk(step, number - first)

    # Contents.

    def store(self, memory: Writable, weights: LstmWeights, c: Elements, y: Elements) -> None:
        """Put all but the inputs x into ``memory``.

        Parameters:
            weights: of the layer, checked.
            c, y: before the first step, batch x cells and batch x outputs elements.
        """
        ring, cut = self.engines.ring, self.plan.cut
        for vault in range(ring.vaults):
            memory.write(ring.address(vault, 0), self.flags.contents())
            base = ring.address(vault, self.parameters)
            words = [self._of_engine(vault, slot) for slot in range(self.engines.pes)]
            memory.write(base, block_bytes(base, words))
        for number in range(cut.vaults):
            self.part(number).store_own(memory, weights, c, repeats=True)
        # Places of a chunk that no output fills are 0.
        values = np.zeros((len(y), cut.y_chunks * cut.chunk), ELEMENT)
        for step in range(self.steps + 1):
            if step == 0:
                values[:, : y.shape[1]] = y
            for chunk in range(cut.y_chunks):
                self._store_chunk(memory, self._y_chunk(step, chunk), values, chunk)
            values[:] = 0
        for chunk in range(cut.cell_chunks if cut.shape.projected else 0):
            empty = np.zeros((1, cut.cell_chunks * cut.chunk), ELEMENT)
            self._store_chunk(memory, self._m_chunk(chunk), empty, chunk)

    def store_inputs(self, memory: Writable, x: Elements) -> None:
        """Put steps x batch x inputs elements into ``memory``."""
        cut = self.plan.cut
        count = cut.input_chunks - cut.y_chunks
        for step, values in enumerate(x):
            filled = np.pad(values, ((0, 0), (0, count * cut.chunk - values.shape[1])))
            for chunk in range(count):
                self._store_chunk(memory, self._x_chunk(step, chunk), filled, chunk)

    def _store_chunk(self, memory: Writable, address: int, values: Elements, number: int) -> None:
        chunk = self.plan.cut.chunk
        part = values[:, number * chunk : (number + 1) * chunk]
        filled = np.pad(part, ((0, self._vectors - len(part)), (0, 0)))
        memory.write(address, np.ascontiguousarray(filled, ELEMENT).tobytes())

    def outputs(self, memory: Readable) -> Elements:
        """y after each step: steps x batch x outputs elements."""
        cut = self.plan.cut
        size = self._vectors * self.plan.chunk_bytes
        values = []
        for step in range(1, self.steps + 1):
            chunks = [
                np.frombuffer(memory.read(self._y_chunk(step, chunk), size), ELEMENT).reshape(
                    self._vectors, cut.chunk
                )
                for chunk in range(cut.y_chunks)
            ]
            y = np.concatenate(chunks, axis=1)
            values.append(y[: cut.shape.batch, : cut.shape.outputs])
        return np.stack(values)

    def cells(self, memory: Readable) -> Elements:
        """c after the last step: batch x cells elements."""
        parts = [self.part(number).cells(memory) for number in range(self.plan.cut.vaults)]
        return np.concatenate(parts, axis=1)

    def _of_engine(self, vault: int, slot: int) -> list[int]:
        cut, plan = self.plan.cut, self.plan
        inside, member = divmod(slot, plan.sharers)
        number = vault * self.parts + inside
        part = self.part(number)
        shift = member * plan.vectors * plan.chunk_bytes
        cell_blocks, output_blocks = self._blocks

        def block(address: int, place: int) -> int:
            return address + place % cut.chunk * ELEMENT_BYTES + shift

        words = [
            part.weights,
            part.starts,
            part.peepholes,
            part.state_of(member),
            self.steps,
            0,
            *self.flags.parameters(vault, slot),
        ]
        for step in range(self.steps):
            order = cut.order(number, cut.input_chunks)
            words += [self._input_chunk(step, chunk) + shift for chunk in order]
            for index in range(output_blocks):
                place = number * cut.outputs + index * cut.block
                words.append(block(self._y_chunk(step + 1, place // cut.chunk), place))
        start = self.parameters + 8 * (self.engines.pes + slot * self._words)
        words[FIXED_WORDS - 1] = self.engines.ring.address(vault, start + 8 * len(words))
        if cut.shape.projected:
            for index in range(cell_blocks):
                place = number * cut.cells + index * cut.block
                words.append(block(self._m_chunk(place // cut.chunk), place))
            order = cut.order(number, cut.cell_chunks)
            words += [self._m_chunk(chunk) + shift for chunk in order]
        return [*words, 0]
