"""``vip report``: a page with the area, clock and power of an engine."""

from pathlib import Path
from typing import Annotated

import typer

import vip
from synth.physical.devices import DEVICES
from vip.cli.console import console, shown
from vip.reports.write import FILES

from .options import PresetOption, filling

__all__ = ["report"]


def report(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder to write; made if missing.", callback=filling(FILES)),
    ],
    preset_name: PresetOption = "pe",
    device: Annotated[
        list[str] | None,
        typer.Option(help=f"Place on one of {', '.join(DEVICES)} too; may be repeated."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Placements on each device.")] = 5,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Tools at a time (default: one a processor).")
    ] = None,
) -> None:
    """Write a page on an engine: area beside the thesis's, clock, power, scaling, devices.

    The page, index.html, needs no other file; the figures are also written as PNG and SVG. The
    command takes some ten minutes the first time; finished units are cached.

    Example: vip report build/report --device ecp5-85k
    """
    with shown() as progress:
        found = vip.report(
            preset_name,
            folder,
            devices=device or (),
            seeds=seeds,
            jobs=jobs,
            progress=progress,
        )
    console.print(f"written to {found.page}")
