"""Loops whose registers advance by constants: many iterations in one step of the analysis.

From one turn (iteration) to the next, each register that matters stays the same or advances by a
constant: it is a :class:`.interval.Ramp`. Following the words of a turn shows that this remains
true, and for how many turns all branches go the same way. Following them again, with ramps of so
many turns, records the facts of all: since all numbers are linear, the first and the last turn
bound them. The result is as precise as that of following each turn.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from isa.program import Program
from isa.table import BranchOp, Opcode, Role

from .effects import Effects, Overwrite, Registers
from .facts import Facts
from .interval import Interval, Ramp, Value, bounds, line_of, ramp, step_of
from .needs import Flow, reads, writes

#: More turns than any loop can have.
EVER = 1 << 64


def outcome(operation: BranchOp, a: int | Ramp, b: int | Ramp) -> tuple[bool, int]:
    """Whether a branch is taken in turn 0, and for how many turns from there it does the same."""
    (base, slope), (b_base, b_slope) = line_of(a), line_of(b)
    base, slope = base - b_base, slope - b_slope
    if operation in (BranchOp.BLT, BranchOp.BGE):
        less = base < 0
        if less:
            count = -(base // slope) if slope > 0 else EVER
        else:
            count = base // -slope + 1 if slope < 0 else EVER
        return less == (operation is BranchOp.BLT), count
    equal = base == 0
    count = EVER
    if slope:
        if equal:
            count = 1
        elif base % slope == 0 and -(base // slope) > 0:
            count = -(base // slope)
    return equal == (operation is BranchOp.BEQ), count


#: Minimum turns that are worth skipping.
_TURNS = 3
#: Maximum words of a turn.
_WORDS = 50_000
#: Maximum iterations until a loop repeats, as with a kernel's ring of buffers.
_PERIOD = 16
#: Maximum turns between attempts.
_PAUSE = 64


class Branch(NamedTuple):
    """A branch: operation, whether it is conditional, registers compared, target."""

    operation: BranchOp
    conditional: bool
    a: int
    b: int
    target: int


class Loops:
    """Skips many turns of a loop at once.

    Parameters:
        facts: updated with those of skipped turns. branches: by word address. effects: of words,
            with facts of their own.
    """

    def __init__(
        self,
        program: Program,
        control: Flow,
        branches: Mapping[int, Branch],
        effects: Effects,
        facts: Facts,
    ) -> None:
        self._program = program
        self._control = control
        self._branches = branches
        self._facts = facts
        self._effects = effects
        self._found = effects.facts
        self._self_written = tuple(effects.self_written.values())
        self._steps: dict[int, Callable[[Registers], bool]] = {}
        #: Loop head -> registers in its latest turns.
        self._seen: dict[int, list[tuple[Value, ...]]] = {}
        self._pauses: dict[int, tuple[int, int]] = {}

    def begin(self) -> None:
        """Start to follow another run, in which no loop has had a turn."""
        self._seen.clear()

    def skip(self, head: int, registers: Registers) -> dict[int, tuple[int, int]]:
        """Skip all but the last few turns of the loop that has just returned to ``head`` with these
        registers, if possible.

        Returns:
            Loads of unknown numbers in these turns, as
            :attr:`synth.analysis.effects.Effects.unknown`.
        """
        live = (*self._control.live[head], *self._self_written)
        state = tuple(registers[slot] for slot in live)
        seen = self._seen.setdefault(head, [])
        seen.append(state)
        left, pause = self._pauses.get(head, (0, 1))
        if left:
            self._pauses[head] = left - 1, pause
            return {}
        del seen[: -2 * _PERIOD - 1]
        tried = False
        for period in _periods(seen):
            tried = True
            before = dict(zip(live, seen[-1 - period], strict=True))
            if self._take(head, period, before, registers):
                self._facts.include(self._found)
                seen.clear()
                self._pauses.pop(head, None)
                return dict(self._effects.unknown)
        if tried:
            self._pauses[head] = (pause, min(2 * pause, _PAUSE))
        return {}

    def _take(
        self, head: int, period: int, before: Mapping[int, Value], registers: Registers
    ) -> bool:
        """Apply to the registers as many turns as are alike; False if these are unknown.

        Parameters:
            before: slot that matters -> its value a turn ago.
        """
        turns = _TURNS
        # Once for the number of turns, and once for the facts of so many.
        for _ in range(2):
            self._found.clear()
            self._effects.unknown.clear()
            start: Registers = [0] * len(registers)
            for slot, was in before.items():
                value = start[slot] = registers[slot]
                if isinstance(was, int) and isinstance(value, int):
                    start[slot] = ramp(value, value - was, turns)
            end = list(start)
            count = self._turn(head, period, end)
            if count is None or not all(_repeats(start[slot], end[slot]) for slot in before):
                return False
            turns = count
        registers[:] = [
            value.base + value.slope * turns if isinstance(value, Ramp) else value
            for value in start
        ]
        return True

    def _turn(self, head: int, period: int, registers: Registers) -> int | None:
        """Follow a turn, which returns to ``head`` ``period`` times, and record its facts; returns
        the number of turns that go the same way, or None if that is unknown or one may fault."""
        turns = EVER
        pc = head
        for _ in range(_WORDS):
            if pc not in self._control.rows:
                return None
            self._found.executed.add(pc)
            branch = self._branches.get(pc)
            if branch is None:
                if not self._follow(pc, registers):
                    return None
                pc += 1
                continue
            taken = True
            if branch.conditional:
                a, b = registers[branch.a], registers[branch.b]
                if isinstance(a, Interval) or isinstance(b, Interval):
                    return None
                taken, count = outcome(branch.operation, a, b)
                turns = min(turns, count)
                if turns < _TURNS:
                    return None
            to_next = branch.target == pc + 1
            if taken or to_next:
                self._found.taken.add(pc)
            if not taken or to_next:
                self._found.passed.add(pc)
            if taken and branch.target == head <= pc:
                period -= 1
            pc = branch.target if taken else pc + 1
            if not period:
                return None if turns == EVER else turns
        return None

    def _follow(self, pc: int, registers: Registers) -> bool:
        """Apply a word, no branch, to the registers; False if what it does in each turn is unknown,
        or it may fault."""
        row, word = self._control.rows[pc], self._program.words[pc]
        used, written = reads(row, word), writes(row, word)
        inputs = [registers[slot] for slot in used]
        known = not any(isinstance(value, Interval) for value in inputs)
        if row.key == "halt" or (row.scalar is None and not known):
            return False
        if row.opcode == Opcode.LD_REG:
            assert row.width is not None
            place = registers[row.by_role(word)[Role.DRAM_ADDRESS]]
            end = bounds(place)[1] + row.width.bytes
            if isinstance(place, Ramp) and self._effects.contents.held_in(place.low, end):
                # It loads a different declared number in each turn.
                return False
        step = self._steps.get(pc)
        if step is None:
            step = self._steps[pc] = self._effects.of(row, word, pc)
        try:
            if not step(registers):
                return False
        except Overwrite:
            # The turns together may overwrite; each on its own may not.
            return False
        if row.scalar is not None:
            # Following each turn would tell more.
            return not (known and any(isinstance(registers[slot], Interval) for slot in written))
        # If an operand was narrowed, a turn may fault.
        return all(
            registers[slot] is value
            for slot, value in zip(used, inputs, strict=True)
            if slot not in written
        )


def _periods(seen: list[tuple[Value, ...]]) -> Iterator[int]:
    """Periods p such that all known numbers advanced equally in the last p turns and in the p turns
    before."""
    latest = seen[-1]
    for period in range(1, min(_PERIOD, (len(seen) - 1) // 2) + 1):
        before, first = seen[-1 - period], seen[-1 - 2 * period]
        if all(
            (
                isinstance(one, int)
                and isinstance(two, int)
                and isinstance(three, int)
                and one - two == two - three
            )
            or not (isinstance(one, int) and isinstance(two, int))
            for one, two, three in zip(latest, before, first, strict=True)
        ):
            yield period


def _repeats(start: Value, end: Value) -> bool:
    """Whether a register that begins a turn with ``start`` and ends it with ``end`` goes on so."""
    if isinstance(start, Interval):
        return _within(end, start)
    base, slope = line_of(start)
    return not isinstance(end, Interval) and line_of(end) == (base + slope, slope)


def _within(value: Value, interval: Value) -> bool:
    (low, high), (bottom, top) = bounds(value), bounds(interval)
    return bottom <= low and high <= top and step_of(value) % step_of(interval) == 0
