"""Loops whose registers advance by constants: many iterations in one step of the analysis.

From one turn (iteration) to the next, each register that matters stays the same or advances by a
constant, so in turn i it is ``base + slope * i``. One symbolic pass over the words of a turn shows
that this remains true, and for how many turns all branches go the same way. A second pass records
the facts of all these turns: since all numbers are linear in i, the first and the last turn bound
them. The result is as precise as that of following each turn.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from isa.program import Program
from isa.table import (
    FIELD_A,
    FIELD_B,
    FIELD_C,
    IMM14,
    IMM20,
    BranchOp,
    Instruction,
    Opcode,
    Role,
    ScalarOp,
)

from .effects import Effects, Overwrite, Registers
from .facts import Facts
from .interval import Interval, Value, bounds, evaluate, signed, step_of
from .needs import Flow, reads, writes

#: More turns than any loop can have.
EVER = 1 << 64


class Ramp(NamedTuple):
    """The number ``base + slope * i`` in turn i."""

    base: int
    slope: int

    def over(self, turns: int) -> Value:
        """Its values in turns 0 to ``turns`` - 1."""
        if not self.slope:
            return self.base
        ends = self.base, self.base + self.slope * (turns - 1)
        step = min(step_of(self.base), step_of(self.slope))
        return Interval(min(ends), max(ends), step)


def computed(operation: ScalarOp, b: Ramp | None, c: Ramp | None) -> Ramp | None:
    """Result of a scalar instruction; None if it is not linear."""
    if b is None or c is None:
        return None
    if not (b.slope or c.slope):
        value = evaluate(operation, b.base, c.base)
        assert isinstance(value, int)
        return Ramp(signed(value & ((1 << 64) - 1)), 0)
    if operation is ScalarOp.ADD:
        return Ramp(b.base + c.base, b.slope + c.slope)
    if operation is ScalarOp.SUB:
        return Ramp(b.base - c.base, b.slope - c.slope)
    if operation is ScalarOp.AND and not c.slope and c.base >= 0:
        # Advancing by a multiple of a ring's size does not change the position in the ring.
        ring = 1 << c.base.bit_length()
        return Ramp(b.base & c.base, 0) if b.slope % ring == 0 else None
    if operation is ScalarOp.SLL and not c.slope:
        amount = c.base & 63
        return Ramp(b.base << amount, b.slope << amount)
    return None


def outcome(operation: BranchOp, a: Ramp, b: Ramp) -> tuple[bool, int]:
    """Whether a branch is taken in turn 0, and for how many turns from there it does the same."""
    base, slope = a.base - b.base, a.slope - b.slope
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
_HIGH = (1 << 63) - 1


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
        self._lines: dict[int, Callable[[list[Ramp | None]], Ramp | None]] = {}
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
        skipped = None
        start: list[Ramp | None] = []
        tried = False
        for period in _periods(seen):
            tried = True
            start = [Ramp(0, 0)] * len(registers)
            for slot, was, value in zip(live, seen[-1 - period], state, strict=True):
                if isinstance(was, int) and isinstance(value, int):
                    start[slot] = Ramp(value, value - was)
                else:
                    start[slot] = None
            skipped = self._take(head, period, live, start, registers)
            if skipped is not None:
                break
        if skipped is None:
            if tried:
                self._pauses[head] = (pause, min(2 * pause, _PAUSE))
            return {}
        turns, unknown = skipped
        for slot in range(len(registers)):
            line = start[slot]
            if line is not None:
                registers[slot] = line.base + line.slope * turns
        seen.clear()
        self._pauses.pop(head, None)
        return unknown

    def _take(
        self,
        head: int,
        period: int,
        live: tuple[int, ...],
        start: list[Ramp | None],
        registers: Registers,
    ) -> tuple[int, dict[int, tuple[int, int]]] | None:
        """The number of turns skipped and the loads of unknown numbers; None if none was."""
        turn = self._turn(head, period, start)
        if turn is None:
            return None
        words, turns, end = turn
        for slot in live:
            line = start[slot]
            if line is not None and end[slot] != Ramp(line.base + line.slope, line.slope):
                return None
        try:
            recorded = self._record(words, turns, live, start, registers)
            if not recorded:
                return None
            self._facts.include(self._found)
            return turns, dict(self._effects.unknown)
        finally:
            self._clear()

    def _clear(self) -> None:
        self._found.clear()
        self._effects.unknown.clear()
        self._effects.varying.clear()

    def _turn(
        self, head: int, period: int, start: list[Ramp | None]
    ) -> tuple[list[int], int, list[Ramp | None]] | None:
        """The words of a turn, which returns to ``head`` ``period`` times, the number of turns that
        go the same way, and the registers after the first; None if unknown."""
        lines = list(start)
        words: list[int] = []
        turns = EVER
        pc = head
        while len(words) < _WORDS:
            if pc not in self._control.rows:
                return None
            words.append(pc)
            branch = self._branches.get(pc)
            if branch is not None:
                taken = True
                if branch.conditional:
                    a, b = lines[branch.a], lines[branch.b]
                    if a is None or b is None:
                        return None
                    taken, count = outcome(branch.operation, a, b)
                    turns = min(turns, count)
                    if turns < _TURNS:
                        return None
                if taken and branch.target == head <= pc:
                    period -= 1
                pc = branch.target if taken else pc + 1
            else:
                if self._control.rows[pc].key == "halt":
                    return None
                self._advance(pc, lines)
                pc += 1
            if not period:
                return None if turns == EVER else (words, turns, lines)
        return None

    def _advance(self, pc: int, lines: list[Ramp | None]) -> Ramp | None:
        """Apply the word to ``lines``; returns its result, if any."""
        line = self._lines.get(pc)
        if line is None:
            line = self._lines[pc] = self._line(pc)
        result = line(lines)
        for slot in writes(self._control.rows[pc], self._program.words[pc]):
            lines[slot] = result
        return result

    def _line(self, pc: int) -> Callable[[list[Ramp | None]], Ramp | None]:
        """A function for the result of a word as a line, or None if it isn't a known line."""
        row, word = self._control.rows[pc], self._program.words[pc]
        a, b, c = FIELD_A.extract(word), FIELD_B.extract(word), FIELD_C.extract(word)
        if row.scalar is not None:
            operation = row.scalar
            constant = Ramp(IMM14.extract(word), 0) if row.operands[2].field is IMM14 else None
            return lambda lines: computed(operation, lines[b], constant or lines[c])
        if row.key == "mov":
            return lambda lines: lines[b]
        if row.opcode == Opcode.MOV_IMM:
            return lambda lines: Ramp(IMM20.extract(word), 0)
        if row.opcode in (Opcode.SET_VL, Opcode.SET_MR, Opcode.SET_FX):
            return lambda lines: lines[a]
        if row.opcode not in (Opcode.LD_REG, Opcode.ST_REG):
            return lambda lines: None
        assert row.width is not None
        width = row.width.bytes
        named = row.by_role(word)
        far, stored = named[Role.DRAM_ADDRESS], named.get(Role.SOURCE)

        def moved(lines: list[Ramp | None]) -> Ramp | None:
            place = lines[far]
            slot = None
            if place is not None and not place.slope:
                slot = self._effects.self_written.get(place.base) if width == 8 else None
                if stored is not None and slot is not None:
                    lines[slot] = lines[stored]
            if stored is not None or place is None or place.slope:
                return None
            if slot is not None:
                return lines[slot]
            loaded = self._effects.contents.load(place.base, width)
            return Ramp(loaded, 0) if isinstance(loaded, int) else None

        return moved

    def _record(
        self,
        words: list[int],
        turns: int,
        live: tuple[int, ...],
        start: list[Ramp | None],
        registers: Registers,
    ) -> bool:
        """Record the facts of all turns; False if they are unknown or a turn may fault."""
        lines = list(start)
        values: Registers = [
            registers[slot] if line is None else line.over(turns) for slot, line in enumerate(start)
        ]
        begun = list(values)
        facts = self._found
        for number, pc in enumerate(words):
            branch = self._branches.get(pc)
            if branch is not None:
                after = words[number + 1] if number + 1 < len(words) else words[0]
                facts.executed.add(pc)
                to_next = branch.target == pc + 1
                if after == branch.target:
                    facts.taken.add(pc)
                if (after == pc + 1 and branch.conditional) or to_next:
                    facts.passed.add(pc)
                continue
            if not self._record_word(pc, turns, lines, values):
                return False
        # Values that are not lines must not grow from turn to turn.
        return all(start[slot] is not None or _within(values[slot], begun[slot]) for slot in live)

    def _chooses(self, row: Instruction, word: int, lines: list[Ramp | None], turns: int) -> bool:
        """Whether ``word`` loads a different declared number in each turn."""
        assert row.width is not None
        place = lines[row.by_role(word)[Role.DRAM_ADDRESS]]
        if place is None or not place.slope:
            return False
        first, last = bounds(place.over(turns))
        return self._effects.contents.held_in(first, last + row.width.bytes) is not None

    def _record_word(
        self, pc: int, turns: int, lines: list[Ramp | None], values: Registers
    ) -> bool:
        row, word = self._control.rows[pc], self._program.words[pc]
        used = reads(row, word)
        all_lines = all(lines[slot] is not None for slot in used)
        if row.scalar is None and not all_lines:
            return False
        inputs = [values[slot] for slot in used]
        advances = any(line is not None and line.slope for line in (lines[s] for s in used))
        result = self._advance(pc, lines)
        written = writes(row, word)
        if row.scalar is not None and all_lines and result is None:
            # Following each turn would tell more.
            return False
        self._found.executed.add(pc)
        if row.scalar is not None and result is not None and advances:
            low, high = bounds(result.over(turns))
            if low < self._effects.low or high > self._effects.high:
                return False
            self._found.writes(pc, low, high)
        else:
            step = self._steps.get(pc)
            if step is None:
                step = self._steps[pc] = self._effects.of(row, word, pc)
            if row.opcode == Opcode.LD_REG and self._chooses(row, word, lines, turns):
                return False
            try:
                if not step(values):
                    return False
            except Overwrite:
                # The turns together may overwrite; each on its own may not.
                return False
            unwritten = [values[slot] for slot in used if slot not in written]
            if unwritten != [v for s, v in zip(used, inputs, strict=True) if s not in written]:
                # An operand was narrowed: a turn may fault.
                return False
        for slot in (*written, *self._self_written):
            line = lines[slot]
            if line is not None:
                values[slot] = line.over(turns)
        return True


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


def _within(value: Value, interval: Value) -> bool:
    (low, high), (bottom, top) = bounds(value), bounds(interval)
    return bottom <= low and high <= top and step_of(value) % step_of(interval) == 0
