"""``vip generate``."""

from typing import Annotated

import typer

from hdl.config import SramKind
from soc.designs import with_sram
from soc.generate import configuration_json
from soc.generate import generate as write_verilog
from soc.presets import any_preset

from ..console import console, steps
from ..output import check_outputs, write_json
from .options import JsonOption, OutputDirectory, PresetOption

__all__ = ["generate"]


def generate(
    output: OutputDirectory,
    preset_name: PresetOption = "pe",
    memories: Annotated[
        SramKind | None,
        typer.Option(help="How memories are built (default: the preset's).", show_default=False),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Write hierarchical Verilog, a file a module, with its configuration and lint waivers.

    Example: vip generate --preset pe --memories macro -o build/pe
    """
    check_outputs(json)
    config = any_preset(preset_name)
    if memories is not None:
        config = with_sram(config, memories)
    with steps("generate") as step:
        step(preset_name)
        report = write_verilog(config, output)
    write_json(
        json,
        {
            "directory": str(report.directory),
            "top": report.top,
            "modules": list(report.modules),
            "macros": list(report.macros),
            "files": list(report.files),
            "lines": report.lines,
            "bytes": report.bytes,
            "configuration": configuration_json(config),
        },
    )
    console.print(
        f"{report.directory}: {len(report.modules)} modules, {report.lines:,} lines of Verilog, "
        f"top module {report.top}"
    )
