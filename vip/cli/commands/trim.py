"""``vip trim``: the engine that some programs need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import vip
from isa.declared import Declared
from sim_tb.cosim.applications import applications
from sim_tb.cosim.trim_check import ProgramFaultError
from soc.generate.presets import preset
from synth.analysis.histogram import draw_types
from synth.analysis.profile import Profile
from synth.analysis.trim import check_reason
from synth.errors import CoverageError
from synth.physical.budget import find_budget
from vip.cli.console import console, shown
from vip.cli.declarations import declarations
from vip.cli.errors import UserError
from vip.cli.file_arguments import FileArguments
from vip.cli.groups import grouped
from vip.cli.tables.proofs import show_proofs
from vip.cli.tables.trim import show_fit, show_trim
from vip.models.folder import manifest_of
from vip.output import write_json
from vip.trimming.result import TrimResult
from vip.trimming.runs import MOST_SLOWER
from vip.trimming.subjects import subjects_of

from .option_groups.models import ModelOptions
from .option_groups.trim import ComparisonOptions, LaunchOptions
from .options import (
    JsonOption,
    OutputDirectory,
    PresetOption,
    drawing,
    file_arguments,
    reading,
)
from .trim_folder import is_model, trim_folder

__all__ = ["trim"]


def _memory_files(given: Sequence[str] | None) -> list[Path]:
    return [Path(text.rpartition("=")[2]) for text in given or ()]


def _program_files(names: Sequence[str] | None) -> list[Path]:
    """Those of ``names`` that are no applications; of a compiled model the manifest."""
    known = {each.name for each in applications()}
    return [manifest_of(Path(name)) for name in names or () if name not in known]


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """What decides the sizes of the engine."""

    memory: Annotated[
        list[str] | None,
        typer.Option(
            help="The memory's contents from address 0 for a run: of the only program, or "
            "PROGRAM=FILE; may be repeated (default: PROGRAM with the ending .memory, if there is "
            "one).",
            metavar="FILE",
            callback=reading(_memory_files),
        ),
    ] = None
    constant: Annotated[
        list[str] | None,
        typer.Option(
            help="Bytes of the memory that are the same in all runs, such as a parameter block; "
            "all else is data. May be repeated; PROGRAM=START:BYTES with several programs.",
            metavar="START:BYTES",
        ),
    ] = None
    range: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            help="Signed numbers in memory, of 64 or BITS bits each, from LOW to HIGH in all runs; "
            "may be repeated.",
            metavar="START:BYTES[/BITS]=LOW..HIGH",
        ),
    ] = None
    slots: Annotated[
        int | None,
        typer.Option(
            help="Programs run in the first so many slots of a vault (default: in any).",
            min=1,
            max=1 << 16,
            metavar="NUMBER",
        ),
    ] = None
    profile: Annotated[
        list[Path] | None,
        typer.Option(
            help="Profile of more runs, from vip run --profile.",
            metavar="FILE",
            callback=reading(),
        ),
    ] = None
    address_bits: Annotated[
        int | None,
        typer.Option(
            help="Address bits of the memory (default: as needed).",
            min=12,
            max=40,
            metavar="BITS",
        ),
    ] = None
    proved: Annotated[
        bool,
        typer.Option(
            "--proved", help="Only sizes that are proved for all runs, whatever is given."
        ),
    ] = False
    tight: Annotated[
        bool,
        typer.Option("--tight", help="Sizes of the runs, even where a larger one is proved."),
    ] = False
    allow_uncovered: Annotated[
        bool,
        typer.Option(
            "--allow-uncovered", help="Take runs that do not go wherever the program can go."
        ),
    ] = False
    slower: Annotated[
        float,
        typer.Option(
            help="Build fewer places for transfers in flight if the runs then take at most so many "
            "percent more cycles.",
            min=0,
            max=100 * MOST_SLOWER,
            metavar="PERCENT",
        ),
    ] = 0.0
    keep_counters: Annotated[
        bool, typer.Option("--keep-counters", help="Keep the performance counters.")
    ] = False
    rom: Annotated[
        bool, typer.Option("--rom", help="Bake the program into a ROM; there must be one.")
    ] = False

    def check(self, programs: Sequence[str], preset_name: str) -> None:
        """Refuse options that exclude each other.

        Raises:
            UserError: some do.
        """
        most = preset(preset_name).address_bits
        if self.proved and self.tight:
            raise UserError("--proved and --tight exclude each other")
        if self.rom and len(programs) > 1:
            raise UserError("--rom bakes in one program; there are several")
        known = {each.name for each in applications()}
        given = bool(self.constant or self.range or self.memory or self.slots)
        if given and known & set(programs):
            raise UserError(
                f"{min(known & set(programs))} is an application, which brings its memory and "
                "declarations: --memory, --constant, --range and --slots are for programs"
            )
        if self.address_bits is not None and self.address_bits > most:
            raise UserError(
                f"--address-bits {self.address_bits}: preset {preset_name!r} has {most}"
            )

    def sizes(self) -> vip.Sizes:
        """The sizes as the API takes them."""
        return vip.Sizes(
            basis="proved" if self.proved else "tight" if self.tight else "runs",
            profiles=[Profile.load(path) for path in self.profile or []],
            allow_uncovered=self.allow_uncovered,
            keep_counters=self.keep_counters,
            rom=self.rom,
            address_bits=self.address_bits,
            slower=self.slower / 100,
        )

    def memories(
        self, programs: Sequence[str], files_given: FileArguments
    ) -> dict[str, list[Path]]:
        """For each program the files that its memory may hold at the start.

        Raises:
            UserError: a file of none of the programs, or of an unknown one of several.
        """
        found: dict[str, list[Path]] = {program: [] for program in programs}
        for text in self.memory or []:
            owner, separator, file = text.rpartition("=")
            if not separator and len(programs) > 1:
                raise UserError(f"--memory {text}: with several programs, give PROGRAM=FILE")
            if not separator:
                found[programs[0]].append(Path(file))
            elif owner in found:
                found[owner].append(Path(file))
            else:
                raise UserError(f"--memory {text}: {owner} is none of the programs")
        for program, files in found.items():
            beside = Path(program).with_suffix(".memory")
            if not files and beside.is_file():
                files_given.reads(beside, "the memory of a program")
                files.append(beside)
        return found

    def declared(self, programs: Sequence[str]) -> Mapping[str, Declared]:
        """For each program what is declared about its memory.

        Raises:
            UserError: a declaration of another form, or of none of the programs.
        """
        return declarations(
            programs, self.constant or (), self.range or (), self.slots or Declared().slots
        )


@grouped
def trim(
    context: typer.Context,
    programs: Annotated[
        list[str],
        typer.Argument(
            help="Program files, assembly (.s), applications of the suite, one folder of vip nn "
            "compile, or one ONNX file.",
            metavar="PROGRAM|APPLICATION|DIR|MODEL.onnx...",
            callback=reading(_program_files),
        ),
    ],
    output: OutputDirectory,
    sizes: SizeOptions,
    launches: LaunchOptions,
    comparison: ComparisonOptions,
    model: ModelOptions,
    preset_name: PresetOption = "pe",
    why: Annotated[
        list[str] | None,
        typer.Option(
            help="Say why an instruction or unit is there; may be repeated.", metavar="KEY"
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

    Memory declared with --constant or --range is fixed with the application, as --parameters is;
    all else is data. Sizes are proved for every data where they follow from that. Otherwise they
    are those of the runs given, and a run that needs more ends with a fault. An application of the
    suite declares its own. Both engines run the programs: results and cycles must be the same
    (--slower allows more cycles), and each removed instruction must fault; only then DIR gets the
    Verilog. --prove also demands a proof, which takes some minutes. The JSON's ff_saved and
    lut_saved are fractions, for Xilinx 7-series. With --fit, DIR/chip.json is the chip of trimmed
    engines, for vip generate --config. For a folder of vip nn compile, DIR gets a vault whose
    engines are trimmed to all programs of the model (docs/onnx.md). MODEL.onnx is compiled first,
    with --calibrate: DIR, a new folder, gets model and verilog.

    Example: vip trim kernel.vip --memory image.bin --constant 0x100:64 -o build/trimmed
    """
    if comparison.fit is not None:
        find_budget(comparison.fit)
        if not comparison.check:
            raise UserError("--fit runs the programs, so it can't go with --no-check")
    if sizes.slower and not comparison.check and not any(map(is_model, programs)):
        raise UserError("--slower measures the runs, so it can't go with --no-check")
    if len(set(programs)) < len(programs):
        raise UserError("a program is given twice")
    for key in why or []:
        check_reason(key)
    if any(is_model(program) for program in programs):
        groups = (sizes, launches, comparison)
        source = context.get_parameter_source("preset_name")
        preset_given = preset_name if source and source.name == "COMMANDLINE" else None
        trim_folder(programs, output, groups, preset_given, model, why or [], figure, json)
        return
    model.check("for models, not for programs")
    sizes.check(programs, preset_name)
    memories = sizes.memories(programs, file_arguments(context))
    subjects = _subjects(memories, sizes.declared(programs))
    result = _trim(subjects, preset_name, output, sizes, launches, comparison)
    _show(result, why or [])
    write_json(json, result.to_json())
    if result.failure:
        raise UserError(result.failure)
    if figure is not None:
        draw_types(result.cut, figure, name=Path(programs[0]).name)
    if result.verilog is not None:
        modules = len(result.verilog.modules)
        console.print(f"{output}: Verilog of the trimmed engine, {modules} modules")


def _subjects(
    memories: Mapping[str, list[Path]], declared: Mapping[str, Declared]
) -> list[vip.Subject]:
    """The programs, by names that differ."""
    known = {each.name: each for each in applications()}
    short = {Path(program).name for program in memories}
    found = []
    for program, files in memories.items():
        if program in known:
            found += subjects_of(known[program])
            continue
        path = Path(program)
        if not files:
            console.print(
                f"{path.name}: no --memory, so only proofs count; it runs on zeros", style="dim"
            )
        name = path.name if len(short) == len(memories) else program
        found.append(
            vip.Subject(program=path, memories=files, name=name, declared=declared[program])
        )
    return found


def _trim(
    subjects: Sequence[vip.Subject],
    preset_name: str,
    output: Path,
    sizes: SizeOptions,
    launches: LaunchOptions,
    comparison: ComparisonOptions,
) -> TrimResult:
    """Call the API, and add options that help to errors."""
    try:
        with shown() as progress:
            return vip.trim(
                subjects,
                preset_name,
                output=output,
                sizes=sizes.sizes(),
                launches=launches.launches(),
                check=comparison.check,
                area=comparison.area,
                prove=comparison.prove,
                fit=comparison.fit,
                progress=progress,
            )
    except ProgramFaultError as error:
        raise UserError(f"{error} (--allow-fault compares up to there)") from error
    except CoverageError as error:
        raise UserError(
            f"{error}; give more runs, or --proved (a larger engine), or --allow-uncovered (other "
            "runs may fault)"
        ) from error


def _show(result: TrimResult, why: Sequence[str]) -> None:
    show_trim(result)
    for key in why:
        console.print(result.cut.why(key))
    if result.proof is not None:
        show_proofs({"these programs": result.proof})
    if result.fitting is not None:
        show_fit(result.fitting)
