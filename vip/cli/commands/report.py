"""``vip report``: a page with the area, clock and power of an engine."""

from pathlib import Path
from typing import Annotated

import typer

from isa.support.extras import need
from isa.support.files import write_atomically
from isa.support.picture import SUFFIXES
from soc.generate.presets import preset
from synth.physical.devices import DEVICES, find_device
from vip.cli.console import console, steps
from vip.reports.collect import collect
from vip.reports.figures import FIGURES
from vip.reports.page import page

from .options import PresetOption, filling

__all__ = ["report"]

_PAGE = "index.html"
_FILES = (_PAGE, *(f"{name}{suffix}" for name in FIGURES for suffix in SUFFIXES))


def report(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder to write; made if missing.", callback=filling(_FILES)),
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

    The page, index.html, needs no other file; the figures stand beside it too, as PNG and SVG. It
    takes some ten minutes the first time; finished units are kept.

    Example: vip report build/report --device ecp5-85k
    """
    need("matplotlib", "pictures")
    need("skimage", "photographs")
    for name in device or ():
        find_device(name)
    with steps("report") as step:
        found = collect(
            preset_name,
            preset(preset_name),
            devices=device or (),
            seeds=seeds,
            jobs=jobs,
            step=step,
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        for suffix in SUFFIXES:
            draw(found, folder / f"{name}{suffix}")
    figures = {name: (folder / f"{name}.png").read_bytes() for name in FIGURES}
    write_atomically(folder / _PAGE, page(found, figures).encode())
    console.print(f"written to {folder / 'index.html'}")
