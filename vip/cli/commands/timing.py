"""``vip timing``: the longest path of a mapped engine at several corners."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import vip
from synth.physical.corners import CornerTiming
from synth.physical.targets import AIM_MHZ
from vip.cli.console import console, shown, table
from vip.output import write_json

from .options import JsonOption, PresetOption, ToolsOption, file_option, liberty_files, reading


def _table(title: str, corners: tuple[CornerTiming, ...]) -> Table:
    text = ("corner", "longest path (ns)")
    rows = table(text[0], "pins", "wires", text[1], left=text, title=title)
    for row in corners:
        rows.add_row(
            row.corner,
            f"{row.pins.fmax_mhz:.0f}",
            f"{row.wires.fmax_mhz:.0f}",
            ", ".join(f"{unit} {ns:.2f}" for unit, ns in row.pins.by_unit()),
        )
    return rows


def timing(
    preset_name: PresetOption = "pe",
    target: Annotated[
        str,
        typer.Option(
            help="Cells to map to: nangate45 or liberty:PATH.",
            metavar="TARGET",
            callback=reading(liberty_files),
        ),
    ] = "nangate45",
    corner: Annotated[
        list[Path] | None,
        file_option(
            "Liberty file for another corner of the same cells; may be repeated.", reading()
        ),
    ] = None,
    mhz: Annotated[
        float,
        typer.Option(
            help="Clock with the library's wires that the netlist need reach.",
            min=1,
            max=10_000,
            metavar="MHZ",
        ),
    ] = AIM_MHZ,
    jobs: ToolsOption = None,
    json: JsonOption = None,
) -> None:
    """Time the mapped engine at several corners.

    The report gives the clock in MHz with pin loads only and with the library's default wire load,
    and the logic area of the same netlist, which is as small as the clock with these wires allows.

    Example: vip timing --corner slow.lib --json timing.json
    """
    with shown() as progress:
        netlist = vip.timing(
            preset_name, target, corner or (), mhz=mhz, jobs=jobs, progress=progress
        )
    corners = netlist.corners
    write_json(json, netlist.to_json())
    logic = f"{netlist.logic_ge / 1000:.1f} kGE of logic"
    console.print(
        _table(f"{preset_name} in {netlist.library}, {logic}: MHz before layout", corners)
    )
