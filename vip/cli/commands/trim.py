"""``vip trim``: the engine, or the vault, that some work needs."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import vip
from isa.program import NOTHING_DECLARED, Declared, Numbers, Span
from microkernels.onnx_models.read import need_onnx
from microkernels.suite import suite
from sim_tb.cosim.engine import MemoryBehaviour
from soc.generate.presets import engine
from support.extras import together
from support.picture import check_picture
from synth.analysis.bounds import MOST_SLOWER
from synth.analysis.histogram import draw_types
from synth.analysis.profile import Profile
from synth.analysis.trim import check_reason
from synth.errors import CoverageError
from synth.physical.devices import find_device
from vip.cli.console import console, shown
from vip.cli.errors import UserError
from vip.cli.file_arguments import FileArguments
from vip.cli.groups import Answer
from vip.cli.tables.trim import show_trim
from vip.programs import LIMIT
from vip.trimming.models import is_model, is_onnx, work_files
from vip.trimming.runs import subjects_of
from vip.trimming.trim import need_tools

from .option_groups.design import DesignOption
from .option_groups.machine import LatencyOption
from .option_groups.models import ModelOption, refuse
from .options import (
    CyclesOption,
    OutputDirectory,
    ParametersOption,
    drawing,
    file_arguments,
    file_option,
    is_given,
    reading,
)

_NUMBER = r"(?:0x[0-9a-fA-F]{1,16}|[0-9]{1,20})"
_SPAN = rf"(?:(?P<owner>.+)=)?(?P<start>{_NUMBER}):(?P<size>{_NUMBER})"
_CONSTANT = re.compile(_SPAN)
_RANGE = re.compile(
    rf"{_SPAN}(?:/(?P<width>8|16|32|64))?=(?P<low>-?{_NUMBER})\.\.(?P<high>-?{_NUMBER})"
)

#: The programs of a command line, with their memory.
_Reader = Callable[[Sequence[str], FileArguments], list[vip.Subject]]


def _memory_files(texts: Sequence[str] | None) -> list[Path]:
    return [Path(text.rpartition("=")[2]) for text in texts or ()]


def _sizes(
    *,
    proved: Annotated[
        bool,
        typer.Option("--proved", help="Use only sizes that are proved for all inputs."),
    ] = False,
    slower: Annotated[
        float,
        typer.Option(
            help="Allow fewer transfers in flight if the runs then take at most this many percent "
            "more cycles.",
            min=0,
            max=100 * MOST_SLOWER,
            metavar="PERCENT",
        ),
    ] = 0.0,
    keep_counters: Annotated[
        bool, typer.Option("--keep-counters", help="Keep the performance counters.")
    ] = False,
    profile: Annotated[
        list[Path] | None,
        file_option("Profile of another run, from vip run --profile; may be repeated.", reading()),
    ] = None,
    address_bits: Annotated[
        int | None,
        typer.Option(
            help="Memory address bits (default: as needed).",
            min=12,
            max=40,
            metavar="BITS",
        ),
    ] = None,
    tight: Annotated[
        bool,
        typer.Option("--tight", help="Use the runs' sizes even where a larger one is proved."),
    ] = False,
    allow_uncovered: Annotated[
        bool,
        typer.Option(
            "--allow-uncovered", help="Accept runs that leave parts of the program unexecuted."
        ),
    ] = False,
    rom: Annotated[
        bool,
        typer.Option("--rom", help="Put the program, of which there must be only one, into a ROM."),
    ] = False,
) -> vip.Sizes:
    """What decides the sizes of the engine."""
    if proved and tight:
        raise UserError("--proved and --tight can't be combined")
    return vip.Sizes(
        basis="proved" if proved else "tight" if tight else "runs",
        profiles=[Profile.load(path) for path in profile or ()],
        allow_uncovered=allow_uncovered,
        keep_counters=keep_counters,
        rom=rom,
        address_bits=address_bits,
        slower=slower / 100,
    )


def _launches(
    *,
    parameters: ParametersOption = 0,
    latency: LatencyOption = MemoryBehaviour.latency,
    limit: CyclesOption = LIMIT,
) -> dict[str, Any]:
    """Settings of the runs, by parameter of :func:`vip.trim`."""
    return {
        "parameters": parameters,
        "behaviour": MemoryBehaviour(latency=latency),
        "max_cycles": limit,
    }


def _steps(
    *,
    check: Annotated[
        bool, typer.Option(help="Run the programs on the Verilog of both engines.")
    ] = True,
    area: Annotated[bool, typer.Option(help="Synthesise both engines.")] = True,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove", help="Prove that the engine behaves as the full one does (docs/proofs.md)."
        ),
    ] = False,
) -> dict[str, bool]:
    """The steps of :func:`vip.trim` and :func:`vip.trim_model`, by parameter."""
    return {"check": check, "area": area, "prove": prove}


SizesOption = Annotated[vip.Sizes, _sizes]
LaunchesOption = Annotated[dict[str, Any], _launches]
StepsOption = Annotated[dict[str, bool], _steps]


def _memory(
    *,
    memory: Annotated[
        list[str] | None,
        file_option(
            "Memory image of a run, loaded at address 0; PROGRAM=FILE with several programs; "
            "may be repeated (default: PROGRAM with the ending .memory, if it exists).",
            reading(_memory_files),
        ),
    ] = None,
    constant: Annotated[
        list[str] | None,
        typer.Option(
            help="Part of memory that is the same in all runs, such as a parameter block; "
            "everything else is data. May be repeated; PROGRAM=START:BYTES with several programs.",
            metavar="START:BYTES",
        ),
    ] = None,
    range: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            help="Part of memory whose signed numbers, of 64 or BITS bits each, are from LOW to "
            "HIGH in all runs; may be repeated.",
            metavar="START:BYTES[/BITS]=LOW..HIGH",
        ),
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option(
            help="Programs run only in the first N slots of a vault (default: in any).",
            min=1,
            max=1 << 16,
            metavar="N",
        ),
    ] = None,
) -> _Reader:
    """What is known about the memory of programs; applications of the suite have it built in."""

    def read(programs: Sequence[str], arguments: FileArguments) -> list[vip.Subject]:
        named = suite().keys() & set(programs)
        if named and (constant or range or memory or slots):
            raise UserError(
                f"{min(named)} is an application and declares its memory itself: --memory, "
                "--constant, --range and --slots are for programs"
            )
        files = _memories(programs, memory or [], arguments)
        declared = _declared(programs, constant or [], range or [], slots or NOTHING_DECLARED.slots)
        return _subjects(files, declared)

    return read


MemoryOption = Annotated[_Reader, _memory]


def _memories(
    programs: Sequence[str], texts: Sequence[str], arguments: FileArguments
) -> dict[str, list[Path]]:
    """For each program, the files with its possible initial memory.

    Raises:
        UserError: a file for an unknown program, or, with several programs, for an unnamed one.
    """
    contents: dict[str, list[Path]] = {program: [] for program in programs}
    for text in texts:
        owner, separator, file = text.rpartition("=")
        if not separator and len(programs) > 1:
            raise UserError(f"--memory {text}: with several programs, give PROGRAM=FILE")
        if not separator:
            contents[programs[0]].append(Path(file))
        elif owner in contents:
            contents[owner].append(Path(file))
        else:
            raise UserError(f"--memory {text}: {owner} is not one of the programs")
    for program, files in contents.items():
        default = Path(program).with_suffix(".memory")
        if not files and default.is_file():
            arguments.reads(default, "the memory of a program")
            files.append(default)
    return contents


def _declared(
    programs: Sequence[str], constants: Sequence[str], ranges: Sequence[str], slots: int
) -> Mapping[str, Declared]:
    """For each program what is declared about its memory.

    Raises:
        UserError: a malformed text, one for an unknown program or, with several programs, for an
            unnamed one.
    """
    spans: dict[str, list[Span]] = {program: [] for program in programs}
    numbers: dict[str, list[Numbers]] = {program: [] for program in programs}
    for option, texts, form, allowed in (
        ("--constant", constants, _CONSTANT, "START:BYTES, such as 0x100:64"),
        ("--range", ranges, _RANGE, "START:BYTES[/BITS]=LOW..HIGH, such as 0x140:8=1..256"),
    ):
        for text in texts:
            match = form.fullmatch(text)
            if match is None:
                raise UserError(f"{option} {text}: must be {allowed}")
            owner = match["owner"] or programs[0]
            if not match["owner"] and len(programs) > 1:
                raise UserError(f"{option} {text}: with several programs, put PROGRAM= before it")
            if owner not in spans:
                raise UserError(f"{option} {text}: {owner} is not one of the programs")
            span = Span(_number(match["start"]), _number(match["size"]))
            if form is _CONSTANT:
                spans[owner].append(span)
            else:
                low, high = _number(match["low"]), _number(match["high"])
                numbers[owner].append(Numbers(span, low, high, int(match["width"] or 64)))
    return {
        program: Declared(
            constants=tuple(spans[program]), numbers=tuple(numbers[program]), slots=slots
        )
        for program in programs
    }


def _number(text: str) -> int:
    return int(text, 16 if "0x" in text else 10)


#: Options that a model does not take.
_OF_PROGRAMS = (
    *("memory", "constant", "range", "slots", "profile", "address_bits", "tight"),
    *("config", "allow_uncovered", "rom", "parameters", "latency", "limit"),
)


def trim(
    context: typer.Context,
    programs: Annotated[
        list[str],
        typer.Argument(
            help="Program files, assembly (.s), applications of the suite, one folder written by "
            "vip nn compile, or one ONNX file.",
            metavar="PROGRAM|APPLICATION|DIR|MODEL.onnx...",
            callback=reading(work_files),
        ),
    ],
    output: OutputDirectory,
    design: DesignOption,
    sizes: SizesOption,
    memory: MemoryOption,
    launches: LaunchesOption,
    steps: StepsOption,
    model: ModelOption,
    device: Annotated[
        str | None,
        typer.Option(
            help="Fill a device (xc7vx690t, ecp5-85k, asic:MM2, ...) with full and with trimmed "
            "engines, and run the programs on all of them.",
            metavar="DEVICE",
        ),
    ] = None,
    why: Annotated[
        list[str] | None,
        typer.Option(
            help="Explain why an instruction or unit is needed; may be repeated.", metavar="KEY"
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        file_option("Draw a histogram of instructions by unit and type.", drawing()),
    ] = None,
) -> Answer:
    """Rebuild the engine with only what programs need and compare it with the full one.

    Memory declared with --constant or --range belongs to the application, as --parameters does;
    everything else is data. Where sizes follow from these declarations, they are proved for all
    data. Otherwise they come from the runs, and a later run that needs more ends with a fault.
    Applications of the suite have their declarations built in. Both engines run the programs:
    results and cycles must be equal (--slower allows more cycles), and each removed instruction
    must fault; only then is the Verilog written. --prove also requires a proof, which takes a few
    minutes. In the JSON, ff_saved and lut_saved are fractions for Xilinx 7-series. With --device,
    DIR/chip.json describes the chip of trimmed engines, for vip generate --config. For a folder
    written by vip nn compile, DIR gets a vault whose engines are trimmed to all programs of the
    model (docs/onnx.md). MODEL.onnx is compiled first, with --calibrate; DIR, a new folder, then
    gets model and verilog.

    Example: vip trim kernel.vip --memory image.bin --constant 0x100:64 -o build/trimmed
    """
    if device is not None:
        find_device(device)
        if not steps["check"]:
            raise UserError("--device runs the programs, so it can't be combined with --no-check")
    for key in why or []:
        check_reason(key)
    with together():
        check_picture(picture)
        if any(is_onnx(Path(program)) for program in programs):
            need_onnx()
        need_tools(check=steps["check"], synthesis=output is not None or any(steps.values()))
    groups: dict[str, Any] = {
        "sizes": sizes,
        "memory": memory,
        "launches": launches,
        "model": model,
    }
    result = trimmed_to(
        context,
        programs,
        design,
        output,
        device=device,
        steps=steps,
        **groups,
    )
    kind = "this model" if any(map(is_model, programs)) else "these programs"
    show_trim(result, kind, why or [])
    if picture is not None and not result.failure:
        draw_types(result.cut, picture, name=Path(programs[0]).name)
    if result.failure:
        advice = "; --slower PERCENT allows more" if result.too_slow else ""
        return Answer(result.to_json(), failure=result.failure + advice)
    if result.verilog is not None:
        built = "vault" if result.vault else "engine"
        modules = len(result.verilog.modules)
        console.print(f"{output}: Verilog of the trimmed {built}, {modules} modules")
    return Answer(result.to_json(), picture=picture)


def trimmed_to(
    context: typer.Context,
    programs: Sequence[str],
    design: str | Path,
    output: Path | None,
    *,
    sizes: vip.Sizes,
    memory: MemoryOption,
    launches: dict[str, Any],
    model: dict[str, Any],
    device: str | None = None,
    steps: Mapping[str, bool],
) -> vip.TrimResult:
    """Trim to programs or to a model, as the arguments of ``vip trim`` say; only an ONNX file needs
    ``output``.

    Raises:
        UserError: arguments that can't be combined.
    """
    models = [program for program in programs if is_model(program)]
    if sizes.slower and not steps["check"] and not models:
        raise UserError("--slower measures the runs, so it can't be combined with --no-check")
    if len(set(programs)) < len(programs):
        raise UserError("the same program is given twice")
    if models:
        _check_model(context, models[0], programs, device)
        preset_given = str(design) if is_given(context, "preset_name") else None
        path = Path(models[0])
        if not is_onnx(path):
            return _trim_model(path, output, preset_given, model, sizes=sizes, **steps)
        if output is None:
            raise UserError(f"{path}: compile it first with vip nn compile, and name its folder")
        return _build(path, output, preset_given, model, sizes=sizes, **steps)
    refuse(model, "for models, not for programs")
    _check_programs(programs, design, sizes)
    subjects = memory(programs, file_arguments(context))
    settings = {"sizes": sizes, "fit": device, **launches, **steps}
    return _trim_programs(subjects, design, output, **settings)


def _check_model(
    context: typer.Context, model: str, programs: Sequence[str], device: str | None
) -> None:
    """Refuse options that a model does not take, and further programs.

    Raises:
        UserError: one is given.
    """
    if len(programs) > 1:
        raise UserError(f"{model} is a model: it can't be combined with other programs")
    refused = [name for name in _OF_PROGRAMS if is_given(context, name)]
    if device:
        # Of vip trim. That of vip fit counts the vault against it.
        refused.append("device")
    if refused:
        raise UserError(f"--{refused[0].replace('_', '-')} is for programs, not for a model")


def _check_programs(programs: Sequence[str], design: str | Path, sizes: vip.Sizes) -> None:
    """Refuse sizes that the programs and the full engine exclude.

    Raises:
        UserError: there is one.
    """
    if sizes.rom and len(programs) > 1:
        raise UserError("--rom bakes in one program; there are several")
    limit = engine(design).address_bits
    if sizes.address_bits is not None and sizes.address_bits > limit:
        what = f"preset {design!r}" if isinstance(design, str) else design
        raise UserError(f"--address-bits {sizes.address_bits}: {what} has {limit}")


def _subjects(
    memories: Mapping[str, list[Path]], declared: Mapping[str, Declared]
) -> list[vip.Subject]:
    """The programs, by names that differ."""
    short = {Path(program).name for program in memories}
    subjects = []
    for program, files in memories.items():
        if program in suite():
            subjects += subjects_of(suite()[program])
            continue
        path = Path(program)
        if not files:
            console.print(
                f"{path.name}: no --memory given: memory is all zeros, and only proved sizes are "
                "used",
                style="dim",
            )
        name = path.name if len(short) == len(memories) else program
        subjects.append(vip.subject(path, files, name=name, declared=declared[program]))
    return subjects


def _trim_programs(
    subjects: Sequence[vip.Subject], design: str | Path, output: Path | None, **options: Any
) -> vip.TrimResult:
    """Call the API, and add options that help to errors."""
    try:
        with shown() as progress:
            return vip.trim(subjects, design, output=output, progress=progress, **options)
    except CoverageError as error:
        raise UserError(
            f"{error}; add runs, or use --proved (a larger engine) or --allow-uncovered (other "
            "runs may fault)"
        ) from error


def _trim_model(
    path: Path, output: Path | None, preset_name: str | None, model: dict[str, Any], **options: Any
) -> vip.TrimResult:
    refuse(model, "for MODEL.onnx, not for a compiled model", "inputs")
    if preset_name is not None:
        raise UserError(f"--preset {preset_name}: a compiled model already has its preset")
    with shown() as progress:
        return vip.trim_model(path, output, progress=progress, **model, **options)


def _build(
    path: Path, output: Path, preset_name: str | None, model: dict[str, Any], **options: Any
) -> vip.TrimResult:
    if "calibration" not in model:
        raise UserError(f"{path}: --calibrate DATA is needed: images that choose fraction bits")
    preset = preset_name or "vault"
    with shown() as progress:
        return vip.build_model(
            path, output=output, preset=preset, progress=progress, **model, **options
        )
