"""Generates the BP-M kernel with messages by shifts on blocks of pixels
(:mod:`microkernels.bp.block_frame`).

The vector instructions and their order are those of :mod:`microkernels.bp.shifts.kernel` with four
lanes; with sums made one axis ahead, those of :mod:`microkernels.bp.shifts.sums`.
"""

from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from isa.launch import START_REGISTERS
from microkernels.common.builder import KernelBuilder
from microkernels.common.scratchpad_plan import ScratchpadPlan

from ..block_frame import BLOCK_LANES, PAIRS, TURN_UPDATES, BlockFrame, add_ring
from ..plan import BUS_BYTES, LINE_ENDS, LONG_STEP
from ..record import BLOCK, LOADED_VECTORS, PART, vector_stride
from ..runs import PAIR
from ..tiles import TileGrid
from .kernel import LaneShifts, TransformKernel
from .rhythm import Additions, Rhythm, dependences
from .sums import SumMessages, SumShifts


class BlockShifts(LaneShifts):
    """The kernel on blocks of pixels, with :data:`BLOCK_LANES` lanes."""

    in_blocks: ClassVar[bool] = True
    step: ClassVar[float] = LONG_STEP

    @cached_property
    def pad(self) -> ScratchpadPlan:
        """As for :class:`.kernel.LaneShifts`, with one slot per turn.

        Raises:
            KernelError: it does not fit, or the schedule keeps updates for too long.
        """
        return self._block_pad(self.rhythm)

    def _block_pad(self, *beats: Rhythm) -> ScratchpadPlan:
        """Places for schedules."""
        pad = self._lane_pad()
        pad.used = pad.ring
        fits = add_ring(pad, vector_stride(self.labels, self.bits))
        late = any(
            beat.freed >= TURN_UPDATES * beat.period + beat.places.get("q", 0) for beat in beats
        )
        if pad.used > self.scratchpad_bytes or not fits or late:
            raise self.no_room(" by shifts")
        return pad

    def builder(self, vault_bits: int | None) -> KernelBuilder:
        """As for :class:`.plan.Plan`."""
        return _BlockKernel(self, vault_bits).build()

    @cached_property
    def cycles(self) -> float:
        """Cycles of the loop, which stores messages two at a time, and of line ends."""
        return self.loop_cycles(1) / BLOCK + LINE_ENDS

    @property
    def bus(self) -> float:
        """As for :class:`.plan.Plan`; columns of DRAM are full."""
        return (LOADED_VECTORS + 1) * vector_stride(self.labels, self.bits) / BUS_BYTES

    def shared_cycles(self, grid: TileGrid) -> float:
        """As for :class:`.plan.Plan`: slots are loaded early enough."""
        return self.image_cycles(grid, self.cycles, self.bus)


class _BlockKernel(BlockFrame, TransformKernel):
    """The BP-M kernel on blocks."""

    def set_lengths(self) -> None:
        """Set one row and the vector length."""
        w = self.writer
        w.op("mov", self.y, self.labels)
        w.op("set.vl", self.y)
        w.op("set.mr", "one")

    def end_of_group(self, n: int) -> None:
        """End the last update of a turn, and its line if this was the last."""
        if self.second(n):
            super().end_of_group(n)

    def finish(self, end: int) -> None:
        """Write the end of a run, which is the end of a turn."""
        if not self.second(end):
            return
        pending = self.complete(end)
        self.store_pairs(sorted(self.lane(update) for update in pending if self.lane(update) % 2))


class BlockSumShifts(SumShifts, BlockShifts):
    """The kernel on blocks with sums (:mod:`microkernels.bp.sums`).

    A slot of the ring is the half of a block in which a sweep reads and writes, with the messages
    of a sweep up in the place of those of a sweep down, and the other way round. An update reads::

        first visit     t = p + m
        second visit    a = 0 + 1        t = p + m        b = a + 2

    where 0, 1 and 2 are the parts in their order, one of which is ``m``. ``t`` is in part 1, ``a``
    and ``b`` in part 0. The message goes to the place of ``m`` of its line's next update.
    """

    vectors_before: ClassVar[int] = 0
    joined: ClassVar[int] = BLOCK

    @cached_property
    def rhythm(self) -> Rhythm:
        """As for :class:`SumShifts`."""
        return self._late("blocks")

    def _late(self, adds: Additions) -> Rhythm:
        beat = super()._late(adds)
        # Sums leave a slot before it is loaded again, and the first updates of a run free the slots
        # of those before them. The second lane's m may follow once more with the first one's.
        stored = beat.stored if "b" in beat.places else 0
        again = beat.places["m"] + beat.period
        return replace(beat, freed=max(beat.freed, stored, again, beat.lanes * beat.period))

    @cached_property
    def pad(self) -> ScratchpadPlan:
        """As for :class:`BlockShifts`."""
        return self._block_pad(self.rhythm, self.first)

    def builder(self, vault_bits: int | None) -> KernelBuilder:
        """As for :class:`.plan.Plan`."""
        return _BlockSumKernel(self, vault_bits).build()


class _BlockSumKernel(SumMessages, _BlockKernel):
    """The program of :class:`BlockSumShifts`.

    The streams begin with updates in a slot that is loaded next; their messages are not stored:
    ``store_left`` is negative.

    Attributes:
        visit: the code of second visits is being written; None: that of all visits.
    """

    visit: bool | None = None

    def __init__(self, shifts: BlockSumShifts, vault_bits: int | None) -> None:
        super().__init__(shifts, vault_bits)
        self.orders = shifts.first, shifts.rhythm

    def set_places(self) -> None:
        """Allocate constants, and what depends on a run's direction."""
        w, vector = self.writer, self.pad.vector
        self.pixel, self.turn = vector // PART, PAIRS * self.pad.slot
        w.constant("one", 1, "1")
        self.pair = w.constant("pair", BLOCK * self.pixel // self.size, "elements of two messages")
        for n in range(self.pad.slots):
            w.register(f"u{n}", f"part 1 of update {n} of a block")
        self.near, self.far = self.run.lanes, self.run.wait
        #: From u to p, of the first and second pixel and the lanes of a pair.
        self.sums = self.incoming
        self.ahead = w.register("ahead", "bytes from a sum to the message of its update")
        #: Start registers, which runs no longer need: slots that differ, bytes from u to m,
        #: elements of the first and second load, bytes from one to the other.
        self.toggle, self.own, *loads = START_REGISTERS.values()
        self.one_load, self.two_load, self.between = loads

    def emit_streams(self) -> None:
        """Update all lines of a run."""
        w = self.writer
        self.spread()
        self.begin()
        w.op("beq", self.between, self.zero, "first")
        for self.visit in (True, False):
            self.beat = self.orders[self.visit]
            adds: Additions = "blocks" if self.visit else "none"
            self.needs = [*dependences(self.transform, self.beats, 8 * self.size, adds=adds)]
            loop = "second" if self.visit else "first"
            w.label(loop)
            with w.spread():
                for n in range(self.pad.slots):
                    self.body(n)
                    self.end_of_group(n)
            w.op("jmp", loop)
            w.emit_detours()
            self.finish(self.pad.slots - 1)

    def end_of_group(self, n: int) -> None:
        """End the last update of a turn, and its line if this was the last."""
        if n == self.pad.slots - 1:
            self.end_of_update(self.finish_label(n))

    def finish_label(self, end: int) -> str:
        """The one end of a run."""
        return f"finish_{'second' if self.visit else 'first'}"

    def spread(self) -> None:
        """Compute the run's distances."""
        w, run, part = self.writer, self.run, self.pad.vector
        elements, done = part // self.size, "distances"
        w.op("mov", self.ahead, run.lanes)
        w.op("mov", self.near, BLOCK * self.pixel)
        with w.unless("bge", run.pixel_pitch, self.zero):
            w.op("sub", self.near, self.zero, self.near)
        w.op("sub", self.far, run.pixel_pitch, self.near)
        w.note("From behind a line's last result to the first of its lane's next.")
        w.op("sub", run.line_wrap, run.line_wrap, run.pixel_pitch)
        with w.unless("beq", run.updates, "one"):
            w.op("sub", run.line_wrap, run.line_wrap, run.pixel_pitch)
            w.op("add", run.line_wrap, run.line_wrap, run.last_pitch)
        w.op("add", run.line_wrap, run.line_wrap, self.near)
        w.op("add", self.target[0], run.first_message, self.near)
        w.note("First visits.")
        w.op("mov", self.own, part)
        w.op("mov", self.one_load, elements)
        w.op("mov", self.two_load, elements)
        w.op("mov", self.between, self.zero)
        w.op("mov", self.x, PAIR)
        w.op("beq", self.ahead, self.x, done)
        w.note("Second visits.")
        w.op("add", run.line_wrap, run.line_wrap, self.far)
        w.op("sub", run.line_wrap, run.line_wrap, self.near)
        w.op("mov", self.x, self.ahead)
        w.op("add", self.target[0], run.load_start, self.x)
        w.op("sub", self.ahead, run.first_message, self.target[0])
        w.op("mov", self.between, LOADED_VECTORS * part)
        w.op("mov", self.one_load, BLOCK * elements)
        with w.unless("blt", self.x, self.zero):
            w.note("A sweep along columns.")
            w.op("mov", self.between, BLOCK * part)
            w.op("blt", self.zero, self.near, "not_right")
            w.op("mov", self.between, part)
            w.op("jmp", "not_right")
        w.op("blt", self.zero, self.near, done)
        w.note("A sweep to the left.")
        w.op("mov", self.between, BLOCK * part)
        w.label("not_right")
        w.op("mov", self.own, self.zero)
        w.op("mov", self.one_load, elements)
        w.op("mov", self.two_load, BLOCK * elements)
        w.label(done)
        w.op("sub", self.target[0], self.target[0], run.line_wrap)

    def begin(self) -> None:
        """Set the addresses of the first turn and load all slots but one."""
        w, run, pad, part, pixel = self.writer, self.run, self.pad, self.pad.vector, self.pixel
        w.op("mov", self.left, run.updates)
        w.op("sub", self.store_left, self.zero, 1)
        self.first_pixel(self.y)
        for update, sums in zip((0, 1, 4, 5), self.sums, strict=True):
            lane, second = self.lane(update), self.second(update)
            w.op("mov", sums, BLOCK * part + (lane - second) * pixel)
            w.op("add" if second else "sub", sums, sums, self.y)
        w.op("add", self.y, self.y, self.y)
        for update in range(pad.slots):
            lane, second = self.lane(update), self.second(update)
            place = pad.ring + lane // BLOCK * pad.slot + part + lane % BLOCK * pixel
            # Those at the second pixel are still in the slot before.
            place += second * (BLOCK * pixel + 2 * self.turn)
            w.op("mov", self.slot(update), place)
            w.op("sub" if second else "add", self.slot(update), self.slot(update), self.y)
        w.note("Fill the ring.")
        w.op("li", self.source[1], pad.ring)
        w.op("mov", self.toggle, self.turn)
        w.op("mov", self.load_groups, run.groups)
        self.start_line()
        w.label("fill")
        for lane in range(1, BLOCK_LANES, BLOCK):
            self.load_block(lane)
        w.op("mov", self.x, pad.ring + 2 * self.turn)
        w.op("bne", self.source[1], self.x, "fill")

    def load_parts(self, slot: str, address: str, note: str) -> None:
        """Load ``p``; in second visits also the parts that are not ``m``."""
        w, part = self.writer, self.pad.vector
        if self.visit is False:
            w.op("add", self.y, slot, LOADED_VECTORS * part)
            w.load(self.y, address, self.two_load, note=note)
            return
        with nullcontext() if self.visit else w.unless("beq", self.between, self.zero):
            w.load(slot, address, self.one_load, note=note)
        w.op("add", self.x, address, self.between)
        w.op("add", self.y, slot, self.own)
        w.op("add", self.y, self.y, BLOCK * part)
        w.load(self.y, self.x, self.two_load, note="p, and the rest")

    def place_first(self, lane: int) -> None:
        """Set ``x`` to the place of ``m`` in the block of two lanes that is loaded."""
        w = self.writer
        self.first_pixel(self.x)
        w.op("add", self.x, self.x, self.x)
        w.op("add", self.x, self.x, self.source[1])
        w.op("add", self.x, self.x, self.own)
        w.op("add", self.x, self.x, self.pad.vector + lane // BLOCK * self.pad.slot)

    def vector(self, name: str, update: int) -> None:
        """Write instruction ``name`` of an update."""
        w, slot, lane, part = self.writer, self.slot(update), self.lane(update), self.pad.vector
        if name == "t":
            sums = self.sums[BLOCK * self.second(update) + lane % BLOCK]
            w.op("add", self.x, slot, sums)
            w.op("add", self.y, slot, self.own)
            w.vector("v.v.add", slot, self.x, self.y, note=f"t of lane {lane}")
        elif name == "a":
            w.op("sub", self.x, slot, part)
            w.vector("v.v.add", self.x, self.x, slot, note="a = 0 + 1")
        elif name == "b":
            w.op("sub", self.x, slot, part)
            w.op("add", self.y, slot, part)
            w.vector("v.v.add", self.x, self.x, self.y, note="b = a + 2")
        else:
            super().vector(name, update)

    def place_message(self, update: int) -> None:
        """As for :class:`SumMessages`; also compute the messages of two lanes in places of their
        own, if they are stored: t of their lines' next updates may be in the others."""
        w, lane, second = self.writer, self.lane(update), self.second(update)
        if second and self.ending:
            self.last_message(lane)
            return

        def again() -> None:
            for one in (update - 1, update):
                self.last_message(self.lane(one))
                w.vector("v.s.sub", self.x, self.slot(one), self.slot(one))

        if self.visit and lane % BLOCK:
            w.seldom("beq", self.run.costs, self.zero, again)
        w.op("add", self.x, self.slot(update + self.lanes), self.own)
        if second:
            # The next turn may have begun.
            begun = lane + self.beat.places["m"] // self.beat.period >= self.lanes
            last = self.run.updates if begun else "one"
            w.seldom("beq", self.left, last, lambda: self.last_message(lane))

    def store(self, update: int) -> None:
        """Store the messages or sums of two lanes after the second one."""
        w, run, lane, second = self.writer, self.run, self.lane(update), self.second(update)
        if lane % BLOCK == 0:
            return
        end, main, done = (w.new_label(name) for name in ("seldom", "main", "stored"))

        def last() -> None:
            w.op("blt", self.store_left, self.zero, done)
            w.op("beq", run.last_pitch, self.zero, main if self.visit else done)
            self._end_address(self.y, lane)
            self.last_message(lane - 1)
            w.store(self.y, self.x, self.pair, note=f"last messages of lanes to {lane}")

        def message() -> None:
            w.op("add", self.y, self._lane_target(self.y, lane), self.ahead)
            w.op("add", self.y, self.y, self.far if second else self.near)
            self.last_message(lane - 1)
            w.store(self.y, self.x, self.pair, note=f"messages of lanes to {lane}")

        if second:
            w.op("bge", self.zero, self.store_left, end)
            w.detour(end, main if self.visit else done, last)
        if self.visit:
            w.seldom("beq", run.costs, self.zero, message)
            w.label(main)
            w.op("sub", self.y, self.slot(update), self.pad.vector + self.pixel)
        else:
            w.op("add", self.y, self.slot(update + self.lanes), self.pad.vector - self.pixel)
        stored = "sums" if self.visit else "messages"
        address = self._lane_target(self.x, lane)
        w.store(address, self.y, self.pair, note=f"{stored} of lanes to {lane}")
        w.label(done)
        if lane == BLOCK_LANES - 1:
            self._next_target(second=second)

    def _next_target(self, *, second: bool) -> None:
        """Move to what the lanes' next updates store."""
        w, run, target = self.writer, self.run, self.target[0]
        onward = self.far if second == self.visit else self.near
        if not second:
            w.op("sub", self.store_left, self.store_left, 1)
            w.op("add", target, target, onward)
            return
        following_line, on = w.new_label("seldom"), w.new_label("on")
        w.op("bge", self.zero, self.store_left, following_line)
        w.op("add", target, target, onward)
        w.label(on)

        def next_line() -> None:
            w.op("add", target, target, run.line_wrap)
            w.op("mov", self.store_left, run.updates)

        w.detour(following_line, on, next_line)

    def _lane_target(self, result: str, lane: int) -> str:
        """The register with the address that two lanes store to, which may be ``result``."""
        if lane < BLOCK:
            return self.target[0]
        self.writer.op("add", result, self.target[0], self.run.line_pitch)
        return result

    def _end_address(self, result: str, lane: int) -> None:
        """Set ``result`` to where the last messages of two lanes go."""
        w, run = self.writer, self.run
        first = self.near
        target = self._lane_target(result, lane)
        if self.visit:
            w.op("add", result, target, self.ahead)
            target = result
        else:
            first = run.pixel_pitch
        w.op("sub", result, target, first)
        w.op("add", result, result, run.last_pitch)

    def finish(self, end: int) -> None:
        """Write the end of a run, whose last turn ends with update ``end``."""
        w, run = self.writer, self.run
        self.ending = True
        pending = [update for update in self.complete(end) if self.lane(update) % BLOCK]
        self.ending = False
        for update, address in zip(pending, self.source, strict=False):
            self._end_address(address, self.lane(update))
            with w.unless("bne", run.last_pitch, self.zero):
                w.op("mov", address, self.zero)
        w.op("add", self.y, self.target[0], run.line_pitch)
        self.describe()
        w.op("v.drain")
        for update, address in zip(pending, self.source, strict=False):
            lane = self.lane(update)
            if self.visit:
                w.op("sub", self.x, self.slot(update), self.pad.vector + self.pixel)
                w.store(self.target[0] if lane < BLOCK else self.y, self.x, self.pair)
            with w.unless("beq", address, self.zero):
                self.last_message(lane - 1)
                w.store(address, self.x, self.pair)
        w.op("jmp", "run_end")
