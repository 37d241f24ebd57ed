"""Needs of a program from a processing engine: its instructions, by unit, width and type."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from isa.launch import START_REGISTERS
from isa.program import Program
from isa.table import BY_KEY, INSTRUCTIONS, Instruction, Role, Unit

from .reach import flow, place

__all__ = ["Needs", "needed", "union"]


@dataclass(frozen=True)
class Needs:
    """Needs of one program, or of several.

    Attributes:
        uses: key of each instruction that can be reached -> where, one line a word (address, source
            line if known, program if there are several); in the table's order.
        words: length of the program in words; of the longest.
        reachable: how many words can be reached, in all programs.
        highest_register: highest register that a reachable instruction names or the launch sets.
        immediates: smallest and largest constant by field (``imm14``, ``imm20``, ``distance`` of
            branches), of those that are used.
    """

    uses: Mapping[str, tuple[str, ...]]
    words: int
    reachable: int
    highest_register: int
    immediates: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def instructions(self) -> frozenset[str]:
        """Keys of the instructions that can be reached."""
        return frozenset(self.uses)

    def histogram(self) -> dict[Unit, dict[str, int]]:
        """Reachable words by functional unit and element width (``-`` where there is none)."""
        return self._counts(lambda row: "-" if row.width is None else str(row.width.bits))

    def types(self) -> dict[Unit, dict[str, int]]:
        """Reachable words by functional unit and kind of work
        (:attr:`isa.table.Instruction.work`)."""
        return self._counts(lambda row: row.work)

    def pairs(self) -> dict[str, dict[str, int]]:
        """Reachable ``m.v`` words by element-wise operation and reduction (``mul.add``), then by
        element width."""
        found: dict[str, Counter[str]] = {}
        for key, places in self.uses.items():
            row = BY_KEY[key]
            if row.vertical is not None and row.reduction is not None and row.width is not None:
                pair = f"{row.vertical.name}.{row.reduction.name}".lower()
                found.setdefault(pair, Counter())[str(row.width.bits)] += len(places)
        return {pair: dict(counts) for pair, counts in found.items()}

    def _counts(self, kind: Callable[[Instruction], str]) -> dict[Unit, dict[str, int]]:
        counts: dict[Unit, Counter[str]] = {unit: Counter() for unit in Unit}
        for key, places in self.uses.items():
            row = BY_KEY[key]
            counts[row.unit][kind(row)] += len(places)
        return {unit: dict(sorted(found.items())) for unit, found in counts.items() if found}

    def to_json(self) -> dict[str, object]:
        """The needs as plain JSON data."""
        return {
            "words": self.words,
            "reachable": self.reachable,
            "highest_register": self.highest_register,
            "uses": {key: len(places) for key, places in self.uses.items()},
            "places": {key: list(places) for key, places in self.uses.items()},
            "histogram": {unit.value: found for unit, found in self.histogram().items()},
            "types": {unit.value: found for unit, found in self.types().items()},
            "pairs": self.pairs(),
            "immediates": {name: list(ends) for name, ends in self.immediates.items()},
        }


def needed(program: Program, executed: Collection[int] | None = None, name: str = "") -> Needs:
    """The needs of ``program``.

    Parameters:
        executed: addresses of the words that count; None: all that control flow can reach from word
            0 along both sides of every branch.
        name: put before the places of words; "" for none.

    Raises:
        TrimError: an empty program, or a reachable word that is no instruction.
    """
    rows = flow(program).rows
    if executed is not None:
        rows = {address: row for address, row in rows.items() if address in executed}
    prefix = f"{name}: " if name else ""
    found: dict[str, list[str]] = {}
    constants: dict[str, list[int]] = {}
    highest = max(START_REGISTERS)
    for address, row in rows.items():
        found.setdefault(row.key, []).append(prefix + place(program, address))
        for operand in row.operands:
            value = operand.field.extract(program.words[address])
            if operand.is_register:
                highest = max(highest, value)
            else:
                kind = "distance" if operand.role is Role.TARGET else operand.field.name
                constants.setdefault(kind, []).append(value)
    return Needs(
        uses={row.key: tuple(found[row.key]) for row in INSTRUCTIONS if row.key in found},
        words=len(program.words),
        reachable=len(rows),
        highest_register=highest,
        immediates={kind: (min(held), max(held)) for kind, held in sorted(constants.items())},
    )


def union(parts: Iterable[Needs]) -> Needs:
    """The needs of several programs that run one after the other; ``parts`` has at least one."""
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
        immediates={kind: (min(held), max(held)) for kind, held in sorted(constants.items())},
    )
