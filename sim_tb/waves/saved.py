"""Save files for GTKWave and Surfer, which select the signals shown with a waveform file."""

import math
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path

from vcd.gtkw import GTKWSave

from isa.program import Program

from .cut import TEXTS, Text
from .cycles import TraceError
from .konata import instruction_at
from .pipeline import TracedInstruction

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


def texts_of(program: Program, instructions: Sequence[TracedInstruction]) -> dict[str, list[Text]]:
    """The instruction in each stage that has one at a time, as texts for
    :func:`sim_tb.waves.cut.cut_waves`.

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
        texts: those that :func:`sim_tb.waves.cut.cut_waves` has added.
        ending: suffix of the save file, one of :data:`SAVE_ENDINGS`.
    Raises:
        TraceError: it is not a VCD file. OSError: it can't be read.
    """
    if ending == _SURFER:
        return _commands(waves, texts)
    names = _ranges(waves)
    clock = min((name for name in names if name.endswith(".clk")), key=len, default="")
    text = StringIO()
    save = GTKWSave(text)
    save.dumpfile(waves.name, abspath=False)
    start, end = _times(waves)
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
                save.trace(name + names[name])
    return text.getvalue()


def _commands(waves: Path, texts: Mapping[str, object]) -> str:
    """The same as Surfer commands, which have no groups: dividers have their names instead."""
    names = _ranges(waves)
    clock = min((name for name in names if name.endswith(".clk")), key=len, default="")
    lines = [f"load_file {waves.name}"]
    lines += [f"variable_add {clock}"] if clock else []
    groups = {TEXTS: [f"{TEXTS}.{name}" for name in texts], **_members(names)}
    for group, members in groups.items():
        lines += [f"divider_add {group}", *(f"variable_add {name}" for name in members)]
    return "".join(f"{line}\n" for line in (*lines, "zoom_fit"))


def _members(names: Mapping[str, str]) -> dict[str, list[str]]:
    """Group -> its signals."""
    engine = next((name[: -len(".sequencer.active")] for name in names if _is_engine(name)), "")
    members: dict[str, list[str]] = {}
    for group, scopes in _GROUPS.items():
        prefixes = tuple(f"{engine}.{scope}." for scope in scopes)
        members[group] = []
        for name in names:
            scope = next((prefix for prefix in prefixes if name.startswith(prefix)), "")
            if scope and not any(part in name[len(scope) :] for part in _INTERNAL):
                members[group].append(name)
    return members


def _ranges(waves: Path) -> dict[str, str]:
    """Signal with its scopes -> its bit range, such as ``[63:0]``; "" for one bit."""
    ranges: dict[str, str] = {}
    scopes: list[str] = []
    with waves.open(encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words[:1] == ["$scope"]:
                scopes.append(words[2])
            elif words[:1] == ["$upscope"]:
                scopes.pop()
            elif words[:1] == ["$var"]:
                ranges[".".join((*scopes, words[4]))] = "".join(words[5:-1])
            elif words[:1] == ["$enddefinitions"]:
                return ranges
    raise TraceError(f"{waves}: not a VCD file: it ends before its signals")


def _times(waves: Path) -> tuple[int, int]:
    """The first and the last time in the file."""
    with waves.open(encoding="utf-8") as file:
        times = [int(line[1:]) for line in file if line.startswith("#")]
    return (times[0], times[-1]) if times else (0, 0)


def _is_engine(name: str) -> bool:
    return name.endswith(".sequencer.active")
