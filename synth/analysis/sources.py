"""Origins of values that an analysis does not know: the declarations that would bound them."""

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from isa.launch import START_REGISTERS
from isa.program import Program

from .reach import place, reads, writes

if TYPE_CHECKING:
    from .values import Values

__all__ = ["remedy"]

#: Declarations that a message names.
_NAMED = 3
#: Bytes that a message proposes to declare: a load from more may be from anywhere.
_MOST_BYTES = 1 << 12


def remedy(program: Program, values: "Values", words: Iterable[int]) -> str:
    """The declarations that would tell what ``words`` read; "" if there are none.

    A register is traced back to the loads of unknown numbers that it follows from, and a load from
    an unknown address to those of the address.
    """
    loads, launch = _origins(program, values, words)
    found = []
    for word in sorted(loads):
        first, end = values.unknown[word]
        row = values.flow.rows[word]
        assert row.writes is not None
        register = row.writes.extract(program.words[word])
        span = f"{first:#x}:{end - first}"
        found.append(
            f"--constant {span} or --range {span} for r{register}, which {place(program, word)} "
            "loads"
        )
    if "parameters" in launch:
        found.append("--parameters for r5, which the launch sets")
    more = len(found) - _NAMED
    return ", ".join(found[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _origins(program: Program, values: "Values", words: Iterable[int]) -> tuple[set[int], set[str]]:
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
