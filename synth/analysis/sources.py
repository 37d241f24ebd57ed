"""Origins of values that an analysis does not know: the declarations that would bound them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from isa.declared import Span
from isa.launch import START_REGISTERS
from isa.program import Program
from isa.table import Opcode

from .contents import OWN_BYTES
from .reach import place, reads, writes

if TYPE_CHECKING:
    from .values import Values

__all__ = ["remedy", "store_remedy"]

#: Start register -> option that bounds it.
_OPTIONS = {"slot": "--slots", "parameters": "--parameters"}
#: Declarations that a message names.
_NAMED = 3
#: Bytes that a message proposes to declare: a load from more may be from anywhere.
_MOST_BYTES = 1 << 12


def remedy(program: Program, values: "Values", words: Iterable[int]) -> str:
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
    found = []
    for span, of in _merged({word: values.unknown[word] for word in loads}):
        row = values.flow.rows[of[0]]
        assert row.writes is not None
        register = row.writes.extract(program.words[of[0]])
        where = place(program, of[0])
        if len(of) > 1:
            loaded = f"for {len(of)} loads, the first of r{register} by {where}"
            found.append(f"--constant {span} {loaded}")
        else:
            found.append(
                f"--constant {span} or --range {span} for r{register}, which {where} loads"
            )
    found += [
        f"{option} for r{slot}, which the launch sets"
        for slot, name in START_REGISTERS.items()
        if name in launch and (option := _OPTIONS.get(name))
    ]
    more = len(found) - _NAMED
    return ", ".join(found[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def store_remedy(program: Program, values: "Values", word: int, written: Span) -> str:
    """The same for a word that may store to declared memory, at ``written``, after a semicolon."""
    if word in values.varying:
        helps = remedy(program, values, [word])
        return f"; its address is known with {helps}" if helps else ""
    if values.flow.rows[word].opcode == Opcode.ST_REG and written.size == OWN_BYTES:
        return f"; a number that the program stores may have bounds: --range {written}=LOW..HIGH"
    return ""


def _merged(loads: Mapping[int, tuple[int, int]]) -> list[tuple[Span, list[int]]]:
    """Bytes that ``loads``, by word, read: in one piece where they touch, with its words."""
    found: list[tuple[Span, list[int]]] = []
    for word, (first, end) in sorted(loads.items(), key=lambda item: item[1]):
        if found and first <= found[-1][0].end:
            span, of = found.pop()
            found.append((Span(span.start, max(span.end, end) - span.start), [*of, word]))
        else:
            found.append((Span(first, end - first), [word]))
    return [(span, sorted(of)) for span, of in found]


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
