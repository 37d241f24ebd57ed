"""``vip trim``: the engine that one program needs."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from hdl.config import PeConfig
from hdl.ports import PeState
from isa.table import Unit
from sim_tb.cosim import MemoryBehaviour
from sim_tb.trim_check import ProgramFaultError, TrimCheck, Workload, check_trimmed
from soc.generate import configuration_json
from soc.generate import generate as write_verilog
from soc.presets import preset
from synth.targets import DEFAULT_TARGETS
from synth.trim import AreaComparison, TrimReport, compare_area, report

from ..console import console, tally, units_done
from ..errors import UserError
from ..output import check_folder, check_outputs, write_json
from .assembly import read_program
from .options import JsonOption, OutputDirectory, PresetOption

__all__ = ["compare_areas", "show_trim", "trim", "trim_json"]


def compare_areas(full: PeConfig, trimmed: PeConfig) -> dict[str, AreaComparison]:
    """Area before and after for every target, with a progress display."""
    found = {}
    for target in DEFAULT_TARGETS:
        with units_done(f"synthesis for {target}") as progress:
            found[target] = compare_area(full, trimmed, target, progress)
    return found


def trim_json(
    cut: TrimReport, check: TrimCheck, areas: dict[str, AreaComparison], *, zero_memory: bool
) -> dict[str, object]:
    """The numbers of a trim; savings are fractions of the full engine.

    Parameters:
        zero_memory: whether the program ran on a memory of zeros.
    """
    xc7, generic = areas["xc7"], areas["generic"]
    return {
        "match": check.match and not check.unfaulted,
        "different": list(check.different),
        "state": check.full.state.name.lower(),
        "cause": check.full.cause.name,
        "pc": check.full.pc if check.full.state is PeState.FAULTED else None,
        "zero_memory": zero_memory,
        "cycles": check.cycles_trimmed,
        "cycles_full": check.cycles_full,
        "cycles_trimmed": check.cycles_trimmed,
        "removed_instructions": check.removed,
        "removed_without_fault": list(check.unfaulted),
        "ff_saved": xc7.saved("ffs"),
        "lut_saved": xc7.saved("luts"),
        "dsp_saved": xc7.saved("dsps"),
        "ge_saved": generic.saved("logic_ge"),
        "trim": cut.to_json(),
        "areas": {target: area.to_json() for target, area in areas.items()},
        "configuration": configuration_json(cut.trimmed),
        "configuration_full": configuration_json(cut.full),
    }


def _end(check: TrimCheck) -> str:
    full = check.full
    if full.state is PeState.FAULTED:
        return f"{full.cause.name} at word {full.pc}"
    return full.state.name.lower()


def show_trim(
    cut: TrimReport, check: TrimCheck, areas: dict[str, AreaComparison], *, zero_memory: bool
) -> None:
    """Print what was removed and what that saves; parameters as for :func:`trim_json`."""
    removed = Table(title="instructions", show_header=True)
    for heading in ("unit", "kept", "removed"):
        removed.add_column(heading, justify="left" if heading == "unit" else "right")
    for unit in Unit:
        removed.add_row(unit.value, str(len(cut.kept[unit])), str(len(cut.removed[unit])))
    console.print(removed)
    table = Table(title="the engine, full and trimmed")
    for heading in ("", "full", "trimmed", "saved"):
        table.add_column(heading, justify="right" if heading else "left")
    shown = (("generic", "logic_ge"), ("xc7", "luts"), ("xc7", "ffs"), ("xc7", "dsps"))
    for target, name in (*shown, ("xc7", "brams")):
        area = areas[target]
        before, after = area.full.total.values[name], area.trimmed.total.values[name]
        table.add_row(name, f"{before:,.0f}", f"{after:,.0f}", f"{area.saved(name):.1%}")
    table.add_row("cycles", f"{check.cycles_full:,}", f"{check.cycles_trimmed:,}", "")
    table.add_row("end of the program", _end(check), "", "")
    table.add_row("memory at the start", "zeros" if zero_memory else "given", "", "")
    console.print(table)
    if check.match:
        console.print("memory, scratchpad, registers and cycles are the same on both engines")
    else:
        console.print(f"the engines DIFFER in {', '.join(check.different)}")
    if check.unfaulted:
        console.print(f"removed, but no fault: {', '.join(check.unfaulted)}")
    else:
        console.print(f"each of the {check.removed} removed instructions faults")


def _workload(
    program: Path,
    memory: Path | None,
    parameters: int,
    latency: int,
    max_cycles: int,
    may_fault: bool,
) -> Workload:
    contents = program.with_suffix(".memory") if memory is None else memory
    if memory is None and not contents.is_file():
        console.print("no --memory: the program runs on a memory of zeros", style="dim")
    return Workload(
        program=read_program(program),
        contents=contents.read_bytes() if contents.is_file() or memory is not None else b"",
        parameters=parameters,
        memory=MemoryBehaviour(latency=latency),
        max_cycles=max_cycles,
        may_fault=may_fault,
    )


def trim(
    program: Annotated[
        Path, typer.Argument(help="Program file, or assembly (.s).", metavar="PROGRAM")
    ],
    output: OutputDirectory,
    preset_name: PresetOption = "pe",
    memory: Annotated[
        Path | None,
        typer.Option(
            help="The memory's contents from address 0, to run the program on both engines "
            "(default: PROGRAM with the ending .memory, if there is one).",
            metavar="FILE",
        ),
    ] = None,
    parameters: Annotated[
        int, typer.Option(help="DRAM address of the parameter block (r5).", metavar="ADDRESS")
    ] = 0,
    latency: Annotated[
        int, typer.Option(help="Memory latency in cycles.", min=1, max=1_000_000)
    ] = 20,
    max_cycles: Annotated[int, typer.Option(help="Give up after so many.", min=1)] = 200_000_000,
    allow_fault: Annotated[
        bool, typer.Option("--allow-fault", help="Compare up to the fault of a program.")
    ] = False,
    json: JsonOption = None,
) -> None:
    """Rebuild the engine with what a program needs, and compare it with the full one.

    The Verilog goes to DIR. Both engines run the program: results and cycles must be the same, and
    each removed instruction must fault. The JSON's ff_saved and lut_saved are fractions, for Xilinx
    7-series.

    Example: vip trim kernel.vip -o build/trimmed --json trim.json
    """
    check_folder(output)
    check_outputs(json)
    work = _workload(program, memory, parameters, latency, max_cycles, allow_fault)
    cut = report(work.program, preset(preset_name))
    with tally("cosimulation of both engines (cycles)") as done:
        try:
            check = check_trimmed(work, cut.full, cut.trimmed, done)
        except ProgramFaultError as error:
            raise UserError(f"{program}: {error} (--allow-fault compares up to there)") from error
    areas = compare_areas(cut.full, cut.trimmed)
    write_verilog(cut.trimmed, output)
    write_json(json, trim_json(cut, check, areas, zero_memory=work.zero_memory))
    show_trim(cut, check, areas, zero_memory=work.zero_memory)
    console.print(f"{output}: Verilog of the trimmed engine")
    if not check.match or check.unfaulted:
        raise UserError("the trimmed engine does not do what the full one does")
