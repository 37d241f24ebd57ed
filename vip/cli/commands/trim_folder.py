"""``vip trim`` of a compiled model."""

from collections.abc import Sequence
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

__all__ = ["is_model", "trim_folder"]

#: Options that a model takes; the others are for programs.
_TAKEN = frozenset({"keep_counters", "proved", "check", "area", "prove", "slower"})


def is_model(program: str) -> bool:
    """Whether it is a folder of ``vip nn compile``, or its manifest."""
    path = Path(program)
    return manifest_of(path) != path or path.name == manifest_of(Path()).name


def _taken(programs: Sequence[str], groups: Sequence[Any], preset_name: str) -> dict[str, Any]:
    """The options that a model takes.

    Raises:
        UserError: another one, or another program, is given.
    """
    if len(programs) > 1:
        raise UserError(f"{programs[0]}, a compiled model, is trimmed to alone")
    if preset_name != "pe":
        raise UserError(f"--preset {preset_name}: a compiled model brings its preset")
    taken: dict[str, Any] = {}
    for group in groups:
        for field in fields(group):
            value = getattr(group, field.name)
            if field.name in _TAKEN:
                taken[field.name] = value
            elif field.default is not MISSING and value != field.default:
                option = "--" + field.name.replace("_", "-")
                raise UserError(f"{option} is for programs, not for a compiled model")
    return taken


def trim_folder(
    programs: Sequence[str],
    output: Path,
    groups: Sequence[Any],
    preset_name: str,
    inputs: Path | None,
    why: Sequence[str],
    figure: Path | None,
    json: Path | None,
) -> None:
    """Trim a vault to a compiled model, and print the result.

    Parameters:
        programs: as given, with a compiled model among them. groups: of the options, dataclasses.

    Raises:
        UserError: options that a model does not take, or a vault that must not be used.
    """
    taken = _taken(programs, groups, preset_name)
    taken["slower"] /= 100
    with shown() as progress:
        found = vip.trim_model(Path(programs[0]), output, inputs=inputs, progress=progress, **taken)
    show_model_trim(found)
    for key in why:
        console.print(found.cut.why(key))
    if found.proof is not None:
        show_proofs({"this model": found.proof})
    write_json(json, found.to_json())
    if found.failure:
        raise UserError(found.failure)
    if figure is not None:
        draw_types(found.cut, figure, name=Path(programs[0]).name)
    if found.verilog is not None:
        modules = len(found.verilog.modules)
        console.print(f"{output}: Verilog of the trimmed vault, {modules} modules")
