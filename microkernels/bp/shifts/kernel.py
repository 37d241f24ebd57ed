"""Generates the BP-M kernel with messages by shifts (:mod:`microkernels.bp.shifts.transform`).

The frame, the runs and the memory layout are those of the kernel with a matrix
(:mod:`microkernels.bp.kernel`); instead of the matrix a run loads the constants of
:attr:`LaneShifts.constants`. The vector instructions' order is a modulo schedule
(:mod:`microkernels.bp.shifts.rhythm`) over several lines, the *lanes*. A run with fewer lines at a
time processes its lines several times, with the same results.

The program repeats one *body* per slot of the ring, so that addresses of slots and lanes are
constants. Body ``n`` has one period of the schedule: ``t`` of update ``n``, earlier instructions of
later updates, later instructions of earlier updates. It stores an earlier update's message once
complete, and loads a later update into a free slot. All lanes end their lines together, so the code
for a line's end follows the last lane's body, update, load or store; code for rare cases follows
the loop.

The rules that make the program correct for any timing are those of :mod:`microkernels.bp.kernel`:
vector results are read at least one latency later, measured in beats of the instructions between; a
store, or a load into a slot, comes at least two vector instructions after the one that shows that
the vector is complete or has been read.
"""

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from isa.timing import VECTOR_LATENCY
from microkernels.common.builder import KernelBuilder
from microkernels.common.feature_map import round_up
from microkernels.common.scratchpad_plan import ScratchpadPlan
from microkernels.runtime.ring import ChipEngines

from ..frame import LaneFrame
from ..plan import BUS_BYTES, LINE_ENDS, Shifts
from ..problem import element_type
from ..record import LOADED_VECTORS, vector_stride
from ..runs import PAIR
from ..tiles import TileGrid
from .rhythm import Additions, Rhythm, beats_of, dependences, rhythm

#: Numbers of lines that a kernel may interleave.
LANES = (1, 2, 4)
_ALIGN = 16
#: Approximate values measured on the timing model: cycles from a load to its first data, for one
#: engine and for a ring of vaults, and loads that it waits for of each engine beside it; factor for
#: kernels on four lines in a ring, whose steps have few lines.
_LATENCY, _RING_LATENCY, _OTHERS = 52, 72, 2
_STEPS = 1.3
#: Maximum shifts whose addresses a kernel on blocks, or on one or two lanes, keeps in registers.
_HELD = 2


class LaneShifts(Shifts):
    """The kernel that interleaves several lines: 1, 2 or 4.

    Attributes:
        vectors_before: vectors of a slot before the address that names it.
    """

    vectors_before: ClassVar[int] = 0

    @cached_property
    def rhythm(self) -> Rhythm:
        """Order of the instructions."""
        return self._rhythm("inputs")

    def _rhythm(self, adds: Additions) -> Rhythm:
        shape = self.labels, self.bits, self.lanes, self.variant
        return rhythm(self.transform, *shape, adds=adds)

    @property
    def padded(self) -> bool:
        """Whether the order has pads."""
        return None in map(self.rhythm.at, range(self.rhythm.period))

    @cached_property
    def pad(self) -> ScratchpadPlan:
        """``plateau`` for each label (if there is one), ``costs`` of the shifts, ``damping``, and
        the sums ``s`` of each shift between elements that are never written; then the windows
        ``x``, the minimum ``g``, result and operand of pads, and the messages."""
        return self._lane_pad()

    def _lane_pad(self) -> ScratchpadPlan:
        shifts, size, beat = self.transform.shifts, self.size, self.rhythm
        vector = round_up(self.labels * size, _ALIGN)
        pad = ScratchpadPlan()
        pad.take("plateau", 0 if self.transform.plateau is None else vector)
        # The product of all costs and a weight is one instruction on a whole vector.
        product = vector if self.variant.weighted and shifts else 0
        pad.take("costs", max(product, size * len(shifts)))
        pad.take("damping", size if self.variant.damped else 0)
        for number, (far, _) in enumerate(shifts):
            pad.take(f"below{number}", size * far)
            pad.take(f"s{number}", vector)
            pad.take(f"above{number}", size * far)
        pad.take("constants_end", 0)
        pad.take_each("x", len(shifts), vector)
        pad.take("g", size)
        padded = vector if self.padded else 0
        pad.take("pad", padded)
        pad.take("idle", padded)
        pad.take_each("m", beat.lanes, vector)
        # An update is loaded before its q, after its slot's previous update has been read.
        fewest = beat.freed // beat.period - beat.places.get("q", 0) // beat.period + 1
        pad.take("before", self.vectors_before * vector_stride(self.labels, self.bits))
        slots = pad.take_ring(
            LOADED_VECTORS + 1 + self.variant.damped + self.vectors_before,
            vector_stride(self.labels + self.variant.tail, self.bits),
            room=self.scratchpad_bytes,
            most=self.slots,
            step=beat.lanes,
        )
        if slots < round_up(fewest, beat.lanes):
            raise self.no_room(f" by shifts on {beat.lanes} lines at a time")
        return pad

    @property
    def constants(self) -> NDArray[np.signedinteger]:
        """Plateau, costs of the shifts, sixteenths of damping, and the largest value around all
        sums."""
        dtype, pad, size = element_type(self.bits), self.pad, self.size
        elements = np.full(self.cost_bytes // size, np.iinfo(dtype).max, dtype)
        if self.transform.plateau is not None:
            elements[pad["plateau"] // size :][: self.labels] = self.transform.plateau
        costs = [cost for _, cost in self.transform.shifts]
        elements[pad["costs"] // size :][: len(costs)] = costs
        if self.variant.damped:
            elements[pad["damping"] // size] = self.variant.damping
        return elements

    def builder(self, vault_bits: int | None) -> KernelBuilder:
        """As for :class:`.plan.Plan`."""
        return TransformKernel(self, vault_bits).build()

    @cached_property
    def cycles(self) -> float:
        """Cycles of the loop and of line ends."""
        return self.loop_cycles(1) + LINE_ENDS

    def shared_cycles(self, grid: TileGrid) -> float:
        """As for :class:`.plan.Plan`, with the wait for slots."""
        cycles = max(self.cycles, self._loads(grid.ring))
        if grid.ring.vaults > 1 and self.lanes > PAIR:
            cycles *= _STEPS
        return self.image_cycles(grid, cycles, self.bus)

    def _loads(self, engines: ChipEngines) -> float:
        """Cycles per update that the loads of slots allow: a slot is loaded when its last update is
        over, and must be complete for q of the next one."""
        beat = self.rhythm
        lead = self.pad.slots - (beat.freed - beat.places.get("q", 0)) / beat.period
        if engines.pes > 1 and self.lanes > PAIR:
            # Loads of four lines by several engines wait longer for banks.
            lead /= 2
        inputs = (LOADED_VECTORS - 1) * self.pad.vector + self.labels * self.size
        latency = _LATENCY if engines.vaults == 1 else _RING_LATENCY
        return (latency + inputs / BUS_BYTES + _OTHERS * (engines.pes - 1) * self.bus) / lead


class TransformKernel(LaneFrame):
    """The program of :class:`LaneShifts`; registers are named as in its comments.

    Attributes:
        beat, needs: order of the instructions, and what they need.
    """

    def __init__(self, shifts: LaneShifts, vault_bits: int | None) -> None:
        pad, transform, variant = shifts.pad, shifts.transform, shifts.variant
        self.beat = beat = shifts.rhythm
        self.beats = beats_of(shifts.labels, shifts.bits)
        self.needs = list(dependences(transform, self.beats, shifts.bits, variant))
        super().__init__(shifts, vault_bits)
        self.transform = transform
        self.constant_bytes = shifts.cost_bytes
        # With two shifts, a kernel on blocks or few lanes has registers for both addresses.
        most_shifts = _HELD if self.in_blocks or beat.lanes <= PAIR else 1
        self.in_registers = variant.usual and len(transform.shifts) <= most_shifts
        if not self.in_registers:
            self.z = self.writer.register("z", "a result")
        self.set_places()
        self.plateau, self.idle = "P", "blank"
        scarce = self.in_blocks or not variant.usual
        constant = self.writer.constant
        if scarce:
            # Registers are scarce, and the plateau is at address 0.
            self.plateau = self.idle = self.zero
        if transform.plateau is not None:
            if not scarce:
                purpose = "plateau of the smoothness costs, for each label"
                constant(self.plateau, pad["plateau"], purpose)
            constant("g", pad["g"], "least total and plateau")
        if transform.shifts:
            constant("k", pad["costs"], "cost of the first shift")
        for number in range(len(transform.shifts) if self.in_registers else 0):
            constant(self._sum(number), pad[f"s{number}"], "total and cost of the shift")
            constant(self._window(number), pad[f"x{number}"], "least of two shifted sums")
        if shifts.padded:
            constant("pad", pad["pad"], "result of pads")
            if not scarce:
                constant(self.idle, pad["idle"], "operand of pads")

        self._addresses: dict[int, str] = {}
        if self.in_blocks:
            self._keep_addresses()

    def _keep_addresses(self) -> None:
        """Give addresses of operands registers of their own, as long as there are any."""
        for number, (far, _) in enumerate(self.transform.shifts):
            sums, far = self.pad[f"s{number}"], far * self.size
            cost = [self.pad["costs"] + number * self.size] * (number > 0)
            for address in (*cost, sums - far, sums + far):
                if self.writer.registers_left:
                    name = f"at_{address}"
                    self._addresses[address] = self.writer.constant(
                        name, address, "an operand of shifts"
                    )

    def _address(self, address: int, temporary: str) -> str:
        """A register with an address: its own, or ``temporary``."""
        if address not in self._addresses:
            self.writer.op("mov", temporary, address)
        return self._addresses.get(address, temporary)

    def load_costs(self) -> None:
        w = self.writer
        w.op("mov", self.x, 0)
        w.op("mov", self.y, self.constant_bytes // self.size)
        w.load(self.x, self.run.costs, self.y)

    def emit_streams(self) -> None:
        """Update all lines of a run."""
        w = self.writer
        lanes, slots = self.beat.lanes, self.pad.slots
        self.spread()
        self.begin()
        self.start_messages(0)
        self.first_bodies()
        w.note("One body for each slot.")
        with w.spread():
            for n in range(lanes, slots + lanes):
                if n % lanes == 0:
                    w.label(f"body_{n % slots}")
                self.body(n)
                if n % lanes == lanes - 1:
                    self.end_of_group(n)
        w.op("jmp", f"body_{lanes % slots}")
        w.emit_detours()
        for end in range(lanes - 1, slots, lanes):
            self.finish(end)

    def first_bodies(self) -> None:
        """Write the bodies before the loop, and the end of their group."""
        w, lanes = self.writer, self.beat.lanes
        w.note("First update of each lane.")
        straight = _Straight(self)
        straight.ahead()
        for n in range(lanes):
            self.body(n, straight)
        w.op("v.drain")
        self.end_of_group(lanes - 1)

    def start_messages(self, update: int) -> None:
        """Begin a line of each lane with the message in its slot."""
        w = self.writer
        for lane in range(self.beat.lanes):
            w.op("add", self.incoming[lane], self.slot(update + lane), self.first_place)

    def body(self, n: int, straight: "_Straight | None" = None) -> None:
        """Write body ``n``; ``straight`` is for the bodies before the loop, where earlier updates
        are missing."""
        w, beat = self.writer, self.beat
        w.note(f"Body {n % self.pad.slots}: lane {n % beat.lanes}.")
        for place in range(beat.period):
            instruction = beat.at(place)
            if straight is None:
                if instruction is None:
                    self.idle_vector()
                else:
                    self.vector(instruction[0], n - instruction[1])
            elif instruction is not None and n >= instruction[1]:
                straight.vector(instruction[0], n - instruction[1])
            stored, freed = n - beat.stored // beat.period, n - beat.freed // beat.period
            if place == beat.stored % beat.period and (straight is None or stored >= 0):
                if straight is not None:
                    straight.drain()
                self.store(stored)
            if place == beat.freed % beat.period and (straight is None or freed >= 0):
                if straight is not None:
                    straight.drain()
                self.load(freed + self.pad.slots)
            self.after(n, place)

    def after(self, n: int, place: int) -> None:
        """Nothing; kernels may add instructions after a place of body ``n``."""

    def end_of_group(self, n: int) -> None:
        """End the last lane's update, and its line if this was the last."""
        self.end_of_update(self.finish_label(n), lambda: self.start_messages(n + 1))

    def finish_label(self, end: int) -> str:
        """Label of the end of a run whose last update is ``end``."""
        return f"finish_{end % self.pad.slots}"

    def complete(self, end: int) -> range:
        """Write the remaining instructions of the last updates, the last of which is in slot
        ``end``. Returns the updates whose messages have yet to be stored."""
        w, beat = self.writer, self.beat
        w.note("Last messages.")
        w.label(self.finish_label(end))
        last = end + self.pad.slots
        straight = _Straight(self)
        straight.after(last)
        for n in range(last + 1, last + 2 + max(beat.places.values()) // beat.period):
            for place in range(beat.period):
                instruction = beat.at(place)
                if instruction is not None and n - instruction[1] <= last:
                    straight.vector(instruction[0], n - instruction[1])
        return range(last - beat.stored // beat.period + 1, last + 1)

    def finish(self, end: int) -> None:
        """Write the end of a run whose last update is in slot ``end``."""
        w = self.writer
        pending = self.complete(end)
        addresses: list[tuple[str, str]] = []
        free = [*self.target, *self.source]
        for update in pending:
            lane = self.lane(update)
            if lane == 0:
                address = free[0]
            elif update == pending[0]:
                address = free[1]
            else:
                address = free[lane]
                if lane == 3:
                    w.op("add", address, addresses[-1][1], self.run.line_pitch)
                else:
                    self.lane_address(address, self.target[0], lane)
            addresses.append((self.message[lane], address))
        self.describe()
        w.op("v.drain")
        for message, address in addresses:
            w.store(address, message, "labels")
        w.op("jmp", "run_end")

    def vector(self, name: str, update: int) -> None:
        """Write instruction ``name`` of an update (:mod:`microkernels.bp.shifts.rhythm`)."""
        w, slot, lane = self.writer, self.slot(update), self.lane(update)
        vector = self.pad.vector
        if name == "q":
            w.op("add", self.x, slot, vector)
            w.vector("v.v.add", slot, slot, self.x, note="q = a + b")
        elif name == "p":
            w.op("add", self.y, slot, 2 * vector)
            w.vector("v.v.add", slot, slot, self.y, note="p = q + c")
        elif name == "t":
            w.vector("v.v.add", slot, slot, self.incoming[lane], note=f"t of lane {lane}")
            w.op("mov", self.incoming[lane], self.message[lane])
        elif name == "g":
            plateau = self.plateau
            if self.variant.weighted:
                plateau = self.x
                w.op("add", plateau, slot, 2 * vector)
            w.vector("m.v.add.min", "g", slot, plateau, note="g = min(t + P)")
        elif name == "u":
            w.vector("v.s.min", slot, slot, "g", note="u = min(t, g)")
        elif name == "m" and not self.variant.damped:
            w.vector("v.s.sub", self.message[lane], slot, slot, note=f"m of lane {lane}")
        elif name in ("k", "w"):
            self._scale(name, slot)
        elif name in ("n", "d", "f", "m"):
            self.damp(
                name,
                slot,
                self.message[lane],
                fresh=2 * vector,
                replaced=self.first_place + vector,
                damping=self.pad["damping"],
            )
        else:
            self._shift(name[0], int(name[1:]), slot)

    def _scale(self, name: str, slot: str) -> None:
        """Multiply the shifts' costs, or the plateau, by the edge's weight."""
        w, vector = self.writer, self.pad.vector
        costs, place = ("k", vector) if name == "k" else (self.plateau, 2 * vector)
        w.op("add", self.y, slot, self.weight)
        w.op("add", self.x, slot, place)
        w.vector("v.s.mul", self.x, costs, self.y, note="times the weight of the edge")

    @staticmethod
    def _sum(number: int) -> str:
        """Register with the address of ``s`` of a shift, if there is one."""
        return f"s{number}" if number else "s"

    @staticmethod
    def _window(number: int) -> str:
        """Register with the address of ``x`` of a shift, if there is one."""
        return f"w{number}" if number else "w"

    def _shift(self, kind: str, number: int, slot: str) -> None:
        w, vector = self.writer, self.pad.vector
        sums, windows = self.pad[f"s{number}"], self.pad[f"x{number}"]
        far = self.transform.shifts[number][0] * self.size
        if kind == "s":
            cost = "k"
            if self.variant.weighted:
                cost = self.x
                w.op("add", cost, slot, vector + number * self.size)
            elif number:
                cost = self._address(self.pad["costs"] + number * self.size, self.x)
            result = self._sum(number) if self.in_registers else self.y
            if not self.in_registers:
                w.op("mov", result, sums)
            w.vector("v.s.add", result, slot, cost, note="s = u + cost")
        elif kind == "x":
            before, after = self._address(sums - far, self.x), self._address(sums + far, self.y)
            result = self._window(number) if self.in_registers else self.z
            if not self.in_registers:
                w.op("mov", result, windows)
            w.vector("v.v.min", result, before, after, note="both ways")
        else:
            operand = self._window(number) if self.in_registers else self.x
            if not self.in_registers:
                w.op("mov", operand, windows)
            w.vector("v.v.min", slot, slot, operand, note="u = min(u, both)")

    def idle_vector(self) -> None:
        """Write a pad: an instruction whose result is not used."""
        self.writer.vector("v.v.add", "pad", self.idle, self.idle, note="pad")


class _Straight:
    """Vector instructions outside the loop, where some are missing: a ``v.drain`` precedes an
    instruction that would come too early.

    Parameters:
        kernel: to which they belong.
    """

    def __init__(self, kernel: TransformKernel) -> None:
        self._kernel = kernel
        self._clock = 0
        self._begun: dict[tuple[str, int], int] = {}

    def after(self, last: int) -> None:
        """Record that all instructions of the loop up to update ``last`` and its body have been
        written."""
        beat, beats = self._kernel.beat, self._kernel.beats
        self._clock = (last + 1) * beat.period * beats
        for update in range(last - 2 * beat.lanes, last + 1):
            for name, place in beat.places.items():
                at = (update * beat.period + place) * beats
                if at < self._clock:
                    self._begun[name, update] = at

    def ahead(self) -> None:
        """Write the instructions before the first ``t``."""
        beat = self._kernel.beat
        for name in ("q", "p", "k", "w"):
            for update in range(-(beat.places.get(name, 0) // beat.period)):
                self.vector(name, update)

    def drain(self) -> None:
        self._kernel.writer.op("v.drain")
        self._begun.clear()

    def vector(self, name: str, update: int) -> None:
        """Write instruction ``name`` of ``update``."""
        kernel = self._kernel
        needs = [((maker, update), far) for maker, reader, far in kernel.needs if reader == name]
        if name == "t":
            again = -(-VECTOR_LATENCY // kernel.beats)
            needs.append((("m", update - kernel.beat.lanes), again))
        for maker, far in needs:
            if maker in self._begun and self._clock < self._begun[maker] + far * kernel.beats:
                self.drain()
                break
        kernel.vector(name, update)
        self._begun[name, update] = self._clock
        self._clock += kernel.beats
