"""``vip report``: a page on a result, or on the area, clock and power of an engine."""

from pathlib import Path
from typing import Annotated

import typer

import vip
from synth.physical.devices import PLACED
from vip.cli.console import console, shown
from vip.cli.errors import UserError
from vip.cli.groups import Answer
from vip.reports.page import FILES

from .options import (
    PlacementsOption,
    PresetOption,
    ToolsOption,
    file_arguments,
    is_given,
    output_option,
    reading,
    writing_or_filling,
)

#: Ending of a page on a result.
_PAGE = ".html"
#: Default folder of a page on an engine.
_FOLDER = Path("build/report")
#: Options that apply only to an engine.
_OF_ENGINES = ("preset_name", "device", "placements", "jobs")


def _results(result: Path | None) -> list[Path]:
    """The requested result, if any.

    Raises:
        UserError: not the name of a result.
    """
    if result is None:
        return []
    if result.suffix == ".json":
        return [result]
    if result.suffix in (".s", ".vip"):
        make = f"vip cosim program {result} --json run.json, then vip report run.json"
    else:
        make = "most commands write one with --json FILE.json; -o DIR writes a page on an engine"
    raise UserError(f"{result} is not a result (its name must end in .json): {make}")


def report(
    context: typer.Context,
    result: Annotated[
        Path | None,
        typer.Argument(
            help="Result file, as written by --json (default: a page on an engine).",
            metavar="RUN.json",
            callback=reading(_results),
        ),
    ] = None,
    output: Annotated[
        Path | None,
        output_option(
            "Page about a result (default: RUN.html), or folder for a page about an engine "
            "(default: build/report).",
            writing_or_filling(_PAGE, FILES),
            "FILE|DIR",
        ),
    ] = None,
    preset_name: PresetOption = "pe",
    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DEVICE",
            help=f"Also place on this FPGA: one of {', '.join(PLACED)}; may be repeated.",
        ),
    ] = None,
    placements: PlacementsOption = 5,
    jobs: ToolsOption = None,
) -> Answer:
    """Write an interactive page about the result of any command, or about an engine.

    A page about a result shows what its JSON has: where the cycles of each engine went, roofline,
    DRAM bandwidth, links, area before and after trimming, power. It is a single file.

    A page about an engine (--preset), DIR/index.html, compares its area with the thesis's and shows
    clock, power, scaling and devices; area and power are also pictures, PNG and SVG. The first run
    takes about ten minutes; finished units are cached.

    Example: vip report bp.json -o bp.html

    Example: vip report --device ecp5-85k -o build/report
    """
    if result is not None:
        return _on_result(context, result, output)
    folder = output
    if folder is None:
        folder = _FOLDER
        file_arguments(context).fills(folder, "the folder", files=FILES)
    elif folder.suffix.lower() == _PAGE:
        raise UserError(
            f"{folder}: a page on an engine is a folder; for one on a result, name RUN.json"
        )
    with shown() as progress:
        written = vip.report(
            preset_name,
            folder,
            devices=device or (),
            seeds=placements,
            jobs=jobs,
            progress=progress,
        )
    console.print(f"written to {written.page}")
    return Answer({"page": str(written.page)})


def _on_result(context: typer.Context, result: Path, output: Path | None) -> Answer:
    for name in _OF_ENGINES:
        if is_given(context, name):
            flag = name.removesuffix("_name")
            raise UserError(f"--{flag} can't be used: {result} is a result, not an engine")
    page = output
    if page is None:
        page = result.with_suffix(_PAGE)
        file_arguments(context).writes(page, "the page")
    elif page.suffix.lower() != _PAGE:
        raise UserError(f"{page}: --output must end in {_PAGE}")
    written = vip.report_run(result, page)
    console.print(f"{page}: {written.bytes:,} bytes, {len(written.figures)} figures")
    return Answer(written.to_json())
