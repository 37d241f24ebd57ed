"""``vip trim``: the engine that some programs need."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from isa.support.files import read_bytes
from pe.config import PeConfig
from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.cosim.trim_check import ProgramFaultError, Workload, check_trimmed
from soc.generate.configuration_file import configuration_text
from soc.generate.generate import generate as write_verilog
from soc.generate.presets import preset
from synth.analysis.histogram import draw_types
from synth.analysis.profile import Profile
from synth.analysis.trim import AreaComparison, TrimReport, check_reason, compare_area, report
from synth.errors import CoverageError
from synth.formal.prove import prove as prove_trimmed
from synth.physical.budget import Budget, find_budget
from synth.physical.targets import DEFAULT_TARGETS
from vip.cli.console import console, steps, tally, units_done
from vip.cli.errors import UserError
from vip.cli.file_arguments import FileArguments
from vip.output import write_json
from vip.proofs import show_proofs
from vip.trimming.filling import CHIP_FILE, Fitting, fit_both, fit_json, show_fit
from vip.trimming.result import Checked, show_trim, sound, trim_json
from vip.trimming.runs import Observed, observe

from .assembly import read_program
from .options import (
    JsonOption,
    OutputDirectory,
    ParametersOption,
    PresetOption,
    drawing,
    file_arguments,
    reading,
)

__all__ = ["compare_areas", "trim"]


#: Bytes that a file for --memory may have.
_MEMORY_BYTES = 1 << 28


def compare_areas(full: PeConfig, trimmed: PeConfig) -> dict[str, AreaComparison]:
    """Area before and after for every target, with a progress display."""
    found = {}
    for target in DEFAULT_TARGETS:
        with units_done(f"synthesis for {target}") as progress:
            found[target] = compare_area(full, trimmed, target, progress)
    return found


def _memory_files(given: Sequence[str] | None) -> list[Path]:
    return [Path(text.rpartition("=")[2]) for text in given or ()]


def _memories(
    programs: Sequence[Path], given: Sequence[str], files_given: FileArguments
) -> dict[Path, list[Path]]:
    """For each program the files that its memory may hold at the start."""
    found: dict[Path, list[Path]] = {program: [] for program in programs}
    for text in given:
        owner, separator, file = text.rpartition("=")
        if not separator and len(programs) > 1:
            raise UserError(f"--memory {text}: with several programs, give PROGRAM=FILE")
        if not separator:
            found[programs[0]].append(Path(file))
        elif Path(owner) in found:
            found[Path(owner)].append(Path(file))
        else:
            raise UserError(f"--memory {text}: {owner} is none of the programs")
    for program, files in found.items():
        beside = program.with_suffix(".memory")
        if not files and beside.is_file():
            files_given.reads(beside, "the memory of a program")
            files.append(beside)
    return found


def _observe(name: Path, work: Workload, full: PeConfig, *, hardware: bool) -> Observed:
    with tally(f"{name.name} on the full engine") as done:
        try:
            return observe(work, full, hardware=hardware, progress=done)
        except ProgramFaultError as error:
            raise UserError(f"{name}: {error} (--allow-fault compares up to there)") from error


def _check(runs: Sequence[tuple[Path, Observed]], cut: TrimReport) -> list[Checked]:
    checks: list[Checked] = []
    for path, run in runs:
        with tally(f"{path.name} on the trimmed engine (cycles)") as done:
            check = check_trimmed(
                run.work,
                cut.full,
                cut.trimmed,
                done,
                before=run.measured,
                try_removed=not checks,
            )
        checks.append(Checked(name=path.name, check=check, zero_memory=run.work.zero_memory))
    return checks


def _fit(cut: TrimReport, budget: Budget, runs: Sequence[Observed]) -> Fitting:
    """Fill a device with engines of either kind, and show what came of it."""
    with steps(f"filling {budget.name}") as step:
        found = fit_both(cut.full, cut.trimmed, budget, runs, step)
    console.print(show_fit(found))
    if not found.match:
        raise UserError("engines of the chips do not do what one alone does")
    return found


def _prove(cut: TrimReport, numbers: dict[str, object], json: Path | None) -> None:
    """Prove the engine, and add the proof to ``numbers``; without one there is no engine."""
    with units_done("proof") as progress:
        found = prove_trimmed(cut.full, cut.trimmed, progress)
    show_proofs({"these programs": found})
    numbers["proof"] = found.to_json()
    if not found.holds:
        write_json(json, numbers)
        raise UserError("the trimmed engine is not proved to do what the full one does")


def trim(
    context: typer.Context,
    programs: Annotated[
        list[Path],
        typer.Argument(
            help="Program files, or assembly (.s).", metavar="PROGRAM...", callback=reading()
        ),
    ],
    output: OutputDirectory,
    preset_name: PresetOption = "pe",
    memory: Annotated[
        list[str] | None,
        typer.Option(
            help="The memory's contents from address 0 for a run: of the only program, or "
            "PROGRAM=FILE; may be repeated (default: PROGRAM with the ending .memory, if there is "
            "one).",
            metavar="FILE",
            callback=reading(_memory_files),
        ),
    ] = None,
    profile: Annotated[
        list[Path] | None,
        typer.Option(
            help="Profile of more runs, from vip run --profile.",
            metavar="FILE",
            callback=reading(),
        ),
    ] = None,
    parameters: ParametersOption = 0,
    address_bits: Annotated[
        int | None,
        typer.Option(
            help="Address bits of the memory (default: as needed).",
            min=12,
            max=40,
            metavar="BITS",
        ),
    ] = None,
    proved: Annotated[
        bool,
        typer.Option(
            "--proved", help="Only sizes that are proved for all runs, whatever is given."
        ),
    ] = False,
    tight: Annotated[
        bool,
        typer.Option("--tight", help="Sizes of the runs, even where a larger one is proved."),
    ] = False,
    allow_uncovered: Annotated[
        bool,
        typer.Option(
            "--allow-uncovered", help="Take runs that do not go wherever the program can go."
        ),
    ] = False,
    keep_counters: Annotated[
        bool, typer.Option("--keep-counters", help="Keep the performance counters.")
    ] = False,
    rom: Annotated[
        bool, typer.Option("--rom", help="Bake the program into a ROM; there must be one.")
    ] = False,
    latency: Annotated[
        int, typer.Option(help="Memory latency in cycles.", min=1, max=1_000_000)
    ] = 20,
    max_cycles: Annotated[int, typer.Option(help="Give up after so many.", min=1)] = 200_000_000,
    allow_fault: Annotated[
        bool, typer.Option("--allow-fault", help="Compare up to the fault of a program.")
    ] = False,
    check: Annotated[
        bool, typer.Option(help="Run the programs on the Verilog of both engines.")
    ] = True,
    area: Annotated[bool, typer.Option(help="Synthesise both engines.")] = True,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove", help="Prove that the engine does what the full one does (docs/proofs.md)."
        ),
    ] = False,
    why: Annotated[
        list[str] | None,
        typer.Option(
            help="Say why an instruction or unit is there; may be repeated.", metavar="KEY"
        ),
    ] = None,
    fit: Annotated[
        str | None,
        typer.Option(
            help="Fill a device (xc7vx690t, ecp5-85k, asic:MM2 and so on) with full and with "
            "trimmed engines, and run the programs on all of them.",
            metavar="DEVICE",
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            help="Draw instructions by unit and type.",
            metavar="FILE",
            callback=drawing(),
        ),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Rebuild the engine with what programs need, and compare it with the full one.

    Sizes are proved where constants decide about them, else they are those of the runs given, and
    hardware faults on a run that needs more. Both engines run the programs: results and cycles must
    be the same, and each removed instruction must fault; only then the Verilog goes to DIR. With
    --prove there must be a proof too, which takes some minutes. The
    JSON's ff_saved and lut_saved are fractions, for Xilinx 7-series. With --fit, DIR/chip.json is
    the chip of trimmed engines, for vip generate --config.

    Example: vip trim kernel.vip --memory image.bin -o build/trimmed --json trim.json
    """
    budget = None if fit is None else find_budget(fit)
    if budget is not None and not check:
        raise UserError("--fit runs the programs, so it can't go with --no-check")
    if proved and tight:
        raise UserError("--proved and --tight exclude each other")
    if len(set(programs)) < len(programs):
        raise UserError("a program is given twice")
    if rom and len(programs) > 1:
        raise UserError("--rom bakes in one program; there are several")
    for key in why or []:
        check_reason(key)
    memories = _memories(programs, memory or [], file_arguments(context))
    full = preset(preset_name)
    if address_bits is not None and address_bits > full.address_bits:
        raise UserError(
            f"--address-bits {address_bits}: preset {preset_name!r} has {full.address_bits}"
        )
    most = min(1 << full.address_bits, _MEMORY_BYTES)
    loaded = {path: read_program(path, full.instruction_words) for path in programs}
    given = [Profile.load(path) for path in profile or []]
    profiles = [] if proved else given
    runs: list[tuple[Path, Observed]] = []
    for path, files in memories.items():
        if not files:
            console.print(
                f"{path.name}: no --memory, so only proofs count; it runs on zeros",
                style="dim",
            )
        contents: list[Path | None] = [*files] or [None]
        for file in contents:
            work = Workload(
                program=loaded[path],
                contents=b"" if file is None else read_bytes(file, most),
                parameters=parameters,
                memory=MemoryBehaviour(latency=latency),
                max_cycles=max_cycles,
                may_fault=allow_fault,
            )
            if file is None and not check:
                continue
            run = _observe(path, work, full, hardware=check)
            runs.append((path, run))
            # What a program does with zeros says nothing about what it does with data.
            if file is not None and not proved:
                profiles.append(run.profile)
    short = [path.name for path in programs]
    try:
        cut = report(
            list(loaded.values()),
            full,
            profiles,
            names=short if len(set(short)) == len(short) else [str(path) for path in programs],
            keep_counters=keep_counters,
            rom=rom,
            allow_uncovered=allow_uncovered,
            tight=tight,
            address_bits=address_bits,
        )
    except CoverageError as error:
        raise UserError(
            f"{error}; give more runs, or --proved (a larger engine), or --allow-uncovered (other "
            "runs may fault)"
        ) from error
    reasons = [cut.why(key) for key in why or []]
    checks = _check(runs, cut) if check else []
    areas = compare_areas(cut.full, cut.trimmed) if area else {}
    numbers = trim_json(cut, checks, areas)
    show_trim(cut, checks, areas)
    for reason in reasons:
        console.print(reason)
    if not sound(checks):
        write_json(json, numbers)
        raise UserError("the trimmed engine does not do what the full one does")
    if prove:
        _prove(cut, numbers, json)
    if figure is not None:
        draw_types(cut, figure, name=programs[0].name)
    beside = {}
    if budget is not None:
        found = _fit(cut, budget, [run for _, run in runs])
        numbers["fit"] = fit_json(found)
        beside[CHIP_FILE] = configuration_text(found.trimmed.chip.config)
    write_json(json, numbers)
    written = write_verilog(cut.trimmed, output, beside=beside)
    console.print(f"{output}: Verilog of the trimmed engine, {len(written.modules)} modules")
