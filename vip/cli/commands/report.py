"""``vip report``: a page on a result, or on the area, clock and power of an engine."""

from pathlib import Path
from typing import Annotated

import typer

import vip
from synth.physical.devices import PLACED
from vip.cli.console import console, shown
from vip.cli.errors import UserError
from vip.output import write_json
from vip.reports.write import FILES

from .options import (
    JsonOption,
    PresetOption,
    SeedsOption,
    ToolsOption,
    file_arguments,
    is_given,
    reading_or_filling,
    writing,
)

__all__ = ["report"]


#: Ending of results; any other name is a folder's.
_RESULT = ".json"
#: Options that say something about an engine alone.
_OF_ENGINES = ("preset_name", "device", "seeds", "jobs")


def report(
    context: typer.Context,
    folder: Annotated[
        Path,
        typer.Argument(
            help="Result of a command, as --json writes it; or folder to write, made if missing.",
            metavar="RUN.json|FOLDER",
            callback=reading_or_filling(_RESULT, FILES),
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Page on a result (default: RUN.html).",
            metavar="FILE",
            callback=writing(".html"),
        ),
    ] = None,
    preset_name: PresetOption = "pe",
    device: Annotated[
        list[str] | None,
        typer.Option(help=f"Place on one of {', '.join(PLACED)} too; may be repeated."),
    ] = None,
    seeds: SeedsOption = 5,
    jobs: ToolsOption = None,
    json: JsonOption = None,
) -> None:
    """Write an interactive page on a result of any command, or a page on an engine.

    Of a result the page shows what its JSON has: where the cycles of each engine went, roofline,
    DRAM bandwidth, links, area before and after trimming, power. It needs no other file.

    Of an engine (--preset) the page, index.html in FOLDER, shows area beside the thesis's, clock,
    power, scaling and devices; the figures are also written as PNG and SVG. This takes some ten
    minutes the first time; finished units are cached.

    Example: vip report bp.json -o bp.html

    Example: vip report build/report --device ecp5-85k
    """
    if folder.suffix == _RESULT:
        _on_result(context, folder, output, json)
        return
    if output is not None:
        raise UserError("--output is of a page on a result; a page on an engine is in its folder")
    with shown() as progress:
        written = vip.report(
            preset_name,
            folder,
            devices=device or (),
            seeds=seeds,
            jobs=jobs,
            progress=progress,
        )
    console.print(f"written to {written.page}")
    write_json(json, {"page": str(written.page)})


def _on_result(
    context: typer.Context, result: Path, output: Path | None, json: Path | None
) -> None:
    for name in _OF_ENGINES:
        if is_given(context, name):
            flag = name.removesuffix("_name")
            raise UserError(f"--{flag} can't be used: {result} is a result, not an engine")
    page = output
    if page is None:
        page = result.with_suffix(".html")
        file_arguments(context).writes(page, "the page")
    page_written = vip.report_run(result, page)
    write_json(json, page_written.to_json())
    console.print(f"{page}: {page_written.bytes:,} bytes, {len(page_written.figures)} figures")
