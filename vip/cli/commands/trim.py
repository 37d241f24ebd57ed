"""``vip trim``: the engine, or the vault, that some work needs."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

import vip
from isa.declared import Declared
from sim_tb.cosim.applications import applications
from sim_tb.cosim.trim_check import ProgramFaultError
from synth.analysis.histogram import draw_types
from synth.analysis.trim import check_reason
from synth.errors import CoverageError
from synth.physical.devices import find_budget
from vip.cli.console import console, shown
from vip.cli.errors import UserError
from vip.cli.groups import grouped
from vip.cli.tables.trim import show_trim
from vip.models.folder import manifest_of
from vip.output import write_json
from vip.trimming.subjects import subjects_of

from .option_groups.models import ModelOptions, carried
from .option_groups.trim import ComparisonOptions, LaunchOptions, ProgramOptions, SizeOptions
from .options import (
    JsonOption,
    OutputDirectory,
    PresetOption,
    drawing,
    file_arguments,
    is_given,
    reading,
)

__all__ = ["trim"]


def _program_files(names: Sequence[str] | None) -> list[Path]:
    """Those of ``names`` that are no applications; of a compiled model the manifest."""
    suite = {application.name for application in applications()}
    return [manifest_of(Path(name)) for name in names or () if name not in suite]


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
    for_programs: ProgramOptions,
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
    if for_programs.fit is not None:
        find_budget(for_programs.fit)
        if not comparison.check:
            raise UserError("--fit runs the programs, so it can't go with --no-check")
    models = [program for program in programs if _is_model(program)]
    if sizes.slower and not comparison.check and not models:
        raise UserError("--slower measures the runs, so it can't go with --no-check")
    if len(set(programs)) < len(programs):
        raise UserError("a program is given twice")
    for key in why or []:
        check_reason(key)
    made: vip.TrimResult | vip.BuiltModel
    if models:
        _check_model(models[0], programs, (for_programs, launches))
        preset_given = preset_name if is_given(context, "preset_name") else None
        path = Path(models[0])
        make = _build if _is_onnx(path) else _trim_model
        made = make(path, output, preset_given, model, sizes, comparison)
    else:
        model.check("for models, not for programs")
        for_programs.check(programs, preset_name, sizes)
        memories = for_programs.memories(programs, file_arguments(context))
        subjects = _subjects(memories, for_programs.declared(programs))
        made = _trim_programs(
            subjects, preset_name, output, sizes, for_programs, launches, comparison
        )
    result = made.trimmed if isinstance(made, vip.BuiltModel) else made
    show_trim(result, "this model" if models else "these programs", why or [])
    write_json(json, made.to_json())
    if result.failure:
        raise UserError(result.failure)
    if figure is not None:
        draw_types(result.cut, figure, name=Path(programs[0]).name)
    if result.verilog is not None:
        design = "vault" if result.vault else "engine"
        modules = len(result.verilog.modules)
        console.print(f"{output}: Verilog of the trimmed {design}, {modules} modules")


def _is_onnx(path: Path) -> bool:
    """Whether it is an ONNX file, by its name."""
    return path.suffix == ".onnx"


def _is_model(program: str) -> bool:
    """Whether it is a folder of ``vip nn compile``, its manifest, or an ONNX file."""
    path = Path(program)
    return _is_onnx(path) or manifest_of(path) != path or path.name == manifest_of(Path()).name


def _check_model(model: str, programs: Sequence[str], groups: Sequence[Any]) -> None:
    """Refuse options that a model does not take, and further programs.

    Raises:
        UserError: one is given.
    """
    if len(programs) > 1:
        raise UserError(f"{model}, a model, is trimmed to alone")
    for group in groups:
        for field in fields(group):
            if getattr(group, field.name) != field.default:
                option = field.name.replace("_", "-")
                raise UserError(f"--{option} is for programs, not for a model")


def _subjects(
    memories: Mapping[str, list[Path]], declared: Mapping[str, Declared]
) -> list[vip.Subject]:
    """The programs, by names that differ."""
    suite = {application.name: application for application in applications()}
    short = {Path(program).name for program in memories}
    subjects = []
    for program, files in memories.items():
        if program in suite:
            subjects += subjects_of(suite[program])
            continue
        path = Path(program)
        if not files:
            console.print(
                f"{path.name}: no --memory, so only proofs count; it runs on zeros", style="dim"
            )
        name = path.name if len(short) == len(memories) else program
        subjects.append(
            vip.Subject(program=path, memories=files, name=name, declared=declared[program])
        )
    return subjects


def _trim_programs(
    subjects: Sequence[vip.Subject],
    preset_name: str,
    output: Path,
    sizes: SizeOptions,
    for_programs: ProgramOptions,
    launches: LaunchOptions,
    comparison: ComparisonOptions,
) -> vip.TrimResult:
    """Call the API, and add options that help to errors."""
    try:
        with shown() as progress:
            return vip.trim(
                subjects,
                preset_name,
                output=output,
                sizes=for_programs.sizes(sizes),
                launches=launches.launches(),
                fit=for_programs.fit,
                progress=progress,
                **comparison.steps(),
            )
    except ProgramFaultError as error:
        raise UserError(f"{error} (--allow-fault compares up to there)") from error
    except CoverageError as error:
        raise UserError(
            f"{error}; give more runs, or --proved (a larger engine), or --allow-uncovered (other "
            "runs may fault)"
        ) from error


def _trim_model(
    path: Path,
    output: Path,
    preset_name: str | None,
    model: ModelOptions,
    sizes: SizeOptions,
    comparison: ComparisonOptions,
) -> vip.TrimResult:
    """Trim a vault to a compiled model."""
    model.check("for MODEL.onnx, not for a compiled model", "inputs")
    if preset_name is not None:
        raise UserError(f"--preset {preset_name}: a compiled model brings its preset")
    with shown() as progress:
        return vip.trim_model(
            path,
            output,
            inputs=model.inputs,
            sizes=sizes.sizes(),
            progress=progress,
            **comparison.steps(),
        )


def _build(
    path: Path,
    output: Path,
    preset_name: str | None,
    model: ModelOptions,
    sizes: SizeOptions,
    comparison: ComparisonOptions,
) -> vip.BuiltModel:
    """Compile an ONNX file and trim a vault to it."""
    if model.calibrate is None:
        raise UserError(f"{path}: --calibrate is missing: images for its fraction bits")
    with shown() as progress:
        return vip.build_model(
            path,
            model.calibrate,
            output,
            preset=preset_name or "vault",
            batch=model.batch,
            carry=carried(model.carry or ()),
            inputs=model.inputs,
            sizes=sizes.sizes(),
            progress=progress,
            **comparison.steps(),
        )
