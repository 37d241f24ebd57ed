"""Cycles of an update in the loop of a kernel, from its program.

The front end issues an instruction a cycle, and loses :data:`TAKEN` where a branch is taken. It
hands a vector instruction on when the vector unit has begun the one before; the unit works through
them without a gap. A drain ends when all results are there. Operands are taken to be there in time,
and lines to be long.
"""

from functools import lru_cache

from isa.encoding import decode
from isa.instruction import Instruction, Opcode, Role, Unit
from isa.timing import VECTOR_LATENCY, beats

__all__ = ["TAKEN", "update_cycles"]

#: Cycles that a taken branch costs beside its own (docs/architecture.md).
TAKEN = 3
#: Times through the loop before it is in its rhythm, and that are measured.
_BEFORE, _MEASURED = 2, 2


@lru_cache(maxsize=64)
def update_cycles(words: tuple[int, ...], vl: int, mr: int) -> float:
    """Cycles of an engine for each message that the program's main loop stores.

    Parameters:
        words: of a program of BP-M, whose main loop is the innermost one with the most stores.
        vl, mr: elements of its vectors, and rows of its matrices.
    """
    code = [row for row in map(decode, words) if row is not None]
    first, last = _main_loop(code)
    front = begun = free = 0
    marks = []
    for _ in range(_BEFORE + _MEASURED + 1):
        marks.append(front)
        place = first
        while place <= last:
            row, values = code[place]
            step = 1
            if row.opcode == Opcode.DRAIN:
                front = max(front, free + VECTOR_LATENCY + 1)
            elif row.unit is Unit.VECTOR:
                front = max(front, begun + 1)
                begun = max(front + 1, free)
                free = begun + beats(row, vl, mr)
            elif place == last:
                front += TAKEN
            elif _wraps(row, values):
                front += TAKEN
                step = _distance(row, values)
            front += 1
            place += step
    stores = sum(row.opcode == Opcode.ST_SRAM for row, _ in code[first : last + 1])
    return (marks[-1] - marks[_BEFORE]) / _MEASURED / stores


def _distance(row: Instruction, values: tuple[int, ...]) -> int:
    """Words from a branch to its target; 0: it is none."""
    return values[-1] if row.operands and row.operands[-1].role is Role.TARGET else 0


def _wraps(row: Instruction, values: tuple[int, ...]) -> bool:
    """Whether a branch leaves out the one instruction that moves an address back to the first
    slot."""
    return row.mnemonic == "blt" and _distance(row, values) == 2


def _main_loop(code: list[tuple[Instruction, tuple[int, ...]]]) -> tuple[int, int]:
    """First and last word of the innermost loop with the most stores."""
    loops = [
        (place + distance, place)
        for place, (row, values) in enumerate(code)
        if (distance := _distance(row, values)) < 0
    ]
    inner = [one for one in loops if not any(one[0] <= other[1] < one[1] for other in loops)]

    def stores(loop: tuple[int, int]) -> int:
        return sum(row.opcode == Opcode.ST_SRAM for row, _ in code[loop[0] : loop[1]])

    return max(inner, key=stores)
