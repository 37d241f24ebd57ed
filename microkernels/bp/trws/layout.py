"""DRAM layout of TRW-S in a vault, and the work of its engines.

From ``base`` on: the parameter block, a flag per engine, the kernel's constants, the smoothness
costs and their transpose if messages are computed by a matrix, and the records of all pixels with a
one-pixel border, which receives the messages that leave the image and is never read.

A pixel's data is one *record* of five vectors, in this order::

    left | up | data cost | down | right        (messages named as in bp.problem.MessageDirection)

Edge weights follow the data costs: right, down, left, up. A forward visit loads the first four
vectors, a backward visit the last four; the fifth is the message that the previous visit produced.
Vectors, records and rows are spaced like those of BP-M (:mod:`microkernels.bp.record`).

*Schedule.* Row ``y`` belongs to engine ``y mod sharers``, forwards and backwards. A row is
processed in *blocks* of pixels. After each block an engine raises its flag, and before it loads a
block it waits until the previous row (in visiting order) has passed that block. Each engine thus
lags at least a block behind the engine with the previous row, and each pixel is visited after its
earlier neighbours, as in raster order. No message is overwritten too early: a row's second pass
comes after its first in its engine's program, and after the same block of its neighbour's.

The flags count *events*: in each pass, the blocks of the first row of all engines, then those of
the second, and so on. An engine without a row skips events; numbers only have to rise.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isa.program import Declared, Numbers, Span
from microkernels.common import parameter_block
from microkernels.common.errors import CHECK
from microkernels.common.feature_map import COLUMN_BYTES, ROW_BYTES, round_up
from microkernels.common.memory import Readable, Writable
from microkernels.common.parameter_block import Word, WordRecord, word
from microkernels.runtime.barrier import FLAG_BYTES
from microkernels.runtime.ring import ChipEngines

from ..problem import BpProblem, MessageDirection, Messages, check_messages, element_type
from ..record import BANKS, record_stride, row_stride, vector_stride
from .golden import FRACTION
from .order import WEIGHTS, TrwsPlan

#: Words of the parameter block before the table of parts: iterations, sharers, address of the
#: constants, events per iteration.
HEADER_WORDS = 4
#: Words of a part before its rows: address of its engine's flag (0: the engine is alone), rows per
#: iteration.
PART_WORDS = 2
_ALIGNMENT = 4
_ROW_ALIGNMENT = BANKS * ROW_BYTES
_PLACE = {
    MessageDirection.LEFT: 0,
    MessageDirection.UP: 1,
    MessageDirection.DOWN: 3,
    MessageDirection.RIGHT: 4,
}
_COST_PLACE = 2
#: Maximum events that a flag counts, over all launches since it was cleared.
_MOST_EVENTS = 1 << 30
#: Approximate time in pixels to raise and see a block's flag; measured.
_FLAG_PIXELS = 2.6
#: Part of a row that all engines' blocks may cover: beyond it, the first engine waits for the last
#: one at each row.
_COVERED = 0.7


def block_of(width: int, height: int, sharers: int) -> int:
    """Pixels per block, about as many as take the least time.

    Small blocks cost flags. Large blocks cost time at the turn of a pass, where the last engine
    begins ``sharers - 1`` blocks before the first.
    """
    if sharers == 1:
        return width
    waits = 2 * sharers * (sharers - 1)
    best = (_FLAG_PIXELS * width * height / waits) ** 0.5
    return max(1, int(min(best, _COVERED * width / sharers)))


def fill_share(width: int, height: int, sharers: int) -> float:
    """Fraction of a pass in which an engine has no pixel to visit, averaged over all engines, by
    the schedule with the blocks of :func:`block_of`: the last engine begins ``sharers - 1`` blocks
    after the first, and rows may not divide evenly among the engines."""
    rows = -(-height // sharers)
    longest = width * rows + (sharers - 1) * block_of(width, height, sharers)
    return 1 - width * height / sharers / longest


@dataclass(frozen=True, kw_only=True)
class Row(WordRecord[Word]):
    """A row in one pass: words of the parameter block, or the registers for them."""

    load: Word = word("address of the four vectors of the first pixel visited")
    along: Word = word("address of the message that arrives there along the row, which is 0")
    across: Word = word("address, in the next row, of the message to the pixel before that")
    step: Word = word("bytes from a pixel to the next one")
    at_along: Word = word("offset in a slot of the message from the next pixel of the row")
    at_across: Word = word("offset of the message from the next row")
    at_cost: Word = word("offset of the data cost")
    at_other: Word = word("offset of the message from the row before")
    gamma: Word = word("scratchpad address of the multiplier of the first pixel")
    gamma_middle: Word = word("that of the following ones")
    gamma_last: Word = word("that of the last")
    updates: Word = word("pixels")
    wait: Word = word("address of the flag of the engine with the row before, or 0")
    due: Word = word("event of that row's first block, in the iteration")
    done: Word = word("event of this row's first block")
    matrix: Word = word("address of the smoothness costs to load first, or 0")


@dataclass(frozen=True, kw_only=True)
class TrwsLayout:
    """Addresses of a problem; see the module's text.

    Attributes:
        problem: to lay out.
        plan: of the program.
        sharers: engines, at least 1.
        block: pixels per block, at least 1.
        base: first address, a multiple of 4096.

    Raises:
        KernelError: a value out of range, or a problem that no kernel solves.
    """

    problem: BpProblem
    plan: TrwsPlan
    sharers: int
    block: int
    base: int = 0

    def __post_init__(self) -> None:
        CHECK.fields(self)
        CHECK.at_least("sharers", self.sharers, 1)
        CHECK.at_least("block", self.block, 1)
        CHECK.at_least("base", self.base, 0)

    @property
    def ring(self) -> ChipEngines:
        """A single vault."""
        return ChipEngines()

    @property
    def most_areas(self) -> int:
        """Maximum number of a vault's areas."""
        return 1

    def areas(self, vault: int) -> list[tuple[int, int, int]]:
        """Address of the first record, columns and rows of pixels, for the only ``vault``, 0."""
        return [(self._at(0, 0), self.problem.width, self.problem.height)]

    @property
    def tail(self) -> int:
        """Elements after a vector's labels."""
        return 0 if self.problem.weights is None else WEIGHTS

    @property
    def vector_bytes(self) -> int:
        return vector_stride(self.problem.labels + self.tail, self.problem.bits)

    @property
    def _record(self) -> int:
        return record_stride(self.problem.labels + self.tail, self.problem.bits)

    @property
    def pitch(self) -> int:
        return row_stride((self.problem.width + 2) * self._record)

    @property
    def blocks(self) -> int:
        """Blocks per row."""
        return -(-self.problem.width // self.block)

    @property
    def _turns(self) -> int:
        """Rows of the engine with the most rows."""
        return -(-self.problem.height // self.sharers)

    @property
    def events(self) -> int:
        """Events per iteration."""
        return 2 * self._turns * self.blocks

    @property
    def parameters(self) -> int:
        """Address of the parameter block, for the launch."""
        return self.base

    def flag(self, engine: int) -> int:
        """Address of an engine's flag."""
        words = HEADER_WORDS + round_up(self.sharers, _ALIGNMENT)
        words += self.sharers * PART_WORDS + 2 * self.problem.height * Row.length()
        return self.base + round_up(8 * words, COLUMN_BYTES) + engine * FLAG_BYTES

    @property
    def constants(self) -> int:
        """Address of the data that engines load at the start."""
        return self.flag(self.sharers)

    @property
    def _matrices(self) -> tuple[int, int]:
        """Addresses of the smoothness costs and of their transpose."""
        first = self.constants + round_up(self.plan.pad["constants_end"], COLUMN_BYTES)
        used = self.problem.labels**2 * self.problem.bits // 8
        return first, first + round_up(used, COLUMN_BYTES)

    @cached_property
    def _first_record(self) -> int:
        first, second = self._matrices
        return round_up(2 * second - first, _ROW_ALIGNMENT)

    @property
    def end(self) -> int:
        """First byte after all data."""
        return self._first_record + (self.problem.height + 2) * self.pitch

    def _at(self, x: int, y: int) -> int:
        """Address of the record of a pixel or of a border pixel."""
        return self._first_record + (y + 1) * self.pitch + (x + 1) * self._record

    def rows(self, engine: int) -> Iterator[Row[int]]:
        """One iteration's rows of ``engine`` (0..sharers - 1)."""
        share = range(engine, self.problem.height, self.sharers)
        alike = self.plan.transform is not None or self.problem.symmetric
        for forwards in (True, False):
            for number, y in enumerate(share if forwards else reversed(share)):
                fresh = number == 0 and not (alike and not forwards)
                yield self._row(y, forwards, fresh and self.plan.transform is None)

    def _row(self, y: int, forwards: bool, matrix: bool) -> Row[int]:
        width, height = self.problem.width, self.problem.height
        step, first = (1, 0) if forwards else (-1, width - 1)
        along, across = MessageDirection.RIGHT, MessageDirection.DOWN
        opposite_along, opposite_across, first_place = MessageDirection.LEFT, MessageDirection.UP, 0
        if not forwards:
            along, opposite_along = opposite_along, along
            across, opposite_across = opposite_across, across
            first_place = 1
        before = y - step
        wait = self.sharers > 1 and 0 <= before < height
        thin = min(width, height) == 1
        halve = self.plan.pad["halve"]
        keep = halve + self.problem.bits // 8

        def vector(place: int) -> int:
            return (place - first_place) * self.vector_bytes

        def gamma(x: int) -> int:
            corner = (x, y) in ((width - 1, 0), (0, height - 1))
            return keep if thin or corner else halve

        return Row(
            load=self._at(first, y) + first_place * self.vector_bytes,
            along=self._at(first, y) + _PLACE[along] * self.vector_bytes,
            across=self._at(first - step, y + step) + _PLACE[across] * self.vector_bytes,
            step=step * self._record,
            at_along=vector(_PLACE[opposite_along]),
            at_across=vector(_PLACE[opposite_across]),
            at_cost=vector(_COST_PLACE),
            at_other=vector(_PLACE[across]),
            gamma=gamma(first),
            gamma_middle=keep if thin else halve,
            gamma_last=gamma(width - 1 - first),
            updates=width,
            wait=self.flag(before % self.sharers) if wait else 0,
            due=self._event(before, forwards),
            done=self._event(y, forwards),
            matrix=self._matrices[not forwards and not self.problem.symmetric] if matrix else 0,
        )

    def _event(self, y: int, forwards: bool) -> int:
        """The event of a row's first block."""
        turn = y // self.sharers
        if not forwards:
            turn = 2 * self._turns - 1 - turn
        return turn * self.blocks + 1

    def parameter_block(self, iterations: int) -> bytes:
        """The parameter block for this many iterations.

        Raises:
            KernelError: a negative number of iterations.
        """
        CHECK.at_least("iterations", iterations, 0)
        parts = []
        for engine in range(self.sharers):
            rows = list(self.rows(engine))
            address = self.flag(engine) if self.sharers > 1 else 0
            parts.append([address, len(rows), *(word for row in rows for word in row.words())])
        header = (iterations, self.sharers, self.constants, self.events)
        return parameter_block.block_bytes(self.parameters, parts, header=header, align=_ALIGNMENT)

    @property
    def declared(self) -> Declared:
        """The memory that is fixed by the problem: parameter block and flags."""
        block = Span(self.parameters, len(self.parameter_block(0)))
        flags = (Span(self.flag(engine), 8) for engine in range(self.sharers))
        return Declared(
            constants=(block,),
            numbers=tuple(Numbers(one, 0, _MOST_EVENTS) for one in flags),
            slots=self.sharers,
        )

    def pack(self, memory: Writable, iterations: int, messages: Messages | None) -> None:
        """Write everything that the launch needs.

        Parameters:
            messages: initial messages, in fixed point; None: all 0.

        Raises:
            KernelError: messages of the wrong shape or range, or negative iterations.
        """
        problem = self.problem
        start = problem.no_messages() if messages is None else check_messages(problem, messages)
        shift = element_type(problem.bits).type(FRACTION)
        planes = {_COST_PLACE: problem.data_costs << shift}
        planes |= {place: start[direction] for direction, place in _PLACE.items()}
        memory.write(self.parameters, self.parameter_block(iterations))
        memory.write(self.flag(0), bytes(FLAG_BYTES * self.sharers))
        memory.write(self.constants, self._constants().tobytes())
        if self.plan.transform is None:
            matrix = problem.smoothness << shift
            for address, one in zip(self._matrices, (matrix, matrix.T), strict=True):
                memory.write(address, np.ascontiguousarray(one).tobytes())
        # The border to the right and below fills up blocks of two levels: its costs are 0.
        for y in range(problem.height):
            row = np.zeros((problem.width + 1) * self._record, np.uint8)
            records = row[: problem.width * self._record]
            for place, values in planes.items():
                self._vectors(records, place)[:] = np.ascontiguousarray(values[y]).view(np.uint8)
            if problem.weights is not None:
                at = _COST_PLACE * self.vector_bytes + problem.labels * problem.bits // 8
                weights = self._weights(y).view(np.uint8)
                records.reshape(-1, self._record)[:, at : at + weights.shape[1]] = weights
            memory.write(self._at(0, y), row.tobytes())
        memory.write(self._at(0, problem.height), bytes((problem.width + 1) * self._record))

    def _weights(self, y: int) -> NDArray[np.signedinteger]:
        """``[x, direction]``, the weights of a row's edges to the right, down, left and up, as
        halves (the fraction bit of all products)."""
        weights = self.problem.weights
        assert weights is not None
        down = np.pad(weights.down, ((1, 1), (0, 0)))
        right = np.pad(weights.right[y], 1)
        halves = 2 * np.stack([right[1:], down[y + 1], right[:-1], down[y]], axis=1)
        dtype = element_type(self.problem.bits)
        # A weight that does not fit multiplies only smoothness costs of 0.
        return halves.clip(max=np.iinfo(dtype).max).astype(dtype)

    def _constants(self) -> NDArray[np.signedinteger]:
        """Multipliers, plateau, costs of the shifts, and the largest value around all sums."""
        dtype = element_type(self.problem.bits)
        size = dtype.itemsize
        pad, transform = self.plan.pad, self.plan.transform
        elements = np.full(pad["constants_end"] // size, np.iinfo(dtype).max, dtype)
        elements[pad["halve"] // size :][:2] = 1, 2
        if transform is not None:
            if transform.plateau is not None:
                plateau = transform.plateau << FRACTION
                elements[pad["plateau"] // size :][: self.problem.labels] = plateau
            costs = [cost << FRACTION for _, cost in transform.shifts]
            elements[pad["costs"] // size :][: len(costs)] = costs
        return elements

    def unpack(self, memory: Readable) -> Messages:
        """Read back the messages of all directions, in fixed point."""
        problem = self.problem
        messages = problem.no_messages()
        for y in range(problem.height):
            data = memory.read(self._at(0, y), problem.width * self._record)
            records = np.frombuffer(data, np.uint8)
            for direction, place in _PLACE.items():
                vectors = np.ascontiguousarray(self._vectors(records, place))
                messages[direction, y] = vectors.view(messages.dtype)
        return messages

    def _vectors(self, records: NDArray[np.uint8], place: int) -> NDArray[np.uint8]:
        """View ``[x, byte]`` of one vector of every record of a row."""
        start = place * self.vector_bytes
        used = self.problem.labels * self.problem.bits // 8
        vectors: NDArray[np.uint8] = records.reshape(-1, self._record)[:, start : start + used]
        return vectors
