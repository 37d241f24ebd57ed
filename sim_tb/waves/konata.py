"""Logs of instructions in the pipeline, for the viewer Konata.

The format is Kanata 0004: tab-separated commands, of which ``C`` advances the time. Lane 0 has
stages, lane 1 stalls by cause. A thread is an engine.
"""

from collections.abc import Iterator, Sequence

from isa.assembly.disassembler import instruction_text
from isa.program import Program
from isa.table import decode

from .pipeline import Follower, TracedInstruction

#: Order of commands within a cycle: ends before starts, an instruction before its stages.
_BEGIN, _END, _START, _RETIRE = range(4)


def konata_log(program: Program, engines: Sequence[Follower]) -> str:
    """The log of ``engines``, which ran ``program``; each is a thread."""
    instructions = [
        (thread, instruction)
        for thread, engine in enumerate(engines)
        for instruction in engine.found
        if instruction.stages
    ]
    instructions.sort(key=lambda entry: (entry[1].stages[0].start, entry[0]))
    events: list[tuple[int, int, int, str]] = []
    for number, (thread, instruction) in enumerate(instructions):
        for cycle, order, text in _events(number, thread, instruction, program):
            events.append((cycle, order, number, text))
    events.sort(key=lambda event: event[:3])
    lines = ["Kanata\t0004"]
    time = events[0][0] if events else 0
    lines.append(f"C=\t{time}")
    retired = 0
    for cycle, order, _, text in events:
        if cycle > time:
            lines.append(f"C\t{cycle - time}")
            time = cycle
        if order == _RETIRE:
            flushed = text.endswith("1")
            text = text.replace("?", str(retired))
            retired += not flushed
        lines.append(text)
    return "".join(f"{line}\n" for line in lines)


def _events(
    number: int, thread: int, instruction: TracedInstruction, program: Program
) -> Iterator[tuple[int, int, str]]:
    first = instruction.stages[0].start
    yield first, _BEGIN, f"I\t{number}\t{number}\t{thread}"
    yield (
        first,
        _BEGIN,
        f"L\t{number}\t0\t{instruction.pc}: {instruction_at(program, instruction.pc)}",
    )
    source = program.source.get(instruction.pc)
    if source is not None:
        line = " ".join(source.text.split())
        yield first, _BEGIN, f"L\t{number}\t1\t{source.file}:{source.line} {line}; "
    for stall in instruction.stalls:
        waited = f"{stall.end - stall.start} cycles for {stall.name}; "
        yield first, _BEGIN, f"L\t{number}\t1\t{waited}"
    for lane, intervals in enumerate((instruction.stages, instruction.stalls)):
        for interval in intervals:
            # An idle unit takes an instruction immediately.
            if interval.end > interval.start:
                yield interval.start, _START, f"S\t{number}\t{lane}\t{interval.name}"
                yield interval.end, _END, f"E\t{number}\t{lane}\t{interval.name}"
    yield instruction.end, _RETIRE, f"R\t{number}\t?\t{int(not instruction.retired)}"


def instruction_at(program: Program, pc: int) -> str:
    """The instruction at word ``pc`` in assembly."""
    decoded = decode(program.words[pc]) if pc < len(program.words) else None
    return "no instruction" if decoded is None else instruction_text(*decoded)
