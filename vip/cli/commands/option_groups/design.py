"""Options of runs: design, machine, the memory's contents before, and the bytes read after."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from vip.cli.commands.options import (
    PresetOption,
    address,
    file_option,
    instead_of_preset,
    reading,
    writing,
)
from vip.cli.errors import UserError
from vip.programs import Dump, DumpError

ProgramArgument = Annotated[
    Path,
    typer.Argument(help="Program file, or assembly (.s).", metavar="PROGRAM", callback=reading()),
]
ConfigOption = Annotated[
    Path | None,
    file_option(
        "Configuration as JSON, such as vip.json of vip trim (instead of --preset).",
        instead_of_preset,
        "--config",
    ),
]


def _design(*, preset_name: PresetOption = "pe", config: ConfigOption = None) -> str | Path:
    """A preset by name, so that an error lists them all, or the file of a configuration."""
    return config or preset_name


DesignOption = Annotated[str | Path, _design]


def _dumped(dump: Any) -> list[Path]:
    return [Path(dump[2])] if dump else []


MemoryOption = Annotated[
    Path | None,
    file_option("Memory image, loaded at address 0.", reading()),
]
DumpOption = Annotated[
    tuple[str, str, Path] | None,
    typer.Option(
        help="After the run, write these bytes of memory to FILE; numbers are decimal, or "
        "hexadecimal with 0x.",
        metavar="ADDRESS BYTES FILE",
        callback=writing(paths=_dumped),
    ),
]


def dump_of(values: tuple[str, str, Path] | None) -> Dump | None:
    """The value of ``--dump``.

    Raises:
        UserError: an address or size is not a number.
    """
    if values is None:
        return None
    try:
        return Dump(address(values[0]), address(values[1]), values[2])
    except typer.BadParameter as error:
        raise UserError(f"--dump ADDRESS BYTES FILE: {error}") from None


@contextmanager
def naming_dump() -> Iterator[None]:
    """Name the option in the error for bytes outside the memory."""
    try:
        yield
    except DumpError as error:
        raise UserError(f"--{error}") from None
