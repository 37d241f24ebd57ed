"""Generator of the BP-M kernel with messages by shifts on blocks of pixels.

Records hold blocks of 2 x 2 pixels (:mod:`microkernels.bp.blocks`). Lines, pairs of lines and
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
from dataclasses import replace

from microkernels.common.builder import KernelBuilder
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES

from ..blocks import BLOCK, PART
from .kernel import TransformKernel
from .rhythm import TransformPlan, rhythm, transform_plan
from .transform import Transform

__all__ = ["BLOCK_LANES", "block_builder", "block_plan"]

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


def block_plan(
    transform: Transform, labels: int, bits: int, scratchpad_bytes: int
) -> TransformPlan:
    """The plan of the scratchpad.

    Raises:
        KernelError: it does not fit, or the schedule holds updates for too long.
    """
    beat = rhythm(transform, labels, bits, BLOCK_LANES)
    plan = transform_plan(transform, labels, bits, beat, scratchpad_bytes)
    used = _RING + _TURNS * _TURN
    again = BLOCK * BLOCK_LANES * beat.period
    if used > scratchpad_bytes or plan.ring > _RING or beat.freed >= again + beat.places["q"]:
        raise KernelError(
            f"blocks of {labels} labels of {bits} bits do not fit a scratchpad of "
            f"{scratchpad_bytes} bytes by shifts"
        )
    return replace(plan, ring=_RING, slot=_SLOT, slots=BLOCK * BLOCK_LANES, vector=PART, used=used)


def block_builder(
    transform: Transform, labels: int, bits: int, scratchpad_bytes: int, vault_bits: int | None
) -> KernelBuilder:
    """BP-M by shifts on blocks; parameters and errors as of
    :func:`microkernels.bp.shifts.kernel.transform_builder`."""
    return _BlockKernel(transform, labels, bits, scratchpad_bytes, vault_bits).build()


class _BlockKernel(TransformKernel):
    """The program."""

    def __init__(
        self,
        transform: Transform,
        labels: int,
        bits: int,
        scratchpad_bytes: int,
        vault_bits: int | None,
    ) -> None:
        super().__init__(
            transform,
            labels,
            bits,
            rhythm(transform, labels, bits, BLOCK_LANES),
            block_plan(transform, labels, bits, scratchpad_bytes),
            vault_bits,
            in_blocks=True,
        )
        p = self.parts
        self.pair = p.writer.constant("pair", COLUMN_BYTES // p.size, "elements of two messages")
        # Words that the run has used.
        self.near, self.far, self.toggle = p.lanes, p.wait, p.costs

    def set_lengths(self) -> None:
        """One row."""
        p, w = self.parts, self.parts.writer
        w.op("mov", p.y, p.labels)
        w.op("set.vl", p.y)
        w.op("set.mr", "one")

    def spread(self) -> None:
        """Distances of the run."""
        p, w = self.parts, self.parts.writer
        w.note("A line without a partner is worked on twice.")
        with w.unless("bne", p.lanes, "one"):
            w.op("mov", p.across, p.zero)
        w.op("mov", self.near, COLUMN_BYTES)
        with w.unless("bge", p.step, p.zero):
            w.op("sub", self.near, p.zero, self.near)
        w.op("sub", self.far, p.step, self.near)
        w.op("sub", p.exit, p.exit, self.near)
        w.op("mov", p.x, self.far)
        with w.unless("bne", p.updates, "one"):
            w.op("mov", p.x, p.exit)
        w.op("sub", p.turn, p.turn, p.x)

    def begin(self) -> None:
        """Set the addresses of the first turn, and load all slots."""
        p, w = self.parts, self.parts.writer
        w.op("add", p.store[0], p.edge[0], self.near)
        w.op("mov", p.left, p.updates)
        w.op("mov", p.store_left, p.updates)
        self._first_pixel(p.y)
        w.op("mov", p.x, _VECTOR)
        w.op("sub", p.x, p.x, p.y)
        for update in range(p.slots):
            lane = p.lane(update)
            place = _RING + lane // BLOCK * _SLOT + lane % BLOCK * BLOCK * _VECTOR
            w.op("add", p.slot(update), p.x if self._second(update) else p.y, place)
        w.note("Fill the ring.")
        w.op("li", p.load[1], _RING)
        w.op("mov", self.toggle, _TOGGLES[0])
        w.op("mov", p.load_groups, p.groups)
        self.start_line()
        for _ in range(_TURNS):
            for lane in range(1, BLOCK_LANES, BLOCK):
                self._load_block(lane)

    def _second(self, update: int) -> bool:
        """Whether an update is at the second pixel of a block."""
        return update // BLOCK_LANES % BLOCK == 1

    def _first_pixel(self, result: str) -> None:
        """Bytes from a block's vector to that of the pixel that the sweep comes to first."""
        w = self.parts.writer
        # Of the distance near, this bit is set if it is negative.
        w.op("and", result, self.near, 4 * _VECTOR)
        w.op("srl", result, result, 2)

    def start_messages(self, update: int) -> None:
        """Begin a line of each lane with the message in its slot."""
        p, w = self.parts, self.parts.writer
        for lane in range(BLOCK_LANES):
            # u is the place of the lane's first vector, two vectors after that of the lane before.
            place = self.places.first_message - lane % BLOCK * _VECTOR
            w.op("add", p.incoming[lane], p.slot(update + lane), place)

    def load(self, update: int) -> None:
        """After an update: its register moves to the next slot, and a block may be loaded."""
        p, w = self.parts, self.parts.writer
        w.op("xor", p.slot(update), p.slot(update), self.toggle)
        lane = p.lane(update)
        if self._second(update) and lane % BLOCK == 1:
            self._load_block(lane)

    def _load_block(self, lane: int) -> None:
        """Load stream: a block of the pair of lanes that ends with ``lane``."""
        p, w = self.parts, self.parts.writer
        done = w.new_label("loaded")
        second = lane >= BLOCK
        w.op("beq", p.load_groups, p.zero, done)
        note = f"a, b, c of lanes {lane - 1} and {lane}"
        if second:
            w.op("add", p.x, p.load[0], p.across)
            w.op("add", p.y, p.load[1], _SLOT)
            w.load(p.y, p.x, "inputs", note=note)
        else:
            w.load(p.load[1], p.load[0], "inputs", note=note)

        def first() -> None:
            self._first_pixel(p.x)
            w.op("add", p.x, p.x, p.load[1])
            w.op("add", p.x, p.x, self.places.first_message + second * _SLOT)
            edge = p.edge[0]
            if second:
                w.op("add", p.y, edge, p.across)
                edge = p.y
            w.load(p.x, edge, self.pair, note="messages that begin the lines")

        self.seldom("beq", p.load_left, p.updates, first)
        if second:
            w.op("add", p.load[0], p.load[0], p.step)
            w.op("sub", p.load_left, p.load_left, 1)
            self.seldom("beq", p.load_left, p.zero, self.load_next_line)
        w.label(done)
        if second:
            w.op("xor", p.load[1], p.load[1], self.toggle)
            w.op("xor", self.toggle, self.toggle, _TOGGLES[0] ^ _TOGGLES[1])

    def store(self, update: int) -> None:
        """Store the messages of two lanes after the second one."""
        p, w = self.parts, self.parts.writer
        lane = p.lane(update)
        if lane % BLOCK == 0:
            return
        address, store = p.store[0], p.store[0]
        if lane > 1:
            address = p.x
            w.op("add", address, store, p.across)
        w.store(address, p.message[lane - 1], self.pair, note=f"messages of lanes to {lane}")
        if lane < BLOCK_LANES - 1:
            return
        if not self._second(update):
            w.op("sub", p.store_left, p.store_left, 1)
            # The last messages of a line may leave the tile.
            self._advance(self.far, lambda: w.op("add", store, store, p.exit))
            return

        def next_line() -> None:
            w.op("add", store, store, p.turn)
            w.op("mov", p.store_left, p.updates)

        self._advance(self.near, next_line)

    def _advance(self, distance: str, last: Callable[[], None]) -> None:
        """Move the store stream by ``distance``, or as ``last`` writes if no blocks are left."""
        p, w = self.parts, self.parts.writer
        there, on = w.new_label("seldom"), w.new_label("on")
        w.op("beq", p.store_left, p.zero, there)
        w.op("add", p.store[0], p.store[0], distance)
        w.label(on)
        self.detour(there, on, last)

    def end_of_group(self, n: int) -> None:
        """After the last update of a turn: its line may end."""
        if self._second(n):
            super().end_of_group(n)

    def finish(self, end: int) -> None:
        """The end of a run, which is the end of a turn."""
        if not self._second(end):
            return
        p, w = self.parts, self.parts.writer
        pending = self.complete(end)
        lanes = sorted(p.lane(update) for update in pending if p.lane(update) % BLOCK)
        w.op("add", p.load[0], p.store[0], p.across)
        self.describe()
        w.op("v.drain")
        for lane in lanes:
            address = p.store[0] if lane == 1 else p.load[0]
            w.store(address, p.message[lane - 1], self.pair)
        w.op("jmp", "run_end")
