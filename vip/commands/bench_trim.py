"""``vip bench trim``: what trimming saves on each application of the suite."""

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from sim_tb.applications import choose
from synth.budget import find_budget

from ..console import console, steps, units_done
from ..errors import UserError
from ..fitting import Fitting, fit_application, fit_json
from ..output import check_outputs, write_json
from ..trim_bench import QUICK, SAVED, TrimRow, means, measure_trims, results
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
    fit: Annotated[
        str | None,
        typer.Option(
            help="Fill a device (xc7vx690t and so on) with each application's engines too, and "
            "run it on all of them: minutes for each.",
            metavar="DEVICE",
        ),
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
    chosen = choose(names)
    budget = None if fit is None else find_budget(fit)
    with units_done("trimming") as done:
        rows = measure_trims(names, done)
    found = results(rows)
    fits: dict[str, Fitting] = {}
    if budget is not None:
        with steps(f"filling {budget.name}") as step:
            fits = {item.name: fit_application(item, budget, step) for item in chosen}
        found["fits"] = {name: fit_json(one) for name, one in fits.items()}
        found["max_throughput_gain"] = max(round(one.gain, 3) for one in fits.values())
    write_json(json, found)
    _show(rows)
    for name, one in fits.items():
        console.print(f"{name}: {one.gain:.2f} times the throughput on {one.full.budget.name}")
    if image is not None:
        draw_trims(rows, image)
    mean = means(rows)
    console.print(
        f"means: {mean['mean_ff_saved']:.1%} of flip-flops, {mean['mean_lut_saved']:.1%} of LUTs"
    )
    if not all(one.match for one in fits.values()):
        raise UserError("engines of a chip do not do what one alone does")
    if not all(row.match and row.exact for row in rows):
        raise UserError("a trimmed engine does not do what the full one does")
