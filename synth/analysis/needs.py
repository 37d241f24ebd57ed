"""What a program needs of a processing engine: instructions, by unit, width and type."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from isa.launch import START_REGISTERS
from isa.program import Program
from isa.table import BY_KEY, FIELD_A, INSTRUCTIONS, BranchOp, Instruction, Role, Unit, find
from synth.errors import TrimError

_REGISTERS = FIELD_A.range.stop
#: The vector settings, numbered after the registers.
VL, MR, FX = range(_REGISTERS, _REGISTERS + 3)
#: Number of registers and vector settings.
SLOTS = _REGISTERS + 3


@dataclass(frozen=True)
class Flow:
    """Control flow of the words that can be reached.

    Attributes:
        rows: word address -> its row of the instruction table, ascending.
        following: word address -> addresses at which a run can continue (for a conditional branch
            the next word, then the target); an address outside the program ends it in a fault.
        live: word address -> registers and vector settings (:data:`VL`, :data:`MR`, :data:`FX`)
            whose value before it can matter.
        joins: addresses at which paths meet, including word 0 if a path leads back to it.
    """

    rows: dict[int, Instruction]
    following: dict[int, tuple[int, ...]]
    live: dict[int, tuple[int, ...]]
    joins: frozenset[int]


def place(program: Program, address: int) -> str:
    """Where a word is, for a message: its address and, if known, its source line."""
    line = program.source.get(address)
    return f"word {address}" if line is None else f"word {address} ({line.file}:{line.line})"


def flow(program: Program) -> Flow:
    """The control flow of ``program`` from word 0.

    Raises:
        TrimError: the program is empty, or a reachable word is not an instruction.
    """
    words = program.words
    if not words:
        raise TrimError("the program is empty")
    rows: dict[int, Instruction] = {}
    following: dict[int, tuple[int, ...]] = {}
    came_from: dict[int, list[int]] = {}
    pending = [0]
    while pending:
        address = pending.pop()
        if address in rows:
            continue
        row = find(words[address])
        if row is None:
            raise TrimError(
                f"{place(program, address)}: {words[address]:#010x} is not an instruction"
            )
        rows[address] = row
        following[address] = _following(row, words[address], address)
        for after in following[address]:
            if 0 <= after < len(words):
                came_from.setdefault(after, []).append(address)
                pending.append(after)
    joins = {address for address, sources in came_from.items() if len(sources) > 1}
    # A path back to the start meets the launch.
    joins |= {0} & came_from.keys()
    return Flow(
        rows=dict(sorted(rows.items())),
        following=following,
        live=_live(words, rows, came_from),
        joins=frozenset(joins),
    )


def _following(row: Instruction, word: int, address: int) -> tuple[int, ...]:
    if row.key == "halt":
        return ()
    targets = tuple(
        address + operand.field.extract(word)
        for operand in row.operands
        if operand.role is Role.TARGET
    )
    return targets if row.branch is BranchOp.JMP else (address + 1, *targets)


def _live(
    words: tuple[int, ...], rows: dict[int, Instruction], came_from: dict[int, list[int]]
) -> dict[int, tuple[int, ...]]:
    """Registers that are live before each word, as bit sets, by a backward analysis."""
    read = {address: _bits(reads(row, words[address])) for address, row in rows.items()}
    written = {address: _bits(writes(row, words[address])) for address, row in rows.items()}
    before = dict(read)
    pending = sorted(rows)
    while pending:
        address = pending.pop()
        for source in came_from.get(address, ()):
            grown = before[source] | (before[address] & ~written[source])
            if grown != before[source]:
                before[source] = grown
                pending.append(source)
    return {
        address: tuple(slot for slot in range(SLOTS) if bits >> slot & 1)
        for address, bits in before.items()
    }


def _bits(slots: Iterable[int]) -> int:
    return sum(1 << slot for slot in set(slots))


def reads(row: Instruction, word: int) -> list[int]:
    """Registers and vector settings that ``word``, an encoding of ``row``, reads."""
    slots = [field.extract(word) for field in row.reads]
    if row.unit is Unit.VECTOR:
        slots.append(VL)
        if any(operand.extent.by_mr for operand in row.scratchpad):
            slots.append(MR)
        if row.fractions:
            slots.append(FX)
    return slots


def writes(row: Instruction, word: int) -> list[int]:
    """The register or vector setting that ``word``, an encoding of ``row``, writes, if any."""
    setting = {"set.vl": VL, "set.mr": MR, "set.fx": FX}.get(row.key)
    if setting is not None:
        return [setting]
    return [] if row.writes is None else [row.writes.extract(word)]


@dataclass(frozen=True)
class Needs:
    """What one or several programs need.

    Attributes:
        uses: key of each reachable instruction -> where it is, one line per word (address, source
            line if known, program if there are several); in the table's order.
        words: length of the longest program in words.
        reachable: number of reachable words in all programs.
        highest_register: highest register that a reachable instruction names or the launch sets.
        immediates: smallest and largest constant of each field in use (``imm14``, ``imm20``,
            ``distance`` of branches).
    """

    uses: Mapping[str, tuple[str, ...]]
    words: int
    reachable: int
    highest_register: int
    immediates: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def instructions(self) -> frozenset[str]:
        """Keys of the reachable instructions."""
        return frozenset(self.uses)

    def histogram(self) -> dict[Unit, dict[str, int]]:
        """Reachable words by functional unit and element width (``-`` if it has none)."""
        return self._counts(lambda row: "-" if row.width is None else str(row.width.bits))

    def types(self) -> dict[Unit, dict[str, int]]:
        """Reachable words by functional unit and kind of work
        (:attr:`isa.table.Instruction.work`)."""
        return self._counts(lambda row: row.work)

    def pairs(self) -> dict[str, dict[str, int]]:
        """Reachable ``m.v`` words by element-wise operation and reduction (``mul.add``), then by
        element width."""
        combined: dict[str, Counter[str]] = {}
        for key, places in self.uses.items():
            row = BY_KEY[key]
            if row.vertical is not None and row.reduction is not None and row.width is not None:
                pair = f"{row.vertical.name}.{row.reduction.name}".lower()
                combined.setdefault(pair, Counter())[str(row.width.bits)] += len(places)
        return {pair: dict(counts) for pair, counts in combined.items()}

    def _counts(self, kind: Callable[[Instruction], str]) -> dict[Unit, dict[str, int]]:
        counts: dict[Unit, Counter[str]] = {unit: Counter() for unit in Unit}
        for key, places in self.uses.items():
            row = BY_KEY[key]
            counts[row.unit][kind(row)] += len(places)
        return {unit: dict(sorted(kinds.items())) for unit, kinds in counts.items() if kinds}

    def to_json(self) -> dict[str, object]:
        """The needs as plain JSON data."""
        return {
            "words": self.words,
            "reachable": self.reachable,
            "highest_register": self.highest_register,
            "uses": {key: len(places) for key, places in self.uses.items()},
            "places": {key: list(places) for key, places in self.uses.items()},
            "histogram": {unit.value: kinds for unit, kinds in self.histogram().items()},
            "types": {unit.value: kinds for unit, kinds in self.types().items()},
            "pairs": self.pairs(),
            "immediates": {name: list(ends) for name, ends in self.immediates.items()},
        }


def needed(program: Program, executed: Collection[int] | None = None, name: str = "") -> Needs:
    """What ``program`` needs.

    Parameters:
        executed: addresses of the words that count; None: all words reachable from word 0 along
            both sides of every branch.
        name: prefix for the places of words, or "".

    Raises:
        TrimError: the program is empty, or a reachable word is not an instruction.
    """
    rows = flow(program).rows
    if executed is not None:
        rows = {address: row for address, row in rows.items() if address in executed}
    prefix = f"{name}: " if name else ""
    uses: dict[str, list[str]] = {}
    constants: dict[str, list[int]] = {}
    highest = max(START_REGISTERS)
    for address, row in rows.items():
        uses.setdefault(row.key, []).append(prefix + place(program, address))
        for operand in row.operands:
            value = operand.field.extract(program.words[address])
            if operand.is_register:
                highest = max(highest, value)
            else:
                kind = "distance" if operand.role is Role.TARGET else operand.field.name
                constants.setdefault(kind, []).append(value)
    return Needs(
        uses={row.key: tuple(uses[row.key]) for row in INSTRUCTIONS if row.key in uses},
        words=len(program.words),
        reachable=len(rows),
        highest_register=highest,
        immediates=_ends(constants),
    )


def _ends(constants: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, int]]:
    """The smallest and largest constant of each kind."""
    return {kind: (min(numbers), max(numbers)) for kind, numbers in sorted(constants.items())}


def union(parts: Iterable[Needs]) -> Needs:
    """What several programs, at least one, need if they run one after the other."""
    all_parts = list(parts)
    uses = {
        row.key: places
        for row in INSTRUCTIONS
        if (places := tuple(p for part in all_parts for p in part.uses.get(row.key, ())))
    }
    constants: dict[str, list[int]] = {}
    for part in all_parts:
        for kind, ends in part.immediates.items():
            constants.setdefault(kind, []).extend(ends)
    return Needs(
        uses=uses,
        words=max(part.words for part in all_parts),
        reachable=sum(part.reachable for part in all_parts),
        highest_register=max(part.highest_register for part in all_parts),
        immediates=_ends(constants),
    )
