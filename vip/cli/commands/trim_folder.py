"""``vip trim`` of a model."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import vip
from synth.analysis.histogram import draw_types
from vip.cli.console import console, shown
from vip.cli.errors import UserError
from vip.cli.tables.proofs import show_proofs
from vip.cli.tables.trim import show_model_trim
from vip.models.folder import manifest_of
from vip.output import write_json
from vip.progress import Progress

from .option_groups.models import ModelOptions, carried

__all__ = ["is_model", "trim_folder"]

#: Options that a model takes; the others are for programs.
_TAKEN = frozenset({"keep_counters", "proved", "check", "area", "prove", "slower"})


def is_model(program: str) -> bool:
    """Whether it is a folder of ``vip nn compile``, its manifest, or an ONNX file."""
    path = Path(program)
    return is_onnx(path) or manifest_of(path) != path or path.name == manifest_of(Path()).name


def is_onnx(path: Path) -> bool:
    """Whether it is an ONNX file, by its name."""
    return path.suffix == ".onnx"


def _taken(programs: Sequence[str], groups: Sequence[Any]) -> dict[str, Any]:
    """The options that a model takes.

    Raises:
        UserError: another one, or another program, is given.
    """
    if len(programs) > 1:
        named = next(program for program in programs if is_model(program))
        raise UserError(f"{named}, a model, is trimmed to alone")
    taken: dict[str, Any] = {}
    for group in groups:
        for field in fields(group):
            value = getattr(group, field.name)
            if field.name in _TAKEN:
                taken[field.name] = value
            elif field.default is not MISSING and value != field.default:
                option = "--" + field.name.replace("_", "-")
                raise UserError(f"{option} is for programs, not for a model")
    return taken


def trim_folder(
    programs: Sequence[str],
    output: Path,
    groups: Sequence[Any],
    preset_name: str | None,
    model: ModelOptions,
    why: Sequence[str],
    figure: Path | None,
    json: Path | None,
) -> None:
    """Trim a vault to a model, which is compiled first if it is not yet, and print the result.

    Parameters:
        programs: as given, with a model among them. groups: of the options for programs and models,
            dataclasses. preset_name: as given; None: it is not.

    Raises:
        UserError: options that a model does not take, or a vault that must not be used.
    """
    taken = _taken(programs, groups)
    taken["slower"] /= 100
    path = Path(programs[0])
    with shown() as progress:
        if is_onnx(path):
            built = _build(path, output, preset_name, model, progress, taken)
            found, numbers = built.trimmed, built.to_json()
        else:
            model.check("for MODEL.onnx, not for a compiled model", "inputs")
            if preset_name is not None:
                raise UserError(f"--preset {preset_name}: a compiled model brings its preset")
            found = vip.trim_model(path, output, inputs=model.inputs, progress=progress, **taken)
            numbers = found.to_json()
    show_model_trim(found)
    for key in why:
        console.print(found.cut.why(key))
    if found.proof is not None:
        show_proofs({"this model": found.proof})
    write_json(json, numbers)
    if found.failure:
        raise UserError(found.failure)
    if figure is not None:
        draw_types(found.cut, figure, name=path.name)
    if found.verilog is not None:
        modules = len(found.verilog.modules)
        console.print(f"{output}: Verilog of the trimmed vault, {modules} modules")


def _build(
    path: Path,
    output: Path,
    preset_name: str | None,
    model: ModelOptions,
    progress: Progress,
    taken: Mapping[str, Any],
) -> vip.BuiltModel:
    """Compile an ONNX file and trim a vault to it."""
    if model.calibrate is None:
        raise UserError(f"{path}: --calibrate is missing: images for its fraction bits")
    return vip.build_model(
        path,
        model.calibrate,
        output,
        preset=preset_name or "vault",
        batch=model.batch,
        carry=carried(model.carry or ()),
        inputs=model.inputs,
        progress=progress,
        **taken,
    )
