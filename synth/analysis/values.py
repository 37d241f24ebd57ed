"""Possible behaviour of a program with any data: abstract interpretation from the launch.

Programs mostly compute with constants, so states with known registers are followed one by one. A
branch on unknown data goes both ways. If this would never end, states after the branch are joined
into intervals, so the analysis always terminates. Its results hold for every run, with any memory
contents and any launch within :data:`StartRanges`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from isa.launch import START_FX, START_MR, START_REGISTERS, START_VL
from isa.program import Program, Span
from isa.table import FIELD_A, FIELD_B, IMM14, IMM20, BranchOp, Opcode, Role
from pe.config import PeConfig
from synth.errors import DeclarationError

from .contents import NOTHING_KNOWN, SELF_WRITTEN_BYTES, Contents, StartRanges
from .effects import Effects, Overwrite, Registers, SelfWritten
from .facts import Facts
from .interval import ANY, Interval, Value, bounds, join, refine, step_of
from .loops import Branch, Loops
from .needs import FX, MR, SLOTS, VL, Flow, flow, place, reads, writes
from .profile import Profile

#: Those of a launch of which nothing is known.
_ANY: StartRanges = {
    **dict.fromkeys(START_REGISTERS.values(), (0, (1 << 16) - 1)),
    "parameters": (0, (1 << 40) - 1),
}
#: Maximum steps of one attempt. The next one joins at the branch that forked most.
_STEPS = 250_000
#: Maximum steps as long as no branch has forked: half a minute.
_STEADY_STEPS = 4_000_000
#: Maximum forks of one branch in one attempt.
_FORKS = 2_000
#: Attempts before states are joined wherever paths meet.
_ATTEMPTS = 6
#: Changes of a joined state after which a value that still grows becomes unbounded.
_CHANGES = 60
#: Maximum slots that are followed one by one.
_SEPARATE = 16
#: Maximum constants that a branch compares with, if they are limits.
_FEW = 4


@dataclass(frozen=True)
class Study:
    """A program, everything that it may do (:func:`analyse`), and what runs did.

    Attributes:
        flow: control flow of the program. facts: everything that it may do.
        exact: no states were joined: every fact belongs to a run with some memory contents.
        reads_parameters: a run may read the register of the parameter block.
        varying: words whose timing can depend on data: branches that go either way, and words with
            addresses, lengths or settings from data. Without any, all runs in a slot take the same
            cycles on memories with the same timing.
        steady: no word varies and slots don't differ, so all runs take the same cycles.
        unknown: word that loads an unknown number -> first address and end of where it may be.
        launch: for which all of this is true.
        name: for messages; "" if there is only one program. profile: of runs, if any.
        in_flight, slower: of the profiles with runs on the hardware, if any.
    """

    program: Program
    flow: Flow
    facts: Facts
    exact: bool
    reads_parameters: bool
    varying: frozenset[int]
    steady: bool
    unknown: Mapping[int, tuple[int, int]]
    launch: StartRanges
    name: str = ""
    profile: Profile | None = None
    in_flight: tuple[int, int] | None = None
    slower: float = 0.0

    def place(self, address: int) -> str:
        """Where a word is, for a message."""
        prefix = f"{self.name}: " if self.name else ""
        return prefix + place(self.program, address)


def analyse(
    program: Program, config: PeConfig, launch: StartRanges, contents: Contents = NOTHING_KNOWN
) -> Study:
    """Everything that runs of ``program`` on an engine of ``config`` can do, up to a fault.

    Parameters:
        launch: what is known of it. contents: known memory; the rest is arbitrary.

    Raises:
        TrimError: the program is empty, or a reachable word is not an instruction.
        DeclarationError: a run may overwrite declared memory.
    """
    control = flow(program)
    self_written: tuple[int, ...] = ()
    while True:
        try:
            return _analyse(program, config, {**_ANY, **launch}, control, contents, self_written)
        except SelfWritten as found:
            self_written = (*self_written, *found.args)


def _analyse(
    program: Program,
    config: PeConfig,
    launch: StartRanges,
    control: Flow,
    contents: Contents,
    self_written: tuple[int, ...],
) -> Study:
    thresholds = _constants(program, control)
    widened: frozenset[int] = frozenset()
    for _ in range(_ATTEMPTS):
        attempt = _Attempt(program, config, control, widened, thresholds, contents, self_written)
        if attempt.run(launch):
            return attempt.study(launch)
        thresholds |= attempt.limits()
        forked = [pc for pc, _ in attempt.forks.most_common() if pc not in widened]
        if not forked:
            break
        widened |= {forked[0]}
    attempt = _Attempt(program, config, control, None, thresholds, contents, self_written)
    attempt.run(launch)
    return attempt.study(launch)


def _constants(program: Program, control: Flow) -> frozenset[int]:
    """Constants of the program, as thresholds for growing intervals."""
    numbers = {0, 1}
    for address, row in control.rows.items():
        for operand in row.operands:
            if operand.role is Role.IMMEDIATE and operand.field in (IMM14, IMM20):
                numbers.add(operand.field.extract(program.words[address]))
    return frozenset(numbers)


class _Attempt:
    """One analysis, which joins states after the branches in ``widened``. If that is None, it joins
    them wherever paths meet, so that it ends however long the program runs."""

    def __init__(
        self,
        program: Program,
        config: PeConfig,
        control: Flow,
        widened: frozenset[int] | None,
        thresholds: frozenset[int],
        contents: Contents,
        self_written: tuple[int, ...],
    ) -> None:
        self._program = program
        self.size = len(program.words)
        self.control = control
        self.widened = widened
        around = {near for number in thresholds for near in (number - 1, number, number + 1)}
        powers = {sign << bit for bit in range(8, 63) for sign in (1, -1)}
        self.stops = sorted(around | powers)
        self.facts = Facts()
        self.forks: Counter[int] = Counter()
        self._most_forks = 0
        #: Branch -> constants that unknown values were compared with.
        self._compared: dict[int, set[int]] = {}
        self._varying: set[int] = set()
        self._several = False
        self.joined: dict[tuple[int, int], tuple[Value, ...]] = {}
        self._changes: Counter[tuple[int, int]] = Counter()
        self._seen: dict[int, set[tuple[Value, ...]]] = {place: set() for place in control.joins}
        self._work: list[tuple[int, Registers]] = []
        effects = Effects(config, self.facts, contents, self_written)
        self._effects = effects
        self._self_written = tuple(effects.self_written.values())
        self._steps: dict[int, Callable[[Registers], bool]] = {}
        self._branches: dict[int, Branch] = {}
        for address, row in control.rows.items():
            word = program.words[address]
            if row.branch is not None:
                a, b = FIELD_A.extract(word), FIELD_B.extract(word)
                self._branches[address] = Branch(
                    row.branch, bool(row.reads), a, b, control.following[address][-1]
                )
            elif row.key != "halt":
                self._steps[address] = effects.of(row, word, address)
        turns = Effects(config, Facts(), contents, self_written)
        self._loops = Loops(program, control, self._branches, turns, self.facts)

    def study(self, launch: StartRanges) -> Study:
        """The result of :meth:`run` with ``launch``."""
        live = {START_REGISTERS.get(slot) for slot in self.control.live[0]}
        varying = frozenset(self._effects.varying | self._varying)
        return Study(
            program=self._program,
            flow=self.control,
            facts=self.facts,
            exact=self.exact,
            reads_parameters="parameters" in live,
            varying=varying,
            steady=not varying and not (self._several and "slot" in live),
            unknown=dict(self._effects.unknown),
            launch=launch,
        )

    @property
    def exact(self) -> bool:
        """Whether no states were joined."""
        return not self.joined

    @property
    def _most_steps(self) -> int:
        return _STEPS if self.forks else _STEADY_STEPS

    def limits(self) -> frozenset[int]:
        """Constants that unknown values were compared with, except at branches with many, which
        compare with a counter."""
        few = [compared for compared in self._compared.values() if len(compared) <= _FEW]
        return frozenset(value for compared in few for value in compared)

    def run(self, launch: StartRanges) -> bool:
        """Follow all runs; False if there are too many.

        Raises:
            DeclarationError: a run may overwrite declared memory.
            SelfWritten: the program stores a declared number that has no slot in the state yet.
        """
        try:
            return self._follow_all(launch)
        except Overwrite as error:
            word, first, end, span = error.args
            written = Span(first, end - first)
            helps = store_remedy(self.study(launch), word, written)
            raise DeclarationError(
                f"{place(self._program, word)} may store to {first:#x} to "
                f"{end - 1:#x}, which overlaps {span}, declared as constant or bounded"
                + helps
                + ("" if self.exact else "; the program is too long to follow each step")
            ) from error

    def _follow_all(self, launch: StartRanges) -> bool:
        effects = self._effects
        start: Registers = [0] * SLOTS
        for register, name in START_REGISTERS.items():
            low, high = launch[name]
            start[register] = join(low, high)
        start[VL], start[MR], start[FX] = START_VL, START_MR, START_FX
        for self_written in effects.self_written:
            content = effects.contents.load(self_written, 8)
            assert content is not None
            start.append(content)
        low, high = launch["slot"]
        self._several = high > low
        if high - low < _SEPARATE:
            slot = next(register for register, name in START_REGISTERS.items() if name == "slot")
            for number in range(low, high + 1):
                start[slot] = number
                self._work.append((0, list(start)))
        else:
            self._work = [(0, start)]
        steps = 0
        while self._work:
            pc, registers = self._work.pop()
            steps += self._follow(pc, registers)
            if self.widened is not None and (steps > self._most_steps or self._most_forks > _FORKS):
                return False
        return True

    def _follow(self, pc: int, registers: Registers) -> int:
        """Follow one state until it ends or forks; returns the number of steps."""
        loops = self._loops
        loops.begin()
        executed, branches, steps = self.facts.executed, self._branches, self._steps
        count, limit = 0, self._most_steps
        while 0 <= pc < self.size:
            if pc in self._seen and not self._is_new(pc, registers):
                break
            count += 1
            if self.widened is not None and count > limit:
                break
            branch = branches.get(pc)
            if branch is not None:
                executed.add(pc)
                following = self._branch(pc, registers)
                if following is None:
                    break
                if 0 <= following <= pc and self.widened is not None:
                    self._effects.merge_unknown(loops.skip(following, registers))
                pc = following
                continue
            step = steps.get(pc)
            if step is None:
                executed.add(pc)
                break
            if not step(registers):
                break
            executed.add(pc)
            pc += 1
        return count

    def _is_new(self, pc: int, registers: Registers) -> bool:
        """Whether a state is new at a place where paths meet; joins it without ``widened``."""
        if self.widened is None and not self._join(pc, 0, registers):
            return False
        key = tuple(registers[slot] for slot in (*self.control.live[pc], *self._self_written))
        seen = self._seen[pc]
        if key in seen:
            return False
        seen.add(key)
        return True

    def _branch(self, pc: int, registers: Registers) -> int | None:
        """The next word after a branch; None if it forks or can't continue."""
        operation, conditional, a, b, target = self._branches[pc]
        facts = self.facts
        if not conditional or target == pc + 1:
            # A branch to the next word goes to the same place either way.
            facts.taken.add(pc)
            facts.passed.add(pc)
            return target
        ways = []
        for taken, after, record in (
            (False, pc + 1, facts.passed),
            (True, target, facts.taken),
        ):
            narrowed = _narrowed(operation, taken, a, b, registers)
            if narrowed is not None:
                record.add(pc)
                ways.append((taken, after, narrowed))
        if len(ways) == 1:
            _, after, (registers[a], registers[b]) = ways[0]
            return after
        self._varying.add(pc)
        joins = self.widened is not None and pc in self.widened
        if not joins:
            self.forks[pc] += 1
            self._most_forks = max(self._most_forks, self.forks[pc])
        for value in (registers[a], registers[b]):
            if isinstance(value, int):
                self._compared.setdefault(pc, set()).add(value)
        for taken, after, (new_a, new_b) in ways:
            copy = list(registers)
            copy[a], copy[b] = new_a, new_b
            if joins and not self._join(pc, 1 + taken, copy, after):
                continue
            self._work.append((after, copy))
        return None

    def _join(self, pc: int, way: int, registers: Registers, after: int | None = None) -> bool:
        """Widen the joined state of a place by ``registers``, and store the result in them.

        Returns:
            Whether it changed.
        """
        key = pc, way
        after_or_pc = pc if after is None else after
        live = (*self.control.live.get(after_or_pc, ()), *self._self_written)
        before = self.joined.get(key)
        state = tuple(registers[slot] for slot in live)
        if before is not None:
            self._changes[key] += 1
            patience = self._changes[key] < _CHANGES
            state = tuple(self._wider(h, f, patience) for h, f in zip(before, state, strict=True))
            if state == before:
                return False
        self.joined[key] = state
        registers[:] = [0] * len(registers)
        for slot, value in zip(live, state, strict=True):
            registers[slot] = value
        return True

    def _wider(self, before: Value, joined: Value, patience: bool) -> Value:
        """An interval that contains both and can't grow forever."""
        if before == joined:
            return before
        (low, high), (new_low, new_high) = bounds(before), bounds(joined)
        if new_low >= low and new_high <= high:
            # Only the step can be smaller.
            return join(before, joined)
        (bottom, top), step = bounds(ANY), min(step_of(before), step_of(joined))
        if new_low < low and patience:
            bottom = max((stop for stop in self.stops if stop <= new_low), default=bottom)
        if new_high > high and patience:
            top = min((stop for stop in self.stops if stop >= new_high), default=top)
        return Interval(bottom if new_low < low else low, top if new_high > high else high, step)


def _narrowed(
    operation: BranchOp, taken: bool, a: int, b: int, registers: Sequence[Value]
) -> tuple[Value, Value] | None:
    """Values of registers ``a`` and ``b`` after a branch on them; None if it can't go that way."""
    if a == b:
        always = operation in (BranchOp.BGE, BranchOp.BEQ)
        return (registers[a], registers[b]) if taken == always else None
    return refine(operation, taken, registers[a], registers[b])


#: Start register -> option that bounds it.
_OPTIONS = {"slot": "--slots", "parameters": "--parameters"}
#: Maximum declarations that a message names.
_NAMED = 3
#: Maximum bytes that a message proposes to declare; a load from more counts as from anywhere.
_MOST_BYTES = 1 << 12


def remedy(study: Study, words: Iterable[int]) -> str:
    """Declarations that would make known what ``words`` read; "" if there are none.

    A register is traced back to the loads of unknown numbers that it depends on, and a load from an
    unknown address to the loads that its address depends on. Loads that decide branches count too;
    otherwise a loop without a known end would need ever more declarations. Loads of adjacent bytes
    are merged.
    """
    loads, launch = _origins(study, words)
    if loads:
        rows = study.flow.rows
        branches = [word for word in study.varying if rows[word].branch is not None]
        loads |= _origins(study, branches)[0]
    options = []
    for span, of in _merged({word: study.unknown[word] for word in loads}):
        row = study.flow.rows[of[0]]
        assert row.writes is not None
        register = row.writes.extract(study.program.words[of[0]])
        where = place(study.program, of[0])
        if len(of) > 1:
            loaded = f"for {len(of)} loads, the first of r{register} by {where}"
            options.append(f"--constant {span} {loaded}")
        else:
            options.append(
                f"--constant {span} or --range {span} for r{register}, which {where} loads"
            )
    options += [
        f"{option} for r{slot}, which the launch sets"
        for slot, name in START_REGISTERS.items()
        if name in launch and (option := _OPTIONS.get(name))
    ]
    unnamed = len(options) - _NAMED
    return ", ".join(options[:_NAMED]) + (f" and {unnamed} more" if unnamed > 0 else "")


def store_remedy(study: Study, word: int, written: Span) -> str:
    """:func:`remedy` for a word that may store to declared memory at ``written``, with a leading
    semicolon."""
    if word in study.varying:
        helps = remedy(study, [word])
        return f"; its address is known with {helps}" if helps else ""
    if study.flow.rows[word].opcode == Opcode.ST_REG and written.size == SELF_WRITTEN_BYTES:
        return f"; to bound a number that the program stores: --range {written}=LOW..HIGH"
    return ""


def _merged(loads: Mapping[int, tuple[int, int]]) -> list[tuple[Span, list[int]]]:
    """Spans that ``loads`` read, merged where they touch, and the words that read each."""
    pieces: list[tuple[Span, list[int]]] = []
    for word, (first, end) in sorted(loads.items(), key=lambda item: item[1]):
        if pieces and first <= pieces[-1][0].end:
            span, of = pieces.pop()
            pieces.append((Span(span.start, max(span.end, end) - span.start), [*of, word]))
        else:
            pieces.append((Span(first, end - first), [word]))
    return [(span, sorted(of)) for span, of in pieces]


def _origins(study: Study, words: Iterable[int]) -> tuple[set[int], set[str]]:
    """Loads of unknown numbers from known addresses, and start registers, that ``words`` depend
    on."""
    rows, executed = study.flow.rows, study.facts.executed
    before: dict[int, list[int]] = defaultdict(list)
    for address in executed:
        for after in study.flow.following[address]:
            before[after].append(address)
    loads: set[int] = set()
    launch: set[str] = set()
    seen: set[tuple[int, int]] = set()
    pending: list[tuple[int, int]] = []

    def trace(word: int) -> None:
        """Add what the word's result depends on."""
        first, end = study.unknown.get(word, (0, _MOST_BYTES + 1))
        if end - first <= _MOST_BYTES:
            loads.add(word)
        elif word in study.unknown or not (rows[word].loads and rows[word].writes):
            pending.extend((word, slot) for slot in reads(rows[word], study.program.words[word]))

    for word in words:
        trace(word)
    while pending:
        item = pending.pop()
        if item in seen:
            continue
        seen.add(item)
        word, slot = item
        if word == 0 and slot in START_REGISTERS:
            name = START_REGISTERS[slot]
            low, high = study.launch[name]
            launch |= {name} if low < high else set()
        for source in before[word]:
            if slot in writes(rows[source], study.program.words[source]):
                trace(source)
            else:
                pending.append((source, slot))
    return loads, launch
