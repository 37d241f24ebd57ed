"""``vip bench trim``: what trimming saves on each application of the suite, and is worth."""

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from sim_tb.applications import choose

from ..console import console, steps, units_done
from ..errors import UserError
from ..output import write_json
from ..trim_bench import QUICK, measure_trims
from ..trim_figure import draw_trims
from ..trim_gain import DEVICE, Gains, estimate_gains, results, simulate_gain
from ..trim_rows import CELLS, POWER_MHZ, TrimRow
from .options import JsonOption, drawing

__all__ = ["trim"]

#: Measures of area that fit the table; all are in the JSON.
_SHOWN = ("ffs", "luts")


def _show(rows: list[TrimRow], gains: Gains) -> None:
    table = Table(title="Saved by trimming", box=box.SIMPLE)
    table.add_column("engine for", no_wrap=True)
    for heading in ("FFs", "LUTs", "mW", "cycles", "engines", "gain"):
        table.add_column(heading, justify="right")
    table.add_column("results")
    for row in rows:
        same = row.cycles_full == row.cycles_trimmed
        cycles = f"{row.cycles_full:,}" if same else f"{row.cycles_full:,}/{row.cycles_trimmed:,}"
        power, gain = row.power_saved, gains[row.name]
        table.add_row(
            row.name,
            *(f"{row.saved(measure):.0%}" for measure in _SHOWN),
            "" if power is None else f"{power:.0%}",
            cycles,
            f"{gain.engines_full}/{gain.engines_trimmed}",
            f"{gain.throughput_gain:.2f}",
            "same" if row.match and row.exact else "DIFFER",
        )
    console.print(table)


def trim(
    only: Annotated[
        list[str] | None,
        typer.Option(help="This application alone; may be repeated.", metavar="NAME"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"Only {' and '.join(QUICK)}: some minutes.")
    ] = False,
    power: Annotated[
        bool, typer.Option(help=f"Estimate power with {CELLS} at {POWER_MHZ:g} MHz too.")
    ] = True,
    fill: Annotated[
        int | None,
        typer.Option(
            help=f"Fill {DEVICE} with engines of the N applications that gain most, and run them "
            "on all engines: minutes for each (default: 1; 0 with --quick or --only).",
            min=0,
            metavar="N",
        ),
    ] = None,
    image: Annotated[
        Path | None,
        typer.Option(metavar="FILE", callback=drawing(), help="Draw what is saved as PNG or SVG."),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Trim an engine to each application, and to unions of some: area, power, cycles and results.

    Areas are for Xilinx 7-series. Engines and gain are estimates of what fills a device, and of its
    throughput; the best are simulated. Finished rows are kept in the build folder, so that the
    command goes on where it was broken off. Means are those of the applications without unions.

    Example: vip bench trim --only bp --only k-means --json trim.json
    """
    if quick and only:
        raise UserError("--quick and --only exclude each other")
    names = QUICK if quick else tuple(only or ())
    chosen = choose(names)
    number = fill if fill is not None else int(not names)
    with units_done("trimming") as done:
        rows = measure_trims(names, done, power=power)
    with steps(f"filling {DEVICE}") as step:
        gains = estimate_gains(rows, step)
        best = sorted(chosen, key=lambda item: -gains[item.name].throughput_gain)[:number]
        simulated = {item.name: simulate_gain(item, step) for item in best}
    found = results(rows, gains, simulated)
    write_json(json, found)
    _show(rows, gains)
    for name, one in simulated.items():
        console.print(f"{name} on a full {DEVICE}: {one['throughput_gain']:.2f} times, simulated")
    if image is not None:
        draw_trims(rows, gains, simulated, image)
    shown = {"ff": "flip-flops", "lut": "LUTs", **({"power": "power"} if power else {})}
    texts = [f"{found[f'mean_{key}_saved']:.1%} of {label}" for key, label in shown.items()]
    console.print(f"means: {', '.join(texts)}")
    if not all(one["match"] for one in simulated.values()):
        raise UserError("engines of a chip do not do what one alone does")
    if not all(row.match and row.exact for row in rows):
        raise UserError("a trimmed engine does not do what the full one does")
