"""``vip bench trim``: what trimming saves on each application of the suite, and is worth."""

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from sim_tb.cosim.applications import choose
from vip.cli.console import console, shown
from vip.cli.errors import UserError
from vip.output import write_json
from vip.progress import naming
from vip.trimming.figure import draw_trims
from vip.trimming.gain import DEVICE, Gains, Simulated, estimate_gains, results, simulate_gain
from vip.trimming.rows import CELLS, POWER_MHZ, TrimRow
from vip.trimming.suite import QUICK, measure_trims

from ..options import JobsOption, JsonOption, SchedulerOption, drawing

__all__ = ["trim"]


#: Measures of area that fit the table; all are in the JSON.
_SHOWN = ("ffs", "luts")


def _gain(name: str, gains: Gains, simulated: Simulated) -> str:
    """A gain for the table: what is no more than an estimate is marked."""
    if name in simulated:
        return f"{simulated[name]['throughput_gain']:.2f}"
    return f"~{gains[name].throughput_gain:.1f}"


def _show(rows: list[TrimRow], gains: Gains, simulated: Simulated) -> None:
    """Print a table of rows."""
    table = Table(title="Saved by trimming, proved for every input", box=box.SIMPLE)
    table.add_column("engine for", no_wrap=True)
    for heading in ("FFs", "LUTs", "mW", "cycles", "more cycles", "gain"):
        table.add_column(heading, justify="right")
    table.add_column("results")

    for row in rows:
        power = row.power_saved
        table.add_row(
            row.name,
            *(f"{row.saved(measure):.1%}" for measure in _SHOWN),
            f"{power:.0%}" if power is not None else "",
            f"{row.cycles_full:,}",
            f"{row.slower:.2%}" if row.slower else "",
            _gain(row.name, gains, simulated),
            "same" if row.match and row.trimmed.exact else "DIFFER",
        )
    console.print(table)
    console.print(f"gain: throughput of a full {DEVICE}; ~ an estimate, else simulated")


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
    scheduler: SchedulerOption = None,
    jobs: JobsOption = None,
    json: JsonOption = None,
) -> None:
    """Trim engines to each application, and to unions of some: area, power, cycles and results.

    Sizes are proved for every input. Places for transfers in flight are the fewest with which the
    application takes at most 1 % more cycles. Neither the trimmed nor the full engine has
    performance counters. Areas are for Xilinx 7-series. Gains of throughput are estimates for a
    full device, marked ~; the best are simulated. Finished rows are cached in the build folder, so
    that an interrupted command continues. Means are those of the applications without unions.

    Example: vip bench trim --only bp --only k-means --json trim.json
    """
    if quick and only:
        raise UserError("--quick and --only exclude each other")
    names = QUICK if quick else tuple(only or ())
    chosen = choose(names)
    number = fill if fill is not None else int(not names)
    with shown() as progress:
        rows = measure_trims(names, power=power, scheduler=scheduler, jobs=jobs, progress=progress)
        step = naming(progress, f"filling {DEVICE}")
        gains = estimate_gains(rows, step)
        best = sorted(chosen, key=lambda item: -gains[item.name].throughput_gain)
        simulated = {item.name: simulate_gain(item, step) for item in best[:number]}
    found = results(rows, gains, simulated)
    write_json(json, found)
    _show(rows, gains, simulated)
    for name, fit in simulated.items():
        console.print(
            f"{name} on a full {DEVICE}: {fit['throughput_gain']:.2f} times, simulated, with "
            f"{fit['trimmed']['gigabytes_per_second']:.1f} GB/s at {fit['clock_mhz']:g} MHz; "
            f"{fit['board_throughput_gain']:.2f} times with the "
            f"{fit['board_gigabytes_per_second']:.1f} GB/s of a {fit['board']}"
        )
    if image is not None:
        draw_trims(rows, gains, simulated, image)
    labels = {"mean_ff_saved": "flip-flops", "mean_lut_saved": "LUTs", "mean_power_saved": "power"}
    texts = [f"{found[key]:.1%} of {what}" for key, what in labels.items() if key in found]
    console.print(f"means: {', '.join(texts)}")
    if not all(fit["match"] for fit in simulated.values()):
        raise UserError("engines of a chip do not do what one alone does")
    if not all(row.match and row.trimmed.exact for row in rows):
        raise UserError("a trimmed engine does not do what the full one does")
