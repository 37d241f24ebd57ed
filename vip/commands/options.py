"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["JsonOption", "OutputDirectory", "PresetOption"]

JsonOption = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write the results as JSON, with their origin."),
]
PresetOption = Annotated[str, typer.Option("--preset", metavar="NAME", help="Named configuration.")]
OutputDirectory = Annotated[
    Path, typer.Option("-o", "--output", metavar="DIR", help="Folder to write; made if missing.")
]
