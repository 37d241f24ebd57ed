"""``vip bench kernels``: times of layers of neural networks, from tiles that are run."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich import box
from rich.table import Table

from sim_tb.cosim.machine import Timed
from sim_tb.measure.kernel_rows import KernelRow
from sim_tb.measure.kernels import NAMES, QUICK, QUICK_ROUNDS, ROUNDS
from sim_tb.measure.kernels_beside import ComparedRow, beside
from sim_tb.measure.plots.roofline import draw_roofline
from sim_tb.runner.build import need_simulator
from soc.generate.generate import configuration_json
from soc.generate.presets import tile_preset
from vip.cli.console import console, shown
from vip.cli.errors import UserError
from vip.kernel_times import kernel_times
from vip.output import write_json

from ..options import JobsOption, JsonOption, SchedulerOption, drawing

__all__ = ["kernels"]

_TILE = "vault"
_On = Literal["rtl", "model", "both"]


def _show(rows: list[KernelRow]) -> None:
    table = Table(
        title="Milliseconds on 32 vaults, from one tile; GB/s, Gop/s and busy of its vault",
        box=box.SIMPLE,
    )
    table.add_column("kernel")
    for column in ("batch", "limit", "thesis", "ours", "GB/s", "Gop/s", "busy", "run"):
        table.add_column(column, justify="right")
    table.add_column("scaled by")
    table.add_column("outputs", min_width=7)
    for row in rows:
        table.add_row(
            row.name,
            str(row.batch),
            f"{row.limit_ms:.3f}",
            "" if row.thesis_ms is None else f"{row.thesis_ms:.3f}",
            f"{row.ours_ms:.3f}",
            f"{row.gbs:.2f}" if row.gbs else "",
            f"{row.gops:.2f}" if row.gops else "",
            f"{row.busy:.0%}" if row.cycles else "",
            f"{row.share:.0%}" if row.cycles else "",
            row.scaled,
            "exact" if row.match else "DIFFER",
        )
    console.print(table)


def _show_both(rows: list[ComparedRow]) -> None:
    """Cycles of both machines, without sums."""
    table = Table(title="Cycles of the runs", box=box.SIMPLE)
    table.add_column("kernel")
    for column in ("batch", "timing model", "Verilog", "difference"):
        table.add_column(column, justify="right")
    for one in rows:
        if one.verilog:
            table.add_row(
                one.row.name,
                str(one.row.batch),
                f"{one.row.cycles:,}",
                f"{one.verilog:,}",
                f"{one.percent:+.2f} %" if one.percent else "0",
            )
    console.print(table)


def kernels(
    layer: Annotated[
        list[str] | None,
        typer.Option(help="This layer alone, such as conv3_2; may be repeated.", metavar="NAME"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few layers, and less of each: about a minute.")
    ] = False,
    whole: Annotated[
        bool,
        typer.Option("--whole", help="All filters of each tile, not the first ones: half an hour."),
    ] = False,
    roofline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=drawing(),
            help="Draw operations a second over intensity as PNG or SVG.",
        ),
    ] = None,
    on: Annotated[
        _On,
        typer.Option(
            "--on",
            help="The Verilog, the timing model, or the model with the Verilog's cycles beside it.",
        ),
    ] = "rtl",
    scheduler: SchedulerOption = None,
    jobs: JobsOption = None,
    json: JsonOption = None,
) -> None:
    """BP-M, layers of VGG-16, an LSTM: a tile of each on a vault with DRAM timing, outputs checked.

    Finished kernels are cached in the build folder, so that an interrupted command continues.

    With --on both, a run that takes other cycles on the timing model is exit code 1.

    Example: vip bench kernels --layer conv5_1 --layer fc8 --json kernels.json

    Example: vip bench kernels --on both
    """
    for name in layer or ():
        if name not in NAMES:
            raise UserError(f"--layer {name}: there are {', '.join(NAMES)}")
    if quick and (whole or layer):
        raise UserError("--quick goes with neither --whole nor --layer")
    names = QUICK if quick else tuple(layer or ())
    rounds = None if whole else QUICK_ROUNDS if quick else ROUNDS
    config = tile_preset(_TILE)
    if on == "both" and scheduler is None:
        need_simulator()
    with shown() as progress:
        machines: tuple[Timed, ...] = ("model", "rtl") if on == "both" else (on,)
        rows, *verilog = [
            kernel_times(
                config,
                names=names,
                rounds=rounds,
                on=machine,
                scheduler=scheduler,
                jobs=jobs,
                progress=progress,
            )
            for machine in machines
        ]
    compared = beside(rows, verilog[0]) if verilog else []
    if roofline is not None:
        draw_roofline(rows, config, roofline)
    write_json(
        json,
        {
            "on": on,
            "rows": [one.to_dict() for one in compared or rows],
            "configuration": configuration_json(config),
        },
    )
    _show(rows)
    if compared:
        _show_both(compared)
    if not all(row.match for row in rows) or any(one.percent for one in compared):
        raise typer.Exit(1)
