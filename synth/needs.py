"""What a program needs of a processing engine: analysis of its reachable instructions."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from isa.launch import START_REGISTERS
from isa.program import Program
from isa.table import BY_KEY, INSTRUCTIONS, BranchOp, Instruction, Operand, Role, Unit, find

from .errors import TrimError

__all__ = ["Needs", "needed"]


@dataclass(frozen=True)
class Needs:
    """What a program needs.

    Attributes:
        uses: key of each instruction that can be reached -> word addresses, ascending; in the
            table's order.
        words: length of the program in words.
        reachable: how many of those can be reached.
        highest_register: highest register that a reachable instruction names or the launch sets.
    """

    uses: Mapping[str, tuple[int, ...]]
    words: int
    reachable: int
    highest_register: int

    @property
    def instructions(self) -> frozenset[str]:
        """Keys of the instructions that can be reached."""
        return frozenset(self.uses)

    def histogram(self) -> dict[Unit, dict[str, int]]:
        """Reachable words by functional unit and element width (``-`` where there is none)."""
        counts: dict[Unit, Counter[str]] = {unit: Counter() for unit in Unit}
        for key, addresses in self.uses.items():
            row = BY_KEY[key]
            counts[row.unit]["-" if row.width is None else str(row.width.bits)] += len(addresses)
        return {unit: dict(sorted(found.items())) for unit, found in counts.items() if found}

    def to_json(self) -> dict[str, object]:
        """The needs as plain JSON data; ``uses`` gives the number of words."""
        return {
            "words": self.words,
            "reachable": self.reachable,
            "highest_register": self.highest_register,
            "uses": {key: len(addresses) for key, addresses in self.uses.items()},
            "histogram": {unit.value: found for unit, found in self.histogram().items()},
        }


def needed(program: Program) -> Needs:
    """Analyse ``program``.

    Control flow is followed from word 0 along both sides of every branch, whose targets are all
    constants, so that no run can reach more. A path that leaves the program ends there, in a fault.

    Raises:
        TrimError: an empty program, or a reachable word that is no instruction.
    """
    if not program.words:
        raise TrimError("the program is empty")
    found: dict[str, list[int]] = {}
    highest = max(START_REGISTERS)
    pending, seen = [0], {0}
    while pending:
        address = pending.pop()
        word = program.words[address]
        row = find(word)
        if row is None:
            raise TrimError(f"{_place(program, address)}: {word:#010x} is no instruction")
        found.setdefault(row.key, []).append(address)
        registers = [_value(operand, word) for operand in row.operands if operand.is_register]
        highest = max(highest, *registers, 0)
        for following in _following(row, word, address):
            if 0 <= following < len(program.words) and following not in seen:
                seen.add(following)
                pending.append(following)
    uses = {row.key: tuple(sorted(found[row.key])) for row in INSTRUCTIONS if row.key in found}
    return Needs(uses=uses, words=len(program.words), reachable=len(seen), highest_register=highest)


def _value(operand: Operand, word: int) -> int:
    return operand.field.extract(word)


def _following(row: Instruction, word: int, address: int) -> list[int]:
    """Addresses at which execution can go on after ``row``."""
    if row.key == "halt":
        return []
    following = [] if row.branch is BranchOp.JMP else [address + 1]
    for operand in row.operands:
        if operand.role is Role.TARGET:
            following.append(address + _value(operand, word))
    return following


def _place(program: Program, address: int) -> str:
    line = program.source.get(address)
    return f"word {address}" if line is None else f"word {address} ({line.file}:{line.line})"
