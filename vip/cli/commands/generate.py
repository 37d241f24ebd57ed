"""``vip generate`` and ``vip diagram``: a design's Verilog, and a drawing of it."""

from pathlib import Path
from typing import Annotated

import typer

import vip
from hdl.config import SramKind
from soc.generate.generate import ExportTool
from vip.cli.console import console, shown
from vip.cli.groups import Answer

from .option_groups.design import DesignOption
from .options import OutputDirectory, drawing, output_option


def generate(
    output: OutputDirectory,
    design: DesignOption,
    memories: Annotated[
        SramKind | None,
        typer.Option(help="How to build memories (default: as configured).", show_default=False),
    ] = None,
    tool: Annotated[
        ExportTool | None,
        typer.Option("--for", help="Write files for this tool, too.", show_default=False),
    ] = None,
) -> Answer:
    """Write Verilog, one file per module, with its configuration and lint waivers.

    With --for fusesoc a core file; with litex a module, with vivado a wrapper, a script and
    IP-XACT, and with vitis a kernel's script, of chips with AXI memory; with tinytapeout a project
    of an engine with a ROM.

    Example: vip generate --preset pe --memories macro -o build/pe
    """
    with shown() as progress:
        progress("generate", part=str(design))
        generated = vip.generate(design, output, memories=memories, tool=tool)
    console.print(
        f"{generated.directory}: {len(generated.modules)} modules, {generated.lines:,} lines of "
        f"Verilog, top module {generated.top}"
    )
    return Answer(generated.to_json())


def diagram(
    output: Annotated[
        Path,
        output_option("Picture to write: PNG or SVG, by its ending.", drawing()),
    ],
    design: DesignOption,
    module: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Verilog module to draw.", show_default="the top"),
    ] = None,
    least_bits: Annotated[
        int, typer.Option(help="Omit links with fewer bits.", min=1, max=10_000)
    ] = 8,
) -> Answer:
    """Draw the units of a module and the bits that pass between them.

    The drawing is derived from the module's Verilog.

    Example: vip diagram --preset vault --module controller --least-bits 32 -o controller.svg
    """
    with shown() as progress:
        drawn = vip.diagram(design, output, module=module, least_bits=least_bits, progress=progress)
    units = sum(drawn.numbers.get(name, 1) for name, module in drawn.blocks.items() if module)
    console.print(
        f"{output}: {drawn.module}, {units} units, {len(drawn.drawn)} of {len(drawn.links)} links"
    )
    return Answer(drawn.to_json())
