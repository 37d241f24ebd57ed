"""``vip generate``."""

from pathlib import Path
from typing import Annotated

import typer

import vip
from hdl.config import SramKind
from vip.cli.console import console, shown
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
    with shown() as progress:
        what = file or ("pe" if preset_name is None else preset_name)
        progress("generate", part=str(what))
        found = vip.generate(what, output, memories=memories)
    write_json(json, found.to_json())
    report = found.report
    console.print(
        f"{report.directory}: {len(report.modules)} modules, {report.lines:,} lines of Verilog, "
        f"top module {report.top}"
    )
