"""``vip timing`` and ``vip layout``: the longest path of a mapped engine, and with placed wires."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import vip
from synth.physical.corners import CornerTiming
from synth.physical.targets import AIM_MHZ
from vip.cli.console import console, shown, table
from vip.cli.groups import Answer
from vip.synthesis.layout import MOST_WIRE_FF, ROUTED_FILES, Layout

from .option_groups.design import DesignOption
from .options import (
    CellsOption,
    ToolsOption,
    drawing,
    file_option,
    filling,
    reading,
)


def _table(title: str, corners: tuple[CornerTiming, ...]) -> Table:
    text = ("corner", "longest path (ns)")
    rows = table(text[0], "pins", "wires", "hold (ns)", text[1], left=text, title=title)
    for row in corners:
        rows.add_row(
            row.corner,
            f"{row.pins.fmax_mhz:.0f}",
            f"{row.wires.fmax_mhz:.0f}",
            f"{row.hold.ns:.3f}",
            ", ".join(f"{unit} {ns:.2f}" for unit, ns in row.pins.by_unit()),
        )
    return rows


def timing(
    design: DesignOption,
    target: CellsOption = "nangate45",
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
) -> Answer:
    """Time the mapped engine at several corners.

    The report gives the clock in MHz with pin loads only and with the library's default wire load,
    and the logic area of the same netlist, which is as small as the clock with these wires allows;
    and the least slack of a hold time, by which edges of the clock may be apart.

    Example: vip timing --corner slow.lib --json timing.json
    """
    with shown() as progress:
        netlist = vip.timing(design, target, corner or (), mhz=mhz, jobs=jobs, progress=progress)
    corners = netlist.corners
    logic = f"{netlist.logic_ge / 1000:.1f} kGE of logic"
    console.print(_table(f"{design} in {netlist.library}, {logic}: MHz before layout", corners))
    return Answer(netlist.to_json())


def _steps(title: str, result: Layout) -> Table:
    text = ("step", "longest path (ns)")
    rows = table(
        text[0], "kGE", "cells", "wire (mm)", "loads", "delays", text[1], left=text, title=title
    )
    for step in result.steps:
        values = step.values
        rows.add_row(
            step.unit,
            f"{values['logic_ge'] / 1000:.1f}",
            *(f"{values[name]:,.0f}" for name in ("cells", "wire_mm", "loads_mhz", "delays_mhz")),
            ", ".join(f"{unit} {ns:.2f}" for unit, ns in step.path),
        )
    return rows


def layout(
    design: DesignOption,
    target: CellsOption = "nangate45",
    lef: Annotated[
        list[Path] | None,
        file_option("LEF file with cells or layers of liberty:PATH; may be repeated.", reading()),
    ] = None,
    density: Annotated[
        float, typer.Option(help="Share of the area that cells fill.", metavar="SHARE")
    ] = 0.65,
    wire_ff: Annotated[
        float | None,
        typer.Option(
            help="fF of a um of wire (default: of the LEF's third layer).", min=0, max=MOST_WIRE_FF
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the placer.", min=0, metavar="N")] = 1,
    unit: Annotated[
        str | None, typer.Option(help="Lay out this unit alone.", metavar="UNIT")
    ] = None,
    picture: Annotated[
        Path | None, file_option("Draw units, and wires by layer, as PNG or SVG.", drawing())
    ] = None,
    beside: Annotated[
        Path | None,
        file_option("vip.json of an engine to draw beside it, as of vip trim.", reading()),
    ] = None,
    route: Annotated[
        Path | None,
        typer.Option(
            help="Route it, and write DEF, SPEF and GDS to this folder.",
            metavar="DIR",
            callback=filling(ROUTED_FILES),
        ),
    ] = None,
    jobs: ToolsOption = None,
) -> Answer:
    """Place the mapped engine, and time it with its wires.

    Memories are blocks at the edges, cells stand in rows between them. Buffers and sizes of cells
    follow the wires, the clock gets a tree, and the cells are placed again. Wires are estimated by
    the places of pins; with --route they are drawn on metals 2 to 6, and their distances and
    connections are checked.

    Example: vip layout --wire-ff 0.105 --route routed --picture layout.png
    """
    with shown() as progress:
        result = vip.layout(
            design,
            target,
            lef or (),
            density=density,
            wire_ff=wire_ff,
            seed=seed,
            unit=unit,
            picture=picture,
            beside=beside,
            route=route,
            jobs=jobs,
            progress=progress,
        )
    wires = f"{result.wire.ff:.3f} fF and {result.wire.ohm:.2f} ohm per um"
    console.print(_steps(f"{design} in {target}, {result.mm2:.3f} mm2", result))
    console.print(f"MHz with the loads of wires of {wires}, and with their delays, too")
    last = result.steps[-1].values
    if "clock_ge" in last:
        console.print(
            f"clock tree, {last['clock_ge'] / 1000:.1f} kGE: {last['clock_ns']:.3f} ns from its "
            f"port to registers, {last['skew_ns']:.3f} ns between them, "
            f"{last['clock_pj']:.1f} pJ a cycle, least slack of a hold time "
            f"{last['hold_ns']:.3f} ns"
        )
    if "peak_mb" in last:
        console.print(f"{last['peak_mb']:,.0f} MB of memory at most")
    return Answer(result.to_json())
