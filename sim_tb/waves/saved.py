"""Waveform files for GTKWave and Surfer: a range of clock cycles cut out of a file, with texts
added to it, and save files, which select the signals shown."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path

from vcd.gtkw import GTKWSave

from isa.program import Program
from support.files import write_atomically

from .cycles import TraceError, clock_name, declared_signals, signal_names
from .konata import instruction_at
from .pipeline import TracedInstruction

#: Scope of the texts.
TEXTS = "instructions"
#: First and last cycle of a text, and the text.
Text = tuple[int, int, str]
#: Escapes that GTKWave reads.
_ESCAPES = {" ": "\\x20", "\\": "\\\\"}
#: Suffixes of save files: GTKWave's, and Surfer's commands.
SAVE_ENDINGS = (".gtkw", ".sucl")
_SURFER = ".sucl"
#: Stage with one instruction at a time -> name of the text that shows the instruction.
_STAGES = {
    "F": "fetch",
    "O": "operands",
    "I": "issue",
    "D": "dispatch",
    "V": "vector",
    "L": "load_store",
}
#: Group -> scopes below an engine whose own signals it shows, if the design has them.
_GROUPS = {
    "front end": ("fetch", "operands", "issue", "dispatch"),
    "vector unit": ("vector", "vector.control"),
    "load-store unit": ("load_store", "load_store.request", "load_store.response"),
    "range check": ("arc",),
}
#: Marks of internal signals: parts of another signal, or unnamed ones.
_INTERNAL = (".", "$", "[")


def cut_waves(
    path: Path,
    target: Path,
    first: int,
    last: int,
    texts: Mapping[str, Sequence[Text]] | None = None,
) -> None:
    """Write cycles ``first`` to ``last`` of the VCD file ``path`` to ``target``, with their times
    and the initial values of all signals.

    Parameters:
        path: a file written by Verilator. first, last: cycles, from 0 on, counted as in
            :func:`sim_tb.waves.cycles.read_cycles`; each ends with a rising edge.
        texts: name -> texts, in order, of a signal of type ``string`` added to the scope
            :data:`TEXTS`.

    Raises:
        TraceError: the file is not a VCD file, has no clock, or ends before cycle ``first``.
        OSError: a file can't be read or written.
    """
    names = signal_names(path)
    clock = clock_name(names)
    if not clock:
        raise TraceError(f"{path}: there is no clock signal")
    rising = b"1" + names[clock].encode()
    codes = {name: f"text{number}" for number, name in enumerate(texts or {})}
    text_at = {name: _by_cycle(intervals) for name, intervals in (texts or {}).items()}
    # Signal -> the line of its value at the beginning of the time being read.
    values: dict[bytes, bytes] = {}
    cut: list[bytes] = []
    before: dict[str, str] = {}
    cycle = -1
    with path.open("rb") as file:
        header = _header(file, codes)
        for time, changes in _times(file):
            edge = any(line.rstrip() == rising for line in changes)
            cycle += edge
            if cycle > last:
                break
            # Values from an edge on belong to the next cycle.
            current = {code: text_at[name].get(cycle + 1, "") for name, code in codes.items()}
            added = [
                f"s{text} {code}\n".encode()
                for code, text in current.items()
                if edge and (not cut or text != before[code])
            ]
            before = current if edge else before
            if cut:
                cut += [time, *changes, *added]
                continue
            for line in changes:
                code = line.split()[1] if line[:1] in b"br" else line[1:].strip()
                values[code] = line
            if cycle >= first:
                cut += [time, b"$dumpvars\n", *values.values(), *added, b"$end\n"]
    if not cut:
        raise TraceError(f"{path}: it ends before clock cycle {first}")
    write_atomically(target, b"".join([*header, *cut]))


def _header(file: Iterator[bytes], codes: Mapping[str, str]) -> list[bytes]:
    """The lines before the first time, with the declarations of the texts."""
    header: list[bytes] = []
    for line in file:
        if line.startswith(b"$enddefinitions"):
            return [*header, *_declared(codes), line]
        header.append(line)
    return header


def _times(file: Iterator[bytes]) -> Iterator[tuple[bytes, list[bytes]]]:
    """Each time's line, and the lines of its changes."""
    time, changes = b"#0\n", list[bytes]()
    for line in file:
        if line.startswith(b"#"):
            yield time, changes
            time, changes = line, []
        elif line[:1] in b"01xzbr" and line.strip():
            changes.append(line)
    yield time, changes


def _declared(codes: Mapping[str, str]) -> list[bytes]:
    if not codes:
        return []
    lines = [f"$var string 1 {code} {name} $end" for name, code in codes.items()]
    lines = [f"$scope module {TEXTS} $end", *lines, "$upscope $end"]
    return [f"{line}\n".encode() for line in lines]


def _by_cycle(texts: Sequence[Text]) -> dict[int, str]:
    """Cycle -> its text, escaped for VCD."""
    return {
        cycle: "".join(_ESCAPES.get(character, character) for character in text)
        for start, end, text in texts
        for cycle in range(start, end + 1)
    }


def texts_of(program: Program, instructions: Sequence[TracedInstruction]) -> dict[str, list[Text]]:
    """The instruction in each stage that has one at a time, as texts for
    :func:`cut_waves`.

    Parameters:
        instructions: of one engine, which ran ``program``.
    """
    texts: dict[str, list[Text]] = {name: [] for name in _STAGES.values()}
    for instruction in instructions:
        for stage in instruction.stages:
            if stage.name in _STAGES and stage.end > stage.start:
                text = f"{instruction.pc}: {instruction_at(program, instruction.pc)}"
                texts[_STAGES[stage.name]].append((stage.start, stage.end - 1, text))
    return texts


def save_file(waves: Path, texts: Mapping[str, object], ending: str) -> str:
    """The save file for ``waves``, a VCD file of one engine: instructions, then signals grouped by
    unit.

    Parameters:
        texts: those that :func:`cut_waves` has added.
        ending: suffix of the save file, one of :data:`SAVE_ENDINGS`.
    Raises:
        TraceError: it is not a VCD file. OSError: it can't be read.
    """
    if ending == _SURFER:
        return _commands(waves, texts)
    names = declared_signals(waves)
    clock = clock_name(names)
    text = StringIO()
    save = GTKWSave(text)
    save.dumpfile(waves.name, abspath=False)
    start, end = _first_and_last(waves)
    save.timestart(start)
    # Shows the whole file in a usual window; at zoom 0 a unit of time is about 200 pixels wide.
    save.zoom_markers(-math.log2(max(1, (end - start) / 3)))
    if clock:
        save.trace(clock)
    with save.group(TEXTS):
        for name in texts:
            save.trace(f"{TEXTS}.{name}", datafmt="ascii")
    for group, members in _members(names).items():
        with save.group(group, closed=True):
            for name in members:
                # With its bit range, such as ``[63:0]``, if it has several bits.
                save.trace(name + "".join(names[name][5:-1]))
    return text.getvalue()


def _commands(waves: Path, texts: Mapping[str, object]) -> str:
    """The same as Surfer commands, which have no groups: dividers have their names instead."""
    names = declared_signals(waves)
    clock = clock_name(names)
    lines = [f"load_file {waves.name}"]
    lines += [f"variable_add {clock}"] if clock else []
    groups = {TEXTS: [f"{TEXTS}.{name}" for name in texts], **_members(names)}
    for group, members in groups.items():
        lines += [f"divider_add {group}", *(f"variable_add {name}" for name in members)]
    return "".join(f"{line}\n" for line in (*lines, "zoom_fit"))


def _members(names: Iterable[str]) -> dict[str, list[str]]:
    """Group -> its signals."""
    ends = ".sequencer.active"
    engine = next((name.removesuffix(ends) for name in names if name.endswith(ends)), "")
    members: dict[str, list[str]] = {}
    for group, scopes in _GROUPS.items():
        prefixes = tuple(f"{engine}.{scope}." for scope in scopes)
        members[group] = []
        for name in names:
            scope = next((prefix for prefix in prefixes if name.startswith(prefix)), "")
            if scope and not any(part in name[len(scope) :] for part in _INTERNAL):
                members[group].append(name)
    return members


def _first_and_last(waves: Path) -> tuple[int, int]:
    """The first and the last time in the file."""
    with waves.open(encoding="utf-8") as file:
        times = [int(line[1:]) for line in file if line.startswith("#")]
    return (times[0], times[-1]) if times else (0, 0)
