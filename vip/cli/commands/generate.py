"""``vip generate``."""

from typing import Annotated

import typer

import vip
from hdl.config import SramKind
from vip.cli.console import console, shown
from vip.output import write_json

from .option_groups.design import ConfigOption, DesignPresetOption, chosen
from .options import JsonOption, OutputDirectory

__all__ = ["generate"]


def generate(
    output: OutputDirectory,
    preset_name: DesignPresetOption = None,
    file: ConfigOption = None,
    memories: Annotated[
        SramKind | None,
        typer.Option(help="How memories are built (default: as configured).", show_default=False),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Write hierarchical Verilog, a file a module, with its configuration and lint waivers.

    Example: vip generate --preset pe --memories macro -o build/pe
    """
    what = chosen(preset_name, file)
    with shown() as progress:
        progress("generate", part=str(what))
        found = vip.generate(what, output, memories=memories)
    write_json(json, found.to_json())
    report = found.report
    console.print(
        f"{report.directory}: {len(report.modules)} modules, {report.lines:,} lines of Verilog, "
        f"top module {report.top}"
    )
