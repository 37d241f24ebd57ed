"""Generates the BP-M kernel with messages by shifts and sums made one axis ahead.

First and second visits, their order and the additions are those of :mod:`microkernels.bp.sums`; the
frame and the schedule of the transform are those of :mod:`microkernels.bp.shifts.kernel` with two
lanes. Each kind of visit has a loop of its own::

    first visit     loads p             t = p + m    the transform
                    stores m
    second visit    loads cost, p, o    t = p + m    the transform    a = x + y    b = a + z
                    stores b, and m at the end of a line and in the last iteration

where ``o`` is the stored message of the axis, and ``x``, ``y``, ``z`` are the cost, ``o`` and ``m``
in the order in which the golden model adds them. A slot holds ``cost | p, t, u | o | b | m``: ``m``
and ``b`` of an update go to the slot of its line's next one, where a message that begins a line is
loaded, too. The last ``m`` of a line therefore has a place of its own.

If four engines share a vault, its bus takes 64 cycles for the four vectors of an update, and an
engine 38 for the transform; a first visit moves two vectors.
"""

from abc import abstractmethod
from dataclasses import replace
from functools import cached_property
from statistics import mean
from typing import ClassVar

from microkernels.common.builder import KernelBuilder
from microkernels.common.scratchpad_plan import ScratchpadPlan

from ..frame import SumFrame
from ..plan import BUS_SHARE, LINE_ENDS, LONG_STEP
from ..problem import MessageDirection
from ..record import COST_PLACE, LOADED_VECTORS, PLACE, SUM_PLACE
from ..runs import PAIR
from ..tiles import TileGrid
from .kernel import LaneShifts, TransformKernel
from .rhythm import Additions, Rhythm, dependences

#: Places in a slot of vectors, as a multiple of their bytes.
_COST, _OTHER, _SUM, _MESSAGE = -1, 1, 2, LOADED_VECTORS
#: Places by which a store is late.
_LATER = 1
#: Slots of the ring: loads wait long where the bus is busy.
SLOTS = 16
#: Vectors from the data cost in a record to the message of a sweep to the left.
_LEFT = PLACE[MessageDirection.LEFT] + 1 - COST_PLACE


class SumShifts(LaneShifts):
    """The kernel with sums; two lanes.

    Attributes:
        joined: updates whose results are stored together.
    """

    sums: ClassVar[bool] = True
    step: ClassVar[float] = LONG_STEP
    vectors_before: ClassVar[int] = 1
    joined: ClassVar[int] = 1

    @cached_property
    def rhythm(self) -> Rhythm:
        """Order of the instructions of second visits."""
        return self._late("sums")

    @cached_property
    def first(self) -> Rhythm:
        """Order of the instructions of first visits."""
        return self._late("none")

    def _late(self, adds: Additions) -> Rhythm:
        """A schedule with stores where the vector unit has work."""
        beat = self._rhythm(adds)
        late = (beat.stored + _LATER) // beat.period <= beat.lanes
        return replace(beat, stored=beat.stored + _LATER * late)

    @property
    def padded(self) -> bool:
        """Whether an order has pads."""
        return super().padded or None in map(self.first.at, range(self.first.period))

    @cached_property
    def pad(self) -> ScratchpadPlan:
        """As for :class:`.kernel.LaneShifts`; the message of a lane is the last one of a line.

        Raises:
            KernelError: it does not fit, or a schedule keeps slots for too long.
        """
        if max(beat.freed - beat.lanes * beat.period for beat in (self.rhythm, self.first)) > 0:
            raise self.no_room(" by shifts with sums one axis ahead")
        return self._lane_pad()

    @cached_property
    def cycles(self) -> float:
        """Mean of the loops, and line ends."""
        return self.cycles_beside(0)

    def shared_cycles(self, grid: TileGrid) -> float:
        """As for :class:`.plan.Plan`."""
        cycles = self.cycles_beside(grid.ring.pes * self.bus)
        return self.image_cycles(grid, cycles, BUS_SHARE * self.bus)

    def cycles_beside(self, bus: float) -> float:
        """Cycles per update if a bus needs ``bus`` for a second visit."""
        first, second = (self.loop_cycles(1, number) / self.joined for number in (1, 0))
        return mean((max(first, bus / 2), max(second, bus))) + LINE_ENDS

    def builder(self, vault_bits: int | None) -> KernelBuilder:
        """As for :class:`.plan.Plan`."""
        return _SumTransformKernel(self, vault_bits).build()


class SumMessages(SumFrame, TransformKernel):
    """Messages of a kernel by shifts with sums: they go to the places where next updates read them.

    Attributes:
        ending: the code at the end of a run is being written.
    """

    ending = False

    @abstractmethod
    def place_message(self, update: int) -> None:
        """Set ``x`` to the place of the message of an update."""

    def last_message(self, lane: int) -> None:
        """Set ``x`` to the place of the message of a lane that no update reads."""
        self.writer.op("mov", self.x, self.pad[self.message[lane]])

    def vector(self, name: str, update: int) -> None:
        """Write instruction ``name`` of an update."""
        if name != "m":
            super().vector(name, update)
            return
        slot, lane = self.slot(update), self.lane(update)
        self.place_message(update)
        self.writer.vector("v.s.sub", self.x, slot, slot, note=f"m of lane {lane}")


class _SumTransformKernel(SumMessages):
    """The program of :class:`SumShifts`.

    Attributes:
        second: the code of second visits is being written.
        base: the first update of the pair whose code is being written.
    """

    second = False
    base = 0

    def __init__(self, shifts: SumShifts, vault_bits: int | None) -> None:
        super().__init__(shifts, vault_bits)
        self.first = shifts.first

    def set_places(self) -> None:
        """Allocate constants, and what second visits add."""
        w, run = self.writer, self.run
        w.constant("one", 1, "1")
        w.constant("labels", self.labels, "labels")
        w.constant("inputs", self.pad.vector // self.size + self.labels, "elements of cost and sum")
        w.constant("ring_end", self.pad.ring + self.pad.slots * self.pad.slot, "end of the ring")
        self.slots = [
            w.register(f"u{n}", f"slot of the update {n - 1} from the first of a pair")
            for n in range(1 + 2 * PAIR)
        ]
        # Words that are free while lines are updated, and the registers of first messages.
        self.other, self.operand_x = run.lanes, run.wait
        self.operand_y, self.operand_z = self.incoming
        self.ahead = w.register("ahead", "bytes from a sum to the message of its update")
        self.result = w.register("result", "where b goes")

    def emit_streams(self) -> None:
        """Update all lines of a run."""
        w, orders = self.writer, (self.first, self.beat)
        w.op("mov", self.x, PAIR)
        w.op("beq", self.run.lanes, self.x, "first")
        for self.second in (True, False):
            self.beat = orders[self.second]
            adds: Additions = "sums" if self.second else "none"
            self.needs = [*dependences(self.transform, self.beats, 8 * self.size, adds=adds)]
            if not self.second:
                w.label("first")
            self._stream()

    def _stream(self) -> None:
        """Write the code of one kind of visits. Two bodies are a loop; registers with the addresses
        of slots move on."""
        w = self.writer
        self.spread()
        self.begin()
        self.base = 0
        self.first_bodies()
        loop = w.new_label("loop")
        w.label(loop)
        for n in range(PAIR, 2 * PAIR):
            self.body(n)
        self.end_of_group(2 * PAIR - 1)
        w.op("jmp", loop)
        w.emit_detours()
        self.finish(2 * PAIR - 1)

    def after(self, n: int, place: int) -> None:
        """Move to the slots of a new pair of updates, after its first places."""
        w, (before, this, other, first, second) = self.writer, self.slots
        if n != PAIR or place > 1:
            return
        if place == 0:
            w.op("mov", before, other)
            w.op("mov", this, first)
            w.op("mov", other, second)
            self.base = n
            return
        w.op("add", first, first, PAIR * self.pad.slot)
        w.seldom("bge", first, "ring_end", lambda: w.op("mov", first, self.pad.ring))
        w.op("add", second, first, self.pad.slot)

    def slot(self, update: int) -> str:
        """As for :class:`microkernels.bp.frame.LaneFrame`, near the pair that is worked on."""
        return self.slots[update - self.base + 1]

    def finish_label(self, end: int) -> str:
        """The one end of a run."""
        return f"finish_{'second' if self.second else 'first'}"

    def fill(self) -> None:
        """Load all slots, in a loop, and point to the first ones."""
        w, pair, ring = self.writer, self.slots[1 : 1 + PAIR], self.pad.ring
        loop = w.new_label("fill")
        self.base = 0
        w.op("mov", pair[0], ring)
        w.label(loop)
        w.op("add", pair[1], pair[0], self.pad.slot)
        for lane in range(PAIR):
            self.load(lane + self.pad.slots)
        w.op("add", pair[0], pair[0], PAIR * self.pad.slot)
        w.op("blt", pair[0], "ring_end", loop)
        for n, slot in enumerate(self.slots[1:]):
            w.op("mov", slot, ring + n * self.pad.slot)

    def spread(self) -> None:
        """Write what a kind of visits begins with."""
        w, run, vector = self.writer, self.run, self.pad.vector
        sums = (SUM_PLACE - COST_PLACE) * vector
        w.note("Bytes from behind a line's last sum to the first of its lane's next.")
        w.op("sub", run.line_wrap, run.line_wrap, run.pixel_pitch)
        with w.unless("beq", run.updates, "one"):
            w.op("sub", run.line_wrap, run.line_wrap, run.pixel_pitch)
            w.op("add", run.line_wrap, run.line_wrap, run.last_pitch)
        if not self.second:
            w.op("add", run.load_start, run.load_start, sums)
            return
        w.op("add", self.target[0], run.load_start, sums)
        w.op("add", self.ahead, run.first_message, run.pixel_pitch)
        w.op("sub", self.ahead, self.ahead, self.target[0])
        w.note("The order of additions.")
        w.op("mov", self.operand_x, _OTHER * vector)
        w.op("mov", self.operand_y, _MESSAGE * vector)
        w.op("mov", self.operand_z, _COST * vector)
        with w.unless("blt", self.other, self.zero):
            w.note("A sweep along rows.")
            w.op("mov", self.operand_x, _COST * vector)
            w.op("mov", self.operand_z, _OTHER * vector)
            w.op("sub", self.x, self.other, _LEFT * vector)
            with w.unless("bne", self.x, self.zero):
                w.note("A sweep to the right.")
                w.op("mov", self.operand_y, _OTHER * vector)
                w.op("mov", self.operand_z, _MESSAGE * vector)

    def first_target(self) -> None:
        """Set the address that the first update stores to."""
        if not self.second:
            self.writer.op("add", self.target[0], self.run.first_message, self.run.pixel_pitch)

    def start_messages(self, update: int) -> None:
        """Nothing: the messages that begin lines are in their slots."""

    def load(self, update: int) -> None:
        """Load ``update`` into the slot of an earlier one."""
        super().load(update - self.pad.slots)

    def load_inputs(self, lane: int, slot: str) -> None:
        """Load ``p``; in second visits also the cost before it, and the other message."""
        w, source = self.writer, self.source[lane > 0]
        if not self.second:
            w.load(slot, source, "labels", note=f"p of lane {lane}")
            return
        w.op("add", self.x, slot, _COST * self.pad.vector)
        w.load(self.x, source, "inputs", note=f"cost and p of lane {lane}")
        w.op("add", self.x, slot, _OTHER * self.pad.vector)
        w.op("add", self.y, source, self.other)
        w.load(self.x, self.y, "labels", note=f"other message of lane {lane}")

    def vector(self, name: str, update: int) -> None:
        """Write instruction ``name`` of an update."""
        w, slot, lane = self.writer, self.slot(update), self.lane(update)
        if name == "t":
            w.op("add", self.x, slot, _MESSAGE * self.pad.vector)
            w.vector("v.v.add", slot, slot, self.x, note=f"t of lane {lane}")
        elif name == "a":
            w.op("add", self.x, slot, self.operand_x)
            w.op("add", self.y, slot, self.operand_y)
            w.vector("v.v.add", self.x, self.x, self.y, note="a = x + y")
        elif name == "b":
            w.op("add", self.x, slot, self.operand_x)
            w.op("add", self.y, slot, self.operand_z)
            following = self.slot(update + self.lanes)
            w.op("add", self.result, following, _SUM * self.pad.vector)
            w.vector("v.v.add", self.result, self.x, self.y, note="b = a + z")
        else:
            super().vector(name, update)

    def place_message(self, update: int) -> None:
        """As for :class:`SumMessages`."""
        lane = self.lane(update)
        if self.ending:
            self.last_message(lane)
            return
        following = self.slot(update + self.lanes)
        self.writer.op("add", self.x, following, _MESSAGE * self.pad.vector)
        # The updates of the next pixel may have begun.
        begun = (lane + self.beat.places["m"] // self.beat.period) // self.lanes
        last = self.run.updates if begun else "one"
        self.writer.seldom("beq", self.left, last, lambda: self.last_message(lane))

    def store(self, update: int) -> None:
        """Store a message or sum."""
        w, run, lane, vector = self.writer, self.run, self.lane(update), self.pad.vector
        following, target = self.slot(update + self.lanes), self.target[lane > 0]
        end, main, done = (w.new_label(name) for name in ("seldom", "main", "stored"))

        def last() -> None:
            address = self._message_address(self.y, target)
            self.last_message(lane)
            w.store(address, self.x, "labels", note=f"last message of lane {lane}")

        def message() -> None:
            w.op("add", self.y, target, self.ahead)
            w.op("add", self.x, following, _MESSAGE * vector)
            w.store(self.y, self.x, "labels", note=f"message of lane {lane}")

        w.op("beq", self.store_left, "one", end)
        w.detour(end, main if self.second else done, last)
        if self.second:
            w.seldom("beq", run.costs, self.zero, message)
        w.label(main)
        w.op("add", self.x, following, (_SUM if self.second else _MESSAGE) * vector)
        stored = "sum" if self.second else "message"
        w.store(target, self.x, "labels", note=f"{stored} of lane {lane}")
        w.label(done)
        if lane + 1 < self.lanes:
            self.lane_address(self.target[1], self.target[0], lane + 1)
            return
        w.op("add", self.target[0], self.target[0], run.pixel_pitch)
        w.op("sub", self.store_left, self.store_left, 1)

        def next_line() -> None:
            w.op("add", self.target[0], self.target[0], run.line_wrap)
            w.op("mov", self.store_left, run.updates)

        w.seldom("beq", self.store_left, self.zero, next_line)

    def _message_address(self, result: str, target: str) -> str:
        """Set ``result`` to where the last message of a line goes, from the address of its sum or,
        in first visits, of a message that stays in the tile; returns ``result``."""
        w, run = self.writer, self.run
        if self.second:
            w.op("add", result, target, self.ahead)
            target = result
        w.op("sub", result, target, run.pixel_pitch)
        w.op("add", result, result, run.last_pitch)
        return result

    def finish(self, end: int) -> None:
        """Write the end of a run whose last update is in slot ``end``."""
        w = self.writer
        self.ending = True
        self.base += self.pad.slots
        pending = self.complete(end)
        self.ending = False
        if self.lane(pending[0]) == 0:
            self.lane_address(self.target[1], self.target[0], 1)
        lanes = [self.lane(update) for update in pending]
        for lane in lanes:
            self._message_address(self.source[lane], self.target[lane])
        self.describe()
        w.op("v.drain")
        for update, lane in zip(pending, lanes, strict=True):
            self.last_message(lane)
            w.store(self.source[lane], self.x, "labels", note=f"last message of lane {lane}")
            if self.second:
                w.op("add", self.x, self.slot(update + self.lanes), _SUM * self.pad.vector)
                w.store(self.target[lane], self.x, "labels", note=f"sum of lane {lane}")
        w.op("jmp", "run_end")
