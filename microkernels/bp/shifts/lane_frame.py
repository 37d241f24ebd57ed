"""Loads, stores and ends of lines of the kernels that work on lines in turns."""

from collections.abc import Callable
from functools import partial

from ..frame import BpFrame
from .lane_parts import LaneParts

__all__ = ["LaneFrame"]


class LaneFrame(BpFrame):
    """Frame of a kernel with lanes.

    Parameters:
        parts: registers. vault_bits: as for :class:`microkernels.bp.frame.BpFrame`.
        first_message: offset in a slot at which the message that begins a line is loaded with the
            inputs; None: the kernel loads it in another way.
        old: the same of the message that damping mixes with the new one.
    """

    def __init__(
        self,
        parts: LaneParts,
        vault_bits: int | None,
        *,
        first_message: int | None,
        old: int | None = None,
    ) -> None:
        super().__init__(parts, vault_bits)
        self.lanes = parts
        self._first_message = first_message
        self._old = old if parts.variant.damped else None
        self._detours: list[tuple[str, str, Callable[[], None]]] = []

    def begin(self) -> None:
        """Begin a run whose words are those for the number of lanes: load all slots."""
        p, w = self.lanes, self.lanes.writer
        p.find_weight()
        w.op("add", p.store[0], p.edge[0], p.step)
        with w.unless("bne", p.updates, "one"):
            w.op("add", p.store[0], p.edge[0], p.exit, note="the first message is the last")
        w.op("mov", p.left, p.updates)
        w.op("mov", p.store_left, p.updates)
        w.note("Fill the ring.")
        w.op("mov", p.load_groups, p.groups)
        self.start_line()
        for update in range(p.slots):
            self.load(update)

    def emit_detours(self) -> None:
        """Write the code for rare cases."""
        w = self.lanes.writer
        detours, self._detours = self._detours, []
        for there, back, write in detours:
            w.label(there)
            write()
            w.op("jmp", back)

    def spread(self) -> None:
        """Adapt the run's words to the number of lanes: the first code of a run."""
        p, w = self.lanes, self.lanes.writer
        if p.lane_count == 1:
            w.note("Line after line, those of a pair in turns.")
            w.op("mov", p.other_next, p.next)
            w.op("mov", p.other_turn, p.turn)
            with w.unless("beq", p.lanes, "one"):
                w.op("add", p.groups, p.groups, p.groups)
                w.op("sub", p.other_next, p.next, p.across)
                w.op("sub", p.other_turn, p.turn, p.across)
                w.op("sub", p.turn, p.turn, p.next)
                w.op("add", p.turn, p.turn, p.across)
                w.op("mov", p.next, p.across)
            return
        w.note("A line without a partner is worked on several times.")
        with w.unless("bne", p.lanes, "one"):
            w.op("mov", p.across, p.zero)
        if p.lane_count > 2:
            w.op("mov", p.half, p.zero)
            w.op("mov", p.x, p.lane_count)
            with w.unless("bne", p.lanes, p.x):
                w.op("sra", p.half, p.next, 1)

    def start_line(self) -> None:
        """Place the load stream at the first pixel of its line."""
        p, w = self.lanes, self.lanes.writer
        w.op("mov", p.load_left, p.updates)
        w.op("mov", p.load[0], p.load_start)
        if self._old is not None:
            w.op("sub", p.old, p.edge[0], p.load_start)
            w.op("add", p.old, p.old, p.step)
            with w.unless("bne", p.updates, "one"):
                self._old_at_end()

    def _old_at_end(self) -> None:
        """The last message of a line may lie elsewhere."""
        p, w = self.lanes, self.lanes.writer
        w.op("sub", p.old, p.old, p.step)
        w.op("add", p.old, p.old, p.exit)

    def lane_address(self, result: str, base: str, lane: int) -> None:
        """``result``, the address of ``lane`` - 1 (or ``base`` for lane 0), moves to ``lane``."""
        p, w = self.lanes, self.lanes.writer
        if lane == 2:
            w.op("add", result, base, p.half)
        else:
            w.op("add", result, base if lane == 1 else result, p.across)

    def load(self, update: int) -> None:
        """Load stream: ``update`` into its slot."""
        p, w = self.lanes, self.lanes.writer
        lane, slot = p.lane(update), p.slot(update)
        done = w.new_label("loaded")
        w.op("beq", p.load_groups, p.zero, done)
        w.load(slot, p.load[lane > 0], "inputs", note=f"a, b, c of lane {lane}")
        if self._old is not None:
            w.op("add", p.x, p.load[lane > 0], p.old)
            w.op("add", p.y, slot, self._old)
            w.load(p.y, p.x, "labels", note=f"message of lane {lane} that is replaced")

        def first(offset: int) -> None:
            edge = p.edge[0]
            for number in range(1, lane + 1):
                if lane < 2 or number >= 2:
                    self.lane_address(p.y, p.edge[0], number)
                edge = p.y
            w.op("add", p.x, slot, offset)
            w.load(p.x, edge, "labels", note=f"message that begins lane {lane}")

        if self._first_message is not None:
            self.seldom("beq", p.load_left, p.updates, partial(first, self._first_message))
        if lane + 1 < p.lane_count:
            self.lane_address(p.load[1], p.load[0], lane + 1)
        else:
            w.op("add", p.load[0], p.load[0], p.step)
            w.op("sub", p.load_left, p.load_left, 1)
            if self._old is not None:
                self.seldom("beq", p.load_left, "one", self._old_at_end)
            self.seldom("beq", p.load_left, p.zero, self.load_next_line)
        w.label(done)

    def load_next_line(self) -> None:
        """Place the load stream at its next line."""
        p, w = self.lanes, self.lanes.writer
        w.op("sub", p.load_groups, p.load_groups, 1)
        w.op("add", p.load_start, p.load_start, p.next)
        w.op("add", p.edge[0], p.edge[0], p.next)
        if p.lane_count == 1:
            w.swap(p.next, p.other_next, p.scratch)
        self.start_line()

    def store(self, update: int) -> None:
        """Store the message of an update."""
        p, w = self.lanes, self.lanes.writer
        lane = p.lane(update)
        w.store(p.store[lane > 0], p.message[lane], "labels", note=f"message of lane {lane}")
        if lane + 1 < p.lane_count:
            self.lane_address(p.store[1], p.store[0], lane + 1)
            return
        w.op("sub", p.store_left, p.store_left, 1)
        there, on, moved = (w.new_label(name) for name in ("seldom", "on", "moved"))
        w.op("bge", "one", p.store_left, there)
        w.op("add", p.store[0], p.store[0], p.step)
        w.label(on)

        def end() -> None:
            # The last message of a line may leave the tile; after it comes another line.
            w.op("beq", p.store_left, p.zero, moved)
            w.op("add", p.store[0], p.store[0], p.exit)
            w.op("jmp", on)
            w.label(moved)
            w.op("add", p.store[0], p.store[0], p.turn)
            if p.lane_count == 1:
                w.swap(p.turn, p.other_turn, p.scratch)
            w.op("mov", p.store_left, p.updates)

        self.detour(there, on, end)

    def seldom(self, branch: str, first: str, second: str, write: Callable[[], None]) -> None:
        """Code for rare cases, placed after the loop: a branch taken costs three cycles."""
        w = self.lanes.writer
        there, back = w.new_label("seldom"), w.new_label("on")
        w.op(branch, first, second, there)
        w.label(back)
        self.detour(there, back, write)

    def detour(self, there: str, back: str, write: Callable[[], None]) -> None:
        """Code for a rare case, from the label ``there`` on, which goes on at ``back``."""
        self._detours.append((there, back, write))
