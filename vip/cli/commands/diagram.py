"""``vip diagram``."""

from pathlib import Path
from typing import Annotated

import typer

import vip
from vip.cli.console import console, shown
from vip.output import write_json

from .option_groups.design import ConfigOption, DesignPresetOption, chosen
from .options import JsonOption, drawing

__all__ = ["diagram"]


def diagram(
    picture: Annotated[
        Path,
        typer.Argument(
            metavar="PICTURE", help="File to write, PNG or SVG by its ending.", callback=drawing()
        ),
    ],
    preset_name: DesignPresetOption = None,
    file: ConfigOption = None,
    module: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Verilog module to draw.", show_default="the top"),
    ] = None,
    least_bits: Annotated[
        int, typer.Option(help="Links of fewer bits are not drawn.", min=1, max=10_000)
    ] = 8,
    json: JsonOption = None,
) -> None:
    """Draw the units of a module, and the bits that go from one to another.

    Both are those of its Verilog.

    Example: vip diagram controller.svg --preset vault --module controller --least-bits 32
    """
    what = chosen(preset_name, file)
    with shown() as progress:
        found = vip.diagram(what, picture, module=module, least_bits=least_bits, progress=progress)
    write_json(json, found.to_json())
    blocks = found.graph.blocks.values()
    units = sum(block.number for block in blocks if block.module)
    links = found.graph.links
    console.print(
        f"{picture}: {found.graph.module}, {units} units, {len(found.drawn)} of {len(links)} links"
    )
