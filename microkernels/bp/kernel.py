"""Generates the BP-M kernel: all four directions of a tile, any number of iterations.

The program reads everything about the tile from the parameter block (:mod:`microkernels.bp.runs`);
only the number of labels and the element width are built into the code. Its arithmetic is that of
:mod:`microkernels.bp.golden`.

An engine processes *runs* of lines, in pairs or one by one. Before a run the engine may wait for
another engine's flag, and after a run it may write flags. After a tile's last run it may wait until
other engines have reached the same point (:mod:`microkernels.runtime.barrier`,
:mod:`microkernels.bp.runs`). A run's description is read while the previous run ends. A line's last
message may go to another vault, where the line continues.

Two streams traverse the lines of a run without stopping at line ends: the *load stream* fills the
ring of slots and is ahead of the *update stream* by the ring's length.

The following rules keep the program correct for any timing of the memory and the front end. The
vector unit has no interlock. It contains at most :data:`isa.timing.VECTOR_HELD` (2) instructions.
So when it accepts an instruction, the one two places earlier has read its last operands, and every
instruction before that one ended at least the beats between them earlier.

- *Vector after vector*: at least :data:`isa.timing.VECTOR_LATENCY` cycles apart even if the unit
  never waits. That is the worst case, as a stall only adds cycles (:meth:`MatrixKernel.space`).
- *Store after vector* (a message): a store may issue immediately, while earlier instructions wait
  in the vector unit. ``m`` is stored after the ``q`` that follows the ``r`` computed from ``m``.
  Pair: ``m p r' q t m' p r q``, store; lone: ``m t p r q``, store. When the vector unit has
  accepted the last ``q``, ``p`` has read its operands, and ``m`` was complete before the
  instructions between them.
- *Load after vector* (a slot): slot ``h`` is reloaded after the same instruction. Its three vectors
  were last read by ``q`` and ``p`` of earlier updates, its first message by ``t`` of update ``h``;
  all of these precede the ``p`` that has read its operands.
- *Vector after store* (``m`` is recomputed while it is being stored) and *vector after load*: the
  hardware's array range check stalls the vector instruction.
- *Load after store* in memory: a sweep reads no message that it writes, except the message from
  which the rest of a cut line continues (:mod:`microkernels.bp.runs`). A ``memfence`` and a flag
  separate two sweeps, and the first part of such a line from its rest.

*Spacing.* A vector of ``b`` beats (64-bit words) read by one instruction must have been produced
:data:`isa.timing.VECTOR_LATENCY` cycles before. The kernel interleaves two lines, X and Y, so there
is always work of one line between two steps of the other. The instructions in the vector unit's
order, with ``a b c`` the loaded vectors and ``m`` the latest message::

    q = a + b   t = Xp + Xm   Ym = Yr - Yr[0]   Yp = q + c   Xr = min(S + t)
    q = a + b   t = Yp + Ym   Xm = Xr - Xr[0]   Xp = q + c   Yr = min(S + t)

``q`` is read three instructions later, ``t`` three, the last elements of ``r`` three, ``p`` and
``m`` after a long instruction: vectors of 3 beats or more are far enough apart. Between shorter
ones the kernel inserts *pads*: instructions that add smoothness costs into an unused vector. Pads
cost fewer cycles than ``v.drain``.

A lone line (the last of an odd number) has no partner; pads replace the other line::

    q = a + b   pad   m = r - r[0]   pad   pad   t = p + m   pad   p = q + c   r = min(S + t)
"""

from collections.abc import Mapping
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from isa.limits import RANGE_BYTES
from isa.table import MAX_VL
from isa.timing import VECTOR_LATENCY, WORD_BYTES
from microkernels.common.builder import KernelBuilder
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import round_up
from microkernels.common.scratchpad_plan import ScratchpadPlan

from .frame import BpFrame
from .plan import Plan
from .problem import element_type
from .record import LOADED_VECTORS, vector_stride

#: Minimum slots: a lone line looks two updates ahead while it reads one. An update is loaded two
#: updates less than the slots ahead: with 8 and 16 labels of 16 bits this is more than 480 cycles,
#: enough for a DRAM shared by four engines.
MIN_SLOTS = 4
#: The two interleaved lines.
LINES = "XY"


def _pad(labels: int, bits: int, slots: int) -> ScratchpadPlan:
    """The places, and a ring of ``slots`` slots. A slot contains the three loaded vectors and, at a
    line's first update, the message that begins the line."""
    vector = vector_stride(labels, bits)
    pad = ScratchpadPlan(align=8)
    # Slots share no range, so none waits for a load into another.
    pad.take("S", round_up(labels * labels * element_type(bits).itemsize, RANGE_BYTES))
    for name in ("q", "p", "t", "pad", "Xr", "Yr", "Xm", "Ym"):
        pad.take(name, vector)
    pad.take_ring(LOADED_VECTORS + 1, vector, most=slots)
    return pad


@CHECK.arguments
def most_labels(bits: int, scratchpad_bytes: int) -> int:
    """Maximum number of labels whose working set fits; 0 if none does."""
    labels = 0
    while labels < MAX_VL and _pad(labels + 1, bits, MIN_SLOTS).used <= scratchpad_bytes:
        labels += 1
    return labels


class MatrixPlan(Plan):
    """The kernel by a matrix, on lines in pairs."""

    lone: ClassVar[float] = 0.7

    @property
    def means(self) -> str:
        return "a matrix"

    @property
    def lines(self) -> int:
        return len(LINES)

    @cached_property
    def pad(self) -> ScratchpadPlan:
        """The scratchpad with a ring of :attr:`slots` slots, or fewer (at least 4) if they don't
        fit.

        Raises:
            KernelError: the vectors do not fit, or an odd number of slots or fewer than 4.
        """
        slots = self.slots
        if slots < MIN_SLOTS or slots % len(LINES):
            raise KernelError(f"slots must be an even number of at least {MIN_SLOTS}, not {slots}")
        limit = most_labels(self.bits, self.scratchpad_bytes)
        if self.labels > limit:
            raise self.no_room(f"; 1 to {limit} fit")
        while _pad(self.labels, self.bits, slots).used > self.scratchpad_bytes:
            slots -= len(LINES)
        return _pad(self.labels, self.bits, slots)

    def costs(self, smoothness: NDArray[np.signedinteger]) -> tuple[bytes, ...]:
        """The matrix and its transpose, each followed by the damping if there is any."""
        damping = np.array([self.variant.damping] * self.variant.damped, smoothness.dtype)
        return tuple(
            np.ascontiguousarray(one).tobytes() + damping.tobytes()
            for one in (smoothness, smoothness.T)
        )

    @property
    def cost_bytes(self) -> int:
        return (self.labels**2 + self.variant.damped) * self.size

    @property
    def cycles(self) -> float:
        """Cycles of the loop."""
        return self.loop_cycles(self.labels)

    def builder(self, vault_bits: int | None) -> KernelBuilder:
        """As for :class:`.plan.Plan`."""
        return MatrixKernel(self, vault_bits).build()


class MatrixKernel(BpFrame):
    """The program with a matrix of smoothness costs."""

    remarks = ("X and Y are the two lines worked on at a time; h counts updates.",)
    followers: ClassVar[Mapping[str, str]] = {
        "first_message_y": "address of that of the load stream's line Y"
    }

    def __init__(self, plan: MatrixPlan, vault_bits: int | None) -> None:
        super().__init__(plan, vault_bits)
        #: Instructions from the one that produces a vector to the first that may read it.
        self.apart = -(-VECTOR_LATENCY // -(-self.labels * self.size // WORD_BYTES))
        self.first_messages = (self.run.first_message, "first_message_y")
        reg = self.writer.register

        def pair(stem: str, purpose: str) -> list[str]:
            """Allocate a register per line."""
            return [reg(f"{stem}_{line.lower()}", f"{purpose} line {line}") for line in LINES]

        self.source = pair("load", "address of the next a, b, c of")
        self.left = reg("left", "updates left in the update stream's line")
        self.target = pair("store", "address of the next message written to")
        self.store_step = pair("store_step", "bytes from there to the one after it,")
        self.incoming = pair("incoming", "message that update h starts from,")
        self.this_slot = reg("this_slot", "slot h")
        self.next_slot = reg("next_slot", "slot h + 1")
        self.a = reg("a", "a of the slot that q reads next")
        self.b = reg("b", "b of that slot")
        self.c = reg("c", "c of the slot that p reads next")
        self.first = reg("first", "where the first message of a line goes")
        self._set_places()
        self.raw = ("Xr", "Yr")
        self.message = ("Xm", "Ym")

    def _set_places(self) -> None:
        pad, labels = self.pad, self.labels
        for name, value, purpose in (
            ("one", 1, "1"),
            ("labels", labels, "labels"),
            ("inputs", 2 * pad.vector // self.size + labels, "elements of a, b and c"),
            ("matrix_elements", labels * labels, "elements of S"),
            ("S", pad["S"], "smoothness costs"),
            ("q", pad["q"], "a + b"),
            ("p", pad["p"], "a + b + c"),
            ("t", pad["t"], "a + b + c + m"),
            ("pad", pad["pad"], "result of pads"),
            ("Xr", pad["Xr"], "message of line X before it is normalised"),
            ("Yr", pad["Yr"], "message of line Y before it is normalised"),
            ("Xm", pad["Xm"], "message of line X"),
            ("Ym", pad["Ym"], "message of line Y"),
            ("ring", pad.ring, "ring of slots"),
            ("ring_end", pad.ring + pad.slots * pad.slot, "end of the ring"),
        ):
            self.writer.constant(name, value, purpose)

    def load_costs(self) -> None:
        """Load the matrix."""
        self.writer.load("S", self.run.costs, "matrix_elements")

    def emit_streams(self) -> None:
        """Write streams of lines in pairs, and of lines one by one."""
        w = self.writer
        w.op("beq", self.run.lanes, "one", "lone")
        w.note("Lines in pairs.")
        _Stream(self, lanes=len(LINES), name="pair").emit()
        w.note("Lines one by one.")
        w.label("lone")
        _Stream(self, lanes=1, name="lone").emit()

    def normalise(self, lane: int) -> None:
        """Subtract the first entry of line ``lane``'s (0: X, 1: Y) new message from every entry."""
        self.writer.vector(
            "v.s.sub",
            self.message[lane],
            self.raw[lane],
            self.raw[lane],
            note=f"{LINES[lane]}m = {LINES[lane]}r - {LINES[lane]}r[0]",
        )

    def store_message(self, lane: int) -> None:
        """Store the new message of line ``lane``."""
        note = f"message of line {LINES[lane]}"
        self.writer.store(self.target[lane], self.message[lane], "labels", note=note)

    def add_presum(self) -> None:
        """Compute ``q`` of the slot that ``a`` and ``b`` point into."""
        self.writer.vector("v.v.add", "q", self.a, self.b, note="q = a + b")

    def add_partial(self) -> None:
        """Compute ``p`` of the slot that ``c`` points into."""
        self.writer.vector("v.v.add", "p", "q", self.c, note="p = q + c")

    def space(self, between: int) -> None:
        """Pad after ``between`` instructions, so that the result before these may be read."""
        for _ in range(self.apart - 1 - between):
            self.writer.vector("v.v.add", "pad", "S", "S", note="pad")


class _Stream:
    """Updates all lines of a run (:class:`microkernels.bp.runs.SweepRun`), in pairs or one by one.

    When the code begins, the run's words are in their registers; when it ends, every vector
    instruction is complete and the messages' stores are issued.

    Parameters:
        kernel: registers and instructions; the code goes to its builder.
        lanes: lines interleaved, 2 or 1.
        name: stem of the labels.
    """

    def __init__(self, kernel: MatrixKernel, *, lanes: int, name: str) -> None:
        self.kernel = kernel
        self.lanes = lanes
        self.name = name

    def emit(self) -> None:
        p, w = self.kernel, self.kernel.writer
        self._set_up()
        self._fill(f"{self.name}_fill")
        self._presum()
        w.label(f"{self.name}_loop")
        for lane in range(self.lanes):
            self._update(lane)
        w.op("sub", p.left, p.left, 1)
        with w.unless("beq", p.left, "one"):
            w.op("bne", p.left, p.zero, f"{self.name}_loop")
            w.note("Next line: starts from the message in its slot.")
            w.op("sub", p.run.groups, p.run.groups, 1)
            w.op("beq", p.run.groups, p.zero, f"{self.name}_end")
            w.op("mov", p.left, p.run.updates)
            for lane, slot in zip(range(self.lanes), (p.this_slot, p.next_slot), strict=False):
                w.op("add", p.incoming[lane], slot, p.first_place)
                w.op("mov", p.store_step[lane], p.run.line_wrap)
            w.op("jmp", f"{self.name}_loop")
            w.note("Before the last update of a line: its message may leave the tile.")
        for lane in range(self.lanes):
            w.op("mov", p.store_step[lane], p.run.last_pitch)
        w.op("jmp", f"{self.name}_loop")
        w.note("Last messages.")
        w.label(f"{self.name}_end")
        p.describe()
        w.op("v.drain")
        # In a pair, X was normalised after the last update of Y.
        last = self.lanes - 1
        p.normalise(last)
        for lane in range(last):
            p.store_message(lane)
        w.op("v.drain")
        p.store_message(last)
        w.op("jmp", "run_end")
        w.emit_detours()

    def _set_up(self) -> None:
        p, w = self.kernel, self.kernel.writer
        if self.lanes > 1:
            w.op("add", p.first_messages[1], p.first_messages[0], p.run.line_pitch)
        self._load_line()
        w.op("mov", p.load_groups, p.run.groups)
        w.op("mov", p.left, p.run.updates)
        begin = w.new_label("begin")
        w.op("mov", p.scratch, p.run.pixel_pitch)
        w.op("bne", p.run.updates, "one", begin)
        w.op("mov", p.scratch, p.run.last_pitch, note="the first message is the last")
        w.label(begin)
        for lane in range(self.lanes):
            w.op("mov", p.target[lane], p.zero, note="no message yet")
            w.op("add", p.store_step[lane], p.first_messages[lane], p.scratch)

    def _load_line(self) -> None:
        """Move the load stream to the first pixel of its line."""
        p, w = self.kernel, self.kernel.writer
        w.op("mov", p.load_left, p.run.updates)
        w.op("mov", p.source[0], p.run.load_start)
        if self.lanes > 1:
            w.op("add", p.source[1], p.run.load_start, p.run.line_pitch)

    def _fill(self, label: str) -> None:
        p, w = self.kernel, self.kernel.writer
        w.note("Fill the ring.")
        w.op("mov", p.this_slot, "ring")
        w.label(label)
        for lane in range(self.lanes):
            self._load(lane)
            w.op("add", p.this_slot, p.this_slot, p.pad.slot)
        w.op("bne", p.this_slot, "ring_end", label)

    def _presum(self) -> None:
        """Compute the partial sum of update 0 and the presum of update 1."""
        p, w = self.kernel, self.kernel.writer
        w.note("Sums ahead of the first update.")
        w.op("mov", p.this_slot, "ring")
        for lane in range(self.lanes):
            w.op(
                "add",
                p.incoming[lane],
                p.this_slot,
                p.first_place + lane * p.pad.slot,
            )
        w.op("mov", p.a, p.this_slot)
        self._follow(p.this_slot)
        p.add_presum()
        w.op("v.drain")
        p.add_partial()
        w.op("add", p.next_slot, p.this_slot, p.pad.slot)
        w.op("mov", p.a, p.next_slot)
        self._follow(p.next_slot)
        p.add_presum()
        w.op("add", p.a, p.a, p.pad.slot)
        self._follow(p.next_slot)
        w.op("v.drain")

    def _update(self, lane: int) -> None:
        """Write update h of one line; the message of update h - 1 is normalised and stored. A run's
        first update has no such message, so its normalised vector is not used."""
        p, w = self.kernel, self.kernel.writer
        w.note(f"Update h of line {LINES[lane]}.")
        if self.lanes > 1:
            # Between p and the t that reads it are r, with one row per label, and q.
            p.space(p.labels + 1)
        else:
            p.space(1)
            p.normalise(lane)
            p.space(0)
        w.vector("v.v.add", "t", "p", p.incoming[lane], note="t = p + m")
        w.op("mov", p.incoming[lane], p.message[lane])
        if self.lanes > 1:
            p.space(2)
            p.normalise(self.lanes - 1 - lane)
        else:
            p.space(1)
        p.add_partial()
        w.vector("m.v.add.min", p.raw[lane], "S", "t", note=f"{LINES[lane]}r = min(S + t)")
        p.add_presum()
        # Scalar instructions and transfers issue while r and q are in the vector unit.
        unmade = w.new_label("unmade")
        w.op("beq", p.target[lane], p.zero, unmade)
        p.store_message(lane)
        w.label(unmade)
        w.op("add", p.target[lane], p.target[lane], p.store_step[lane])
        w.op("mov", p.store_step[lane], p.run.pixel_pitch)
        self._load(lane)
        self._turn()

    def _turn(self) -> None:
        """Advance the pointers by one slot."""
        p, w = self.kernel, self.kernel.writer
        w.op("mov", p.this_slot, p.next_slot)
        w.op("mov", p.next_slot, p.a)
        inside = w.new_label("ring")
        w.op("add", p.a, p.a, p.pad.slot)
        w.op("blt", p.a, "ring_end", inside)
        w.op("mov", p.a, "ring")
        w.label(inside)
        self._follow(p.next_slot)

    def _follow(self, slot: str) -> None:
        """Set ``b`` to the vector after ``a``, and ``c`` to its vector in ``slot``."""
        p, w = self.kernel, self.kernel.writer
        w.op("add", p.b, p.a, p.pad.vector)
        w.op("add", p.c, slot, 2 * p.pad.vector)

    def _load(self, lane: int) -> None:
        """Load the next update of one line of the load stream into the slot ``this_slot``."""
        p, w = self.kernel, self.kernel.writer
        done = w.new_label("loaded")
        w.op("beq", p.load_groups, p.zero, done)
        note = f"a, b, c of line {LINES[lane]}"
        w.load(p.this_slot, p.source[lane], "inputs", note=note)
        w.op("add", p.source[lane], p.source[lane], p.run.pixel_pitch)
        w.seldom("beq", p.load_left, p.run.updates, partial(self._load_first, lane))
        if lane == self.lanes - 1:
            w.op("sub", p.load_left, p.load_left, 1)
            w.seldom("beq", p.load_left, p.zero, self._load_next_line)
        w.label(done)

    def _load_first(self, lane: int) -> None:
        """Load the message that begins the load stream's line."""
        p, w = self.kernel, self.kernel.writer
        w.op("add", p.first, p.this_slot, p.first_place)
        note = f"message that begins line {LINES[lane]}"
        w.load(p.first, p.first_messages[lane], "labels", note=note)

    def _load_next_line(self) -> None:
        """Move the load stream to its next line."""
        p, w = self.kernel, self.kernel.writer
        w.op("sub", p.load_groups, p.load_groups, 1, note="next line")
        w.op("add", p.run.load_start, p.run.load_start, p.run.lane_pitch)
        for lane in range(self.lanes):
            w.op("add", p.first_messages[lane], p.first_messages[lane], p.run.lane_pitch)
        self._load_line()
