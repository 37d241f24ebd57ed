"""Generates the BP-M kernel with a matrix for few labels: vectors of 8 or 16 bytes, in the frame of
blocks of 2 x 2 pixels (:mod:`microkernels.bp.block_frame`).

With short vectors, instructions and the bus's columns cost more than arithmetic. Sums that no other
update waits for are those of all pixels of a block, each one instruction on 4 vectors. The rest of
an update is three instructions on the pixel's own vector. A turn is two *steps*, each of which
updates the four lanes at one pixel::

    t = p + m  (4 lanes)   gap   r = min(S + t)  (4 lanes)   gap   m = r - r[0]  (4 lanes)   gap

The gaps keep results and their readers :data:`isa.timing.VECTOR_LATENCY` cycles apart, whatever
the unit waits for. With vectors of ``b`` beats and ``L`` labels, the first and the last are
``12 - 4 b`` beats long, as the other lanes come between. The last element of ``r`` is complete
after ``b L`` beats, but lanes follow each other faster in ``m`` than in ``r``: that gap takes
``11 - 3 b`` beats. In the second gap of a turn, the sums ``q = a + b`` of the next turn's blocks
are computed, and in the fourth ``p = q + c``; *pads*, whose result is not used, fill the others.

A step's messages are stored in the next one, after all of its ``r``: the unit has accepted two
instructions since the last ``t``, which read the messages. A turn's slot is loaded again after the
last ``m``, since two instructions have been accepted after the last ``r``.
"""

from functools import cached_property
from typing import ClassVar

from isa.limits import RANGE_BYTES
from isa.timing import VECTOR_LATENCY, WORD_BYTES
from microkernels.common.builder import KernelBuilder
from microkernels.common.feature_map import COLUMN_BYTES, round_up
from microkernels.common.scratchpad_plan import ScratchpadPlan

from .block_frame import BLOCK_LANES, BlockFrame, add_ring
from .kernel import MatrixPlan
from .plan import BUS_BYTES, LINE_ENDS
from .record import BLOCK, LOADED_VECTORS, PART, vector_stride


class FewPlan(MatrixPlan):
    """The kernel by a matrix for few labels, on blocks of pixels."""

    in_blocks: ClassVar[bool] = True
    stem: ClassVar[str] = "few_"
    lone: ClassVar[float] = 1

    @property
    def lines(self) -> int:
        return BLOCK_LANES

    @cached_property
    def pad(self) -> ScratchpadPlan:
        """The places.

        Raises:
            KernelError: vectors that do not fit the scratchpad.
        """
        size, vector = self.size, vector_stride(self.labels, self.bits)
        pad = ScratchpadPlan(align=vector)
        # Pads read from here.
        pad.take("S", max(round_up(self.labels**2 * size, RANGE_BYTES), PART * vector))
        # Messages of two lanes are next to each other.
        pad.take_each("m", BLOCK_LANES, vector)
        pad.take_each("raw", BLOCK_LANES, vector)
        pad.take("pad", PART * vector)
        if not add_ring(pad, vector) or pad.used > self.scratchpad_bytes:
            raise self.no_room(" by a matrix")
        return pad

    @property
    def cycles(self) -> float:
        """Cycles of the loop, which stores messages two at a time, and of line ends."""
        return super().cycles / BLOCK + LINE_ENDS

    @property
    def bus(self) -> float:
        """As for :class:`.plan.Plan`: the parts of a block, and two messages at a time."""
        inputs = LOADED_VECTORS * vector_stride(self.labels, self.bits)
        return (inputs + COLUMN_BYTES / BLOCK) / BUS_BYTES

    def builder(self, vault_bits: int | None) -> KernelBuilder:
        """As for :class:`.plan.Plan`."""
        return _FewKernel(self, vault_bits).build()


class _FewKernel(BlockFrame):
    """The program for few labels."""

    def __init__(self, plan: FewPlan, vault_bits: int | None) -> None:
        pad = plan.pad
        super().__init__(plan, vault_bits)
        self.set_places()
        self.beats = -(-self.labels * self.size // WORD_BYTES)
        constant = self.writer.constant
        constant("labels", self.labels, "labels")
        constant("part", PART * self.pixel // self.size, "elements of a block's vectors")
        constant("pad", pad["pad"], "result of pads")
        self.raw = [
            constant(f"raw{n}", pad[f"raw{n}"], f"r of lane {n}") for n in range(BLOCK_LANES)
        ]
        #: Beats of the gaps after t, r and m.
        self.gaps = (
            VECTOR_LATENCY - BLOCK_LANES * self.beats,
            VECTOR_LATENCY - 1 - (BLOCK_LANES - 1) * self.beats,
            VECTOR_LATENCY - BLOCK_LANES * self.beats,
        )

    def set_lengths(self) -> None:
        """Set the vector length and all rows of the matrix."""
        self.writer.op("set.vl", "labels")
        self.writer.op("set.mr", "labels")

    def load_costs(self) -> None:
        """Load the matrix."""
        w = self.writer
        w.op("mov", self.y, self.labels * self.labels)
        w.load(self.zero, self.run.costs, self.y)

    def emit_streams(self) -> None:
        """Update all lines of a run."""
        w = self.writer
        self.spread()
        self.begin()
        self.start_messages(0)
        w.note("Sums of the first turn.")
        for part in (1, 2):
            w.op("mov", self.y, self.source[1])
            self._sums(part)
            w.op("v.drain")
        self._turn(first=True)
        w.note("One turn.")
        w.label("turn")
        self._turn()
        w.op("jmp", "turn")
        w.emit_detours()
        w.note("Last messages.")
        w.label("last")
        self.store_pairs([lane for lane in range(BLOCK_LANES) if lane % BLOCK])

    def _turn(self, *, first: bool = False) -> None:
        """Write the updates of a turn; before the ``first`` one there are no messages to store."""
        for step in range(BLOCK):
            self._step(range(step * BLOCK_LANES, (step + 1) * BLOCK_LANES), store=step or not first)
        self.end_of_update("last", lambda: self.start_messages(0))

    def _step(self, updates: range, *, store: bool | int) -> None:
        w, second = self.writer, self.second(updates.start)
        w.note(f"Step {int(second)} of a turn.")
        for lane, update in enumerate(updates):
            t = self.slot(update)
            w.vector("v.v.add", t, t, self.incoming[lane], note=f"t of lane {lane}")
            w.op("mov", self.incoming[lane], self.message[lane])
        if second:
            self._ahead(2)
        else:
            self._fill(self.gaps[0])
        for lane, update in enumerate(updates):
            t = self.slot(update)
            w.vector("m.v.add.min", self.raw[lane], self.zero, t, note="r = min(S + t)")
            w.op("xor", t, t, self.toggle)
        for update in updates if store else ():
            self.store(update - BLOCK_LANES)
        if second:
            self._fill(self.gaps[1])
        else:
            self._ahead(1)
        for lane, raw in enumerate(self.raw):
            w.vector("v.s.sub", self.message[lane], raw, raw, note=f"m of lane {lane}")
        if second:
            for lane in range(1, BLOCK_LANES, BLOCK):
                self.load_block(lane)
        self._fill(self.gaps[2])

    def _ahead(self, part: int) -> None:
        """Add a part of the next turn's blocks to their sums."""
        self.writer.op("xor", self.y, self.source[1], self.toggle)
        self._sums(part)

    def _sums(self, part: int) -> None:
        """Add a part of the blocks of a turn, the first of which is at ``y``, to their sums."""
        w, pad = self.writer, self.pad
        w.op("set.vl", "part")
        for pair in range(BLOCK):
            if pair:
                w.op("add", self.y, self.y, pad.slot)
            w.op("add", self.x, self.y, part * pad.vector)
            w.vector("v.v.add", self.y, self.y, self.x, note="qp"[part - 1] + " of a block")
        w.op("set.vl", "labels")

    def _fill(self, beats: int) -> None:
        """Let at least ``beats`` pass in the vector unit."""
        w = self.writer
        w.op("set.vl", "part")
        for _ in range(-(-beats // (PART * self.beats))):
            w.vector("v.v.add", "pad", self.zero, self.zero, note="pad")
        w.op("set.vl", "labels")
