"""Generates the BP-M kernel with messages by shifts on blocks of pixels.

Records are blocks of 2 x 2 pixels (:mod:`microkernels.bp.record`). A run's lines, pairs of lines
and updates are those of blocks: a line of blocks is two lines of pixels, the lanes 0 and 1 or 2 and
3, and each of its updates computes four messages. The vector instructions and their order are those
of :mod:`microkernels.bp.shifts.kernel` with four lanes. A *turn* is eight updates, of the four
lanes at two pixels, and ends with a block; all lines end at the end of a turn.

The ring has one slot per turn, with the blocks of both pairs of lanes one after the other.
Registers ``u0`` to ``u7`` contain the address of ``a`` for each update of a turn, which changes
with the slot when the update is over. Consecutive slots' addresses differ in one bit (a Gray code),
so ``xor`` with ``d``, which has this bit set, converts one to the next. A sweep left or up reaches
a block's second pixel first.

A pair of lanes is loaded once the last of its eight vectors has been read. Messages of two lanes
are adjacent in memory and in the scratchpad, and are stored together. Words of a run that are no
longer needed contain the distances ``near``, from the messages at the first pixel of a block that a
sweep reaches to those at the second, and ``far``, from there to the next block.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from microkernels.common.builder import KernelBuilder
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES
from microkernels.common.scratchpad import ScratchpadPlan

from ..record import BLOCK, LOADED_VECTORS, PART, vector_stride
from .base import BUS_BYTES, SharedImage
from .kernel import LINE_ENDS, LaneShifts, TransformKernel

#: Lines of pixels interleaved.
BLOCK_LANES = 4
#: Bytes in a block's slot, and in the slots of a turn; slots of the ring, and its first byte, whose
#: bits don't overlap those of the slots.
_SLOT = 256
_TURN = 512
_TURNS = 4
_RING = 2048
_TOGGLES = (_TURN, 2 * _TURN)
_VECTOR = PART // (BLOCK * BLOCK)


@dataclass(frozen=True, kw_only=True)
class BlockShifts(LaneShifts):
    """The kernel on blocks of pixels, with :data:`BLOCK_LANES` lanes."""

    lanes: int = BLOCK_LANES

    in_blocks: ClassVar[bool] = True

    @cached_property
    def pad(self) -> ScratchpadPlan:
        """As for :class:`.kernel.LaneShifts`, with one slot per turn.

        Raises:
            KernelError: it does not fit, or the schedule keeps updates for too long.
        """
        pad, beat = self._lane_pad(), self.rhythm
        too_far = pad.ring > _RING
        pad.set_ring(_RING, _SLOT, BLOCK * BLOCK_LANES, PART)
        pad.used = _RING + _TURNS * _TURN
        again = BLOCK * BLOCK_LANES * beat.period
        if pad.used > self.scratchpad_bytes or too_far or beat.freed >= again + beat.places["q"]:
            raise KernelError(
                f"blocks of {self.labels} labels of {self.bits} bits do not fit a scratchpad of "
                f"{self.scratchpad_bytes} bytes by shifts"
            )
        return pad

    def builder(self, vault_bits: int | None) -> KernelBuilder:
        """As for :class:`.base.Shifts`."""
        return _BlockKernel(self, vault_bits).build()

    @cached_property
    def cycles(self) -> float:
        """Cycles of the loop, which stores messages two at a time, and of line ends."""
        return self.loop_cycles / BLOCK + LINE_ENDS

    def shared_cycles(self, place: SharedImage) -> float:
        """As for :class:`.base.Shifts`; columns of DRAM are full."""
        bus = (LOADED_VECTORS + 1) * vector_stride(self.labels, self.bits) / BUS_BYTES
        return max(self.cycles, place.pes * bus)


class _BlockKernel(TransformKernel):
    """The BP-M kernel on blocks."""

    def __init__(self, shifts: BlockShifts, vault_bits: int | None) -> None:
        super().__init__(shifts, vault_bits)
        self.pair = self.writer.constant(
            "pair", COLUMN_BYTES // self.size, "elements of two messages"
        )
        # Words that the run no longer needs.
        self.near, self.far, self.toggle = self.run.lanes, self.run.wait, self.run.costs

    def set_lengths(self) -> None:
        """Set one row and the vector length."""
        w = self.writer
        w.op("mov", self.y, self.labels)
        w.op("set.vl", self.y)
        w.op("set.mr", "one")

    def spread(self) -> None:
        """Compute the run's distances."""
        w, run = self.writer, self.run
        w.note("A line without a partner is worked on twice.")
        with w.unless("bne", run.lanes, "one"):
            w.op("mov", run.line_pitch, self.zero)
        w.op("mov", self.near, COLUMN_BYTES)
        with w.unless("bge", run.pixel_pitch, self.zero):
            w.op("sub", self.near, self.zero, self.near)
        w.op("sub", self.far, run.pixel_pitch, self.near)
        w.op("sub", run.last_pitch, run.last_pitch, self.near)
        w.op("mov", self.x, self.far)
        with w.unless("bne", run.updates, "one"):
            w.op("mov", self.x, run.last_pitch)
        w.op("sub", run.line_wrap, run.line_wrap, self.x)

    def begin(self) -> None:
        """Set the addresses of the first turn and load all slots."""
        w, run = self.writer, self.run
        w.op("add", self.target[0], run.first_message, self.near)
        w.op("mov", self.left, run.updates)
        w.op("mov", self.store_left, run.updates)
        self._first_pixel(self.y)
        w.op("mov", self.x, _VECTOR)
        w.op("sub", self.x, self.x, self.y)
        for update in range(self.pad.slots):
            lane = self.lane(update)
            place = _RING + lane // BLOCK * _SLOT + lane % BLOCK * BLOCK * _VECTOR
            w.op("add", self.slot(update), self.x if self._second(update) else self.y, place)
        w.note("Fill the ring.")
        w.op("li", self.source[1], _RING)
        w.op("mov", self.toggle, _TOGGLES[0])
        w.op("mov", self.load_groups, run.groups)
        self.start_line()
        for _ in range(_TURNS):
            for lane in range(1, BLOCK_LANES, BLOCK):
                self._load_block(lane)

    def _second(self, update: int) -> bool:
        """Whether an update is at the second pixel of a block."""
        return update // BLOCK_LANES % BLOCK == 1

    def _first_pixel(self, result: str) -> None:
        """Bytes from a block's vector to that of the pixel that the sweep reaches first."""
        w = self.writer
        # This bit of the distance near is set if it is negative.
        w.op("and", result, self.near, 4 * _VECTOR)
        w.op("srl", result, result, 2)

    def start_messages(self, update: int) -> None:
        """Begin a line of each lane with the message in its slot."""
        w = self.writer
        for lane in range(BLOCK_LANES):
            # u is the address of the lane's first vector, two vectors after that of the previous
            # lane.
            place = self.first_place - lane % BLOCK * _VECTOR
            w.op("add", self.incoming[lane], self.slot(update + lane), place)

    def load(self, update: int) -> None:
        """Move an updated lane's register to the next slot, and possibly load a block."""
        w = self.writer
        w.op("xor", self.slot(update), self.slot(update), self.toggle)
        lane = self.lane(update)
        if self._second(update) and lane % BLOCK == 1:
            self._load_block(lane)

    def _load_block(self, lane: int) -> None:
        """Load a block of the load stream for the pair of lanes that ends with ``lane``."""
        w, run = self.writer, self.run
        done = w.new_label("loaded")
        second = lane >= BLOCK
        w.op("beq", self.load_groups, self.zero, done)
        note = f"a, b, c of lanes {lane - 1} and {lane}"
        if second:
            w.op("add", self.x, self.source[0], run.line_pitch)
            w.op("add", self.y, self.source[1], _SLOT)
            w.load(self.y, self.x, "inputs", note=note)
        else:
            w.load(self.source[1], self.source[0], "inputs", note=note)

        def first() -> None:
            self._first_pixel(self.x)
            w.op("add", self.x, self.x, self.source[1])
            w.op("add", self.x, self.x, self.first_place + second * _SLOT)
            message = run.first_message
            if second:
                w.op("add", self.y, message, run.line_pitch)
                message = self.y
            w.load(self.x, message, self.pair, note="messages that begin the lines")

        w.seldom("beq", self.load_left, run.updates, first)
        if second:
            w.op("add", self.source[0], self.source[0], run.pixel_pitch)
            w.op("sub", self.load_left, self.load_left, 1)
            w.seldom("beq", self.load_left, self.zero, self.load_next_line)
        w.label(done)
        if second:
            w.op("xor", self.source[1], self.source[1], self.toggle)
            w.op("xor", self.toggle, self.toggle, _TOGGLES[0] ^ _TOGGLES[1])

    def store(self, update: int) -> None:
        """Store the messages of two lanes after the second one."""
        w, run = self.writer, self.run
        lane = self.lane(update)
        if lane % BLOCK == 0:
            return
        address, store = self.target[0], self.target[0]
        if lane > 1:
            address = self.x
            w.op("add", address, store, run.line_pitch)
        w.store(address, self.message[lane - 1], self.pair, note=f"messages of lanes to {lane}")
        if lane < BLOCK_LANES - 1:
            return
        if not self._second(update):
            w.op("sub", self.store_left, self.store_left, 1)
            # A line's last messages may leave the tile.
            self._advance(self.far, lambda: w.op("add", store, store, run.last_pitch))
            return

        def next_line() -> None:
            w.op("add", store, store, run.line_wrap)
            w.op("mov", self.store_left, run.updates)

        self._advance(self.near, next_line)

    def _advance(self, distance: str, last: Callable[[], None]) -> None:
        """Move the store stream by ``distance``, or as written by ``last`` if no blocks are
        left."""
        w = self.writer
        end_of_line, on = w.new_label("seldom"), w.new_label("on")
        w.op("beq", self.store_left, self.zero, end_of_line)
        w.op("add", self.target[0], self.target[0], distance)
        w.label(on)
        w.detour(end_of_line, on, last)

    def end_of_group(self, n: int) -> None:
        """End the last update of a turn, and its line if this was the last."""
        if self._second(n):
            super().end_of_group(n)

    def finish(self, end: int) -> None:
        """Write the end of a run, which is the end of a turn."""
        if not self._second(end):
            return
        w, run = self.writer, self.run
        pending = self.complete(end)
        lanes = sorted(self.lane(update) for update in pending if self.lane(update) % BLOCK)
        w.op("add", self.source[0], self.target[0], run.line_pitch)
        self.describe()
        w.op("v.drain")
        for lane in lanes:
            address = self.target[0] if lane == 1 else self.source[0]
            w.store(address, self.message[lane - 1], self.pair)
        w.op("jmp", "run_end")
