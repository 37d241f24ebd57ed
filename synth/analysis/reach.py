"""Control flow of a program: successors of each word, reachable words, and live registers.

Targets of branches are constants, so this follows both sides of every branch and no run can do
more. :mod:`synth.analysis.values` finds out which sides are really taken.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from isa.program import Program
from isa.table import FIELD_A, BranchOp, Instruction, Role, Unit, find
from synth.errors import TrimError

__all__ = ["FX", "MR", "SLOTS", "VL", "Flow", "flow", "place", "reads", "writes"]

_REGISTERS = FIELD_A.range.stop
#: The vector settings, as registers after the others.
VL, MR, FX = range(_REGISTERS, _REGISTERS + 3)
#: Registers with the vector settings.
SLOTS = _REGISTERS + 3


@dataclass(frozen=True)
class Flow:
    """Control flow of the words that can be reached.

    Attributes:
        rows: word address -> its row of the instruction table, ascending.
        following: word address -> addresses at which a run can go on; those outside the program
            end it in a fault. Of a conditional branch the next word, then the target.
        live: word address -> registers and vector settings (:data:`VL`, :data:`MR`, :data:`FX`)
            whose value before it can matter.
        joins: addresses at which ways meet, word 0 included if there is one back to it.
    """

    rows: dict[int, Instruction]
    following: dict[int, tuple[int, ...]]
    live: dict[int, tuple[int, ...]]
    joins: frozenset[int]


def place(program: Program, address: int) -> str:
    """Place of a word, for a message: its address and, if known, its source line."""
    line = program.source.get(address)
    return f"word {address}" if line is None else f"word {address} ({line.file}:{line.line})"


def flow(program: Program) -> Flow:
    """The control flow of ``program`` from word 0.

    Raises:
        TrimError: an empty program, or a reachable word that is no instruction.
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
            raise TrimError(f"{place(program, address)}: {words[address]:#010x} is no instruction")
        rows[address] = row
        following[address] = _following(row, words[address], address)
        for after in following[address]:
            if 0 <= after < len(words):
                came_from.setdefault(after, []).append(address)
                pending.append(after)
    joins = {address for address, sources in came_from.items() if len(sources) > 1}
    # A way back to the start meets the launch.
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
    """Registers that live before each word, found backwards, as sets of bits."""
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
    """Registers and vector settings that ``word``, which encodes ``row``, reads."""
    slots = [field.extract(word) for field in row.reads]
    if row.unit is Unit.VECTOR:
        slots.append(VL)
        if any(operand.extent.by_mr for operand in row.scratchpad):
            slots.append(MR)
        if row.fractions:
            slots.append(FX)
    return slots


def writes(row: Instruction, word: int) -> list[int]:
    """The register or vector setting that ``word``, which encodes ``row``, writes, if any."""
    setting = {"set.vl": VL, "set.mr": MR, "set.fx": FX}.get(row.key)
    if setting is not None:
        return [setting]
    return [] if row.writes is None else [row.writes.extract(word)]
