"""What ``vip run`` and ``vip cosim program`` share: a program's memory, its end and registers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from isa.program import Program
from vip.cli.console import console, warn
from vip.cli.errors import UserError

from .options import address, reading, writing

if TYPE_CHECKING:
    from isa.hazards import Hazard

__all__ = [
    "DumpOption",
    "MemoryOption",
    "check_dump",
    "show_hazards",
    "show_model_saturated",
    "show_registers",
    "show_saturated",
]

#: More hazards than anybody reads; all are in the JSON.
_MOST_HAZARDS = 20


def _dumped(dump: Any) -> list[Path]:
    return [Path(dump[2])] if dump else []


MemoryOption = Annotated[
    Path | None,
    typer.Option(
        help="File with the memory's contents from address 0.",
        metavar="FILE",
        callback=reading(),
    ),
]
DumpOption = Annotated[
    tuple[str, str, Path] | None,
    typer.Option(
        help="Write memory afterwards; address and bytes may be hexadecimal, after 0x.",
        metavar="ADDRESS BYTES FILE",
        callback=writing(paths=_dumped),
    ),
]


def check_dump(dump: tuple[str, str, Path] | None, size: int) -> tuple[int, int, Path] | None:
    """What ``--dump`` writes after the run: address, bytes, file.

    Raises:
        UserError: what is no number, or bytes outside the memory, which has ``size``.
    """
    if dump is None:
        return None
    first, count, path = address(dump[0]), address(dump[1]), dump[2]
    if first + count > size:
        raise UserError(
            f"--dump {first} {count}: the bytes must be within 0 to {size:#x}, the memory's end"
        )
    return first, count, path


def show_hazards(program: Program, hazards: Sequence["Hazard"]) -> None:
    """Print a line for each hazard on standard error; beyond the first twenty how many more."""
    for hazard in hazards[:_MOST_HAZARDS]:
        warn(f"hazard: {hazard.describe(program.source)}")
    if len(hazards) > _MOST_HAZARDS:
        warn(f"hazard: {len(hazards) - _MOST_HAZARDS} more")


def show_saturated(program: Program, saturated: Sequence[int]) -> None:
    """Print a line on standard error if values of vector instructions saturated.

    Parameters:
        saturated: how many for each word of the program.
    """
    if not any(saturated):
        return
    most = max(range(len(saturated)), key=saturated.__getitem__)
    line = program.source.get(most)
    place = f"word {most}" if line is None else f"word {most} ({line.file}:{line.line})"
    warn(
        f"saturation: {sum(saturated)} values were limited to the width of their element, "
        f"{saturated[most]} of them at {place}"
    )


def show_model_saturated(values: int) -> None:
    """Print a line on standard error if ``values``, of a golden model, saturated."""
    if values:
        warn(f"saturation: {values} values were limited to the width of their element")


def show_registers(registers: Sequence[int]) -> None:
    """Print the registers that are not 0, as hexadecimal and as signed decimal numbers."""
    table = Table(title="registers that are not 0")
    table.add_column("register")
    table.add_column("hexadecimal", justify="right")
    table.add_column("decimal", justify="right")
    for number, value in enumerate(registers):
        if value:
            signed = value - (1 << 64) if value >> 63 else value
            table.add_row(f"r{number}", f"{value:#x}", str(signed))
    if table.row_count:
        console.print(table)
