"""``vip timing``: the longest path of a mapped engine at several corners."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from soc.generate import configuration_json, verilog
from soc.presets import preset
from synth.asic import LIBERTY_PREFIX, library_of
from synth.cell_library import CellLibrary
from synth.corners import Corner, CornerTiming, check_corner, time_corners
from synth.mapping import engine_netlist
from synth.netlist import Netlist
from synth.open_sta import OPEN_STA
from synth.sta import Path as TimingPath
from synth.targets import find_cells

from ..console import console, steps, units_done
from ..output import write_json
from .options import JsonOption, PresetOption, liberty_files, reading

__all__ = ["timing"]


def _mhz(path: TimingPath | None) -> str:
    return "" if path is None else f"{path.fmax_mhz:.0f}"


def _kge(netlist: Netlist, library: CellLibrary) -> float:
    """Thousands of gate equivalents of the cells of ``netlist``, memories apart."""
    areas = (library.cells[gate.kind].area for gate in netlist.gates if gate.kind in library.cells)
    return sum(areas) / library.gate_um2 / 1000


def _table(title: str, found: tuple[CornerTiming, ...]) -> Table:
    table = Table(title=title)
    table.add_column("corner")
    for name in ("pins", "wires", "pins\nOpenSTA", "wires\nOpenSTA"):
        table.add_column(name, justify="right")
    table.add_column("longest path (ns)")
    for row in found:
        table.add_row(
            row.corner,
            *map(_mhz, (row.pins, row.wires, row.open_sta_pins, row.open_sta_wires)),
            ", ".join(f"{unit} {ns:.2f}" for unit, ns in row.pins.by_unit()),
        )
    return table


def timing(
    preset_name: PresetOption = "pe",
    target: Annotated[
        str,
        typer.Option(
            help="Cells to map to: nangate45 (for speed), nangate45-area, or liberty:PATH.",
            callback=reading(liberty_files),
        ),
    ] = "nangate45",
    corner: Annotated[
        list[Path] | None,
        typer.Option(
            help="Liberty file of another corner of the same cells; may be repeated.",
            metavar="FILE",
            callback=reading(),
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Tools at a time (default: one a processor).")
    ] = None,
    json: JsonOption = None,
) -> None:
    """Time the mapped engine at corners, with our static timing and with OpenSTA where installed.

    MHz with the loads of pins alone, and with the library's default wire load, and the logic of the
    same netlist: an engine mapped for area is smaller and slower than one mapped for speed.

    Example: vip timing --corner slow.lib --json timing.json
    """
    config = preset(preset_name)
    cells, library = find_cells(target)
    typical = Corner(target, library, library_of(target)[1])
    check_corner(typical, typical)
    others = []
    for path in corner or ():
        others.append(Corner(path.name, *library_of(f"{LIBERTY_PREFIX}{path}")))
        check_corner(typical, others[-1])
    with units_done(f"synthesis for {target}") as progress:
        netlist = engine_netlist(verilog(replace(config, sram="macro")), cells, progress, jobs)
    with steps("timing") as step:
        step(f"{1 + len(others)} corners")
        found = time_corners(netlist, typical, others)
    logic = _kge(netlist, library)
    results: dict[str, object] = {
        "target": target,
        "logic_ge": round(1000 * logic, 1),
        "corners": [row.to_json() for row in found],
        "configuration": configuration_json(config),
    }
    write_json(json, results)
    console.print(
        _table(
            f"{preset_name} in {library.name}, {logic:.1f} kGE of logic: MHz before layout", found
        )
    )
    if found[0].open_sta_pins is None:
        console.print(f"OpenSTA is not installed (no command {OPEN_STA})", style="dim")
