"""Generator of the BP-M kernel with messages by shifts on blocks of pixels.

Records hold blocks of 2 x 2 pixels (:mod:`microkernels.bp.record`). Lines, pairs of lines and
updates of a run are those of blocks: a line of blocks is two lines of pixels, the lanes 0 and 1 or
2 and 3, and an update of it makes four messages. The vector instructions and their order are those
of :mod:`microkernels.bp.shifts.kernel` with four lanes. A *turn* is eight updates, of the four
lanes at two pixels, and ends with a block; all lines end at the end of a turn.

The ring has a slot for each turn, with the blocks of both pairs of lanes one after the other. The
register ``u0`` to ``u7`` of an update of a turn has the address of its ``a``, which changes with
the slot when the update is over: the addresses of slots differ by one bit from a slot to the next
(a Gray code), so ``d``, which has this bit, turns the one into the other by ``xor``. A sweep left
or up comes to the second pixel of a block first.

A pair of lanes is loaded when the last of its eight vectors has been read. Messages of two lanes
lie side by side in memory and in the scratchpad, and are stored together. Words of a run that it
needs no more hold the distances ``near``, from the messages at the first pixel of a block that a
sweep comes to to those at the second, and ``far``, from there to the next block.
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

__all__ = ["BLOCK_LANES", "BlockShifts"]

#: Lines of pixels that are worked on at a time.
BLOCK_LANES = 4
#: Bytes of a block's slot, and of the slots of a turn; slots of the ring, and its first byte, whose
#: bits are apart from those of the slots.
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
        """As of :class:`.kernel.LaneShifts`, with a slot for each turn.

        Raises:
            KernelError: it does not fit, or the schedule holds updates for too long.
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
        """As of :class:`.base.Shifts`."""
        return _BlockKernel(self, vault_bits).build()

    @cached_property
    def cycles(self) -> float:
        """Those of the loop, which stores messages two at a time, and the ends of lines."""
        return self.loop_cycles / BLOCK + LINE_ENDS

    def shared_cycles(self, place: SharedImage) -> float:
        """As of :class:`.base.Shifts`; columns of DRAM are full."""
        bus = (LOADED_VECTORS + 1) * vector_stride(self.labels, self.bits) / BUS_BYTES
        return max(self.cycles, place.pes * bus)


class _BlockKernel(TransformKernel):
    """The program."""

    def __init__(self, shifts: BlockShifts, vault_bits: int | None) -> None:
        super().__init__(shifts, vault_bits)
        self.pair = self.writer.constant(
            "pair", COLUMN_BYTES // self.size, "elements of two messages"
        )
        # Words that the run has used.
        self.near, self.far, self.toggle = self.run.lanes, self.run.wait, self.run.costs

    def set_lengths(self) -> None:
        """One row."""
        w = self.writer
        w.op("mov", self.y, self.labels)
        w.op("set.vl", self.y)
        w.op("set.mr", "one")

    def spread(self) -> None:
        """Distances of the run."""
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
        """Set the addresses of the first turn, and load all slots."""
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
        """Bytes from a block's vector to that of the pixel that the sweep comes to first."""
        w = self.writer
        # Of the distance near, this bit is set if it is negative.
        w.op("and", result, self.near, 4 * _VECTOR)
        w.op("srl", result, result, 2)

    def start_messages(self, update: int) -> None:
        """Begin a line of each lane with the message in its slot."""
        w = self.writer
        for lane in range(BLOCK_LANES):
            # u is the place of the lane's first vector, two vectors after that of the lane before.
            place = self.first_place - lane % BLOCK * _VECTOR
            w.op("add", self.incoming[lane], self.slot(update + lane), place)

    def load(self, update: int) -> None:
        """After an update: its register moves to the next slot, and a block may be loaded."""
        w = self.writer
        w.op("xor", self.slot(update), self.slot(update), self.toggle)
        lane = self.lane(update)
        if self._second(update) and lane % BLOCK == 1:
            self._load_block(lane)

    def _load_block(self, lane: int) -> None:
        """Load stream: a block of the pair of lanes that ends with ``lane``."""
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
            # The last messages of a line may leave the tile.
            self._advance(self.far, lambda: w.op("add", store, store, run.last_pitch))
            return

        def next_line() -> None:
            w.op("add", store, store, run.line_wrap)
            w.op("mov", self.store_left, run.updates)

        self._advance(self.near, next_line)

    def _advance(self, distance: str, last: Callable[[], None]) -> None:
        """Move the store stream by ``distance``, or as ``last`` writes if no blocks are left."""
        w = self.writer
        end_of_line, on = w.new_label("seldom"), w.new_label("on")
        w.op("beq", self.store_left, self.zero, end_of_line)
        w.op("add", self.target[0], self.target[0], distance)
        w.label(on)
        w.detour(end_of_line, on, last)

    def end_of_group(self, n: int) -> None:
        """After the last update of a turn: its line may end."""
        if self._second(n):
            super().end_of_group(n)

    def finish(self, end: int) -> None:
        """The end of a run, which is the end of a turn."""
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
