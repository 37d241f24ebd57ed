"""The frame of the kernels on blocks of 2 x 2 pixels (:mod:`microkernels.bp.record`).

A run's lines, pairs of lines and updates are those of blocks: a line of blocks is two lines of
pixels, the lanes 0 and 1 or 2 and 3, and each of its updates computes four messages. A *turn* is
eight updates, of the four lanes at two pixels, and ends with a block; all lines end at the end of a
turn.

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

from abc import ABC
from collections.abc import Callable

from microkernels.common.scratchpad_plan import ScratchpadPlan

from .frame import LaneFrame
from .record import BLOCK, LOADED_VECTORS, PART

#: Lines of pixels interleaved, and updates of a turn.
BLOCK_LANES = 4
TURN_UPDATES = BLOCK * BLOCK_LANES
#: Slots of the ring, vectors in a block's slot, and number of pairs of lanes.
_TURNS = 4
_SLOT_VECTORS = 16
PAIRS = 2


def add_ring(pad: ScratchpadPlan, vector: int) -> bool:
    """Add the ring for vectors of ``vector`` bytes after all places, where the bits of its address
    don't overlap those of the slots; whether these places end before it."""
    slot = _SLOT_VECTORS * vector
    ring = _TURNS * PAIRS * slot
    fits = pad.used <= ring
    pad.set_ring(ring, slot, TURN_UPDATES, PART * vector)
    pad.used = 2 * ring
    return fits


class BlockFrame(LaneFrame, ABC):
    """Frame of a kernel on blocks, whose ring is that of :func:`add_ring`."""

    def set_places(self) -> None:
        """As for :class:`.frame.LaneFrame`, with names for distances in a block."""
        super().set_places()
        self.pixel = self.pad.vector // PART
        self.turn = PAIRS * self.pad.slot
        self.pair = self.writer.constant(
            "pair", BLOCK * self.pixel // self.size, "elements of two messages"
        )
        # Words that the run no longer needs.
        self.near, self.far, self.toggle = self.run.lanes, self.run.wait, self.run.costs

    def spread(self) -> None:
        """Compute the run's distances."""
        w, run = self.writer, self.run
        w.note("A line without a partner is worked on twice.")
        with w.unless("bne", run.lanes, "one"):
            w.op("mov", run.line_pitch, self.zero)
        w.op("mov", self.near, BLOCK * self.pixel)
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
        w, run, pad = self.writer, self.run, self.pad
        w.op("add", self.target[0], run.first_message, self.near)
        w.op("mov", self.left, run.updates)
        w.op("mov", self.store_left, run.updates)
        self.first_pixel(self.y)
        w.op("mov", self.x, self.pixel)
        w.op("sub", self.x, self.x, self.y)
        for update in range(pad.slots):
            lane = self.lane(update)
            place = pad.ring + lane // BLOCK * pad.slot + lane % BLOCK * BLOCK * self.pixel
            w.op("add", self.slot(update), self.x if self.second(update) else self.y, place)
        w.note("Fill the ring.")
        w.op("li", self.source[1], pad.ring)
        w.op("mov", self.toggle, self.turn)
        w.op("mov", self.load_groups, run.groups)
        self.start_line()
        for _ in range(_TURNS):
            for lane in range(1, BLOCK_LANES, BLOCK):
                self.load_block(lane)

    def second(self, update: int) -> bool:
        """Whether an update is at the second pixel of a block."""
        return update // BLOCK_LANES % BLOCK == 1

    def first_pixel(self, result: str) -> None:
        """Bytes from a block's vector to that of the pixel that the sweep reaches first."""
        w = self.writer
        # This bit of the distance near is set if it is negative.
        w.op("and", result, self.near, 4 * self.pixel)
        w.op("srl", result, result, 2)

    def start_messages(self, update: int) -> None:
        """Begin a line of each lane with the message in its slot."""
        w = self.writer
        for lane in range(BLOCK_LANES):
            # u is the address of the lane's first vector, two vectors after that of the previous
            # lane.
            place = LOADED_VECTORS * self.pad.vector - lane % BLOCK * self.pixel
            w.op("add", self.incoming[lane], self.slot(update + lane), place)

    def load(self, update: int) -> None:
        """Move an updated lane's register to the next slot, and possibly load a block."""
        w = self.writer
        w.op("xor", self.slot(update), self.slot(update), self.toggle)
        lane = self.lane(update)
        if self.second(update) and lane % BLOCK == 1:
            self.load_block(lane)

    def load_block(self, lane: int) -> None:
        """Load a block of the load stream for the pair of lanes that ends with ``lane``."""
        w, run, slot = self.writer, self.run, self.pad.slot
        done = w.new_label("loaded")
        second = lane >= BLOCK
        w.op("beq", self.load_groups, self.zero, done)
        note = f"a, b, c of lanes {lane - 1} and {lane}"
        if second:
            w.op("add", self.x, self.source[0], run.line_pitch)
            w.op("add", self.y, self.source[1], slot)
            self.load_parts(self.y, self.x, note)
        else:
            self.load_parts(self.source[1], self.source[0], note)

        def first() -> None:
            self.place_first(lane)
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
            w.op("xor", self.toggle, self.toggle, 3 * self.turn)

    def load_parts(self, slot: str, address: str, note: str) -> None:
        """Load what the updates of two lanes read in a block at ``address``."""
        self.writer.load(slot, address, "inputs", note=note)

    def place_first(self, lane: int) -> None:
        """Set ``x`` to where messages that begin two lines are loaded, beside the next block."""
        w, place = self.writer, LOADED_VECTORS * self.pad.vector
        self.first_pixel(self.x)
        w.op("add", self.x, self.x, self.source[1])
        w.op("add", self.x, self.x, place + lane // BLOCK * self.pad.slot)

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
        if not self.second(update):
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

    def store_pairs(self, lanes: list[int]) -> None:
        """End a run with the stores of the pairs of messages that end with ``lanes``."""
        w, run = self.writer, self.run
        w.op("add", self.source[0], self.target[0], run.line_pitch)
        self.describe()
        w.op("v.drain")
        for lane in lanes:
            address = self.target[0] if lane == 1 else self.source[0]
            w.store(address, self.message[lane - 1], self.pair)
        w.op("jmp", "run_end")
