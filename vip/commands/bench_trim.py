"""``vip bench trim``: what trimming saves on each application of the suite."""

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from sim_tb.applications import choose

from ..console import console, units_done
from ..errors import UserError
from ..output import check_outputs, write_json
from ..trim_bench import QUICK, SAVED, TrimRow, measure_trims, results
from ..trim_figure import draw_trims
from .options import JsonOption

__all__ = ["trim"]


def _show(rows: list[TrimRow]) -> None:
    table = Table(title="Saved by trimming, Xilinx 7-series", box=box.SIMPLE)
    table.add_column("engine for", no_wrap=True)
    for heading in ("FFs", "LUTs", "DSPs", "RAMs", "cycles"):
        table.add_column(heading, justify="right")
    table.add_column("results")
    for row in rows:
        same = row.cycles_full == row.cycles_trimmed
        cycles = f"{row.cycles_full:,}" if same else f"{row.cycles_full:,}/{row.cycles_trimmed:,}"
        table.add_row(
            row.name,
            *(f"{row.saved(measure):.1%}" for measure in SAVED.values()),
            cycles,
            "same" if row.match and row.exact else "DIFFER",
        )
    console.print(table)


def trim(
    only: Annotated[
        list[str] | None,
        typer.Option(help="This application alone; may be repeated.", metavar="NAME"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"Only {' and '.join(QUICK)}: a minute or two.")
    ] = False,
    image: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw what is saved as PNG.")
    ] = None,
    json: JsonOption = None,
) -> None:
    """Trim an engine to each application, and to unions of some: area saved, cycles and results.

    Areas and simulators are kept in the build folder, so that the command goes on where it was
    broken off. The means are those of the applications without the unions.

    Example: vip bench trim --only bp --only k-means --json trim.json
    """
    check_outputs(json, image)
    if quick and only:
        raise UserError("--quick and --only exclude each other")
    names = QUICK if quick else tuple(only or ())
    choose(names)
    with units_done("trimming") as done:
        rows = measure_trims(names, done)
    found = results(rows)
    write_json(json, found)
    _show(rows)
    if image is not None:
        draw_trims(rows, image)
    console.print(
        f"means: {found['mean_ff_saved']:.1%} of flip-flops, {found['mean_lut_saved']:.1%} of LUTs"
    )
    if not all(row.match and row.exact for row in rows):
        raise UserError("a trimmed engine does not do what the full one does")
