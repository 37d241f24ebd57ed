"""``vip generate``."""

from pathlib import Path
from typing import Annotated

import typer

from hdl.config import SramKind
from soc.generate.configuration_file import read_configuration
from soc.generate.designs import with_sram
from soc.generate.generate import configuration_json
from soc.generate.generate import generate as write_verilog
from soc.generate.presets import any_preset
from vip.cli.console import console, steps
from vip.cli.errors import UserError
from vip.output import write_json

from .options import JsonOption, OutputDirectory, reading

__all__ = ["generate"]


def generate(
    output: OutputDirectory,
    preset_name: Annotated[
        str | None,
        typer.Option("--preset", metavar="NAME", help="Named configuration.", show_default="pe"),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Configuration as JSON, as vip trim --fit writes it (instead of --preset).",
            callback=reading(),
        ),
    ] = None,
    memories: Annotated[
        SramKind | None,
        typer.Option(help="How memories are built (default: as configured).", show_default=False),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Write hierarchical Verilog, a file a module, with its configuration and lint waivers.

    Example: vip generate --preset pe --memories macro -o build/pe
    """
    if file is not None and preset_name is not None:
        raise UserError("--config and --preset exclude each other")
    name = "pe" if preset_name is None else preset_name
    config = any_preset(name) if file is None else read_configuration(file)
    if memories is not None:
        config = with_sram(config, memories)
    with steps("generate") as step:
        step(name if file is None else str(file))
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
