"""``vip bench networks``: a whole network on all engines of a chip, layer by layer."""

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from sim_tb.measure.networks import NETWORKS, NetworkRun, measure_network
from sim_tb.measure.plots.networks import draw_network
from soc.generate.generate import configuration_json
from soc.generate.presets import chip_preset
from vip.cli.console import console, shown
from vip.cli.errors import UserError
from vip.output import write_json
from vip.progress import by_part

from ..option_groups.machine import TimedOption
from ..options import JsonOption, PresetOption, drawing

__all__ = ["networks"]


def _show(run: NetworkRun) -> None:
    table = Table(
        title=f"{run.name}, batch {run.batch}, {run.vaults} vaults: milliseconds", box=box.SIMPLE
    )
    table.add_column("layer")
    for column in ("moves", "computation"):
        table.add_column(column, justify="right")
    for layer, (work, moves) in run.layers.items():
        table.add_row(layer, f"{moves:.4f}" if moves else "", f"{work:.4f}")
    table.add_section()
    every = run.layers.values()
    table.add_row("all", f"{sum(moves for _, moves in every):.4f}", f"{run.ms:.4f} together")
    console.print(table)
    console.print(f"{run.activations:,} activations, all as the golden model's.")


def networks(
    name: Annotated[str, typer.Option(help=f"One of {', '.join(NETWORKS)}.")] = "little",
    preset_name: PresetOption = "tiny",
    batch: Annotated[int, typer.Option(help="Images.", min=1, max=64)] = 1,
    on: TimedOption = "model",
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", callback=drawing(), help="Draw the layers' times as PNG or SVG."
        ),
    ] = None,
    json: JsonOption = None,
) -> None:
    """A whole network on all engines of a chip, layer by layer; every activation is checked.

    VGG-16 on the thesis's chip takes the timing model some ten minutes on two processors; an
    interrupted run goes on.

    Example: vip bench networks --name vgg16 --preset thesis --json vgg16.json
    """
    if name not in NETWORKS:
        raise UserError(f"--name {name}: there are {', '.join(NETWORKS)}")
    config = chip_preset(preset_name)
    with shown() as progress:
        run = measure_network(
            name, config, batch=batch, on=on, progress=by_part(progress, "launches")
        )
    if plot is not None:
        draw_network(run, plot)
    write_json(json, {**run.to_dict(), "configuration": configuration_json(config)})
    _show(run)
