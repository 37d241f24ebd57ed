"""``vip browser``: a page that runs VIP in a browser."""

from pathlib import Path
from typing import Annotated

import typer

import vip
from vip.browser.build import PAGE_FILES
from vip.browser.runtime import FILES, RELEASE
from vip.cli.console import console
from vip.cli.groups import Answer

from .options import filling, output_option, reading


def _files(folder: Path | None) -> list[Path]:
    return [] if folder is None else [folder / name for name in FILES]


def browser(
    output: Annotated[
        Path,
        output_option("Output folder; created if missing.", filling(PAGE_FILES), "DIR"),
    ],
    pyodide: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help=f"Folder of Pyodide {RELEASE} with NumPy (default: from the extra browser).",
            callback=reading(_files),
        ),
    ] = None,
) -> Answer:
    """Write a static page that runs the assembler, simulator, manual and examples in a browser.

    The examples are belief propagation on 32 x 24 pixels and trimming. Any web server can serve the
    folder. The page needs nothing else and computes on the visitor's machine.

    Example: vip browser -o build/browser && python -m http.server -d build/browser
    """
    page = vip.browser_page(output, pyodide=pyodide)
    console.print(
        f"{page.path}: {page.files} files, {page.bytes:,} bytes; to open it, run "
        f"python -m http.server -d {output}"
    )
    return Answer(page.to_json())
