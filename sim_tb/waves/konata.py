"""Konata logs: instructions in the pipeline, for the viewer Konata.

The format is Kanata 0004: tab-separated commands, of which ``C`` advances the time. Stages are in
lane 0, stalls by their cause in lane 1. A thread is an engine.
"""

from collections.abc import Iterator, Sequence

from isa.assembly.disassembler import instruction_text
from isa.encoding import decode
from isa.program import Program

from .pipeline import Follower, TracedInstruction

__all__ = ["instruction_at", "konata_log"]

#: Order of commands within a cycle: what ends before what starts, an instruction before its stages.
_BEGIN, _END, _START, _RETIRE = range(4)


def konata_log(program: Program, engines: Sequence[Follower]) -> str:
    """The log of ``engines``, which ran ``program``; each is a thread."""
    instructions = [
        (thread, each)
        for thread, engine in enumerate(engines)
        for each in engine.found
        if each.stages
    ]
    instructions.sort(key=lambda each: (each[1].stages[0].start, each[0]))
    events: list[tuple[int, int, int, str]] = []
    for number, (thread, each) in enumerate(instructions):
        for cycle, order, text in _events(number, thread, each, program):
            events.append((cycle, order, number, text))
    events.sort(key=lambda event: event[:3])
    lines = ["Kanata\t0004"]
    now = events[0][0] if events else 0
    lines.append(f"C=\t{now}")
    retired = 0
    for cycle, order, _, text in events:
        if cycle > now:
            lines.append(f"C\t{cycle - now}")
            now = cycle
        if order == _RETIRE:
            flushed = text.endswith("1")
            text = text.replace("?", str(retired))
            retired += not flushed
        lines.append(text)
    return "".join(f"{line}\n" for line in lines)


def _events(
    number: int, thread: int, each: TracedInstruction, program: Program
) -> Iterator[tuple[int, int, str]]:
    first = each.stages[0].start
    yield first, _BEGIN, f"I\t{number}\t{number}\t{thread}"
    yield first, _BEGIN, f"L\t{number}\t0\t{each.pc}: {instruction_at(program, each.pc)}"
    source = program.source.get(each.pc)
    if source is not None:
        line = " ".join(source.text.split())
        yield first, _BEGIN, f"L\t{number}\t1\t{source.file}:{source.line} {line}; "
    for stall in each.stalls:
        waited = f"{stall.end - stall.start} cycles for {stall.name}; "
        yield first, _BEGIN, f"L\t{number}\t1\t{waited}"
    for lane, intervals in enumerate((each.stages, each.stalls)):
        for interval in intervals:
            # A unit that is idle takes an instruction at once.
            if interval.end > interval.start:
                yield interval.start, _START, f"S\t{number}\t{lane}\t{interval.name}"
                yield interval.end, _END, f"E\t{number}\t{lane}\t{interval.name}"
    yield each.end, _RETIRE, f"R\t{number}\t?\t{int(not each.retired)}"


def instruction_at(program: Program, pc: int) -> str:
    """The instruction at word ``pc`` as assembly writes it."""
    found = decode(program.words[pc]) if pc < len(program.words) else None
    return "no instruction" if found is None else instruction_text(*found)
