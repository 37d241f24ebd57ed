"""Code of one stream of the belief propagation kernel: lines in pairs, or a lone line."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .parts import LINE_NAMES, BpParts

__all__ = ["BpStream"]


@dataclass(frozen=True)
class _Detour:
    """Labels of code placed out of line, and of the point to which it jumps back."""

    there: str
    back: str


class BpStream:
    """Updates all lines of a run (:class:`microkernels.bp.parameters.Run`), in pairs or one by one.

    At the beginning of the code the run's words are in their registers; at its end every vector
    instruction is complete and the messages' stores are issued. :mod:`microkernels.bp.kernel`
    explains the schedule.

    Parameters:
        parts: registers and instructions; the code goes to their writer.
        lanes: lines worked on at a time, 2 or 1.
        name: stem of the labels.
        at_end: writes code that needs no registers but its own; the code stands after the last
            update and runs in the shadow of the instructions that follow.
        after: label of the code that follows the stream.
    """

    def __init__(
        self, parts: BpParts, *, lanes: int, name: str, at_end: Callable[[], None], after: str
    ) -> None:
        self.parts = parts
        self.lanes = lanes
        self.name = name
        self.at_end = at_end
        self.after = after
        self._detours: list[tuple[_Detour, Callable[[], None]]] = []

    def emit(self) -> None:
        """Append the stream's code."""
        p, w = self.parts, self.parts.writer
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
            w.op("sub", p.groups, p.groups, 1)
            w.op("beq", p.groups, p.zero, f"{self.name}_end")
            w.op("mov", p.left, p.updates)
            for lane, slot in zip(range(self.lanes), (p.this_slot, p.next_slot), strict=False):
                w.op("add", p.incoming[lane], slot, p.places.first_message)
                w.op("mov", p.store_step[lane], p.turn)
            w.op("jmp", f"{self.name}_loop")
            w.note("Before the last update of a line: its message may leave the tile.")
        for lane in range(self.lanes):
            w.op("mov", p.store_step[lane], p.exit)
        w.op("jmp", f"{self.name}_loop")
        w.note("Last messages.")
        w.label(f"{self.name}_end")
        self.at_end()
        w.op("v.drain")
        # A pair's X was normalised after the last update of Y.
        last = self.lanes - 1
        p.normalise(last)
        for lane in range(last):
            p.store_message(lane)
        w.op("v.drain")
        p.store_message(last)
        w.op("jmp", self.after)
        self._emit_detours()

    def _set_up(self) -> None:
        p, w = self.parts, self.parts.writer
        if self.lanes > 1:
            w.op("add", p.edge[1], p.edge[0], p.across)
        self._load_line()
        w.op("mov", p.load_groups, p.groups)
        w.op("mov", p.left, p.updates)
        begin = w.new_label("begin")
        w.op("mov", p.scratch, p.step)
        w.op("bne", p.updates, "one", begin)
        w.op("mov", p.scratch, p.exit, note="the first message is the last")
        w.label(begin)
        for lane in range(self.lanes):
            w.op("mov", p.store[lane], p.zero, note="no message yet")
            w.op("add", p.store_step[lane], p.edge[lane], p.scratch)

    def _load_line(self) -> None:
        """Place the load stream at the first pixel of its line."""
        p, w = self.parts, self.parts.writer
        w.op("mov", p.load_left, p.updates)
        w.op("mov", p.load[0], p.load_start)
        if self.lanes > 1:
            w.op("add", p.load[1], p.load_start, p.across)

    def _fill(self, label: str) -> None:
        p, w = self.parts, self.parts.writer
        w.note("Fill the ring.")
        w.op("mov", p.this_slot, "ring")
        w.label(label)
        for lane in range(self.lanes):
            self._load(lane)
            w.op("add", p.this_slot, p.this_slot, p.places.slot)
        w.op("bne", p.this_slot, "ring_end", label)

    def _presum(self) -> None:
        """Partial sum of update 0, presum of update 1."""
        p, w = self.parts, self.parts.writer
        w.note("Sums ahead of the first update.")
        w.op("mov", p.this_slot, "ring")
        for lane in range(self.lanes):
            w.op(
                "add",
                p.incoming[lane],
                p.this_slot,
                p.places.first_message + lane * p.places.slot,
            )
        w.op("mov", p.a, p.this_slot)
        self._follow(p.this_slot)
        p.add_presum()
        w.op("v.drain")
        p.add_partial()
        w.op("add", p.next_slot, p.this_slot, p.places.slot)
        w.op("mov", p.a, p.next_slot)
        self._follow(p.next_slot)
        p.add_presum()
        w.op("add", p.a, p.a, p.places.slot)
        self._follow(p.next_slot)
        w.op("v.drain")

    def _update(self, lane: int) -> None:
        """Update h of one line; its message of update h - 1 is normalised and stored. A run's first
        update has no such message: its normalised vector is not used."""
        p, w = self.parts, self.parts.writer
        w.note(f"Update h of line {LINE_NAMES[lane]}.")
        if self.lanes > 1:
            p.pads(p.spacing.before_total)
        else:
            p.pads(p.spacing.lone_filled)
            p.normalise(lane)
            p.pads(p.spacing.lone)
        w.vector("v.v.add", "t", "p", p.incoming[lane], note="t = p + m")
        w.op("mov", p.incoming[lane], p.message[lane])
        if self.lanes > 1:
            p.pads(p.spacing.after_total)
            p.normalise(self.lanes - 1 - lane)
        else:
            p.pads(p.spacing.lone_filled)
        p.add_partial()
        w.vector("m.v.add.min", p.raw[lane], "S", "t", note=f"{LINE_NAMES[lane]}r = min(S + t)")
        p.add_presum()
        # Scalar instructions and transfers issue while r and q are in the vector unit.
        unmade = w.new_label("unmade")
        w.op("beq", p.store[lane], p.zero, unmade)
        p.store_message(lane)
        w.label(unmade)
        w.op("add", p.store[lane], p.store[lane], p.store_step[lane])
        w.op("mov", p.store_step[lane], p.step)
        self._load(lane)
        self._turn()

    def _turn(self) -> None:
        """Advance the pointers by one slot."""
        p, w = self.parts, self.parts.writer
        w.op("mov", p.this_slot, p.next_slot)
        w.op("mov", p.next_slot, p.a)
        inside = w.new_label("ring")
        w.op("add", p.a, p.a, p.places.slot)
        w.op("blt", p.a, "ring_end", inside)
        w.op("mov", p.a, "ring")
        w.label(inside)
        self._follow(p.next_slot)

    def _follow(self, slot: str) -> None:
        """Set ``b`` to the vector after ``a``, and ``c`` to its vector in ``slot``."""
        p, w = self.parts, self.parts.writer
        w.op("add", p.b, p.a, p.places.vector)
        w.op("add", p.c, slot, 2 * p.places.vector)

    def _load(self, lane: int) -> None:
        """Load stream: the next update of one line into the slot ``this_slot``."""
        p, w = self.parts, self.parts.writer
        done = w.new_label("loaded")
        w.op("beq", p.load_groups, p.zero, done)
        note = f"a, b, c of line {LINE_NAMES[lane]}"
        w.load(p.this_slot, p.load[lane], "inputs", note=note)
        w.op("add", p.load[lane], p.load[lane], p.step)
        inner = self._seldom(partial(self._load_first, lane))
        w.op("beq", p.load_left, p.updates, inner.there)
        w.label(inner.back)
        if lane == self.lanes - 1:
            w.op("sub", p.load_left, p.load_left, 1)
            following = self._seldom(self._load_next_line)
            w.op("beq", p.load_left, p.zero, following.there)
            w.label(following.back)
        w.label(done)

    def _load_first(self, lane: int) -> None:
        """The message that begins the line of the load stream."""
        p, w = self.parts, self.parts.writer
        w.op("add", p.first, p.this_slot, p.places.first_message)
        note = f"message that begins line {LINE_NAMES[lane]}"
        w.load(p.first, p.edge[lane], "labels", note=note)

    def _load_next_line(self) -> None:
        """Move the load stream to its next line."""
        p, w = self.parts, self.parts.writer
        w.op("sub", p.load_groups, p.load_groups, 1, note="next line")
        w.op("add", p.load_start, p.load_start, p.next)
        for lane in range(self.lanes):
            w.op("add", p.edge[lane], p.edge[lane], p.next)
        self._load_line()

    def _seldom(self, write: Callable[[], None]) -> "_Detour":
        """Code for rare cases, placed after the stream: a branch taken costs three cycles."""
        detour = _Detour(self.parts.writer.new_label("seldom"), self.parts.writer.new_label("on"))
        self._detours.append((detour, write))
        return detour

    def _emit_detours(self) -> None:
        w = self.parts.writer
        for detour, write in self._detours:
            w.label(detour.there)
            write()
            w.op("jmp", detour.back)
