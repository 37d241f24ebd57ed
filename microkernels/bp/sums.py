"""The BP-M kernel with a matrix whose sums are made one axis ahead.

The sweeps right and left add ``p = (up + down) + cost`` to the messages of a pixel, the sweeps down
and up ``p = (cost + left) + right``. The *first* of the two sweeps of an axis that reaches a pixel
loads ``p``. So does the *second*; it also knows both messages of its axis, the one that it starts
from and the one that the first sweep stored, and so makes ``p`` of the other axis and stores it in
the place of the old one. No message of a second visit is loaded again, except the last one of a
line, and the program stores the others in the last iteration only. The additions are those of
:mod:`microkernels.bp.golden` in the same order.

*First visits* work on four lines at a time. An update ``n`` lives in its slot of four vectors: the
loaded sum ``p``, over which ``t`` is computed, the message that begins a line, ``m`` and ``r``::

    t(n) = p + m of the line's previous update    r(n - 1) = min(S + t)    m(n - 2) = r - r[0]

Each reads the result of the one before, and a long ``r`` lies between. *Second visits* work on two
lines in turn. A slot contains the cost, ``p``, the other message of the axis and the message that
begins a line; ``t`` replaces ``p``, and the new sum one of the vectors that it adds, ``x``::

    x(n - 1) = x + y    t(n) = p + m    m(n - 1) = r - r[0]    x(n) = x + m    r(n) = min(S + t)

A sweep to the right adds the other message to the cost first, then ``m``; the rest add ``m`` to one
and then the other. A pair of lines left over from first visits takes the same code; its new sum
goes to the spare vector of the record. A lone line is a pair of itself.

The rules are those of :mod:`microkernels.bp.kernel`; long vectors need no pads. A sum is stored,
and its slot loaded again, a group of instructions after the one that completed it. The first groups
of a run work on slots of no update, and their results are not used.
"""

from functools import cached_property, partial
from typing import ClassVar

from isa.limits import RANGE_BYTES
from isa.timing import VECTOR_LATENCY, WORD_BYTES
from microkernels.common.builder import KernelBuilder
from microkernels.common.feature_map import round_up
from microkernels.common.scratchpad_plan import ScratchpadPlan

from .frame import SumFrame
from .kernel import MatrixPlan
from .plan import BUS_SHARE, LONG_STEP
from .record import COST_PLACE, SPARE_PLACE, SUM_PLACE, vector_stride
from .runs import PAIR, SUM_LANES
from .shifts.rhythm import beats_of
from .tiles import TileGrid

#: Vectors of a slot, and slots of the ring.
_VECTORS = 4
_SLOTS = 8
#: Cycles per update due to line ends (measured).
_LINE_ENDS = 0.5


class SumPlan(MatrixPlan):
    """The kernel by a matrix with sums made one axis ahead."""

    sums: ClassVar[bool] = True
    stem: ClassVar[str] = "sums_"
    lone: ClassVar[float] = 1
    step: ClassVar[float] = LONG_STEP

    @property
    def lines(self) -> int:
        return SUM_LANES

    @cached_property
    def pad(self) -> ScratchpadPlan:
        """The places.

        Raises:
            KernelError: they do not fit the scratchpad, or so short vectors that pads are needed.
        """
        beats, vector = beats_of(self.labels, self.bits), vector_stride(self.labels, self.bits)
        pad = ScratchpadPlan(align=8)
        pad.take("S", round_up(self.labels**2 * self.size, RANGE_BYTES))
        for name in ("Xr", "Yr", "Xm", "Ym"):
            pad.take(name, vector)
        pad.take_ring(_VECTORS, vector, most=_SLOTS)
        hidden = 3 * beats >= VECTOR_LATENCY and self.labels * beats >= VECTOR_LATENCY
        if not hidden or pad.used > self.scratchpad_bytes:
            raise self.no_room(" with sums one axis ahead")
        return pad

    @property
    def cycles(self) -> float:
        """Those of the kernel without sums; first visits, which are half, add two vectors less."""
        return MatrixPlan.like(self).cycles + _LINE_ENDS - beats_of(self.labels, self.bits)

    def shared_cycles(self, grid: TileGrid) -> float:
        """As for :class:`.plan.Plan`."""
        return self.image_cycles(grid, self.cycles, BUS_SHARE * self.bus, PAIR)

    def builder(self, vault_bits: int | None) -> KernelBuilder:
        """As for :class:`.plan.Plan`."""
        return SumKernel(self, vault_bits).build()


class SumKernel(SumFrame):
    """The program with a matrix of smoothness costs and sums made one axis ahead."""

    def __init__(self, plan: SumPlan, vault_bits: int | None) -> None:
        pad, labels = plan.pad, plan.labels
        super().__init__(plan, vault_bits)
        #: Rows of a matrix that take as long as a result.
        self.few = -(-VECTOR_LATENCY // -(-labels * self.size // WORD_BYTES))
        reg = self.writer.register
        self.source = [reg("load", "address of the next sum or data cost"), reg("load_lane", "its")]
        self.left = reg("left", "updates left in the update stream's line")
        self.target = [reg("store", "address of the next message"), reg("store_lane", "its")]
        self.store_step = reg("store_step", "bytes from there to the one after it")
        self.slots = [
            reg("slot_0", "slot of update n"),
            reg("slot_1", "slot of update n - 1"),
            reg("slot_2", "slot of update n - 2"),
            reg("slot_3", "slot of update n - 3; offset of x in a slot"),
            reg("slot_4", "slot of update n - 4; offset of y in a slot"),
        ]
        self.half = reg("half", "bytes between pairs of lines; the vector y")
        self.incoming = [
            reg("incoming_x", "message that line X starts from; a new message"),
            reg("incoming_y", "message that line Y starts from; one before it is normalised"),
        ]
        self.first = reg("first", "where a line's first message goes; an operand")
        self.late = reg("late", "address of the sum that is stored next")
        self.soon = reg("soon", "address of the one after it")
        self.sum = reg("sum", "address of the sum of update n")
        self.sum_line = reg("sum_line", "address of the first sum of its line")
        self.raw = [reg(f"raw_{line}", f"where r of line {line.upper()} goes") for line in "xy"]
        for name, value, purpose in (
            ("one", 1, "1"),
            ("labels", labels, "labels"),
            ("inputs", pad.vector // self.size + labels, "elements of cost and sum"),
            ("matrix_elements", labels * labels, "elements of S"),
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
        self.writer.load(self.zero, self.run.costs, "matrix_elements")

    def emit_streams(self) -> None:
        """Write the streams of second visits and pairs, and of first visits."""
        w = self.writer
        w.op("mov", self.scratch, SUM_LANES)
        w.op("beq", self.run.lanes, self.scratch, "fours")
        w.note("Lines in pairs.")
        _Pairs(self).emit()
        w.note("First visits of lines in fours.")
        w.label("fours")
        _Fours(self).emit()


class _Stream:
    """Updates all lines of a run (:class:`microkernels.bp.runs.SweepRun`).

    Parameters:
        kernel: registers and instructions; the code goes to its builder.

    Attributes:
        lanes: lines interleaved. name: stem of the labels. first: place in a slot of the message
            that begins a line.
    """

    lanes: int
    name: str
    first: int

    def __init__(self, kernel: SumKernel) -> None:
        self.kernel = kernel
        self.writer = kernel.writer
        self.vector = kernel.pad.vector

    def emit(self) -> None:
        """Write the stream's code, from the run's words to the jump to the run's end."""
        p, w, run = self.kernel, self.writer, self.kernel.run
        self.set_up()
        w.op("mov", p.load_groups, run.groups)
        w.op("mov", p.left, run.updates)
        w.op("mov", p.target[0], p.zero, note="no message yet")
        w.op("add", p.store_step, run.first_message, run.pixel_pitch)
        with w.unless("bne", run.updates, "one"):
            w.op("add", p.store_step, run.first_message, run.last_pitch)
        self._start_line()
        self._fill()
        loop, end = f"{self.name}_loop", f"{self.name}_end"
        w.label(loop)
        for lane in range(self.lanes):
            self.group(lane)
        w.op("sub", p.left, p.left, 1)
        with w.unless("beq", p.left, "one"):
            w.op("bne", p.left, p.zero, loop)
            w.op("sub", run.groups, run.groups, 1)
            w.op("beq", run.groups, p.zero, end)
            w.op("mov", p.left, run.updates)
            w.op("mov", p.store_step, run.line_wrap)
            self.next_line()
            w.op("jmp", loop)
        w.note("Before the last update of a line: its message may leave the tile.")
        w.op("mov", p.store_step, run.last_pitch)
        self.last_update()
        w.op("jmp", loop)
        w.note("Last messages.")
        w.label(end)
        self.end()
        w.op("jmp", "run_end")
        w.emit_detours()

    def set_up(self) -> None:
        """Write what a run begins with."""

    def group(self, lane: int) -> None:
        """Write the instructions of update n, which is one of ``lane``."""

    def last_update(self) -> None:
        """Write what comes before the last update of a line."""

    def next_line(self) -> None:
        """Write what the update stream's next line begins with."""

    def end(self) -> None:
        """Write the instructions of the last updates and their stores."""

    def load(self, lane: int, slot: str, address: str) -> None:
        """Load the inputs of an update, except the message that begins a line."""

    def _start_line(self) -> None:
        p, w = self.kernel, self.writer
        w.op("mov", p.load_left, p.run.updates)
        w.op("mov", p.source[0], p.run.load_start)

    def _fill(self) -> None:
        """Fill the ring, except the last two slots, which the first groups load."""
        p, w, slot = self.kernel, self.writer, self.kernel.slots[0]
        fill, full = f"{self.name}_fill", f"{self.name}_full"
        w.op("mov", slot, "ring")
        w.op("sub", p.first, "ring_end", PAIR * p.pad.slot)
        w.op("mov", p.late, p.first)
        w.label(fill)
        for lane in range(self.lanes):
            self.load_update(lane, slot)
            w.op("add", slot, slot, p.pad.slot)
            if lane == PAIR - 1:
                w.op("beq", slot, p.late, full)
        w.op("jmp", fill)
        w.label(full)
        w.op("mov", slot, "ring")

    def turn(self) -> None:
        """Advance the slots by an update."""
        p, w = self.kernel, self.writer
        used = p.slots[: self.lanes + 1]
        for older in range(self.lanes, 0, -1):
            w.op("mov", used[older], used[older - 1])
        w.op("add", used[0], used[0], p.pad.slot)
        with w.unless("blt", used[0], "ring_end"):
            w.op("mov", used[0], "ring")

    def lane_address(self, running: str, first: str, lane: int) -> str:
        """The register with the address for ``lane``; ``running`` is that of the lane before."""
        p, w = self.kernel, self.writer
        if lane == 0:
            return first
        if lane == PAIR:
            w.op("add", running, first, p.half)
        else:
            w.op("add", running, first if lane == 1 else running, p.run.line_pitch)
        return running

    def load_update(self, lane: int, slot: str) -> None:
        """Load the next update of a line of the load stream into ``slot``."""
        p, w = self.kernel, self.writer
        done = w.new_label("loaded")
        w.op("beq", p.load_groups, p.zero, done)
        self.load(lane, slot, self.lane_address(p.source[1], p.source[0], lane))
        w.seldom("beq", p.load_left, p.run.updates, partial(self._load_first, lane, slot))
        if lane == self.lanes - 1:
            w.op("add", p.source[0], p.source[0], p.run.pixel_pitch)
            w.op("sub", p.load_left, p.load_left, 1)
            w.seldom("beq", p.load_left, p.zero, self._load_next_line)
        w.label(done)

    def _load_first(self, lane: int, slot: str) -> None:
        p, w = self.kernel, self.writer
        address = p.run.first_message
        for number in range(PAIR * (lane // PAIR), lane + 1):
            address = self.lane_address(p.scratch, p.run.first_message, number)
        w.op("add", p.first, slot, self.first * self.vector)
        w.load(p.first, address, "labels", note=f"message that begins line {lane}")

    def _load_next_line(self) -> None:
        p, w = self.kernel, self.writer
        w.op("sub", p.load_groups, p.load_groups, 1)
        w.op("add", p.run.load_start, p.run.load_start, p.run.lane_pitch)
        w.op("add", p.run.first_message, p.run.first_message, p.run.lane_pitch)
        self._start_line()

    def advance_target(self) -> None:
        """Move to the message of the lines' next update."""
        p, w = self.kernel, self.writer
        w.op("add", p.target[0], p.target[0], p.store_step)
        w.op("mov", p.store_step, p.run.pixel_pitch)


class _Fours(_Stream):
    """First visits of four lines at a time."""

    lanes = SUM_LANES
    name = "fours"
    first, message, raw = 1, 2, 3

    def set_up(self) -> None:
        """Find the second pair of lines."""
        self.writer.op("sra", self.kernel.half, self.kernel.run.lane_pitch, 1)

    def load(self, lane: int, slot: str, address: str) -> None:
        """Load a sum."""
        self.writer.load(slot, address, "labels", note=f"sum of line {lane}")

    def _fill(self) -> None:
        super()._fill()
        p, w = self.kernel, self.writer
        for number, slot in enumerate(p.slots[1:], 1):
            w.op("sub", slot, "ring_end", number * p.pad.slot)

    def group(self, lane: int) -> None:
        """Write the instructions of update n."""
        p, w = self.kernel, self.writer
        start, last = p.slots[0], p.slots[-1]
        w.note(f"Update n of line {lane}.")
        w.op("add", p.scratch, last, self.message * self.vector)
        w.seldom(
            "beq",
            p.left,
            p.run.updates,
            lambda: w.op("add", p.scratch, start, self.first * self.vector),
        )
        w.vector("v.v.add", start, start, p.scratch, note="t = p + m")
        self._raw(p.slots[1])
        self._message(p.slots[2])
        with w.unless("beq", p.target[0], p.zero):
            address = self.lane_address(p.target[1], p.target[0], lane)
            w.op("add", p.first, last, self.message * self.vector)
            w.store(address, p.first, "labels", note=f"message of line {lane}")
        if lane == self.lanes - 1:
            self.advance_target()
        self.load_update((lane - PAIR) % self.lanes, p.slots[PAIR])
        self.turn()

    def _raw(self, slot: str) -> None:
        p, w = self.kernel, self.writer
        w.op("add", p.incoming[0], slot, self.raw * self.vector)
        w.vector("m.v.add.min", p.incoming[0], p.zero, slot, note="r = min(S + t)")

    def _message(self, slot: str) -> None:
        p, w = self.kernel, self.writer
        w.op("add", p.incoming[0], slot, self.raw * self.vector)
        w.op("add", p.incoming[1], slot, self.message * self.vector)
        w.vector("v.s.sub", p.incoming[1], *[p.incoming[0]] * 2, note="m = r - r[0]")

    def end(self) -> None:
        """Write the last messages. The slots are one update further."""
        p, w = self.kernel, self.writer
        addresses = [*p.target, *p.source]
        w.op("add", addresses[2], addresses[0], p.half)
        for lane in (1, 3):
            w.op("add", addresses[lane], addresses[lane - 1], p.run.line_pitch)
        p.describe()
        w.op("v.drain")
        self._message(p.slots[2])
        self._raw(p.slots[1])
        w.op("v.drain")
        self._message(p.slots[1])
        w.op("v.drain")
        for address, slot in zip(addresses, p.slots[:0:-1], strict=True):
            w.op("add", p.first, slot, self.message * self.vector)
            w.store(address, p.first, "labels")


class _Pairs(_Stream):
    """Second visits, and first visits of lines that are not four."""

    lanes = PAIR
    name = "pairs"
    cost, sum, other, first = range(_VECTORS)

    def __init__(self, kernel: SumKernel) -> None:
        super().__init__(kernel)
        run = kernel.run
        #: Registers that are free while lines are updated.
        self.others, self.right, self.unstored = run.lanes, run.wait, run.costs
        self.x, self.y = kernel.slots[3:]
        self.added = kernel.half
        self.raw, self.message = ("Xr", "Yr"), ("Xm", "Ym")

    def set_up(self) -> None:
        """Set what depends on the direction of a second visit."""
        p, w, run, far = self.kernel, self.writer, self.kernel.run, self.other * self.vector
        w.op("add", p.sum_line, run.load_start, (SUM_PLACE - COST_PLACE) * self.vector)
        w.op("mov", p.scratch, PAIR)
        with w.unless("bne", self.others, p.scratch):
            w.note("A first visit: all messages are stored, no sums.")
            w.op("add", p.sum_line, run.load_start, (SPARE_PLACE - COST_PLACE) * self.vector)
            w.op("mov", self.others, p.zero)
            w.op("mov", self.unstored, p.zero)
        w.op("mov", p.sum, p.sum_line)
        self._all_rows()
        w.op("sub", self.right, self.others, far, note="0 in a sweep to the right")
        w.op("mov", self.x, self.cost * self.vector)
        w.op("mov", self.y, far)
        with w.unless("bge", self.others, p.zero):
            w.note("A sweep along columns.")
            w.op("mov", self.x, far)
            w.op("mov", self.y, self.cost * self.vector)

    def load(self, lane: int, slot: str, address: str) -> None:
        """Load cost, sum and the other message."""
        p, w = self.kernel, self.writer
        w.load(slot, address, "inputs", note=f"cost and sum of line {lane}")
        w.op("add", p.first, address, self.others)
        w.op("add", p.scratch, slot, self.other * self.vector)
        w.load(p.scratch, p.first, "labels", note=f"other message of line {lane}")

    def _fill(self) -> None:
        super()._fill()
        p, w = self.kernel, self.writer
        self._start(p.slots[0])
        for number in (1, 2):
            w.op("sub", p.slots[number], "ring_end", number * p.pad.slot)
        w.op("mov", self.added, "ring")

    def _start(self, slot: str) -> None:
        """Set the messages that the lines start from, X in ``slot`` and Y in the next one."""
        p, w = self.kernel, self.writer
        for lane in range(self.lanes):
            place = self.first * self.vector + lane * p.pad.slot
            w.op("add", p.incoming[lane], slot, place)

    def group(self, lane: int) -> None:
        """Write the instructions of update n."""
        p, w, other = self.kernel, self.writer, self.lanes - 1 - lane
        this, before, last = p.slots[:3]
        w.note(f"Update n of line {'XY'[lane]}.")
        self._complete(before)
        w.op("add", p.first, this, self.sum * self.vector)
        w.vector("v.v.add", p.first, p.first, p.incoming[lane], note="t = p + m")
        self._normalise(other)
        w.op("add", p.scratch, this, self.x)
        w.op("add", self.added, this, self.y)
        w.op("mov", p.source[1], p.incoming[lane])
        with w.unless("bne", self.right, p.zero):
            w.op("mov", p.source[1], self.added)
            w.op("mov", self.added, p.incoming[lane])
        w.vector("v.v.add", *[p.scratch] * 2, p.source[1], note="x = x + m")
        w.vector("m.v.add.min", p.raw[lane], p.zero, p.first, note="r = min(S + t)")
        w.op("mov", p.incoming[lane], self.message[lane])
        with w.unless("beq", p.target[0], p.zero):
            w.op("add", p.scratch, last, self.x)
            w.store(p.late, p.scratch, "labels", note=f"sum of line {'XY'[lane]}")
            kept, skipped = w.new_label("kept"), w.new_label("skipped")
            w.op("beq", self.unstored, p.zero, kept)
            w.op("bne", p.left, p.run.updates, skipped)
            w.label(kept)
            address = self.lane_address(p.target[1], p.target[0], lane)
            w.store(address, self.message[lane], "labels", note=f"message of line {'XY'[lane]}")
            w.label(skipped)
        w.op("mov", p.late, p.soon)
        if lane == 0:
            w.op("mov", p.soon, p.sum)
        else:
            w.op("add", p.soon, p.sum, p.run.line_pitch)
            w.op("add", p.sum, p.sum, p.run.pixel_pitch)
            self.advance_target()
        self.load_update(lane, last)
        self.turn()

    def _complete(self, slot: str) -> None:
        """Add the second vector to ``x`` of the update in ``slot``."""
        p, w = self.kernel, self.writer
        w.op("add", p.scratch, slot, self.x)
        w.vector("v.v.add", *[p.scratch] * 2, self.added, note="x = x + y")

    def _normalise(self, lane: int) -> None:
        note = f"{'XY'[lane]}m = {'XY'[lane]}r - {'XY'[lane]}r[0]"
        self.writer.vector("v.s.sub", self.message[lane], *[self.raw[lane]] * 2, note=note)

    def last_update(self) -> None:
        """Shorten ``r`` of a message that leaves the image, which nobody reads, and put it where no
        other message begins."""
        p, w = self.kernel, self.writer
        w.op("sub", p.scratch, p.run.last_pitch, (SPARE_PLACE + 1) * self.vector)
        with w.unless("bge", p.scratch, p.zero), w.unless("bge", p.zero, p.run.last_pitch):
            w.op("mov", p.scratch, p.few)
            w.op("set.mr", p.scratch)
            for lane, raw in enumerate(p.raw):
                w.op("add", raw, p.slots[0], self.first * self.vector + lane * p.pad.slot)

    def _all_rows(self) -> None:
        p, w = self.kernel, self.writer
        w.op("set.mr", "labels")
        for result, raw in zip(p.raw, self.raw, strict=True):
            w.op("mov", result, raw)

    def next_line(self) -> None:
        """Begin the next line with the messages in its slots."""
        p, w = self.kernel, self.writer
        self._all_rows()
        w.op("add", p.sum_line, p.sum_line, p.run.lane_pitch)
        w.op("mov", p.sum, p.sum_line)
        self._start(p.slots[0])

    def end(self) -> None:
        """Write the last messages and sums. The slots are one update further."""
        p, w = self.kernel, self.writer
        _, last, before = p.slots[:3]
        self._all_rows()
        self._complete(last)
        w.op("add", p.target[1], p.target[0], p.run.line_pitch)
        p.describe()
        w.op("v.drain")
        self._normalise(1)
        w.op("add", p.first, before, self.x)
        w.store(p.late, p.first, "labels", note="sum")
        w.store(p.target[0], self.message[0], "labels", note="message")
        w.op("v.drain")
        w.store(p.soon, p.scratch, "labels", note="sum")
        w.store(p.target[1], self.message[1], "labels", note="message")
