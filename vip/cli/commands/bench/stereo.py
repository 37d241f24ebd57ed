"""``vip bench stereo``: depth of a whole pair of photographs, with its error against the truth."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from microkernels.data.stereo import motorcycle
from microkernels.data.stereo_picture import draw
from sim_tb.measure.stereo import measure_stereo
from soc.generate.generate import configuration_json
from soc.generate.presets import tile_preset
from vip.cli.console import console, shown
from vip.output import write_json
from vip.progress import counting

from ..options import JsonOption, drawing

__all__ = ["stereo"]

_TILE = "vault"


def stereo(
    width: Annotated[int, typer.Option(help="Columns of the grid; the pair has 741.")] = 741,
    height: Annotated[int, typer.Option(help="Its rows; the pair has 500.")] = 500,
    labels: Annotated[int, typer.Option(help="Ranges of disparities.")] = 16,
    coarse: Annotated[
        int, typer.Option(help="Iterations on a quarter of the size.", min=0, max=1000)
    ] = 5,
    iterations: Annotated[int, typer.Option(help="Iterations on the grid.", min=0, max=1000)] = 5,
    verilog: Annotated[
        bool,
        typer.Option("--verilog", help="On a vault's Verilog too: half an hour for all pixels."),
    ] = False,
    image: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=drawing(),
            help="Draw photograph, truth and result as PNG or SVG.",
        ),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Hierarchical BP-M on the Motorcycle pair: disparities, and their error against the truth.

    Example: vip bench stereo --width 370 --height 250 --verilog --image stereo.png
    """
    scene = motorcycle(width, height, labels)
    config = tile_preset(_TILE)
    with shown() as progress:
        figures, chosen = measure_stereo(
            scene,
            config,
            coarse_iterations=coarse,
            iterations=iterations,
            verilog=verilog,
            progress=counting(progress, "stereo (cycles)"),
        )
    if image is not None:
        where = "Verilog" if verilog else "golden model"
        draw(scene, chosen, image, caption=f"{where}, {coarse} + {iterations} iterations")
    write_json(json, {**figures.to_dict(), "configuration": configuration_json(config)})
    table = Table(
        title=f"Motorcycle, {width} x {height} pixels, {labels} labels", show_header=False
    )
    table.add_column()
    table.add_column(justify="right")
    table.add_row("off by more than a label", f"{figures.percent_wrong:.2f} %")
    table.add_row("mean error, pixels of the photograph", f"{figures.mean_error:.2f}")
    table.add_row("energy", f"{figures.energy:,}")
    for name, cycles in figures.cycles.items():
        table.add_row(f"cycles of {name}", f"{cycles:,}")
    if figures.cycles:
        table.add_row("messages", "exact" if figures.match else "DIFFER")
    console.print(table)
    if not figures.match:
        raise typer.Exit(1)
