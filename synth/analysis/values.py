"""Possible behaviour of a program with any data: abstract interpretation from the launch.

Programs mostly compute with constants, so states with known registers are followed one by one. A
branch on data that is not known goes both ways. At a branch where that never ends, states are
joined into intervals, so that the analysis always ends. Its results hold for every run: of any
memory contents, and of any launch within :class:`StartRanges`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from isa.declared import Span
from isa.launch import START_FX, START_MR, START_REGISTERS, START_VL
from isa.program import Program
from isa.table import FIELD_A, FIELD_B, IMM14, IMM20, BranchOp, Opcode, Role
from pe.config import PeConfig
from synth.errors import DeclarationError

from .contents import NOTHING_KNOWN, SELF_WRITTEN_BYTES, Contents
from .effects import Effects, Overwrite, Registers, SelfWritten
from .facts import Facts
from .interval import ANY, Interval, Value, bounds, join, refine, step_of
from .loops import Branch, Loops
from .needs import FX, MR, SLOTS, VL, Flow, flow, place, reads, writes

__all__ = [
    "StartRanges",
    "Values",
    "analyse",
    "remedy",
    "store_remedy",
]

_IDENTITY = (0, (1 << 16) - 1)
#: Steps in one attempt. Beyond, the branch that forked most is joined.
_STEPS = 250_000
#: Steps as long as no branch has forked: half a minute.
_STEADY_STEPS = 4_000_000
#: Forks of one branch in one attempt.
_FORKS = 2_000
#: Attempts before all places where ways meet are joined.
_ATTEMPTS = 6
#: Changes of the joined state of one place after which a value that still grows can be anything.
_CHANGES = 60
#: Slots that are followed one by one.
_SEPARATE = 16
#: Constants that one branch compares with, if they are limits.
_FEW = 4


@dataclass(frozen=True, kw_only=True)
class StartRanges:
    """Lowest and highest value of each start register (:data:`isa.launch.START_REGISTERS`)."""

    pe_index: tuple[int, int] = _IDENTITY
    vault: tuple[int, int] = _IDENTITY
    slot: tuple[int, int] = _IDENTITY
    pe_count: tuple[int, int] = _IDENTITY
    parameters: tuple[int, int] = (0, (1 << 40) - 1)


@dataclass(frozen=True)
class Values:
    """Result of :func:`analyse`.

    Attributes:
        flow: control flow of the program. facts: all that it can do, at most.
        exact: no states were joined: every fact belongs to a run with some memory contents.
        reads_parameters: some run can read the register of the parameter block.
        varying: words at which data decide what is done when: branches that go either way, and
            words with addresses, lengths or settings that data decide about. Without any, all runs
            in a slot take the same cycles on memories that answer alike.
        steady: no word varies, nor do slots differ, so that all runs take the same cycles.
        unknown: word that loads any number -> first address and end of where it may be.
        launch: that all holds for.
    """

    flow: Flow
    facts: Facts
    exact: bool
    reads_parameters: bool
    varying: frozenset[int]
    steady: bool
    unknown: Mapping[int, tuple[int, int]]
    launch: StartRanges


def analyse(
    program: Program, config: PeConfig, launch: StartRanges, contents: Contents = NOTHING_KNOWN
) -> Values:
    """All that runs of ``program`` on an engine of ``config`` can do.

    A run that faults does so on this engine; its instructions after the fault do not count.

    Parameters:
        contents: known memory. All else holds anything.

    Raises:
        TrimError: an empty program, or a reachable word that is not an instruction.
        DeclarationError: a run may overwrite declared memory.
    """
    control = flow(program)
    self_written: tuple[int, ...] = ()
    while True:
        try:
            return _analyse(program, config, launch, control, contents, self_written)
        except SelfWritten as found:
            self_written = (*self_written, found.place)


def _analyse(
    program: Program,
    config: PeConfig,
    launch: StartRanges,
    control: Flow,
    contents: Contents,
    self_written: tuple[int, ...],
) -> Values:
    thresholds = _constants(program, control)
    widened: frozenset[int] = frozenset()
    for _ in range(_ATTEMPTS):
        attempt = _Attempt(program, config, control, widened, thresholds, contents, self_written)
        if attempt.run(launch):
            return attempt.values(launch)
        thresholds |= attempt.limits()
        forked = [pc for pc, _ in attempt.forks.most_common() if pc not in widened]
        if not forked:
            break
        widened |= {forked[0]}
    attempt = _Attempt(program, config, control, None, thresholds, contents, self_written)
    attempt.run(launch)
    return attempt.values(launch)


def _constants(program: Program, control: Flow) -> frozenset[int]:
    """Numbers at which growing intervals stop for a while: constants of the program."""
    numbers = {0, 1}
    for address, row in control.rows.items():
        for operand in row.operands:
            if operand.role is Role.IMMEDIATE and operand.field in (IMM14, IMM20):
                numbers.add(operand.field.extract(program.words[address]))
    return frozenset(numbers)


class _Attempt:
    """One analysis, which joins the states after the branches in ``widened``; None: the states at
    every place where ways meet, so that it ends however long the program runs."""

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
        #: Constants that unknown values were compared with, by branch.
        self._compared: dict[int, set[int]] = {}
        self._varying: set[int] = set()
        self._several = False
        self.joined: dict[tuple[int, int], tuple[Value, ...]] = {}
        self._changes: Counter[tuple[int, int]] = Counter()
        self._seen: dict[int, set[tuple[Value, ...]]] = {place: set() for place in control.joins}
        self._work: list[tuple[int, Registers]] = []
        effects = Effects(config, self.facts, contents, self_written)
        self._effects = effects
        self._self_written = tuple(range(SLOTS, SLOTS + len(self_written)))
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
        self._loops = Loops(
            program, config, control, self._branches, contents, self_written, self.facts
        )

    def values(self, launch: StartRanges) -> Values:
        """The result, after :meth:`run` with ``launch``."""
        live = {START_REGISTERS.get(slot) for slot in self.control.live[0]}
        varying = frozenset(self._effects.varying | self._varying)
        return Values(
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
        """Constants that unknown values were compared with; those of a branch on a counter, which
        has many, are not limits."""
        few = [compared for compared in self._compared.values() if len(compared) <= _FEW]
        return frozenset(value for compared in few for value in compared)

    def run(self, launch: StartRanges) -> bool:
        """Follow all runs; False if that was broken off because they are too many.

        Raises:
            DeclarationError: a run may overwrite declared memory.
            SelfWritten: the program stores a number of declared memory that is not followed yet.
        """
        try:
            return self._follow_all(launch)
        except Overwrite as error:
            word = error.word
            written = Span(error.first, error.end - error.first)
            helps = store_remedy(self._program, self.values(launch), word, written)
            raise DeclarationError(
                f"{place(self._program, word)} may store to {error.first:#x} to "
                f"{error.end - 1:#x}, which overlaps {error.span}, declared as constant or bounded"
                + helps
                + ("" if self.exact else "; the program is too long to follow each step of it")
            ) from error

    def _follow_all(self, launch: StartRanges) -> bool:
        effects = self._effects
        start: Registers = [0] * SLOTS
        for register, name in START_REGISTERS.items():
            low, high = getattr(launch, name)
            start[register] = join(low, high)
        start[VL], start[MR], start[FX] = START_VL, START_MR, START_FX
        for self_written in effects.self_written:
            content = effects.contents.load(self_written, 8)
            assert content is not None
            start.append(content)
        low, high = launch.slot
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
        """Follow one state until it ends or forks; the number of steps."""
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
        """Whether a state at a place where ways meet has not been there; joins it if asked."""
        if self.widened is None and not self._join(pc, 0, registers):
            return False
        key = tuple(registers[slot] for slot in (*self.control.live[pc], *self._self_written))
        seen = self._seen[pc]
        if key in seen:
            return False
        seen.add(key)
        return True

    def _branch(self, pc: int, registers: Registers) -> int | None:
        """The next word after a branch; None when it forks, or can't go on."""
        operation, conditional, a, b, target = self._branches[pc]
        facts = self.facts
        if not conditional or target == pc + 1:
            # Both sides of a branch to the next word are the same.
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
        """Widen the state held for a place by ``registers``, and put the result there.

        Returns:
            Whether there was anything new.
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
        """An interval with both that does not grow for ever."""
        if before == joined:
            return before
        (low, high), (new_low, new_high) = bounds(before), bounds(joined)
        if new_low >= low and new_high <= high:
            # At most a smaller step.
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
    """Values of registers ``a`` and ``b`` after a branch on them; None if it can't go there."""
    if a == b:
        always = operation in (BranchOp.BGE, BranchOp.BEQ)
        return (registers[a], registers[b]) if taken == always else None
    return refine(operation, taken, registers[a], registers[b])


#: Start register -> option that bounds it.
_OPTIONS = {"slot": "--slots", "parameters": "--parameters"}
#: Declarations that a message names.
_NAMED = 3
#: Bytes that a message proposes to declare: a load from more may be from anywhere.
_MOST_BYTES = 1 << 12


def remedy(program: Program, values: Values, words: Iterable[int]) -> str:
    """The declarations that would tell what ``words`` read; "" if there are none.

    A register is traced back to the loads of unknown numbers that it follows from, and a load from
    an unknown address to those of the address. Loads that decide about branches count, too: else a
    loop without a known end would need ever more declarations. Loads of adjacent bytes are joined.
    """
    loads, launch = _origins(program, values, words)
    if loads:
        rows = values.flow.rows
        branches = [word for word in values.varying if rows[word].branch is not None]
        loads |= _origins(program, values, branches)[0]
    options = []
    for span, of in _merged({word: values.unknown[word] for word in loads}):
        row = values.flow.rows[of[0]]
        assert row.writes is not None
        register = row.writes.extract(program.words[of[0]])
        where = place(program, of[0])
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


def store_remedy(program: Program, values: Values, word: int, written: Span) -> str:
    """The same for a word that may store to declared memory, at ``written``, after a semicolon."""
    if word in values.varying:
        helps = remedy(program, values, [word])
        return f"; its address is known with {helps}" if helps else ""
    if values.flow.rows[word].opcode == Opcode.ST_REG and written.size == SELF_WRITTEN_BYTES:
        return f"; a number that the program stores may have bounds: --range {written}=LOW..HIGH"
    return ""


def _merged(loads: Mapping[int, tuple[int, int]]) -> list[tuple[Span, list[int]]]:
    """Bytes that ``loads``, by word, read: in one piece where they touch, with its words."""
    pieces: list[tuple[Span, list[int]]] = []
    for word, (first, end) in sorted(loads.items(), key=lambda item: item[1]):
        if pieces and first <= pieces[-1][0].end:
            span, of = pieces.pop()
            pieces.append((Span(span.start, max(span.end, end) - span.start), [*of, word]))
        else:
            pieces.append((Span(first, end - first), [word]))
    return [(span, sorted(of)) for span, of in pieces]


def _origins(program: Program, values: Values, words: Iterable[int]) -> tuple[set[int], set[str]]:
    """Loads of unknown numbers from known places, and start registers, that ``words`` depend on."""
    rows, executed = values.flow.rows, values.facts.executed
    before: dict[int, list[int]] = defaultdict(list)
    for address in executed:
        for after in values.flow.following[address]:
            before[after].append(address)
    loads: set[int] = set()
    launch: set[str] = set()
    seen: set[tuple[int, int]] = set()
    pending: list[tuple[int, int]] = []

    def trace(word: int) -> None:
        """What the word's result depends on."""
        first, end = values.unknown.get(word, (0, _MOST_BYTES + 1))
        if end - first <= _MOST_BYTES:
            loads.add(word)
        elif word in values.unknown or not (rows[word].loads and rows[word].writes):
            pending.extend((word, slot) for slot in reads(rows[word], program.words[word]))

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
            low, high = getattr(values.launch, name)
            launch |= {name} if low < high else set()
        for source in before[word]:
            if slot in writes(rows[source], program.words[source]):
                trace(source)
            else:
                pending.append((source, slot))
    return loads, launch
