"""The options ``--preset`` and ``--config`` of commands that take any configuration."""

from pathlib import Path
from typing import Annotated

import typer

from vip.cli.commands.options import reading
from vip.cli.errors import UserError

DesignPresetOption = Annotated[
    str | None,
    typer.Option(
        "--preset", metavar="NAME", help="Named configuration (see vip presets).", show_default="pe"
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Configuration as JSON, as written by vip trim --device (instead of --preset).",
        callback=reading(),
    ),
]


def chosen(preset: str | None, file: Path | None) -> str | Path:
    """The requested configuration; by default, the preset ``pe``.

    Raises:
        UserError: both are given.
    """
    if file is not None and preset is not None:
        raise UserError("--config and --preset can't be combined")
    return file or ("pe" if preset is None else preset)
